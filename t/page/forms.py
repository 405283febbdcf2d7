"""
The parsers of the page: coordinates in all forms that models of this family
write, the events of a stream in pieces of any size, Markdown, and texts that
contain HTML.
"""

import json
import os

from PIL import Image

from fixtures import BUILD, picture
from tap import check, same, test

FORMS = [
    # the task, the text, and the numbers of each mark
    ('grounding', '[109, 180, 142, 214]', [[109, 180, 142, 214]]),
    ('grounding', '[1,2,3,4] and [5, 6,7 , 8]', [[1, 2, 3, 4], [5, 6, 7, 8]]),
    ('grounding', '[[1, 2, 3, 4], [5, 6, 7, 8]]', [[1, 2, 3, 4], [5, 6, 7, 8]]),
    ('grounding', 'It is at (10, 20, 30, 40).', [[10, 20, 30, 40]]),
    ('grounding', '109, 180, 142, 214', [[109, 180, 142, 214]]),
    ('grounding', '[1.5, 2.25, 3, 4]', [[1.5, 2.25, 3, 4]]),
    ('grounding', '```json\n[{"bbox_2d": [1, 2, 3, 4], "label": "cup"}]\n```', [[1, 2, 3, 4]]),
    ('grounding', 'only points: (3, 4)', [[3, 4]]),
    ('grounding', '[1, 2, 3]', []),
    ('grounding', 'There is none.', []),
    ('affordance', '[561, 205, 613, 284]', [[561, 205, 613, 284]]),
    ('pointing', '[(376, 345), (369, 1197)]', [[376, 345], [369, 1197]]),
    ('pointing', '(5, 6)', [[5, 6]]),
    ('pointing', '[[5, 6], [7, 8]]', [[5, 6], [7, 8]]),
    ('pointing', '[{"point_2d": [5, 6], "label": "a"}]', [[5, 6]]),
    ('pointing', '[10, 20, 30, 60]', [[20, 40]]),
    ('pointing', '5, 6', [[5, 6]]),
    ('trajectory', '[(145, 123), (176, 120), (198, 78)]', [[145, 123], [176, 120], [198, 78]]),
    ('trajectory', '[[145, 123], [176, 120]]', [[145, 123], [176, 120]]),
    ('trajectory', '[145, 123, 176, 120]', [[145, 123], [176, 120]]),
    ('trajectory', '145,123 then 176, 120', [[145, 123], [176, 120]]),
    ('trajectory', '(145, 123)', []),
    ('general', 'Between (3, 4) and [1, 2, 3, 4] there are 1,200 things.', []),
    ('general', '{"bbox_2d": [1, 2, 3, 4], "label": "cup"}', [[1, 2, 3, 4]]),
    ('general', '', []),
    ('grounding', '[' * 5000 + ']' * 5000, []),
    ('grounding', '[' + '9' * 400 + ', 1, 2, 3]', []),
    ('pointing', '(1, 2)' * 1000, [[1, 2]] * 256),
]

DEPTHS = [
    # the path, and the numbers and depth of each point
    ('[(145, 123, 1.25), (176, 120, -0.5)]', [[145, 123, 1.25], [176, 120, -0.5]]),
    ('[[1, 2, 3], [4, 5, 6]]', [[1, 2, 3], [4, 5, 6]]),
    ('(1, 2): [(3, 4, 0.5), (5, 6, 0.6)]', [[3, 4, 0.5], [5, 6, 0.6]]),
    ('[(1, 2), (3, 4), (5, 6, 7)]', [[1, 2, None], [3, 4, None]]),
]

LABELS = [
    ('[{"bbox_2d": [1, 2, 3, 4], "label": "red cup"}]', 'red cup'),
    ('[{"label": "a \\"b\\"", "bbox_2d": [1, 2, 3, 4]}]', 'a "b"'),
    ('[{"label": "other"}, {"bbox_2d": [1, 2, 3, 4]}]', ''),
    ('[1, 2, 3, 4]', ''),
]

STREAM = (': place 3\n\n'
          'event: token\ndata: {"text":"naïve "}\n\n'
          'event: token\r\ndata: {"text":"€\\n\\n"}\r\n\r\n'
          ': place 0\n\n'
          'event: answer\ndata: {"answer":"naïve €"}\n\n')


MARKDOWN = [
    # the text of the model, and the expected elements
    ('plain words', '<p>plain words</p>'),
    ('one\ntwo\n\nthree', '<p>one\ntwo</p><p>three</p>'),
    ('**bold** and *slanted* and __bold__', '<p><strong>bold</strong> and <em>slanted</em> and <strong>bold</strong></p>'),
    ('**bold with *both* in it**', '<p><strong>bold with <em>both</em> in it</strong></p>'),
    ('`a < b` and ``c ` d``', '<p><code>a &lt; b</code> and ``c ` d``</p>'),
    ('2 * 3 * 4, a_b_c, **', '<p>2 * 3 * 4, a_b_c, **</p>'),
    ('# Title #', '<p class="heading" role="heading" aria-level="3">Title</p>'),
    ('- one\n- two', '<ul><li>one</li><li>two</li></ul>'),
    ('3. one\n4. two\nmore of it', '<ol start="3"><li>one</li><li>two\nmore of it</li></ol>'),
    ('- one\n  - deep\n- two', '<ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>'),
    ('> said\n> so', '<blockquote>said\nso</blockquote>'),
    ('```c\nint **x; // *no*\n```\nafter', '<pre tabindex="0"><code>int **x; // *no*</code></pre><p>after</p>'),
    ('```\nstill being', '<pre tabindex="0"><code>still being</code></pre>'),
    ('[here](https://example.com/a?b=c)', '<p><a href="https://example.com/a?b=c" target="_blank" '
     'rel="noopener noreferrer">here</a></p>'),
    ('see http://example.com/x.', '<p>see <a href="http://example.com/x" target="_blank" '
     'rel="noopener noreferrer">http://example.com/x</a>.</p>'),
    ('[a](javascript:alert(1)) [b](data:text/html,x)', '<p>[a](javascript:alert(1)) [b](data:text/html,x)</p>'),
    ('[a](https://x" onclick="y) ![i](/uploads/x)', None),
    ('<script>x</script> **<img src=x>**', '<p>&lt;script&gt;x&lt;/script&gt; '
     '<strong>&lt;img src=x&gt;</strong></p>'),
]


@test
def markdown_becomes_a_few_safe_elements_and_all_else_stays_text(fixtures):
    page = fixtures.open(fixtures.demo())
    safe = {'P', 'STRONG', 'EM', 'CODE', 'PRE', 'UL', 'OL', 'LI', 'A', 'BLOCKQUOTE'}

    for text, expected in MARKDOWN:
        html, names, links = page.p.evaluate('''(text) => {
            const box = document.createElement('div');
            box.append(...rich(text));
            return [box.innerHTML, [...box.querySelectorAll('*')].map((n) => n.tagName),
                    [...box.querySelectorAll('a')].map((a) => a.protocol)];
        }''', text)

        if expected is not None:
            same(html, expected, f'the elements of {text!r}')

        check(set(names) <= safe, f'{text!r} becomes {html}')
        check(set(links) <= {'http:', 'https:'}, f'{text!r} leads to {links}')

    for text in ('**a ' * 20000, '[' * 20000, '`' * 20000, '- ' * 20000, '> ' * 20000, '*' * 20001,
                 '\n'.join('  ' * n + '- x' for n in range(200))):
        took = page.p.evaluate('(text) => { const t = performance.now(); rich(text); '
                               'return performance.now() - t; }', text)
        check(took < 2000, f'{text[:20]!r}, {len(text)} times, takes {took} ms')


@test
def an_answer_s_markdown_is_shown_and_copied_as_it_was_written(fixtures):
    page = fixtures.open(fixtures.demo())
    page.p.context.grant_permissions(['clipboard-read', 'clipboard-write'])
    page.p.evaluate('''() => {
        const plain = finish;
        finish = (turn, answer) => plain(turn, { ...answer, answer: 'It is **red**.\\n\\n- a cup' });
    }''')
    page.take(picture('table-01.png'))
    page.ask('What is it?', 'general')

    same(page.text('.turn .text strong'), 'red', 'the bold text')
    same(page.text('.turn .text li'), 'a cup', 'the item of a list')

    page.p.get_by_role('button', name='Copy').click()
    page.has('#say', 'The answer is copied.')
    same(page.p.evaluate('navigator.clipboard.readText()'), 'It is **red**.\n\n- a cup', 'the copied text')


@test
def coordinates_are_read_in_every_form_that_the_family_writes(fixtures):
    page = fixtures.open(fixtures.demo())

    for task, text, expected in FORMS:
        found = page.p.evaluate('([task, text]) => findMarks(task, text).map((m) => m.at)',
                                [task, text])
        same(found, expected, f'{task} in {text[:80]!r}')


@test
def a_path_s_third_numbers_are_its_depths(fixtures):
    page = fixtures.open(fixtures.demo())

    for text, expected in DEPTHS:
        found = page.p.evaluate('(text) => findMarks("trajectory", text).map((m) => [...m.at, m.depth])', text)
        same(found, expected, f'the path in {text!r}')

    page.p.evaluate('''() => {
        const plain = finish;
        finish = (turn, answer) => plain(turn, { ...answer, answer: '[(10, 20, 1.5), (60, 50, 1.25)]' });
    }''')
    page.take(picture('table-01.png'))
    page.ask('move it', 'trajectory')
    check('(60, 50), depth 1.25' in page.text('#marks'), 'the list of marks has the depth')


@test
def shares_of_the_sides_are_drawn_where_they_belong_on_a_wide_picture(fixtures):
    page = fixtures.open(fixtures.demo())
    wide = os.path.join(BUILD, 'wide.png')

    def shares(route):
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), 'coordinates': 1000})

    page.p.route('**/api/health', shares)
    page.wait('server.data.coordinates === 1000')

    with Image.open(picture('table-01.png')) as image:
        image.resize((504, 252)).save(wide)

    page.take(wide)
    page.p.evaluate('''() => {
        const plain = finish;
        finish = (turn, answer) => plain(turn, { ...answer, answer: '[(500, 250), (250, 1000)]' });
    }''')
    page.ask('both of them', 'pointing')

    found = page.p.evaluate('''() => [...document.querySelectorAll('#overlay .disc')].map((disc) =>
        [disc.cx.baseVal.value / $('frame').clientWidth, disc.cy.baseVal.value / $('frame').clientHeight])''')
    same(found, [[0.5, 0.25], [0.25, 1]], 'the places of the points, as parts of the frame')

    page.p.evaluate('heat', 0)
    check('252, 63' in page.text('#readout'), 'a mark shows its pixels in the original')


@test
def a_label_is_that_of_the_same_object(fixtures):
    page = fixtures.open(fixtures.demo())

    for text, expected in LABELS:
        found = page.p.evaluate('(text) => findMarks("grounding", text)[0].label', text)
        same(found, expected, f'the label in {text}')


@test
def half_a_number_is_not_drawn_while_it_is_written(fixtures):
    page = fixtures.open(fixtures.demo())
    text = '[(125, 197), (82, 120)]'
    seen = page.p.evaluate('''(text) => [...text].map((_, i) =>
        findMarks("pointing", text.slice(0, i + 1), false).map((m) => m.at).join(";"))''', text)

    same(sorted(set(seen)), ['', '125,197', '125,197;82,120'], 'the marks of each beginning')


@test
def events_are_read_in_pieces_of_any_size(fixtures):
    page = fixtures.open(fixtures.demo())

    for size in (1, 2, 3, 7, 1000):
        events = page.p.evaluate('''async ([text, size]) => {
            const bytes = new TextEncoder().encode(text);
            const body = new ReadableStream({ start(c) {
                for (let i = 0; i < bytes.length; i += size) {
                    c.enqueue(bytes.slice(i, i + size));
                }
                c.close();
            } });
            const out = [];
            for await (const e of events(body)) {
                out.push([e.name, e.comment, e.data]);
            }
            return out;
        }''', [STREAM, size])

        same([e[0] for e in events], ['message', 'token', 'token', 'message', 'answer'],
             f'events in pieces of {size}')
        same([e[1] for e in events], ['place 3', '', '', 'place 0', ''], 'comments')
        same(json.loads(events[1][2])['text'], 'naïve ', 'a text beyond ASCII')
        same(json.loads(events[2][2])['text'], '€\n\n', 'a text with line feeds')


@test
def texts_from_outside_never_become_html(fixtures):
    page = fixtures.open(fixtures.demo())
    evil = '<img src=x onerror="document.title=1"><b>bold</b>'

    page.p.set_input_files('#file', {'name': evil + '.png', 'mimeType': 'image/png',
                                     'buffer': open(picture('table-01.png'), 'rb').read()})
    page.wait('stage.picture && stage.picture.name')
    page.p.evaluate('''(evil) => {
        const plain = finish;
        finish = (turn, answer) => plain(turn, { ...answer, answer: evil, thinking: evil });
    }''', evil)
    page.ask(evil, 'general')

    same(page.answer(), evil, 'the answer')
    same(page.p.locator('.turn img, .turn b, .turn strong, #frame b, #below b, #frame img:not(#image)').count(), 0,
         'elements made of text')
    same(page.p.title(), 'nginx-vlm', 'the title')
    check(evil in page.text('#picture-name'), 'the name is there, as a text')
