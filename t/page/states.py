"""
The messages and the recovery of the page while the server is slow, full,
loading, reloaded, restarted, killed or without its store, and after the stop
button.
"""

import os
import shutil
import signal
import time

from fixtures import SLOW, picture, slow_model, small_picture
from tap import check, same, test, wait_for

AWAY = ['ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED', 'ERR_EMPTY_RESPONSE',
        'ERR_CONNECTION_RESET', 'ERR_CONNECTION_CLOSED']


def slow(fixtures, name, engine=''):
    return fixtures.server(name, model=slow_model(), engine=SLOW + engine)


def uploaded(page):
    """Uploads a picture for the questions of other clients; returns its name."""

    page.take(small_picture())

    return page.p.evaluate('stage.picture.name')


def writing(page):
    page.wait('talk.busy && (talk.busy.answer + talk.busy.thinking).length > 20', 60)


@test
def the_stop_button_stops_the_engine(fixtures):
    server = slow(fixtures, 'stop', 'max_tokens 3500;').start()
    page = fixtures.open(server)
    page.take(small_picture())
    page.begin('Describe everything.', 'general')
    writing(page)
    same(server.queue('running'), 1, 'answers in the engine')

    page.p.click('#send')
    page.finished(2)
    server.wait_queue(running=0, waiting=0, seconds=3)
    check('Stopped here. This answer is not part of the conversation.' in page.note(),
          'the page says that the answer does not count')
    check(len(page.answer()) > 0, 'the partial answer remains')

    page.begin('Describe everything.', 'general')
    writing(page)
    page.p.keyboard.press('Escape')
    server.wait_queue(running=0, waiting=0, seconds=3)
    same(page.p.evaluate('document.activeElement.id'), 'message', 'the focus')
    same(server.request('/api/history/' + page.p.evaluate('talk.session')), [],
         'the history of a session whose answers were all stopped')


@test
def the_place_in_the_queue_is_shown_and_can_be_given_up(fixtures):
    server = slow(fixtures, 'line', 'max_tokens 3500; slots 1; queue 8;').start()
    page = fixtures.open(server)
    image = uploaded(page)
    others = [server.occupy('first', image)]
    server.wait_queue(running=1)

    # The engine holds one request more than it has slots; that one is not in the queue.
    others += [server.occupy('second', image), server.occupy('third', image)]
    wait_for('others wait', lambda: (server.queue('waiting') or 0) >= 1, 20)

    page.begin('Describe everything.', 'general')
    page.has('.turn .wait', 'n the queue')
    before = page.text('.turn .wait')
    others.pop(0).close()
    wait_for(f'another place than "{before}"',
             lambda: page.text('.turn .wait').split('·')[0] != before.split('·')[0], 20)

    waiting = server.queue('waiting')
    page.p.click('#send')
    page.finished(2)
    same(page.note(), 'Stopped.', 'the note')
    server.wait_queue(waiting=max(0, waiting - 1), seconds=5)

    for other in others:
        other.close()


@test
def a_full_queue_is_reported_and_the_question_can_be_asked_again(fixtures):
    server = slow(fixtures, 'full', 'max_tokens 60; slots 1; queue 1;').start()
    page = fixtures.open(server, allow=['429'])
    image = uploaded(page)
    others = []

    def full():
        others.append(server.occupy(f'other{len(others)}', image))
        time.sleep(0.1)
        return server.queue('waiting') == 1

    wait_for('the queue is full', full, 20)
    page.begin('Describe everything.', 'general')
    page.finished(10)
    check('Ask again in ' in page.note(), f'the note: {page.note()}')
    check(page.note().count('.') >= 2, 'the server\'s sentence, and what to do')

    for other in others:
        other.close()

    server.wait_queue(running=0, waiting=0)
    page.p.get_by_role('button', name='Ask again').click()
    page.finished(60)
    same(page.note(), '', 'the note under the answer')
    same(page.p.locator('.turn').count(), 1, 'turns: the new one replaces the old')


@test
def while_the_model_loads_a_question_waits_and_is_answered(fixtures):
    server = fixtures.server('loading')
    lock = server.lock()
    server.start(ready=False)
    page = fixtures.open(server)

    page.has('#status-text', 'Loading')
    check(page.shown('#loading'), 'the bar is shown')
    page.take(picture('table-01.png'))
    page.begin('How many objects are on the table?', 'general')
    page.has('.turn .wait', 'The model is loading')

    page.p.click('#status')
    check('Questions wait in the queue' in page.text('#server-text'), 'the panel says it, too')
    page.p.keyboard.press('Escape')

    lock.close()
    page.finished(60)
    same(page.answer(), '4', 'the answer')
    page.ready()
    check(not page.shown('#loading'), 'the bar is hidden')


@test
def a_model_that_could_not_be_loaded_is_reported_with_the_reason(fixtures):
    page = fixtures.open(fixtures.demo())
    page.p.route('**/api/health', lambda route: route.fulfill(json={
        'state': 'failed', 'status': 'unhealthy', 'model_loaded': False, 'progress': 12,
        'reason': 'model.safetensors ends after 12 of 13 MiB',
        'queue': {'limit': 64, 'running': 0, 'waiting': 0}}))

    page.has('#notice', 'model.safetensors ends after 12 of 13 MiB')
    same(page.status(), 'No model', 'the head of the page')

    page.p.unroute('**/api/health')
    page.p.click('#status')
    page.ready()
    check(not page.shown('#notice'), 'the notice goes by itself')


@test
def a_server_that_wants_a_login_or_refuses_is_reported_as_such(fixtures):
    for status, words, body in ((401, 'The server wants a login or a key (401).', 'auth_basic'),
                                (403, 'The server does not allow this (403).', 'deny')):
        page = fixtures.open(fixtures.demo(), allow=[str(status)])
        page.ready()
        page.p.route('**/api/**', lambda route: route.fulfill(status=status, body=f'<h1>{body}</h1>'))
        page.p.evaluate('poll()')
        page.has('#notice', words)
        same(page.status(), 'No access', f'the head of the page at {status}')

        page.begin('Hello', 'general')
        page.finished()
        check(words in page.note(), f'the note under the question: {page.note()}')

        page.p.unroute('**/api/**')
        page.p.evaluate('poll()')
        page.ready()
        check(not page.shown('#notice'), 'the notice goes by itself')


@test
def thinking_is_offered_where_the_model_can_think(fixtures):
    sent = []
    page = fixtures.open(fixtures.demo())
    page.p.on('request', lambda r: r.url.endswith('/api/chat') and sent.append(r.post_data_json))
    page.ready()
    page.p.click('#status')
    check(not page.shown('#think-row'), 'the demo model cannot')
    page.p.keyboard.press('Escape')

    page.p.evaluate('remember("think", "on")')
    page.p.reload()
    page.ready()
    page.ask('Hello', 'general')
    same(sent[-1]['enable_thinking'], False, 'asked of a model that cannot')

    thinks = fixtures.server('thinks', engine='thinking on; sampling temperature=0; max_tokens 16;').start()
    page = fixtures.open(thinks)
    page.ready()
    page.p.click('#status')
    check(page.shown('#think-row'), 'this one can')


@test
def a_reload_of_nginx_does_not_break_an_answer(fixtures):
    server = slow(fixtures, 'reload', 'max_tokens 150;').start()
    page = fixtures.open(server)
    page.take(small_picture())
    page.begin('Describe everything.', 'general')
    writing(page)
    old = set(server.workers())
    server.reload()

    page.finished(240)
    same(page.note(), '', 'the note under the answer')
    check('150 tokens' in page.text('.turn .meta'), 'the answer is complete')
    wait_for('other workers', lambda: server.workers() and not old & set(server.workers()), 30)

    page.begin('And once more.', 'general')
    page.finished(240)
    same(page.note(), '', 'the note under the next answer')


@test
def a_reload_of_the_page_stops_the_answer_and_keeps_the_question(fixtures):
    server = slow(fixtures, 'away', 'max_tokens 3500;').start()
    page = fixtures.open(server, allow=AWAY)
    page.take(small_picture())
    page.begin('Describe everything.', 'general')
    writing(page)

    page.p.reload()
    server.wait_queue(running=0, waiting=0, seconds=5)
    same(page.p.locator('#message').input_value(), 'Describe everything.', 'the question')


@test
def a_restart_is_reported_and_the_conversation_goes_on(fixtures):
    server = fixtures.server('restart').start()
    page = fixtures.open(server, allow=AWAY)
    page.take(picture('table-01.png'))
    page.ask('Find the red one', 'grounding')

    server.stop()
    page.p.evaluate('poll()')
    page.has('#status-text', 'Reconnecting')
    page.has('#notice', 'The server cannot be reached. The page goes on trying by itself.')

    page.begin('How many objects are on the table?', 'general')
    page.finished()
    check('ask again when it is back' in page.note(), f'the note: {page.note()}')

    server.start()
    page.ready(40)
    check(not page.shown('#notice'), 'the notice goes by itself')
    page.p.get_by_role('button', name='Ask again').click()
    page.finished()
    same(page.answer(), '4', 'the answer')
    same(page.note(), '', 'the note under it')
    same(len(server.request('/api/history/' + page.p.evaluate('talk.session'))), 4,
         'entries of the one session, before and after')


@test
def a_server_that_is_killed_while_it_answers_leaves_a_message_and_a_retry(fixtures):
    server = slow(fixtures, 'crash', 'max_tokens 3500;').start()
    page = fixtures.open(server, allow=AWAY)
    page.take(small_picture())
    page.begin('Describe everything.', 'general')
    writing(page)

    server.kill()
    page.finished(10)
    check('The connection broke before the answer was whole.' in page.note(), page.note())
    same(page.p.evaluate('recall("draft", "sessionStorage")'), 'Describe everything.',
         'the question that was kept')

    server.start()
    page.ready(60)
    page.p.get_by_role('button', name='Ask again').click()
    writing(page)
    page.p.keyboard.press('Escape')
    page.finished(5)


@test
def a_server_that_lost_its_store_receives_the_picture_again(fixtures):
    server = fixtures.server('lost').start()
    page = fixtures.open(server, allow=AWAY + ['400'])
    page.take(picture('table-01.png'))
    page.ask('How many objects are on the table?', 'general')

    server.stop()
    shutil.rmtree(server.store)
    os.mkdir(server.store)
    server.start()
    page.p.evaluate('poll()')
    page.ready()

    same(page.ask('How many objects are on the table?', 'general'), '4', 'the answer')
    check('had lost the earlier conversation' in page.note(), f'the note: {page.note()}')
    page.ask('How many objects are on the table?', 'general')
    same(page.note(), '', 'the note under the next answer')


@test
def a_conversation_that_the_server_lost_is_reported_at_the_next_visit(fixtures):
    server = fixtures.server('lost2').start()
    page = fixtures.open(server, allow=AWAY + ['404', '400'])
    page.take(picture('table-01.png'))
    page.ask('How many objects are on the table?', 'general')

    server.request('/api/session/' + page.p.evaluate('talk.session') + '/reset', {})
    page.p.reload()
    page.ready()
    same(page.p.locator('.turn').count(), 0, 'turns after a reset by another client')

    page.take(picture('table-01.png'))
    page.ask('How many objects are on the table?', 'general')
    server.stop(signal.SIGTERM)
    shutil.rmtree(server.store)
    os.mkdir(server.store)
    server.start()
    page.p.reload()
    page.has('#notice', 'The server no longer has that conversation. A new one begins.')


@test
def an_answer_that_takes_too_long_is_reported_with_the_server_s_message(fixtures):
    server = slow(fixtures, 'late', 'max_tokens 3500; timeout 4s;').start()
    page = fixtures.open(server)
    page.take(small_picture())
    page.begin('Describe everything.', 'general')
    page.finished(20)
    check('Ask again, or for something shorter.' in page.note(), page.note())


@test
def the_panel_has_the_plan_in_bytes_and_the_speed_of_the_last_answer(fixtures):
    server = fixtures.demo()
    page = fixtures.open(server)
    page.take(picture('table-01.png'))
    page.ask('take the orange thing and move it to the white ball', 'trajectory')
    page.p.click('#status')

    plan = server.health()['plan']
    parts = [key for key in ('weights', 'vision', 'kv', 'workspace', 'device') if plan[key]]
    same(page.p.locator('#plan-bar i').count(), len(parts), 'parts of the bar')
    check(page.text('#plan-total').endswith('iB'), 'the total is there')
    page.has('#facts', 'tokens/s')
    page.has('#facts', server.health()['device'])
    page.has('#facts', 'nginx-vlm ' + server.health()['version'])
    page.has('#facts', '6.9 million')
