"""
Tests libraries that ask for objects and call tools: PyPI's instructor and pydantic-ai,
over the openai package.
"""

import instructor
import openai
from pydantic import BaseModel, Field
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from server import MODEL, URL
from tap import test

c = openai.OpenAI(base_url=URL + '/v1', api_key='none', max_retries=0, timeout=60)
ASK = [{'role': 'user', 'content': 'Where is the red cup?'}]


class Place(BaseModel):
    name: str = Field(max_length=8)
    x: int = Field(ge=0, le=99)
    y: int = Field(ge=0, le=99)


def agent(kind=OpenAIChatModel, **fields):
    return Agent(kind(MODEL, provider=OpenAIProvider(base_url=URL + '/v1', api_key='none')),
                 model_settings={'temperature': 1.5, 'seed': 1, 'max_tokens': 120}, retries=0, **fields)


@test
def instructor_has_objects_by_tools_and_by_schemas():
    for mode in (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA):
        client = instructor.from_openai(c, mode=mode)
        for seed in range(1, 5):
            r = client.chat.completions.create(model=MODEL, messages=ASK, response_model=Place, max_retries=1,
                                               temperature=1.5, seed=seed, max_tokens=120)
            assert isinstance(r, Place) and 0 <= r.x <= 99, r


@test
def pydantic_ai_has_objects_by_tools_and_by_schemas():
    for output in (Place, NativeOutput(Place)):
        r = agent(output_type=output).run_sync(ASK[0]['content'])
        assert isinstance(r.output, Place) and r.usage.input_tokens > 0, r


@test
def pydantic_ai_has_text_of_chats_and_of_responses():
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        assert agent(kind).run_sync(ASK[0]['content']).output
