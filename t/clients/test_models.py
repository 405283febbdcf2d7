"""
Tests PyPI's openai and ollama with several models at one base URL: lists have all of them, and a request's
model chooses the engine, which is recognised by what it alone does.  One engine translates, with its
adapter; one writes coordinates in pixels, and one in thousandths of the picture's sides.
"""

import asyncio
import json
import os
import re

import ollama
import openai

from server import MODELS, PICTURE, ROOT, data_url, raises
from tap import test

c = openai.OpenAI(base_url=MODELS + '/v1', api_key='none', max_retries=0, timeout=60)
o = ollama.Client(MODELS)

NAMES = ['live', 'bloom', 'translator', 'gurukul_lite', 'third']
NONE = 'model "nobody" not found, the models here are "live", "bloom", "third"'
ASK = 'Please provide the bounding box coordinate of the region this sentence describes: the red one.'
BOX = [109, 180, 142, 214]                          # demo/pictures/expected.json has it, too
SIDE = {'live': 252, 'third': 1000}                 # of the picture, as the models write it

with open(os.path.join(ROOT, 'demo/translations.json')) as file:
    HELLO, TEXT = json.load(file)[0].values()


def where(text, model):
    """Says whether an answer is the box, in the model's own measure."""

    box = [int(n) * 252 / SIDE[model] for n in re.findall(r'\d+', text)]

    return len(box) == 4 and all(abs(a - b) < 10 for a, b in zip(box, BOX))


def parts(picture):
    seen = [{'type': 'image_url', 'image_url': {'url': data_url(PICTURE)}}] if picture else []

    return [{'role': 'user', 'content': seen + [{'type': 'text', 'text': ASK}]}]


def chat(model, picture=True, **fields):
    return c.chat.completions.create(model=model, messages=parts(picture), **({'max_tokens': 32, 'temperature': 0} | fields))


def completion(model):
    return c.completions.create(model=model, prompt=HELLO, max_tokens=48, temperature=0)


def asked(model, picture=True, **fields):
    """Asks by Ollama's interface."""

    message = {'role': 'user', 'content': ASK} | ({'images': [PICTURE]} if picture else {})

    return o.chat(model, [message], options={'temperature': 0, 'num_predict': 32}, **fields)


@test
def openai_lists_the_models_of_all_engines():
    assert [m.id for m in c.models.list().data] == NAMES
    assert [c.models.retrieve(name).id for name in NAMES] == NAMES


@test
def openai_reaches_the_engine_that_writes_in_its_measure():
    for model, other in (('live', 'third'), ('third', 'live')):
        r = chat(model)
        assert r.model == model and where(r.choices[0].message.content, model), r
        assert not where(r.choices[0].message.content, other), r


@test
def openai_streams_from_the_engine_it_names():
    for model in SIDE:
        whole = chat(model)
        events = list(chat(model, stream=True, stream_options={'include_usage': True}))
        text = ''.join(ch.delta.content or '' for e in events for ch in e.choices)
        assert text == whole.choices[0].message.content and events[-1].usage.prompt_tokens == whole.usage.prompt_tokens
        assert {e.model for e in events} == {model}


@test
def openai_reaches_the_engine_that_translates():
    assert completion('gurukul_lite').choices[0].text.strip() == TEXT
    plain = [completion(name).choices[0].text for name in ('bloom', 'translator')]
    assert plain[0] == plain[1] and TEXT not in plain[0], plain
    with raises(openai.BadRequestError, message='chat template'):
        chat('bloom', picture=False)


@test
def openai_names_the_models_when_one_is_unknown():
    with raises(openai.NotFoundError, code='model_not_found', param='model', message=NONE):
        chat('nobody', picture=False)
    with raises(openai.NotFoundError, code='model_not_found', message=NONE):
        chat('nobody', picture=False, stream=True)
    with raises(openai.NotFoundError, code='model_not_found', message=NONE):
        c.embeddings.create(model='nobody', input='a cup')
    with raises(openai.NotFoundError, code='model_not_found', message=NONE):
        c.models.retrieve('nobody')


@test
def openai_asks_all_engines_at_once():
    async def go():
        async with openai.AsyncOpenAI(base_url=MODELS + '/v1', api_key='none', max_retries=0, timeout=60) as a:
            answers = await asyncio.gather(*(
                a.chat.completions.create(model=m, messages=parts(True), max_tokens=32, temperature=0) if m in SIDE
                else a.completions.create(model=m, prompt=HELLO, max_tokens=48, temperature=0)
                for m in 2 * ['live', 'gurukul_lite', 'third']))

        return [(r.model, r.usage.prompt_tokens, r.choices[0].message.content if m else r.choices[0].text)
                for r, m in ((r, r.model in SIDE) for r in answers)]

    got = asyncio.run(go())
    alone = {m: (m, r.usage.prompt_tokens, r.choices[0].message.content) for m, r in ((m, chat(m)) for m in SIDE)}
    assert got[:3] == got[3:] and [g[0] for g in got[:3]] == ['live', 'gurukul_lite', 'third'], got
    assert got[0] == alone['live'] and got[2] == alone['third'] and got[1][2].strip() == TEXT, (got, alone)


@test
def openai_has_a_vector_of_each_engine():
    vectors = {m: c.embeddings.create(model=m, input='a cup').data[0].embedding for m in ('live', 'bloom', 'third')}
    assert len({tuple(v) for v in vectors.values()}) == 3
    assert vectors['bloom'] == c.embeddings.create(model='translator', input='a cup').data[0].embedding


@test
def ollama_lists_the_models_of_all_engines():
    assert [m.model for m in o.list().models] == [name + ':latest' for name in NAMES]
    assert [m.model for m in o.ps().models] == [name + ':latest' for name in ('live', 'bloom', 'third')]
    families = {name: o.show(name).details.family for name in ('live', 'bloom', 'third')}
    assert len(set(families.values())) == 3, families


@test
def ollama_reaches_the_engine_that_writes_in_its_measure():
    for model, other in (('live', 'third'), ('third', 'live')):
        r = asked(model)
        assert r.model == model and where(r.message.content, model) and not where(r.message.content, other), r
        assert ''.join(p.message.content for p in asked(model, stream=True)) == r.message.content


@test
def ollama_reaches_the_engine_that_translates():
    options = {'temperature': 0, 'num_predict': 48}
    assert o.generate('gurukul_lite', HELLO, options=options).response.strip() == TEXT
    pieces = o.generate('gurukul_lite:latest', HELLO, options=options, stream=True)
    assert ''.join(p.response for p in pieces).strip() == TEXT


@test
def ollama_names_the_models_when_one_is_unknown():
    for call in (lambda: asked('nobody'), lambda: list(asked('nobody', stream=True)), lambda: o.show('nobody'),
                 lambda: o.generate('nobody', HELLO), lambda: o.embed('nobody', 'a cup')):
        with raises(ollama.ResponseError, status_code=404, error=NONE):
            call()
