"""
Tests PyPI's openai.  The client parses each answer into its own types and
raises its own exceptions.
"""

import asyncio
import json
import os
import time

import httpx
import openai

from server import LATE, MODEL, PICTURE, ROOT, SLOW, SMALL, URL, data_url, load, raises, until
from tap import test

# The client does not retry, so that a test sees each refusal.
c = openai.OpenAI(base_url=URL + '/v1', api_key='none', max_retries=0, timeout=60)
slow = openai.OpenAI(base_url=SLOW + '/v1', api_key='none', max_retries=0, timeout=60)
late = openai.OpenAI(base_url=LATE + '/v1', api_key='none', max_retries=0, timeout=60)

ASK = [{'role': 'user', 'content': 'How many objects are on the table?'}]


def chat(messages=ASK, client=c, **fields):
    return client.chat.completions.create(model=MODEL, messages=messages, **({'max_tokens': 12} | fields))


def said(messages=ASK, **fields):
    return chat(messages, **fields).choices[0].message.content


def about(*parts):
    """Makes a message of texts and of pictures, given as paths."""

    return [{'role': 'user', 'content': [
        {'type': 'image_url', 'image_url': {'url': data_url(p)}} if p.startswith('/') else {'type': 'text', 'text': p}
        for p in parts]}]


def joined(stream):
    """Returns the text of a stream, its finish reason, and its usage."""

    text, finish, usage = '', None, None

    for event in stream:
        usage = event.usage or usage

        for choice in event.choices:
            assert finish is None, 'the stream goes on after its end'
            text += choice.delta.content or ''
            finish = choice.finish_reason

    return text, finish, usage


def count(usage):
    """Returns the counts that are equal for a repeated request."""

    return usage.prompt_tokens, usage.completion_tokens, usage.total_tokens


@test
def a_chat():
    r = chat()
    assert r.object == 'chat.completion' and r.id.startswith('chatcmpl-') and r.model == MODEL
    assert abs(r.created - time.time()) < 60 and r.system_fingerprint
    (choice,) = r.choices
    assert choice.index == 0 and choice.message.role == 'assistant' and choice.message.content
    assert choice.message.refusal is None and choice.message.tool_calls is None
    assert choice.finish_reason in ('stop', 'length')


@test
def usage_adds_up_and_pictures_are_tokens_of_the_prompt():
    text, picture = chat().usage, chat(about(ASK[0]['content'], PICTURE)).usage
    for u in (text, picture):
        assert u.total_tokens == u.prompt_tokens + u.completion_tokens and 0 < u.completion_tokens <= 12
    assert picture.prompt_tokens > text.prompt_tokens + 10, (picture, text)


@test
def a_video_is_a_list_of_frames():
    frame = data_url(SMALL).split(',')[1]

    def ask(n, kind='jpeg', **fields):
        return chat([{'role': 'user', 'content': [
            {'type': 'video_url', 'video_url': {'url': f'data:video/{kind};base64,' + ','.join([frame] * n)}, **fields},
            {'type': 'text', 'text': 'What happens?'}]}])

    two, three, four = (ask(n).usage.prompt_tokens for n in (2, 3, 4))
    assert three == four and four > two + 20, (two, three, four)
    assert ask(4, fps=1).usage.prompt_tokens == four
    with raises(openai.BadRequestError, code='unsupported_video_format', param='messages.0.content.0', message='decodes no video files'):
        ask(1, kind='mp4')


@test
def cached_tokens_are_reported():
    ask = [{'role': 'user', 'content': 'Is there something that nobody has asked for yet, on this table?'}]
    first, second = chat(ask).usage, chat(ask).usage
    assert first.prompt_tokens == second.prompt_tokens
    assert second.prompt_tokens_details.cached_tokens > first.prompt_tokens_details.cached_tokens, (first, second)


@test
def the_demo_model_counts_what_is_in_a_picture():
    assert said(about(PICTURE, ASK[0]['content'])).strip().strip('.').isdigit()


@test
def a_stream_is_the_same_as_the_whole():
    whole = chat(about(PICTURE, 'Where is it?'))
    text, finish, usage = joined(chat(about(PICTURE, 'Where is it?'), stream=True,
                                      stream_options={'include_usage': True}))
    assert (text, finish) == (whole.choices[0].message.content, whole.choices[0].finish_reason)
    assert count(usage) == count(whole.usage), (usage, whole.usage)


@test
def a_stream_without_usage_has_none():
    events = list(chat(stream=True))
    assert all(e.usage is None for e in events) and len({e.id for e in events}) == 1
    assert events[0].choices[0].delta.role == 'assistant'
    assert events[-1].choices[0].finish_reason in ('stop', 'length')


@test
def the_package_s_own_collector_of_a_stream():
    with c.chat.completions.stream(model=MODEL, messages=ASK, max_tokens=200) as stream:
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert {'chunk', 'content.delta', 'content.done'} <= kinds, kinds
    assert final.choices[0].message.content == said(max_tokens=200)


@test
def several_pictures_in_any_turn():
    one = chat(about(SMALL, 'What is it?'))
    two = chat(about(SMALL, SMALL, 'What is it?'))
    turn = about(SMALL, 'What is it?') + [{'role': 'assistant', 'content': 'A cup.'}] + about(SMALL, 'And this?')
    assert two.usage.prompt_tokens > one.usage.prompt_tokens and chat(turn).usage.prompt_tokens > two.usage.prompt_tokens


@test
def a_conversation_with_the_answer_as_it_came():
    first = chat()
    more = chat(ASK + [first.choices[0].message, {'role': 'user', 'content': 'Why?'}])
    assert more.usage.prompt_tokens > first.usage.prompt_tokens + first.usage.completion_tokens


@test
def system_and_developer_are_the_same():
    r = [chat([{'role': role, 'content': 'Be short.'}] + ASK) for role in ('system', 'developer')]
    assert count(r[0].usage) == count(r[1].usage) and r[0].choices[0].message.content == r[1].choices[0].message.content


@test
def a_completion():
    r = c.completions.create(model=MODEL, prompt='The table has', max_tokens=8, logprobs=2)
    assert r.object == 'text_completion' and r.id.startswith('cmpl-') and r.usage.completion_tokens <= 8
    p = r.choices[0].logprobs
    assert len(p.tokens) == len(p.token_logprobs) == len(p.top_logprobs) == len(p.text_offset) == r.usage.completion_tokens
    parts = list(c.completions.create(model=MODEL, prompt='The table has', max_tokens=8, stream=True))
    assert ''.join(x.choices[0].text for x in parts if x.choices) == r.choices[0].text


def never_ends():
    """Returns a bias against the ids that end an answer of the demo model."""

    with open(os.path.join(ROOT, 'demo/model/generation_config.json')) as file:
        ends = json.load(file)['eos_token_id']

    return {str(i): -100 for i in (ends if isinstance(ends, list) else [ends])}


@test
def max_tokens_under_both_its_names():
    sampling = dict(temperature=2, logit_bias=never_ends(), seed=1)
    assert chat(max_tokens=3, **sampling).usage.completion_tokens == 3
    assert chat(max_tokens=openai.NOT_GIVEN, max_completion_tokens=4, **sampling).usage.completion_tokens == 4
    r = chat(max_tokens=9, max_completion_tokens=5, **sampling)
    assert r.usage.completion_tokens == 5 and r.choices[0].finish_reason == 'length'


@test
def a_stop_string_ends_the_text_before_it():
    whole = said(temperature=0)
    stop = whole[len(whole) // 2]
    r = chat(temperature=0, stop=[stop])
    assert r.choices[0].message.content == whole[:whole.index(stop)] and r.choices[0].finish_reason == 'stop'
    assert joined(chat(temperature=0, stop=stop, stream=True))[:2] == (r.choices[0].message.content, 'stop')


@test
def a_seed_repeats_an_answer():
    hot = dict(temperature=2, top_p=1, max_tokens=20)
    a, b, other = (said(seed=s, **hot) for s in (7, 7, 8))
    assert a == b != other, (a, b, other)


@test
def penalties_and_bias():
    assert said(frequency_penalty=1.5, presence_penalty=-0.5, top_p=0.9) is not None
    for bias, same in ((100, True), (-100, False)):
        r = chat(logit_bias={'65': bias}, logprobs=True, max_tokens=4)
        texts = {t.token for t in r.choices[0].logprobs.content}
        assert (texts == {'b'}) == same, texts


@test
def log_probabilities():
    r = chat(logprobs=True, top_logprobs=3, temperature=0)
    tokens = r.choices[0].logprobs.content
    assert len(tokens) == r.usage.completion_tokens
    for t in tokens:
        assert t.logprob <= 0 and len(t.top_logprobs) == 3 and t.top_logprobs[0].token == t.token
        assert t.top_logprobs[0].logprob >= t.top_logprobs[2].logprob
    text = b''.join(bytes(t.bytes) for t in tokens).decode()
    assert text.startswith(r.choices[0].message.content)
    parts = [t for e in chat(logprobs=True, top_logprobs=3, temperature=0, stream=True)
             for x in e.choices if x.logprobs for t in x.logprobs.content]
    assert [t.model_dump() for t in parts] == [t.model_dump() for t in tokens]


@test
def json_mode():
    r = chat(response_format={'type': 'json_object'}, temperature=1.5, max_tokens=40)
    assert isinstance(json.loads(r.choices[0].message.content), dict) and r.choices[0].finish_reason == 'stop'
    text, _, _ = joined(chat(response_format={'type': 'json_object'}, temperature=1.5, max_tokens=40, stream=True))
    assert isinstance(json.loads(text), dict)


@test
def tools_are_called():
    add = {'type': 'function', 'function': {'name': 'add', 'strict': True, 'parameters': {
        'type': 'object', 'properties': {'a': {'type': 'integer', 'minimum': -9, 'maximum': 9}, 'b': {'enum': ['x', 'y']}},
        'required': ['a', 'b'], 'additionalProperties': False}}}
    stop = {'type': 'function', 'function': {'name': 'stop'}}

    for seed in range(1, 9):
        for choice in ('required', {'type': 'function', 'function': {'name': 'add'}}):
            for parallel in (True, False):
                r = chat(tools=[add, stop], tool_choice=choice, parallel_tool_calls=parallel, temperature=1.5, seed=seed, max_tokens=100)
                calls = r.choices[0].message.tool_calls
                assert r.choices[0].finish_reason == 'tool_calls' and (parallel or len(calls) == 1), r
                for call in calls:
                    arguments = json.loads(call.function.arguments)
                    assert call.id and call.type == 'function', r
                    if call.function.name == 'add':
                        assert -9 <= arguments['a'] <= 9 and arguments['b'] in ('x', 'y') and len(arguments) == 2, r
                    else:
                        assert call.function.name == 'stop' and arguments == {} and choice == 'required', r

    with c.chat.completions.stream(model=MODEL, messages=ASK, tools=[add], tool_choice='required', max_tokens=100, seed=1) as stream:
        call = stream.get_final_completion().choices[0].message.tool_calls[0]
    assert call.function.name == 'add' and set(call.function.parsed_arguments) == {'a', 'b'}, call

    assert said(tools=[add])
    assert said(tools=[], tool_choice='none')
    assert said(ASK + [{'role': 'assistant', 'content': None, 'tool_calls': [call.model_dump()]}, {'role': 'tool', 'tool_call_id': call.id, 'content': '4'}], tools=[add])


@test
def one_answer_a_request():
    with raises(openai.BadRequestError, code='unsupported_value', param='n'):
        chat(n=2)
    assert said(n=1)


@test
def a_picture_by_address_is_not_fetched():
    for url in ('https://example.com/cat.jpg', 'http://127.0.0.1/cat.jpg', 'file:///etc/passwd'):
        with raises(openai.BadRequestError, code='image_url_not_supported', param='messages.0.content.0',
                    message='fetches nothing'):
            chat([{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': url}}]}])


@test
def bytes_that_are_no_picture():
    with raises(openai.BadRequestError, param='messages.0.content.0'):
        chat([{'role': 'user', 'content': [
            {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,aGVsbG8='}}]}])


@test
def wrong_types_are_named():
    for field, value in (('temperature', 'hot'), ('temperature', 3), ('top_p', -1), ('max_tokens', 0), ('seed', 1.5),
                         ('stop', 7), ('logit_bias', [1]), ('presence_penalty', 9), ('stream_options', 1)):
        with raises(openai.BadRequestError, param=field):
            chat(extra_body={field: value}, **({'max_tokens': 5} if field != 'max_tokens' else {}))


@test
def unknown_fields_are_ignored():
    assert said(user='me', store=False, metadata={'a': 'b'}, service_tier='auto', parallel_tool_calls=False,
                extra_body={'something': 'new'})


@test
def a_prompt_that_is_too_long():
    with raises(openai.BadRequestError, code='context_length_exceeded', param='messages'):
        chat([{'role': 'user', 'content': 'word ' * 50000}])


@test
def a_body_that_is_too_large():
    with raises(openai.APIStatusError, status_code=413, code='content_too_large'):
        chat([{'role': 'user', 'content': 'x' * (65 << 20)}])


@test
def models():
    names = [m.id for m in c.models.list()]
    assert names == [MODEL, 'robobrain', 'qwen'], names
    m = c.models.retrieve('robobrain')
    assert m.object == 'model' and m.id == 'robobrain' and m.created > 0 and m.owned_by
    with raises(openai.NotFoundError, code='model_not_found', param='model', message=MODEL):
        c.models.retrieve('nobody')
    with raises(openai.NotFoundError, code='model_not_found', param='model', message=MODEL):
        c.chat.completions.create(model='nobody', messages=ASK)
    assert c.chat.completions.create(model='robobrain', messages=ASK, max_tokens=2).model == 'robobrain'


@test
def embeddings_as_numbers_and_in_base64():
    texts = ['a red cup', 'two blocks']
    r = c.embeddings.create(model=MODEL, input=texts)              # the package asks for base64
    plain = c.embeddings.create(model=MODEL, input=texts, encoding_format='float')
    assert r.object == 'list' and r.model == MODEL and [d.index for d in r.data] == [0, 1]
    assert r.usage.prompt_tokens == r.usage.total_tokens > 2
    for a, b in zip(r.data, plain.data):
        assert abs(sum(x * x for x in a.embedding) - 1) < 1e-5 and max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-7
    with raises(openai.BadRequestError, code='unsupported_value', param='dimensions'):
        c.embeddings.create(model=MODEL, input='hi', dimensions=7)


@test
def endpoints_that_this_server_does_not_have():
    for call in (lambda: c.images.generate(model=MODEL, prompt='hi'),
                 lambda: c.files.list()):
        with raises(openai.NotFoundError, type='invalid_request_error'):
            call()


@test
def keys_that_nginx_refuses():
    with raises(openai.AuthenticationError, status_code=401, code='invalid_api_key'):
        chat(client=c.with_options(api_key='wrong'))
    with raises(openai.PermissionDeniedError, status_code=403, code='permission_denied'):
        chat(client=c.with_options(api_key='poor'))


def begin(client=slow):
    """Begins an endless answer, which the caller closes."""

    stream = chat(client=client, stream=True, max_tokens=3500)

    while not next(stream).choices[0].delta.content:
        pass

    return stream


@test
def closing_a_stream_frees_the_slot():
    until(0, 0)
    for _ in range(3):
        stream = begin()
        assert load(SLOW) == (1, 0)
        stream.close()
        until(0, 0, seconds=10)


@test
def the_end_of_its_block_closes_a_stream():
    with begin():
        assert load(SLOW) == (1, 0)
    until(0, 0, seconds=10)


@test
def a_client_that_times_out_frees_the_slot():
    with raises(openai.APITimeoutError):
        chat(client=slow.with_options(timeout=1), max_tokens=3500)
    until(0, 0, seconds=10)


@test
def a_client_that_leaves_the_queue():
    with begin():
        with raises(openai.APITimeoutError):
            chat(client=slow.with_options(timeout=httpx.Timeout(1)))
        until(1, 0)
    until(0, 0, seconds=10)


@test
def a_cancelled_task_frees_the_slot():
    async def go():
        async with openai.AsyncOpenAI(base_url=SLOW + '/v1', api_key='none', max_retries=0) as a:
            task = asyncio.create_task(a.chat.completions.create(model=MODEL, messages=ASK, max_tokens=3500))
            while load(SLOW) != (1, 0):
                await asyncio.sleep(0.05)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(go())
    until(0, 0, seconds=10)


@test
def the_client_retries_at_a_full_queue():
    async def go():
        async with openai.AsyncOpenAI(base_url=SLOW + '/v1', api_key='none', max_retries=0) as a:
            first = begin()
            second = asyncio.create_task(a.chat.completions.create(model=MODEL, messages=ASK, max_tokens=1))
            while load(SLOW) != (1, 1):
                await asyncio.sleep(0.05)
            with raises(openai.RateLimitError, status_code=429, code='queue_full'):
                await a.chat.completions.create(model=MODEL, messages=ASK, max_tokens=1)
            patient = asyncio.create_task(
                a.with_options(max_retries=2).chat.completions.create(model=MODEL, messages=ASK, max_tokens=1))
            await asyncio.sleep(0.5)
            first.close()
            return await asyncio.gather(second, patient)

    assert [r.usage.completion_tokens for r in asyncio.run(go())] == [1, 1]
    until(0, 0)


@test
def an_answer_that_takes_too_long():
    with raises(openai.InternalServerError, status_code=504, code='timeout', message='took longer than 3 s'):
        chat(client=late, max_tokens=3500)
    with raises(openai.APIError, code='timeout', message='took longer than 3 s'):
        joined(chat(client=late, stream=True, max_tokens=3500))
    until(0, 0, url=LATE)


@test
def several_at_once():
    async def go():
        async with openai.AsyncOpenAI(base_url=URL + '/v1', api_key='none') as a:
            async def one(i):
                ask = [{'role': 'user', 'content': f'What is it, {i}?'}]
                r = await a.chat.completions.create(model=MODEL, messages=ask, max_tokens=12, stream=bool(i % 2))
                if i % 2:
                    return ''.join([e.choices[0].delta.content or '' async for e in r])
                return r.choices[0].message.content

            return await asyncio.gather(*(one(i) for i in range(8)))

    answers = asyncio.run(go())
    alone = [said([{'role': 'user', 'content': f'What is it, {i}?'}]) for i in range(8)]
    assert answers == alone, (answers, alone)


@test
def headers_of_an_answer():
    r = c.chat.completions.with_raw_response.create(model=MODEL, messages=ASK, max_tokens=2)
    assert r.status_code == 200 and r.headers['content-type'] == 'application/json'
    assert r.parse().choices[0].message.content is not None
