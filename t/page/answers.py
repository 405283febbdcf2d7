"""Questions to the demo model in each task, and the marks that the page draws for their answers."""

import json
import os

from PIL import Image

from fixtures import BUILD, PICTURES, ROOT, SLOW, picture, slow_model, text_model
from tap import check, same, test, wait_for

with open(os.path.join(PICTURES, 'expected.json')) as file:
    EXPECTED = json.load(file)


def questions(name, task):
    return [q for q in EXPECTED[name]['questions'] if q['task'] == task]


def overlap(a, b):
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    area = lambda r: (r[2] - r[0]) * (r[3] - r[1])
    both = max(0, w) * max(0, h)

    return both / (area(a) + area(b) - both)


def inside(point, box):
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def check_box(page, expected):
    boxes = page.drawn()['boxes']

    same(len(boxes), 1, 'boxes over the picture')
    check(overlap(boxes[0], expected) >= 0.5, f'drawn is {boxes[0]}, right is {expected}')


@test
def a_general_question_is_answered_in_words_and_nothing_is_drawn(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))

    for q in questions('table-01.png', 'general')[:3]:
        same(page.ask(q['question'], 'general'), q['answer'], q['question'])

    same(page.drawn(), {'boxes': [], 'points': [], 'path': 0}, 'over the picture')
    check('token' in page.text('.turn .meta'), 'tokens are counted under the answer')


@test
def grounding_draws_a_box_around_the_thing(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    q = questions('table-01.png', 'grounding')[0]

    page.ask(q['question'], 'grounding')
    check_box(page, q['box'])


@test
def affordance_draws_a_box_around_the_place_to_grasp(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-05.png'))
    q = questions('table-05.png', 'affordance')[0]

    page.ask(q['question'], 'affordance')
    check_box(page, q['box'])


@test
def pointing_draws_a_point_on_the_thing(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    q = questions('table-01.png', 'pointing')[0]

    page.ask(q['question'], 'pointing')
    points = page.drawn()['points']

    same(len(points), len(q['boxes']), 'points over the picture')
    check(inside(points[0], q['boxes'][0]), f'{points[0]} is not in {q["boxes"][0]}')


@test
def trajectory_draws_a_path_from_the_thing_to_its_target(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    q = questions('table-01.png', 'trajectory')[0]

    page.ask(q['question'], 'trajectory')
    drawn = page.drawn()

    same(drawn['path'], 1, 'paths over the picture')
    check(len(drawn['points']) >= 2, 'a path has points')
    check(inside(drawn['points'][0], q['boxes'][0]), 'it begins on the thing')
    check(inside(drawn['points'][-1], q['boxes'][1]), 'it ends on the target')


@test
def auto_says_which_task_the_server_chose(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('Find the red ball', 'auto')

    same(page.text('.turn .task'), 'Auto, grounding', 'the task of the question')
    check_box(page, questions('table-01.png', 'grounding')[0]['box'])


@test
def the_answer_appears_while_it_is_made(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.p.evaluate('''() => {
        globalThis.heard = [];
        const plain = hear;
        hear = (turn, event) => { plain(turn, event); heard.push(turn.answer); };
    }''')

    for _ in range(20):                 # a busy server sends what it has made meanwhile as one event
        page.p.evaluate('heard = []')
        page.ask('take the orange thing and move it to the white ball', 'trajectory')
        heard = page.p.evaluate('heard')

        if len(heard) >= 2 and heard[0] != heard[-1]:
            return

    check(False, f'the first of several events has only a part of the answer: {heard}')


@test
def a_picture_of_another_size_has_its_marks_where_they_belong(fixtures):
    """The demo model sees all pictures at the size of its training pictures."""

    page = fixtures.open(fixtures.demo())

    for size in (121, 500, 1008):
        other = os.path.join(BUILD, f'{size}.png')

        with Image.open(picture('table-01.png')) as image:
            image.resize((size, size)).save(other)

        page.take(other)
        page.ask('Find the red one', 'grounding')

        same(page.p.evaluate('space()'), [252, 252], f'the size that the model saw of {size} pixels')
        check_box(page, questions('table-01.png', 'grounding')[0]['box'])

    check('seen as 252 × 252' in page.text('#picture-name'), 'the page says so')

    page.p.hover('#marks button')
    check('in the original' in page.text('#readout'), 'the readout gives the place in the original')

    page.p.reload()
    page.wait('stage.turn && stage.turn.marks.length && stage.picture.width')
    check_box(page, questions('table-01.png', 'grounding')[0]['box'])


@test
def a_mark_its_number_and_its_words_are_highlighted_together(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('take the orange thing and move it to the white ball', 'trajectory')

    page.p.hover('#marks li:nth-child(2) button')
    same(page.p.locator('#overlay .hot').get_attribute('data-mark'), '1', 'the mark')
    same(page.p.locator('.turn .hot').inner_text(), page.text('#readout'), 'the words')

    page.p.hover('#overlay [data-mark="0"] .disc', force=True)
    same(page.p.locator('#marks .hot').get_attribute('data-mark'), '0', 'the number')

    page.p.mouse.move(2, 2)
    same(page.p.locator('.hot').count(), 0, 'lit after the pointer has left')


@test
def the_pointer_reads_coordinates_off_the_picture(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    box = page.p.locator('#frame').bounding_box()

    page.p.mouse.move(box['x'] + box['width'] / 2, box['y'] + box['height'] / 4)
    same(page.text('#readout'), '126, 63', 'in the middle, a quarter down')


@test
def an_earlier_answer_can_be_shown_again(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('Find the red one', 'grounding')
    first = page.drawn()

    page.take(picture('table-05.png'))
    page.ask('hold the cup', 'affordance')
    check(page.drawn() != first, 'the second answer is drawn')

    page.p.locator('.turn').first.get_by_role('button', name='Show on the picture').click()
    same(page.drawn(), first, 'over the picture')
    check('table-01' in page.text('#picture-name'), 'the first picture is there')


@test
def the_picture_with_marks_can_be_saved_if_the_server_drew_it(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('Find the red one', 'grounding')

    with page.p.expect_download() as saved:
        page.p.get_by_role('link', name='Marked picture').click()

    with open(saved.value.path(), 'rb') as file:
        same(file.read(2), b'\xff\xd8', 'the first bytes of a JPEG')


@test
def a_new_chat_begins_with_nothing(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('Find the red one', 'grounding')
    old = page.p.evaluate('talk.session')

    page.p.click('#new')
    check(page.shown('#welcome') and page.shown('#empty'), 'the page is empty again')
    same(page.p.locator('.turn, #overlay *').count(), 0, 'of the old conversation')

    page.take(picture('table-01.png'))
    page.ask('How many objects are on the table?', 'general')
    check(page.p.evaluate('talk.session') != old, 'another session')


@test
def a_conversation_can_be_deleted_on_the_server(fixtures):
    server = fixtures.demo()
    page = fixtures.open(server)
    page.take(picture('table-01.png'))
    page.ask('Find the red one', 'grounding')
    path = '/api/history/' + page.p.evaluate('talk.session')

    check(server.request(path), 'the server has the conversation')
    page.p.click('#status')
    page.p.click('#delete')
    wait_for('the conversation is gone', lambda: server.request(path) == {}, 10)
    check(page.shown('#welcome'), 'the page begins again')


@test
def a_reload_of_the_page_brings_the_conversation_back(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    page.ask('How many objects are on the table?', 'general')
    answer = page.ask('Find the red one', 'grounding')
    drawn = page.drawn()

    page.p.reload()
    page.wait('talk.turns.length === 2 && stage.picture.width')
    same(page.answer(), answer, 'the last answer')
    same(page.drawn(), drawn, 'over the picture')

    page.ask('How many objects are on the table?', 'general')
    same(page.p.evaluate('talk.turns.length'), 3, 'turns, with the next question')
    same(page.note(), '', 'notes under it')


@test
def a_question_can_be_asked_again_with_one_press(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))
    answer = page.ask('Find the red one', 'grounding')

    page.p.get_by_role('button', name='Retry').click()
    page.wait('talk.turns.length === 2 && talk.busy === null')
    check(page.answer(), 'the second answer is there')
    same(page.text('.turn .question p'), 'Find the red one', 'its question')
    same(page.text('.turn .task'), 'Grounding', 'its task')


@test
def a_question_needs_no_picture(fixtures):
    server = fixtures.demo()
    page = fixtures.open(server)
    answer = page.ask('Hello', 'auto')

    check(answer, 'it is answered')
    same(page.text('.turn .task'), 'Auto, general', 'the task of the answer')
    check(page.shown('#empty'), 'there is still no picture')

    page.take(picture('table-01.png'))
    same(page.ask('How many objects are on the table?', 'general'), '4', 'with a picture')

    page.p.get_by_role('button', name='Remove the picture').click()
    page.ask('Hello', 'general')
    history = server.request('/api/history/' + page.p.evaluate('talk.session'))
    same([bool(e['image_path']) for e in history if e['role'] == 'user'], [False, True, False],
         'questions with a picture')

    page.p.reload()
    page.wait('talk.turns.length === 3 && stage.picture && stage.picture.width')
    same(page.p.locator('.turn').first.locator('.text').inner_text(), answer, 'the first answer')


@test
def earlier_conversations_are_listed_opened_and_deleted(fixtures):
    server = fixtures.demo()
    page = fixtures.open(server)
    page.p.click('#talks-button')
    check(page.shown('#talks-none'), 'at first there are none')
    page.p.keyboard.press('Escape')

    page.take(picture('table-01.png'))
    first = page.ask('Find the red one', 'grounding')
    drawn = page.drawn()
    old = page.p.evaluate('talk.session')

    page.p.click('#new')
    page.take(picture('table-02.png'))
    page.ask('How many objects are on the table?', 'general')
    wait_for('two are listed, with titles', lambda: page.p.evaluate(
        'talks().length === 2 && talks().every((t) => t.title)'))

    page.p.click('#talks-button')
    wait_for('two conversations', lambda: page.p.locator('#talks .talk').count() == 2)
    same(page.p.locator('#talks .talk').first.get_attribute('aria-current'), 'true', 'the newest is the current one')
    page.p.locator('#talks .talk').nth(1).click()
    page.wait('talk.turns.length === 1 && stage.picture && stage.picture.width')
    same(page.answer(), first, 'the answer of the one that was opened')
    same(page.drawn(), drawn, 'over its picture')
    check(not page.shown('#talks'), 'the list is closed')

    page.p.click('#talks-button')
    page.p.locator('#talks .link').nth(1).click()
    wait_for('the conversation is gone on the server', lambda: server.request('/api/history/' + old) == {}, 10)
    wait_for('one after the other was deleted', lambda: page.p.locator('#talks .talk').count() == 1)
    check(page.shown('#welcome'), 'the page begins again')


@test
def the_demo_model_is_called_a_toy_and_has_sample_pictures(fixtures):
    page = fixtures.open(fixtures.demo())
    page.ready()
    page.has('#toy', 'This model is a toy.')
    check('a toy' in page.text('#model'), 'the head says so, too')
    same(page.p.locator('#samples img').count(), 3, 'sample pictures')
    page.wait('[...document.querySelectorAll("#samples img")].every((i) => i.naturalWidth === 252)')

    page.p.locator('#samples button').first.click()
    page.wait('stage.picture && stage.picture.name')
    same(page.ask('How many objects are on the table?', 'general'), '4', 'the answer about the first')


@test
def the_second_demo_model_is_a_toy_too(fixtures):
    model = os.path.join(ROOT, 'demo', 'model-3')
    page = fixtures.open(fixtures.server('second', model=model).start())
    page.ready()
    page.has('#toy', 'This model is a toy.')

    page.p.locator('#samples button').first.click()
    page.wait('stage.picture && stage.picture.name')
    same(page.ask('How many objects are on the table?', 'general'), '4', 'the answer about the first')


@test
def a_model_without_a_chat_template_is_not_asked(fixtures):
    page = fixtures.open(fixtures.server('texts', model=text_model()).start())
    page.ready()
    page.has('#notice', 'demo continues a text and has no chat template, so this page cannot ask it. '
             'Send texts to /v1/completions.')
    check(not page.shown('#ask') and not page.shown('#stage') and not page.shown('#welcome-words'),
          'there is nothing to type or to choose')

    check(page.p.evaluate("""() => {
        takeFirst([new File(['x'], 'x.png', { type: 'image/png' })]);
        return stage.picture === null;
    }"""), 'a dropped picture is not sent')


@test
def another_model_is_no_toy(fixtures):
    page = fixtures.open(fixtures.server('other', model=slow_model(), engine=SLOW).start())
    page.ready()
    same(page.text('#model'), 'demo', 'the head says its name')
    check(not page.shown('#toy') and not page.shown('#samples'), 'no text calls it a toy')
