"""
Tests answers that a JSON schema constrains, at a high temperature: every one must validate with the
package jsonschema, whole and streamed, eight at once.  VLM_SCHEMAS=300 is the number of schemas of each way.
"""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import jsonschema
import ollama
import openai

from schemas import schema_of
from server import MODEL, URL, raises
from tap import test

c = openai.OpenAI(base_url=URL + '/v1', api_key='none', max_retries=0, timeout=120)
o = ollama.Client(URL)

FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER
ASK = 'Describe the table as JSON.'
SCHEMAS = int(os.environ.get('VLM_SCHEMAS', 0))


def ask(seed, schema, stream=False, max_tokens=256):
    form = {'type': 'json_schema', 'json_schema': {'name': 'answer', 'schema': schema, 'strict': seed % 2 == 0}}

    return c.chat.completions.create(
        model=MODEL, messages=[{'role': 'user', 'content': ASK}], seed=seed, temperature=1.5, top_p=1,
        max_tokens=max_tokens, stream=stream, response_format=form)


def whole(seed, schema):
    r = ask(seed, schema)
    assert r.choices[0].finish_reason == 'stop', r

    return r.choices[0].message.content


def streamed(seed, schema):
    return ''.join(x.delta.content or '' for e in ask(seed, schema, stream=True) for x in e.choices)


def by_ollama(seed, schema):
    r = o.chat(MODEL, [{'role': 'user', 'content': ASK}], format=schema,
               options={'seed': seed, 'temperature': 1.5, 'top_p': 1.0, 'num_predict': 256})
    assert r.done_reason == 'stop', r

    return r.message.content


def check(way, seed):
    schema = schema_of(seed)
    text = way(seed, schema)

    try:
        jsonschema.Draft202012Validator(schema, format_checker=FORMATS).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError) as error:
        raise AssertionError(f'{seed}: {str(error)[:200]}: {text!r} of {json.dumps(schema)[:600]}')

    return text


def all_validate(way, first, number):
    seeds = range(first, first + (SCHEMAS or number))

    with ThreadPoolExecutor(8) as pool:
        texts = list(pool.map(lambda seed: check(way, seed), seeds))

    assert len(set(texts)) > len(texts) / 2, f'{len(set(texts))} of {len(texts)} differ'


@test
def answers_to_300_random_schemas_validate():
    all_validate(whole, 0, 300)


@test
def streams_of_100_random_schemas_validate():
    all_validate(streamed, 300, 100)


@test
def ollamas_answers_to_50_random_schemas_validate():
    all_validate(by_ollama, 400, 50)


@test
def parse_gives_an_object_of_the_class():
    from enum import Enum
    from typing import Literal, Optional, Union

    from pydantic import BaseModel

    class Color(str, Enum):
        red = 'red'
        blue = 'blue'

    class Cup(BaseModel):
        kind: Literal['cup']
        full: bool

    class Box(BaseModel):
        kind: Literal['box']
        corners: list[int]

    class Table(BaseModel):
        name: str
        color: Color
        note: Optional[str] = None
        things: list[Union[Cup, Box]]

    for seed in range(1, 9):
        r = c.chat.completions.parse(model=MODEL, messages=[{'role': 'user', 'content': ASK}], seed=seed,
                                     temperature=1.5, max_tokens=128, response_format=Table)
        assert isinstance(r.choices[0].message.parsed, Table), r

    with c.chat.completions.stream(model=MODEL, messages=[{'role': 'user', 'content': ASK}], max_tokens=128,
                                   temperature=1.5, response_format=Table) as stream:
        assert isinstance(stream.get_final_completion().choices[0].message.parsed, Table)


@test
def a_choice_is_one_of_its_texts():
    for extra in ({'guided_choice': ['a cup', 'a box', 'a']}, {'structured_outputs': {'choice': ['a cup', 'a box', 'a']}}):
        for seed in range(1, 21):
            r = c.chat.completions.create(model=MODEL, messages=[{'role': 'user', 'content': 'Cup or box?'}], seed=seed,
                                          temperature=1.5, max_tokens=8, extra_body=extra)
            assert r.choices[0].message.content in ('a cup', 'a box', 'a'), r
            assert r.choices[0].finish_reason == 'stop', r


@test
def an_expression_is_the_whole_answer():
    import re

    for extra in ({'guided_regex': r'\(\d{1,3}, \d{1,3}\)'}, {'structured_outputs': {'regex': r'\(\d{1,3}, \d{1,3}\)'}}):
        for seed in range(1, 11):
            r = c.chat.completions.create(model=MODEL, messages=[{'role': 'user', 'content': 'Where?'}], seed=seed,
                                          temperature=1.5, max_tokens=12, extra_body=extra)
            assert re.fullmatch(r'\(\d{1,3}, \d{1,3}\)', r.choices[0].message.content), r
            assert r.choices[0].finish_reason == 'stop', r


@test
def a_schema_by_vllms_names():
    schema = {'type': 'array', 'items': {'type': 'integer'}, 'minItems': 4, 'maxItems': 4}

    for extra in ({'guided_json': schema}, {'guided_json': json.dumps(schema)}, {'structured_outputs': {'json': schema}}):
        r = c.chat.completions.create(model=MODEL, messages=[{'role': 'user', 'content': 'Where?'}], temperature=1.5,
                                      max_tokens=200, extra_body=extra)
        assert len(json.loads(r.choices[0].message.content)) == 4, r


@test
def an_unsupported_keyword_is_named_with_its_place():
    schema = {'type': 'object', 'properties': {'x': {'type': 'string', 'contains': 'a'}}}

    with raises(openai.BadRequestError, code='invalid_json_schema', param='response_format.json_schema.schema',
                message='#/properties/x/contains is a keyword that is not supported'):
        whole(1, schema)


@test
def the_shortest_answer_has_to_fit():
    schema = {'type': 'array', 'items': {'type': 'integer'}, 'minItems': 40}

    with raises(openai.BadRequestError, message='the shortest answer takes 81 tokens, there is room for 16'):
        ask(1, schema, max_tokens=16)
