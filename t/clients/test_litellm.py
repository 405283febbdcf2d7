"""
Tests PyPI's litellm by its providers for OpenAI and Ollama.  The release of the Makefile is an older, smaller one;
the tests also pass with 1.110.2.
"""

import json
import os

os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'     # else it asks the network at its import

import litellm                                          # noqa: E402

from server import MODEL, PICTURE, URL, data_url, raises          # noqa: E402
from tap import test                                    # noqa: E402

litellm.suppress_debug_info = True

ASK = [{'role': 'user', 'content': 'Where is the red cup?'}]
SCHEMA = {'type': 'object', 'properties': {'x': {'type': 'integer', 'minimum': 0, 'maximum': 9}}, 'required': ['x'],
          'additionalProperties': False}
FORM = {'type': 'json_schema', 'json_schema': {'name': 'place', 'schema': SCHEMA, 'strict': True}}
TOOL = {'type': 'function', 'function': {'name': 'grasp', 'parameters': SCHEMA}}


def ask(messages=ASK, provider='openai', **fields):
    fields = {'max_tokens': 64, 'seed': 1, 'num_retries': 0, 'model': f'{provider}/{MODEL}', **fields}

    return litellm.completion(messages=messages, api_base=URL + '/v1' * (provider == 'openai'), api_key='none', **fields)


# The older release leaves out pieces of white space alone.
@test
def a_stream_has_the_words_of_the_whole_answer():
    for provider in ('openai', 'ollama_chat'):
        whole = ask(provider=provider).choices[0].message.content
        pieces = ''.join(e.choices[0].delta.content or '' for e in ask(provider=provider, stream=True))
        assert whole and ''.join(pieces.split()) == ''.join(whole.split()), (whole, pieces)


@test
def a_picture_is_tokens_of_the_prompt():
    parts = [{'type': 'text', 'text': 'it'}, {'type': 'image_url', 'image_url': {'url': data_url(PICTURE)}}]
    with_it, without = (ask([{'role': 'user', 'content': p}]).usage.prompt_tokens for p in (parts, parts[:1]))
    assert with_it > without + 10, (with_it, without)


@test
def answers_follow_schemas():
    for seed in range(1, 5):
        r = ask(seed=seed, temperature=1.5, response_format=FORM)
        assert 0 <= json.loads(r.choices[0].message.content)['x'] <= 9, r


@test
def tools_are_called():
    r = ask(temperature=1.5, max_tokens=120, tools=[TOOL], tool_choice='required').choices[0]
    assert r.finish_reason == 'tool_calls' and 0 <= json.loads(r.message.tool_calls[0].function.arguments)['x'] <= 9, r


@test
def texts_have_vectors():
    r = litellm.embedding(model=f'openai/{MODEL}', api_base=URL + '/v1', api_key='none', input=['a red cup', 'two blocks'])
    assert [len(v['embedding']) for v in r.data] == [256, 256]


@test
def errors_have_litellms_own_kinds():
    with raises(litellm.NotFoundError):
        ask(model='openai/other')
    with raises(litellm.BadRequestError):
        ask(temperature=7)
    with raises(litellm.ContextWindowExceededError):
        ask([{'role': 'user', 'content': 'word ' * 20000}])
