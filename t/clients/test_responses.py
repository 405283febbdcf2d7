"""
Tests the Responses interface with OpenAI's package: texts, pictures, events, schemas, tools.
"""

import json

import openai
from pydantic import BaseModel

from server import MODEL, PICTURE, URL, data_url, raises
from tap import test

c = openai.OpenAI(base_url=URL + '/v1', api_key='none', max_retries=0, timeout=60)

GRASP = {'type': 'function', 'name': 'grasp', 'strict': True, 'parameters': {
    'type': 'object', 'properties': {'x': {'type': 'integer', 'minimum': 0, 'maximum': 9}}, 'required': ['x'], 'additionalProperties': False}}


def ask(input='What is on the table?', **fields):
    return c.responses.create(model=MODEL, input=input, **{'max_output_tokens': 24, **fields})


@test
def a_response_has_text_and_counts():
    r = ask(instructions='Be brief.', metadata={'a': 'b'})
    assert r.id.startswith('resp_') and r.object == 'response' and r.output_text == r.output[0].content[0].text, r
    assert r.usage.total_tokens == r.usage.input_tokens + r.usage.output_tokens > 2, r
    assert r.instructions == 'Be brief.' and r.metadata == {'a': 'b'} and r.store is False and r.error is None, r
    r = ask(max_output_tokens=2)
    assert r.status == 'incomplete' and r.incomplete_details.reason == 'max_output_tokens' and r.usage.output_tokens == 2, r


@test
def a_picture_is_seen():
    parts = [{'type': 'input_image', 'image_url': data_url(PICTURE), 'detail': 'auto'}, {'type': 'input_text', 'text': 'What is this?'}]
    r = ask([{'role': 'user', 'content': parts}, {'role': 'assistant', 'content': 'A table.'}, {'role': 'user', 'content': 'What else?'}])
    assert r.output_text and r.usage.input_tokens > 60, r


@test
def events_have_an_order_and_make_the_same_text():
    whole = ask(temperature=0)
    events = list(ask(temperature=0, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events))), events
    types = [e.type for e in events]
    assert types[:4] == ['response.created', 'response.in_progress', 'response.output_item.added', 'response.content_part.added'], types
    assert types[-4:] == ['response.output_text.done', 'response.content_part.done', 'response.output_item.done', 'response.' + whole.status], types
    assert ''.join(e.delta for e in events if e.type == 'response.output_text.delta') == whole.output_text
    assert events[-1].response.output_text == whole.output_text and events[-1].response.usage.output_tokens == whole.usage.output_tokens


@test
def a_schema_is_followed():
    class Cup(BaseModel):
        color: str
        n: int

    for seed in range(1, 6):
        r = c.responses.parse(model=MODEL, input='Describe it.', text_format=Cup, temperature=1.5, max_output_tokens=120,
                              extra_body={'seed': seed})
        assert isinstance(r.output_parsed, Cup), r
    with raises(openai.BadRequestError, code='invalid_json_schema', message='#/contains is a keyword'):
        ask(text={'format': {'type': 'json_schema', 'name': 'x', 'schema': {'contains': {}}}})


@test
def functions_are_called_whole_and_streamed():
    r = ask(tools=[GRASP], tool_choice='required', temperature=1.5, max_output_tokens=100)
    calls = [item for item in r.output if item.type == 'function_call']
    assert calls and all(0 <= json.loads(call.arguments)['x'] <= 9 and call.name == 'grasp' for call in calls), r

    with c.responses.stream(model=MODEL, input='Go.', tools=[GRASP], tool_choice={'type': 'function', 'name': 'grasp'},
                            parallel_tool_calls=False, max_output_tokens=100) as stream:
        last = stream.get_final_response()
    assert len(last.output) == 1 and 0 <= last.output[0].parsed_arguments['x'] <= 9, last

    r = ask([{'role': 'user', 'content': 'Go.'}, *calls, *[{'type': 'function_call_output', 'call_id': call.call_id, 'output': 'done'} for call in calls]], tools=[GRASP])
    assert r.output_text, r


@test
def what_is_not_stored_is_refused():
    with raises(openai.BadRequestError, code='unsupported_parameter', param='previous_response_id'):
        ask(previous_response_id='resp_1')
    with raises(openai.BadRequestError, param='tools.0'):
        ask(tools=[{'type': 'web_search_preview'}])
    with raises(openai.BadRequestError, param='input'):
        ask([{'type': 'item_reference', 'id': 'x'}])
    with raises(openai.BadRequestError, code='image_url_not_supported'):
        ask([{'role': 'user', 'content': [{'type': 'input_image', 'image_url': 'https://example.com/a.png'}]}])
    with raises(openai.NotFoundError):
        c.responses.retrieve('resp_1')
