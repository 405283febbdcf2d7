"""The choice of an adapter: where it is offered, what is sent, and what the page says of one that is gone."""

import os
import shutil

from controls import tab_to
from fixtures import BUILD, ROOT, random_model, shape_of
from tap import check, same, test, wait_for

ENGINE = '''device cpu; weights f32; context 1k; thinking off; max_tokens 12;
            sampling temperature=0; lora %s rank=4 load=on;'''


def adapted(fixtures, name):
    """A server with the adapters one and two, each of which changes the answers."""

    folder = os.path.join(BUILD, name + '-lora')
    shutil.rmtree(folder, ignore_errors=True)

    for adapter, source in (('one', 'lora-a-list'), ('two', 'lora-a-attention')):
        shutil.copytree(os.path.join(ROOT, 't/fidelity/lora', source), os.path.join(folder, adapter))

    model = random_model('adapters-model', shape_of('tiny-a'), 'tokenizer', [2], '--gain', 'wild')

    return fixtures.server(name, model=model, engine=ENGINE % folder,
                           server='location /v1/ { vlm_pass demo; }').start()


def listed(page):
    return page.p.evaluate('[...$("adapter").options].map((o) => o.text)')


def questions(page):
    """The bodies of the page's questions, from here on."""

    sent = []
    page.p.on('request', lambda r: r.url.endswith('/api/chat') and sent.append(r.post_data_json))

    return sent


@test
def a_server_without_adapters_offers_no_choice_and_gets_none(fixtures):
    page = fixtures.open(fixtures.demo())
    sent = questions(page)

    page.p.evaluate('remember("adapter", "one")')
    page.p.reload()
    page.ready()
    check(not page.shown('#adapter-row'), 'the row is hidden')
    page.ask('Hello', 'general')
    check('adapter' not in sent[-1], f'no adapter is named: {sent[-1]}')


@test
def an_adapter_is_chosen_by_keys_sent_with_each_question_and_remembered(fixtures):
    page = fixtures.open(adapted(fixtures, 'adapters'))
    sent = questions(page)
    answers = {}

    page.ready()
    same(listed(page), ['None', 'one', 'two'], 'the choices')
    check(page.p.get_by_label('Adapter', exact=True).is_visible(), 'the list has its label')
    answers[''] = page.ask('Where is the cup?', 'general')
    check('adapter' not in sent[-1], f'without a choice none is named: {sent[-1]}')

    page.p.locator('input[value=general]').focus()
    same(tab_to(page, 'adapter'), ['adapter'], 'the focus after the tasks')

    for name in ('one', 'two'):
        page.p.focus('#adapter')
        page.p.keyboard.press('ArrowDown')
        page.p.click('#new')
        answers[name] = page.ask('Where is the cup?', 'general')
        same(sent[-1].get('adapter'), name, 'the adapter that is sent')
        same(page.text('.turn .task'), f'General, adapter {name}', 'the words above the question')

    same(len(set(answers.values())), 3, f'different answers of {answers}')

    page.p.evaluate('poll()')
    page.p.reload()
    page.ready()
    same(page.p.locator('#adapter').input_value(), 'two', 'the choice after a reload')
    page.p.get_by_role('button', name='Retry').click()
    page.wait('talk.turns.length === 2 && talk.busy === null')
    same(sent[-1].get('adapter'), 'two', 'the adapter of a question that is asked again')


@test
def an_adapter_that_is_gone_is_never_replaced_by_none_in_silence(fixtures):
    server = adapted(fixtures, 'unloaded')
    page = fixtures.open(server, allow=['404', '403'])
    sent = questions(page)

    page.ready()
    page.p.select_option('#adapter', 'one')
    server.request('/v1/unload_lora_adapter', {'lora_name': 'one'})
    wait_for('the server has it no more', lambda: server.health()['adapters'] == ['two'])

    page.ask('Where is the cup?', 'general')
    same(page.note().replace(' Ask again', ''),
         'there is no adapter "one". Choose another one, or none.', 'the note under the question')
    wait_for('the list says so', lambda: listed(page) == ['None', 'two', 'one, not loaded'])

    page.p.route('**/api/health', lambda route: route.fulfill(status=403, body='deny'))
    page.p.evaluate('poll()')
    page.has('#notice', 'The server does not allow this (403).')
    same(page.p.locator('#adapter').input_value(), 'one', 'the choice while health is refused')
    page.p.unroute('**/api/health')
    page.p.evaluate('poll()')
    page.ready()

    page.p.select_option('#adapter', '')
    same(listed(page), ['None', 'two'], 'the choices once another was made')
    page.p.get_by_role('button', name='Ask again').click()
    page.wait('talk.busy === null && talk.turns[0].answer')
    check('adapter' not in sent[-1], f'no adapter is named: {sent[-1]}')


@test
def the_choice_of_an_adapter_fits_every_width(fixtures):
    server = adapted(fixtures, 'narrow')

    for width, height, phone in ((320, 568, True), (375, 740, True), (667, 375, True), (1024, 768, False)):
        page = fixtures.open(server, width=width, height=height, phone=phone)
        page.ready()
        page.ask('Where is the cup?', 'general')
        size = f'at {width} by {height}'
        wide = page.p.evaluate('document.documentElement.scrollWidth')
        tall = page.p.evaluate('document.documentElement.scrollHeight')

        check(wide <= width and tall <= height, f'the page is {wide} by {tall} {size}')

        for name in ('#adapter', '#send'):
            box = page.p.locator(name).bounding_box()
            check(box['x'] >= 0 and box['y'] >= 0 and box['x'] + box['width'] <= width
                  and box['y'] + box['height'] <= height, f'{name} is cut off {size}')

        room = page.p.locator('#scroll').bounding_box()['height']
        check(room >= 90, f'{room} pixels are left for the conversation {size}')
