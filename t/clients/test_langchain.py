"""
Tests LangChain's packages for OpenAI and Ollama, which most programs use: the
result of each answer, and the exception of each error.
"""

import asyncio
import json

import ollama
import openai
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_ollama import ChatOllama, OllamaEmbeddings, OllamaLLM
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from server import MODEL, PICTURE, SLOW, URL, data_url, load, raises, until
from tap import test

ASK = 'How many objects are on the table?'


def by_openai(url=URL, **fields):
    return ChatOpenAI(**({'base_url': url + '/v1', 'api_key': 'none', 'model': MODEL, 'max_retries': 0,
                          'max_tokens': 12, 'temperature': 0, 'stream_usage': True} | fields))


def by_ollama(url=URL, **fields):
    return ChatOllama(**({'base_url': url, 'model': MODEL, 'num_predict': 12, 'temperature': 0} | fields))


BOTH = (by_openai, by_ollama)


def about(path):
    return HumanMessage(content=[{'type': 'image_url', 'image_url': {'url': data_url(path)}},
                                 {'type': 'text', 'text': ASK}])


@test
def a_question():
    for make in BOTH:
        r = make().invoke(ASK)
        assert isinstance(r, AIMessage) and r.content and not r.tool_calls
        u = r.usage_metadata
        assert u['total_tokens'] == u['input_tokens'] + u['output_tokens'] and 0 < u['output_tokens'] <= 12
        assert r.response_metadata['model_name'] == MODEL, r.response_metadata


@test
def both_packages_have_the_same_answer():
    answers = [make().invoke([SystemMessage('Be short.'), HumanMessage(ASK)]) for make in BOTH]
    assert answers[0].content == answers[1].content and answers[0].content
    assert answers[0].usage_metadata['input_tokens'] == answers[1].usage_metadata['input_tokens']


@test
def a_picture_is_tokens_of_the_prompt():
    for make in BOTH:
        with_it, without = (make().invoke([m]).usage_metadata for m in (about(PICTURE), HumanMessage(ASK)))
        assert with_it['input_tokens'] > without['input_tokens'] + 10


@test
def a_stream():
    for make in BOTH:
        whole = make().invoke(ASK)
        parts = list(make().stream(ASK))
        total = parts[0]
        for part in parts[1:]:
            total += part
        assert total.content == whole.content and len(parts) > 2
        assert total.usage_metadata['output_tokens'] == whole.usage_metadata['output_tokens']


@test
def a_batch():
    for make in BOTH:
        alone = [make().invoke(f'What is it, {i}?').content for i in range(6)]
        assert [r.content for r in make().batch([f'What is it, {i}?' for i in range(6)])] == alone


@test
def a_chain_with_a_template():
    prompt = ChatPromptTemplate.from_messages([('system', 'You see {what}.'), ('user', '{question}')])
    for make in BOTH:
        chain = prompt | make() | StrOutputParser()
        text = chain.invoke({'what': 'a table', 'question': ASK})
        assert text and ''.join(chain.stream({'what': 'a table', 'question': ASK})) == text


@test
def a_conversation():
    for make in BOTH:
        m = make()
        first = m.invoke([about(PICTURE)])
        more = m.invoke([about(PICTURE), first, HumanMessage('Why?')])
        assert more.usage_metadata['input_tokens'] > first.usage_metadata['total_tokens']


@test
def asynchronous():
    async def go(m):
        parts = [p.content async for p in m.astream(ASK)]
        return (await m.ainvoke(ASK)).content, ''.join(parts)

    for make in BOTH:
        whole, parts = asyncio.run(go(make()))
        assert whole == parts and whole


@test
def json_mode():
    hot = by_openai(temperature=1.5, max_tokens=32)
    assert isinstance(json.loads(hot.bind(response_format={'type': 'json_object'}).invoke(ASK).content), dict)
    assert isinstance((hot.bind(response_format={'type': 'json_object'}) | JsonOutputParser()).invoke(ASK), dict)
    assert isinstance(hot.with_structured_output(method='json_mode').invoke(ASK + ' Answer in JSON.'), dict)
    hot = by_ollama(temperature=1.5, num_predict=32, format='json')
    assert isinstance(json.loads(hot.invoke(ASK).content), dict)
    assert isinstance((hot | JsonOutputParser()).invoke(ASK), dict)


@test
def a_schema_is_followed():
    schema = {'title': 'box', 'description': 'a box', 'type': 'object', 'properties': {'x': {'type': 'integer'}}}
    for make in BOTH:
        answer = make(temperature=1.5).with_structured_output(schema, method='json_schema').invoke(ASK)
        assert set(answer) <= {'x'} and all(isinstance(x, int) for x in answer.values()), answer


@test
def tools_are_called():
    def add(a: int, b: int) -> int:
        """Adds."""
        return a + b

    answer = by_openai(temperature=1.5, max_tokens=200).bind_tools([add], tool_choice='required').invoke(ASK)
    for call in answer.tool_calls:
        assert call['name'] == 'add' and {type(x) for x in call['args'].values()} == {int}, answer
    assert answer.tool_calls and not answer.invalid_tool_calls, answer

    history = [('user', 'Add 1 and 2.'), answer, *[ToolMessage('3', tool_call_id=call['id']) for call in answer.tool_calls]]
    assert by_openai().bind_tools([add]).invoke(history).content
    assert by_ollama().bind_tools([add]).invoke(history).content


@test
def log_probabilities():
    r = by_openai(logprobs=True, top_logprobs=2).invoke(ASK)
    tokens = r.response_metadata['logprobs']['content']
    assert len(tokens) == r.usage_metadata['output_tokens'] and len(tokens[0]['top_logprobs']) == 2
    parts = [p for p in by_openai(logprobs=True, top_logprobs=2).stream(ASK) if p.response_metadata.get('logprobs')]
    assert sum(len(p.response_metadata['logprobs']['content']) for p in parts) == len(tokens)


@test
def stop_strings_and_seeds():
    for make, n in ((by_openai, {'max_tokens': 20}), (by_ollama, {'num_predict': 20})):
        whole = make().invoke(ASK).content
        stop = whole[len(whole) // 2]
        assert make().invoke(ASK, stop=[stop]).content == whole[:whole.index(stop)]
        a, b, other = (make(temperature=2, seed=s, **n).invoke(ASK).content for s in (7, 7, 8))
        assert a == b != other


@test
def completions_without_a_chat():
    llm = OpenAI(base_url=URL + '/v1', api_key='none', model=MODEL, max_tokens=8, temperature=0, max_retries=0)
    text = llm.invoke('The table has')
    assert text and ''.join(llm.stream('The table has')) == text
    llm = OllamaLLM(base_url=URL, model=MODEL, num_predict=8, temperature=0)
    text = llm.invoke('The table has')
    assert text and ''.join(llm.stream('The table has')) == text


@test
def several_completions_in_one_request_are_refused():
    llm = OpenAI(base_url=URL + '/v1', api_key='none', model=MODEL, max_tokens=8, temperature=0, max_retries=0)
    with raises(openai.BadRequestError, param='prompt'):
        llm.batch(['one', 'two'])


@test
def a_model_that_is_checked_at_the_start():
    assert by_ollama(validate_model_on_init=True).invoke(ASK).content
    with raises(ValueError):
        by_ollama(validate_model_on_init=True, model='nobody')


@test
def a_name_that_is_unknown():
    with raises(openai.NotFoundError, code='model_not_found'):
        by_openai(model='nobody').invoke(ASK)
    with raises(ollama.ResponseError, status_code=404, error='not found'):
        by_ollama(model='nobody').invoke(ASK)


@test
def a_prompt_that_is_too_long():
    with raises(openai.BadRequestError, code='context_length_exceeded'):
        by_openai().invoke('word ' * 50000)
    with raises(ollama.ResponseError, status_code=400, error='tokens'):
        by_ollama().invoke('word ' * 50000)


@test
def embeddings():
    texts = ['a red cup', 'two blocks']
    a = OpenAIEmbeddings(base_url=URL + '/v1', api_key='none', model=MODEL, check_embedding_ctx_length=False,
                         max_retries=0).embed_documents(texts)
    b = OllamaEmbeddings(base_url=URL, model=MODEL).embed_documents(texts)
    assert all(abs(x - y) < 1e-6 for p, q in zip(a, b) for x, y in zip(p, q)) and len(a) == len(b) == 2


@test
def closing_a_stream_frees_the_slot():
    for m in (by_openai(SLOW, max_tokens=3500), by_ollama(SLOW, num_predict=-1)):
        until(0, 0)
        stream = m.stream(ASK)
        while not next(stream).content:
            pass
        assert load(SLOW) == (1, 0)
        stream.close()
        until(0, 0, seconds=10)


@test
def a_chain_that_is_cancelled_frees_the_slot():
    async def go(m):
        task = asyncio.create_task(m.ainvoke(ASK))
        while load(SLOW) != (1, 0):
            await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    for m in (by_openai(SLOW, max_tokens=3500), by_ollama(SLOW, num_predict=-1)):
        asyncio.run(go(m))
        until(0, 0, seconds=10)


@test
def a_full_queue():
    stream = by_openai(SLOW, max_tokens=3500).stream(ASK)
    while not next(stream).content:
        pass

    async def go():
        second = asyncio.create_task(by_openai(SLOW, max_tokens=1).ainvoke(ASK))
        while load(SLOW) != (1, 1):
            await asyncio.sleep(0.05)
        with raises(openai.RateLimitError, code='queue_full'):
            await by_openai(SLOW).ainvoke(ASK)
        stream.close()
        return await second

    assert asyncio.run(go()).usage_metadata['output_tokens'] == 1
    until(0, 0)
