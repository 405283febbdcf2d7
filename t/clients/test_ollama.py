"""
Tests PyPI's ollama.  The client parses each answer into its own types and
raises its own exceptions.
"""

import asyncio
import base64
import concurrent.futures
import json
from datetime import datetime

import httpx
import ollama

from server import LATE, MODEL, SLOW, SMALL, URL, raises, until
from tap import test

c = ollama.Client(URL)
slow = ollama.Client(SLOW)

SAME = {'temperature': 0, 'num_predict': 12}
ASK = [{'role': 'user', 'content': 'What is it?'}]


def fails(status, what, call):
    with raises(ollama.ResponseError, status_code=status, error=what):
        call()


@test
def a_list_of_models():
    models = c.list().models
    assert models[0].model == MODEL + ':latest', models
    assert models[0].size > 0 and len(models[0].digest) == 64 and models[0].modified_at.year > 2000
    assert models[0].details.family.startswith('qwen'), models[0].details


@test
def the_loaded_model():
    c.generate(MODEL)
    (model,) = c.ps().models
    assert model.name == MODEL + ':latest' and model.expires_at.year > 2100 and model.context_length > 0
    assert 0 <= model.size_vram <= model.size, (model.size_vram, model.size)


@test
def facts_of_the_model():
    show = c.show(MODEL)
    family = show.modelinfo['general.architecture']
    assert {'completion', 'vision', 'tools'} <= set(show.capabilities), show.capabilities
    assert show.modelinfo['general.parameter_count'] > 0
    assert show.modelinfo[family + '.context_length'] == c.ps().models[0].context_length
    assert show.template and show.details.parameter_size and show.modified_at.year > 2000


@test
def a_chat():
    r = c.chat(MODEL, ASK, options=SAME)
    assert r.message.role == 'assistant' and r.message.content and r.model == MODEL
    assert r.done and r.done_reason in ('stop', 'length'), r
    assert r.prompt_eval_count > 0 and 0 < r.eval_count <= 12
    assert r.total_duration >= r.eval_duration > 0 and r.prompt_eval_duration > 0


@test
def a_chat_in_pieces_is_the_same():
    whole = c.chat(MODEL, ASK, options=SAME)
    parts = list(c.chat(MODEL, ASK, options=SAME, stream=True))
    assert ''.join(p.message.content for p in parts) == whole.message.content
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True] and len(parts) > 1
    assert parts[-1].eval_count == whole.eval_count and parts[-1].done_reason == whole.done_reason
    assert all(datetime.fromisoformat(p.created_at.replace('Z', '+00:00')) for p in parts)


@test
def a_completion_is_the_same_as_a_chat():
    chat = c.chat(MODEL, [{'role': 'system', 'content': 'Be short.'}] + ASK, options=SAME)
    r = c.generate(MODEL, 'What is it?', system='Be short.', options=SAME)
    parts = list(c.generate(MODEL, 'What is it?', system='Be short.', options=SAME, stream=True))
    assert r.response == chat.message.content == ''.join(p.response for p in parts)
    assert r.prompt_eval_count == chat.prompt_eval_count == parts[-1].prompt_eval_count


@test
def a_raw_completion():
    r = c.generate(MODEL, 'What is it?', raw=True, options=SAME)
    assert r.prompt_eval_count < c.generate(MODEL, 'What is it?', options=SAME).prompt_eval_count


@test
def pictures_by_path_bytes_and_base64():
    with open(SMALL, 'rb') as f:
        data = f.read()
    counts = []
    for image in (SMALL, data, base64.b64encode(data).decode()):
        r = c.chat(MODEL, [{'role': 'user', 'content': 'What is it?', 'images': [image]}], options=SAME)
        counts.append((r.prompt_eval_count, r.message.content))
    r = c.generate(MODEL, 'What is it?', images=[data], options=SAME)
    counts.append((r.prompt_eval_count, r.response))
    assert len(set(counts)) == 1, counts
    assert counts[0][0] > c.chat(MODEL, ASK, options=SAME).prompt_eval_count


@test
def a_picture_of_an_earlier_turn():
    ask = [{'role': 'user', 'content': 'What is it?', 'images': [SMALL]}]
    r = c.chat(MODEL, ask, options=SAME)
    more = c.chat(MODEL, ask + [r.message, {'role': 'user', 'content': 'Why?'}], options=SAME)
    assert more.prompt_eval_count > r.prompt_eval_count and more.message.content


@test
def bytes_that_are_no_picture():
    fails(400, '', lambda: c.generate(MODEL, 'hi', images=[b'this is text']))


@test
def json_at_any_temperature():
    for i in range(20):
        r = c.chat(MODEL, ASK, format='json', options={'temperature': 1.5, 'num_predict': 2 + 2 * i})
        assert isinstance(json.loads(r.message.content), dict), r.message.content
        assert r.done_reason == 'stop'
    parts = c.generate(MODEL, 'hi', format='json', options={'temperature': 1.5}, stream=True)
    assert isinstance(json.loads(''.join(p.response for p in parts)), dict)


@test
def a_schema_that_is_not_supported_is_refused():
    fails(400, '#/not is a keyword', lambda: c.chat(MODEL, ASK, format={'type': 'object', 'not': {}}))


@test
def seeds():
    a, b = (c.generate(MODEL, 'hi', options={'temperature': 2, 'seed': 7}).response for _ in range(2))
    assert a == b, (a, b)


@test
def the_options_of_the_package():
    r = c.chat(MODEL, ASK, options=ollama.Options(
        num_ctx=8192, num_keep=5, num_batch=2, num_gpu=1, num_thread=8, seed=42, num_predict=4, top_k=20, top_p=0.9,
        typical_p=0.7, repeat_last_n=33, temperature=0.8, repeat_penalty=1.2, presence_penalty=1.5,
        frequency_penalty=1.0, stop=['\n', 'user:'], use_mmap=True), keep_alive='10m')
    assert r.eval_count <= 4


@test
def options_that_are_wrong():
    fails(400, 'temperature', lambda: c.chat(MODEL, ASK, options={'temperature': 'hot'}))
    fails(400, 'stop', lambda: c.generate(MODEL, 'hi', options={'stop': 7}))


@test
def log_probabilities():
    r = c.chat(MODEL, ASK, logprobs=True, top_logprobs=3, options=SAME)
    assert len(r.logprobs) > 0 and ''.join(t.token for t in r.logprobs).startswith(r.message.content)
    assert all(t.logprob <= 0 and len(t.top_logprobs) == 3 for t in r.logprobs)
    assert all(t.top_logprobs[0].logprob >= t.top_logprobs[2].logprob for t in r.logprobs)
    parts = list(c.chat(MODEL, ASK, logprobs=True, top_logprobs=3, options=SAME, stream=True))
    assert [t for p in parts for t in p.logprobs or []] == list(r.logprobs)


@test
def a_name_that_is_unknown():
    fails(404, 'not found', lambda: c.chat('nobody', ASK))
    fails(404, 'not found', lambda: list(c.chat('nobody', ASK, stream=True)))
    fails(404, 'not found', lambda: c.show('nobody'))


@test
def the_name_with_its_tag():
    assert c.chat(MODEL + ':latest', ASK, options=SAME).model == MODEL + ':latest'


@test
def tools_and_no_thinking():
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    r = c.chat(MODEL, ASK, tools=[add], options=SAME)
    assert r.message.content and not r.message.tool_calls, r
    messages = ASK + [{'role': 'assistant', 'tool_calls': [{'function': {'name': 'add', 'arguments': {'a': 1, 'b': 2}}}]},
                      {'role': 'tool', 'tool_name': 'add', 'content': '3'}]
    assert c.chat(MODEL, messages, tools=[add], options=SAME).message.content
    fails(400, 'does not support thinking', lambda: c.chat(MODEL, ASK, think=True))
    assert c.chat(MODEL, ASK, think=False, options=SAME).message.thinking is None


@test
def load_and_unload():
    assert c.generate(MODEL).done_reason == 'load'
    assert c.chat(MODEL).done_reason == 'load'
    assert c.generate(MODEL, keep_alive=0).done_reason == 'unload'
    assert c.ps().models, 'the model remains loaded'


@test
def a_pull_of_the_served_model():
    assert c.pull(MODEL).status == 'success'
    parts = list(c.pull(MODEL, stream=True))
    assert len(parts) > 1 and parts[-1].status == 'success', parts


@test
def operations_that_this_server_refuses():
    fails(403, 'configuration', lambda: c.pull('llava'))
    fails(403, 'configuration', lambda: c.push(MODEL))
    fails(403, 'configuration', lambda: c.create('other', from_=MODEL))
    fails(403, 'configuration', lambda: c.create_blob(SMALL))
    fails(403, 'configuration', lambda: c.copy(MODEL, 'other'))
    fails(403, 'configuration', lambda: c.delete(MODEL))


@test
def embeddings():
    r = c.embed(MODEL, ['a red cup', 'two blocks'])
    assert r.model == MODEL and len(r.embeddings) == 2 and r.prompt_eval_count > 2 and r.total_duration > 0
    assert abs(sum(x * x for x in r.embeddings[1]) - 1) < 1e-5
    assert list(c.embeddings(MODEL, 'a red cup').embedding) == list(c.embed(MODEL, 'a red cup').embeddings[0]) == list(r.embeddings[0])
    fails(400, 'tokens', lambda: c.embed(MODEL, 'word ' * 50000))


@test
def a_prompt_that_is_too_long():
    fails(400, 'tokens', lambda: c.generate(MODEL, 'word ' * 50000))


@test
def a_conversation_that_is_too_long_goes_on():
    turns = [{'role': ('user', 'assistant')[i % 2], 'content': f'turn {i}: ' + 'word ' * 100} for i in range(81)]
    r = c.chat(MODEL, turns, options=SAME)
    assert r.message.content and r.prompt_eval_count < c.ps().models[0].context_length


def begin():
    """Begins an endless answer, which the caller closes."""
    stream = slow.generate(MODEL, 'hello', options={'num_predict': -1}, stream=True)
    assert not next(stream).done
    return stream


@test
def closing_a_stream_frees_the_slot():
    until(0, 0)
    for _ in range(3):
        stream = begin()
        until(1, 0)
        stream.close()
        until(0, 0, seconds=10)


@test
def a_client_that_times_out_frees_the_slot():
    with raises(httpx.ReadTimeout):
        ollama.Client(SLOW, timeout=1).chat(MODEL, ASK, options={'num_predict': -1})
    until(0, 0, seconds=10)


@test
def a_full_queue():
    stream = begin()
    waits = ollama.Client(SLOW).generate(MODEL, 'hello', options={'num_predict': 1}, stream=True)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        second = pool.submit(lambda: list(waits)[-1].done)
        until(1, 1)
        fails(429, '', lambda: slow.generate(MODEL, 'hello'))
        stream.close()
        assert second.result()
    until(0, 0)


@test
def an_answer_that_takes_too_long():
    late = ollama.Client(LATE)
    fails(504, 'took longer than 3 s', lambda: late.generate(MODEL, 'hello'))
    fails(-1, 'took longer than 3 s', lambda: list(late.generate(MODEL, 'hello', stream=True)))
    until(0, 0, url=LATE)


@test
def several_at_once():
    async def go():
        a = ollama.AsyncClient(URL)

        async def one(i):
            ask = [{'role': 'user', 'content': f'What is it, {i}?'}]
            if i % 2:
                return ''.join([p.message.content async for p in await a.chat(MODEL, ask, options=SAME, stream=True)])
            return (await a.chat(MODEL, ask, options=SAME)).message.content

        return await asyncio.gather(*(one(i) for i in range(8)))

    answers = asyncio.run(go())
    alone = [c.chat(MODEL, [{'role': 'user', 'content': f'What is it, {i}?'}], options=SAME).message.content
             for i in range(8)]
    assert answers == alone, (answers, alone)
