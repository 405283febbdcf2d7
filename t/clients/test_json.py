"""
Tests "response_format": {"type": "json_object"} and Ollama's "format": "json"
with high temperatures and few tokens.  Every answer must parse as an object.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import ollama
import openai

from server import MODEL, PICTURE, URL, data_url
from tap import test

c = openai.OpenAI(base_url=URL + '/v1', api_key='none', max_retries=0, timeout=60)
o = ollama.Client(URL)

ASK = 'Describe the table as JSON.'
SEEDS = range(1, 201)


def ask(seed, max_tokens, stream=False, picture=None):
    content = [{'type': 'text', 'text': ASK}]

    if picture:
        content.insert(0, {'type': 'image_url', 'image_url': {'url': picture}})

    return c.chat.completions.create(
        model=MODEL, messages=[{'role': 'user', 'content': content}], seed=seed, max_tokens=max_tokens,
        temperature=1.5, top_p=1, stream=stream, response_format={'type': 'json_object'})


def whole(seed, max_tokens, **fields):
    r = ask(seed, max_tokens, **fields)
    assert r.usage.completion_tokens <= max_tokens, r
    assert r.choices[0].finish_reason == 'stop', r

    return r.choices[0].message.content


def streamed(seed, max_tokens):
    return ''.join(x.delta.content or '' for e in ask(seed, max_tokens, stream=True) for x in e.choices)


def by_ollama(seed, max_tokens):
    options = {'seed': seed, 'temperature': 1.5, 'top_p': 1.0, 'num_predict': max_tokens}
    r = o.generate(MODEL, ASK, format='json', options=options)
    assert r.eval_count <= max_tokens and r.done_reason == 'stop', r

    return r.response


def all_parse(texts):
    """Checks that all answers, several at once, parse and are not all equal."""

    texts = list(texts)

    for text in texts:
        try:
            assert isinstance(json.loads(text), dict)
        except (ValueError, AssertionError) as error:
            raise AssertionError(f'{error}: {text!r}')

    assert len(set(texts)) > len(texts) / 4, f'{len(set(texts))} of {len(texts)} differ'


@test
def of_200_answers_at_temperature_1_5_200_parse():
    with ThreadPoolExecutor(8) as pool:
        all_parse(pool.map(lambda seed: whole(seed, 48), SEEDS))


@test
def of_200_with_2_to_25_tokens_200_parse():
    with ThreadPoolExecutor(8) as pool:
        all_parse(pool.map(lambda seed: whole(seed, 2 + seed // 8), SEEDS))


@test
def of_50_streams_50_parse():
    with ThreadPoolExecutor(8) as pool:
        all_parse(pool.map(lambda seed: streamed(seed, 2 + seed), SEEDS[:50]))


@test
def of_50_about_a_picture_50_parse():
    picture = data_url(PICTURE)

    with ThreadPoolExecutor(8) as pool:
        all_parse(pool.map(lambda seed: whole(seed, 24, picture=picture), SEEDS[:50]))


@test
def of_50_of_ollama_50_parse():
    with ThreadPoolExecutor(8) as pool:
        all_parse(pool.map(lambda seed: by_ollama(seed, 2 + seed), SEEDS[:50]))


@test
def a_seed_has_the_same_object_again():
    assert whole(7, 32) == whole(7, 32) == streamed(7, 32) == by_ollama(7, 32)
