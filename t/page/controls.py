"""Input and accessibility: the keyboard, files of all kinds, drops and pastes, names and colours."""

import base64
import os

from PIL import Image

from fixtures import BUILD, PICTURES, picture
from tap import check, same, test, wait_for

PAIRS = '''() => {
    const style = getComputedStyle(document.documentElement);
    const probe = document.body.appendChild(document.createElement('i'));
    const rgb = (name) => {
        probe.style.color = `var(--${name})`;
        const c = document.createElement('canvas').getContext('2d');
        c.fillStyle = getComputedStyle(probe).color;
        c.fillRect(0, 0, 1, 1);
        return [...c.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const light = (name) => {
        const [r, g, b] = rgb(name).map((v) => v / 255)
            .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const out = {};
    for (const [a, b] of [['text', 'ground'], ['text', 'surface'], ['muted', 'ground'],
                          ['muted', 'surface'], ['accent', 'ground'], ['accent', 'tint'],
                          ['text', 'tint'], ['on', 'accent'], ['bad', 'bad-bg'],
                          ['muted', 'sunken'], ['bad', 'surface']]) {
        const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
        out[`${a} on ${b}`] = (x + 0.05) / (y + 0.05);
    }
    return out;
}'''


def focused(page):
    return page.p.evaluate('document.activeElement.id || document.activeElement.value || ""')


def tab_to(page, name, limit=20):
    """Moves the focus by the Tab key to an element; returns the elements on the way."""

    met = []

    for _ in range(limit):
        page.p.keyboard.press('Tab')
        met.append(focused(page))
        if met[-1] == name:
            return met

    check(False, f'{name} is not reached by Tab, but {met}')


def drop(page, name, mime, data):
    page.p.evaluate('''([name, mime, data]) => {
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
        const dt = new DataTransfer();
        dt.items.add(new File([bytes], name, { type: mime }));
        for (const type of ['dragover', 'drop']) {
            document.body.dispatchEvent(new DragEvent(type,
                { dataTransfer: dt, bubbles: true, cancelable: true }));
        }
    }''', [name, mime, base64.b64encode(data).decode()])


def paste(page, selector, data, text=None):
    page.p.evaluate('''([selector, data, text]) => {
        const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
        const dt = new DataTransfer();
        dt.items.add(new File([bytes], 'image.png', { type: 'image/png' }));
        if (text) {
            dt.setData('text/plain', text);
        }
        document.querySelector(selector).dispatchEvent(new ClipboardEvent('paste',
            { clipboardData: dt, bubbles: true, cancelable: true }));
    }''', [selector, base64.b64encode(data).decode(), text])


def content(name):
    with open(os.path.join(PICTURES, name), 'rb') as file:
        return file.read()


@test
def everything_is_done_by_keys_alone(fixtures):
    page = fixtures.open(fixtures.demo())
    page.p.on('filechooser', lambda _: None)        # the browser shows no chooser from here on
    page.ready()

    met = tab_to(page, 'choose')
    same(met[-5:], ['status', 'theme', 'talks-button', 'new', 'choose'], 'the order of the focus')

    with page.p.expect_file_chooser() as chooser:
        page.p.keyboard.press('Enter')

    chooser.value.set_files(picture('table-01.png'))
    page.wait('stage.picture && stage.picture.name')
    same(focused(page), 'message', 'the focus after a picture was chosen')

    page.p.keyboard.press('Shift+Tab')
    page.p.keyboard.press('ArrowRight')
    page.p.keyboard.press('ArrowRight')
    same(focused(page), 'grounding', 'the task chosen by arrows')

    page.p.keyboard.press('Tab')
    page.p.keyboard.type('Find the red one')
    page.p.keyboard.press('Shift+Enter')
    page.p.keyboard.press('Backspace')
    page.p.keyboard.press('Enter')
    page.finished()
    same(len(page.drawn()['boxes']), 1, 'boxes over the picture')

    page.p.evaluate('document.querySelector("#marks button").focus()')
    same(f"[{page.text('#readout')}]", page.text('.turn .place'), 'the focused number')

    page.p.evaluate('$("status").focus()')
    page.p.keyboard.press('Enter')
    check(page.shown('#server'), 'the panel opens')
    page.p.keyboard.press('Escape')
    check(not page.shown('#server'), 'and closes')
    same(focused(page), 'status', 'the focus after the panel was closed')


@test
def the_picture_the_wait_and_the_answer_are_announced(fixtures):
    page = fixtures.open(fixtures.demo())
    page.p.evaluate('''() => {
        globalThis.said = [];
        new MutationObserver(() => said.push($('say').textContent))
            .observe($('say'), { childList: true, characterData: true, subtree: true });
    }''')
    page.take(picture('table-01.png'))
    answer = page.ask('Find the red one', 'grounding')
    said = page.p.evaluate('said')

    check('Picture table-01.png, 252 by 252.' in said, f'the picture is announced: {said}')
    check(f'Answer: {answer}' in said, f'the answer is announced: {said}')
    same(page.p.locator('#say').get_attribute('aria-live'), 'polite', 'the kind of announcement')


@test
def everything_that_can_be_pressed_has_a_name(fixtures):
    page = fixtures.open(fixtures.demo(), phone=True, width=390, height=760)
    page.take(picture('table-01.png'))
    page.ask('take the orange thing and move it to the white ball', 'trajectory')
    page.p.click('#status')

    nameless = page.p.evaluate('''() =>
        [...document.querySelectorAll('button, input, textarea, a[href], summary, img')]
            .filter((n) => !(n.getAttribute('aria-label') || n.alt || n.innerText?.trim()
                             || n.closest('label')?.innerText.trim()
                             || (n.id && document.querySelector(`label[for=${n.id}]`))))
            .map((n) => n.outerHTML.slice(0, 80))''')
    same(nameless, [], 'things without a name')

    ids = page.p.evaluate('[...document.querySelectorAll("[id]")].map((n) => n.id)')
    same(len(ids), len(set(ids)), 'ids, each once')


@test
def light_and_dark_colours_have_enough_contrast(fixtures):
    for dark in (False, True):
        page = fixtures.open(fixtures.demo(), dark=dark)

        for pair, ratio in page.p.evaluate(PAIRS).items():
            check(ratio >= 4.5, f'{pair} is {ratio:.2f} to 1, dark={dark}')


@test
def the_colours_follow_the_system_until_the_button_is_pressed(fixtures):
    page = fixtures.open(fixtures.demo(), dark=True)
    ground = 'getComputedStyle(document.body).backgroundColor'
    night = page.p.evaluate(ground)

    page.p.emulate_media(color_scheme='light')
    wait_for('the page is light', lambda: page.p.evaluate(ground) != night, 5)
    same(page.p.locator('#theme').get_attribute('aria-pressed'), 'false', 'dark is pressed')

    page.p.click('#theme')
    same(page.p.evaluate(ground), night, 'the ground, dark by the button')
    page.p.reload()
    same(page.p.evaluate(ground), night, 'the ground after a reload')


@test
def a_file_that_is_no_picture_is_refused_by_its_name(fixtures):
    page = fixtures.open(fixtures.demo())

    for name, mime in (('notes.txt', 'text/plain'), ('fake.png', 'image/png'),
                       ('empty.jpg', 'image/jpeg')):
        data = b'' if name == 'empty.jpg' else b'This is no picture at all.'
        page.p.set_input_files('#file', {'name': name, 'mimeType': mime, 'buffer': data})
        page.has('#picture-error', f'“{name}” is not a picture')

    check(page.shown('#empty'), 'nothing is shown in its place')
    page.take(picture('table-01.png'))
    check(not page.shown('#picture-error'), 'a valid picture removes the message')


@test
def a_format_that_only_the_browser_reads_is_sent_as_a_jpeg(fixtures):
    server = fixtures.demo()
    page = fixtures.open(server)
    drawing = b'''<svg xmlns="http://www.w3.org/2000/svg" width="252" height="252">
                  <rect width="252" height="252" fill="teal"/></svg>'''

    page.p.set_input_files('#file', {'name': 'plan.svg', 'mimeType': 'image/svg+xml',
                                     'buffer': drawing})
    page.wait('stage.picture && stage.picture.name')
    check(page.p.evaluate('stage.picture.name').endswith('_plan.jpg'), 'the name on the server')
    check(page.ask('How many objects are on the table?', 'general') != '', 'it is answered')


@test
def a_picture_too_large_for_the_server_is_reported_and_can_be_sent_again(fixtures):
    server = fixtures.server('small', server='client_max_body_size 20k;').start()
    page = fixtures.open(server, allow=['413'])

    page.p.set_input_files('#file', picture('table-01.png'))
    page.has('#picture-error', 'The file is larger than the server takes. Choose a smaller one.')
    check(page.p.get_by_role('button', name='Send again').is_visible(), 'it can be tried again')


@test
def a_picture_can_be_dropped_or_pasted_anywhere(fixtures):
    page = fixtures.open(fixtures.demo())

    drop(page, 'table-02.png', 'image/png', content('table-02.png'))
    page.wait('stage.picture && stage.picture.name')
    check('table-02.png' in page.text('#picture-name'), 'the dropped one is there')
    check(not page.shown('#drop'), 'the drop target is hidden')

    paste(page, 'body', content('table-03.png'))
    page.wait('stage.picture.title === "image.png" && stage.picture.name')

    paste(page, '#message', content('table-04.png'), 'a copied table')
    page.p.wait_for_timeout(200)
    same(page.p.evaluate('stage.picture.title'), 'image.png', 'after words were pasted')

    paste(page, '#message', content('table-04.png'))
    page.wait('stage.picture.src !== "" && [...pictures.values()].length === 3')


@test
def a_dropped_address_is_refused_with_advice(fixtures):
    page = fixtures.open(fixtures.demo())
    page.p.evaluate('''() => {
        const dt = new DataTransfer();
        dt.setData('text/uri-list', 'http://example.com/cup.jpg');
        document.body.dispatchEvent(new DragEvent('drop',
            { dataTransfer: dt, bubbles: true, cancelable: true }));
    }''')
    page.has('#picture-error', 'That was an address, not a file.')


@test
def a_question_without_a_picture_says_what_is_missing(fixtures):
    page = fixtures.open(fixtures.demo())

    page.begin('Find the red one', 'grounding')
    page.has('#picture-error', 'Choose a picture first')
    same(focused(page), 'choose', 'the focus')
    same(page.p.locator('#message').input_value(), 'Find the red one', 'the question')


@test
def an_empty_question_is_not_sent(fixtures):
    page = fixtures.open(fixtures.demo())
    page.take(picture('table-01.png'))

    check(page.p.locator('#send').is_disabled(), 'the button is off')
    page.begin('   ')
    same(page.p.evaluate('talk.turns.length'), 0, 'turns')


@test
def a_phone_can_take_a_photograph(fixtures):
    page = fixtures.open(fixtures.demo(), phone=True, width=375, height=740)
    page.p.on('filechooser', lambda _: None)
    page.ready()

    with page.p.expect_file_chooser() as chooser:
        page.p.tap('#photo')

    chooser.value.set_files(picture('table-01.png'))
    page.wait('stage.picture && stage.picture.name')
    same(page.p.locator('#camera').get_attribute('capture'), 'environment', 'the camera used')

    page.begin('Find the red one', 'grounding')
    page.finished()
    page.p.tap('#marks button')
    check(page.shown('#readout'), 'a tap shows the coordinates of a mark')


@test
def nothing_lies_over_the_marks_on_a_phone(fixtures):
    page = fixtures.open(fixtures.demo(), phone=True, width=375, height=740)
    wide = os.path.join(BUILD, 'wide.png')

    with Image.open(picture('table-01.png')) as image:
        image.resize((504, 252)).save(wide)

    page.take(wide)
    page.p.evaluate('''() => {
        const plain = finish;
        finish = (turn, answer) => plain(turn, { ...answer, image_resized: [504, 252],
            answer: '[(20, 20), (252, 20), (484, 20), (20, 232), (252, 232), (484, 232)]' });
    }''')
    page.ask('all of them', 'pointing')
    same(page.p.locator('#overlay [data-mark]').count(), 6, 'marks')

    for n in range(6):
        for lit in range(6):
            page.p.evaluate('heat', lit)
            covered = page.p.evaluate('''([n, lit]) => {
                const box = document.querySelector(`#overlay [data-mark="${n}"]`).getBoundingClientRect();
                const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
                const over = (id) => {
                    const r = $(id).getBoundingClientRect();
                    return r.width && x > r.left && x < r.right && y > r.top && y < r.bottom;
                };
                const top = document.elementFromPoint(x, y);
                return !top.closest('[data-mark]') ? top.outerHTML.slice(0, 60)
                       : n === lit && over('readout') ? 'the readout' : '';
            }''', [n, lit])
            same(covered, '', f'the element over mark {n} while {lit} is highlighted')


@test
def nothing_is_cut_off_from_320_to_2560_pixels(fixtures):
    server = fixtures.demo()

    for width, height in ((320, 568), (375, 740), (667, 375), (768, 1024), (820, 600),
                          (1024, 768), (1440, 900), (2560, 1300)):
        page = fixtures.open(server, width=width, height=height)
        page.take(picture('table-01.png'))
        page.ask('take the orange thing and move it to the white ball', 'trajectory')
        size = f'at {width} by {height}'
        wide = page.p.evaluate('document.documentElement.scrollWidth')
        tall = page.p.evaluate('document.documentElement.scrollHeight')

        check(wide <= width and tall <= height, f'the page is {wide} by {tall} {size}')

        for name in ('#frame', '#send', '#message', '#status', '#new'):
            box = page.p.locator(name).bounding_box()
            check(box['x'] >= 0 and box['y'] >= 0 and box['x'] + box['width'] <= width
                  and box['y'] + box['height'] <= height, f'{name} is cut off {size}')

        room = page.p.locator('#scroll').bounding_box()['height']
        check(room >= 90, f'{room} pixels are left for the conversation {size}')
