"""
Documents on the page: PDF files that are read, their pages, questions about them,
and the places that an answer cites.  The demo model reads no pages, so answers
with citations are scripted; all else comes from the server.
"""

import json
import os
import sys

from controls import drop, focused, tab_to
from fixtures import GREEDY, ROOT, picture
from tap import check, same, test, wait_for

sys.path.append(os.path.join(ROOT, 't', 'documents'))

from frames import SANDBOX              # noqa: E402

FILES = os.path.join(ROOT, 't', 'documents', 'files')
ON = f'{GREEDY} documents {" ".join(["on", *SANDBOX])};'

MANUAL = [
    ['Belt conveyor BC-40', 'Operating manual', '', 'Read this manual before the belt is switched on.',
     'Keep it beside the machine.'],
    ['1  Maintenance', '', 'The belt runs at 1.2 m/s and is checked every 250 hours.',
     'Replace the bearing if its temperature exceeds 70 degrees.', 'The motor takes 4.5 kW at full load.'],
    ['2  Spare parts', '', 'Bearing  BC-40-117', 'Belt, 12 m  BC-40-120', 'Motor, 4.5 kW  BC-40-131'],
]


def pdf(pages):
    """A PDF file with lines of text on each page, the first of them large."""

    objects = ['<</Type/Catalog/Pages 2 0 R>>',
               '<</Type/Pages/Kids[%s]/Count %d>>' % (' '.join(f'{4 + 2 * i} 0 R' for i in range(len(pages))),
                                                     len(pages)),
               '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>']

    for i, lines in enumerate(pages):
        text = '\n'.join(f'BT /F 1 Tf {34 if n == 0 else 18} 0 0 {34 if n == 0 else 18} 50 {750 - 44 * n} Tm '
                         f'({line}) Tj ET' for n, line in enumerate(lines))
        text += f'\nBT /F 1 Tf 11 0 0 11 290 40 Tm ({i + 1}) Tj ET'
        objects.append(f'<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</Font<</F 3 0 R>>>>'
                       f'/Contents {5 + 2 * i} 0 R>>')
        objects.append(f'<</Length {len(text)}>>\nstream\n{text}\nendstream')

    out, places = '%PDF-1.4\n', []

    for n, body in enumerate(objects, 1):
        places.append(len(out))
        out += f'{n} 0 obj\n{body}\nendobj\n'

    table = ''.join(f'{place:010} 00000 n \n' for place in places)
    out += (f'xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}'
            f'trailer<</Size {len(objects) + 1}/Root 1 0 R>>\nstartxref\n{len(out)}\n%%EOF\n')

    return out.encode('latin-1')


def reader(fixtures, name, more=''):
    return fixtures.server(name, engine=ON + more).start()


def opened(fixtures, server, allow=(), **conf):
    page = fixtures.open(server, allow=allow, **conf)
    page.ready()

    return page


def add(page, name='manual.pdf', data=None):
    """Chooses a PDF file; returns when the server has read it, or says why not."""

    n = page.p.evaluate('docs.list.length')
    page.p.set_input_files('#pdf', {'name': name, 'mimeType': 'application/pdf', 'buffer': data or pdf(MANUAL)})
    page.wait(f'docs.list.length > {n} && !docs.list.some(isReading)')


def script(page, answer, sources, unsupported=(), token=None, not_drawn=()):
    """Answers the next questions about documents with events, as the server sends them."""

    def event(name, data):
        return f'event: {name}\ndata: {json.dumps(data)}\n\n'

    def respond(route):
        asked.append(route.request.post_data_json)
        early = [{k: v for k, v in s.items() if k not in ('boxes', 'cited')} for s in sources]
        route.fulfill(status=200, headers={'Content-Type': 'text/event-stream; charset=utf-8'}, body=(
            ': place 0\n\n' + event('sources', {'pages_read': [], 'sources': early})
            + event('token', {'text': token or answer})
            + event('answer', {'answer': answer, 'sources': list(sources), 'unsupported': list(unsupported),
                               'not_drawn': list(not_drawn), 'pages_read': [], 'thinking': '', 'turn_number': 2,
                               'usage': {'completion_tokens': 9}})))

    asked = []
    page.p.route('**/api/ask', respond)

    return asked


def source_of(page, server, number, words, cited=True, doc=0):
    """A source with the boxes of some words, from the page's words as the server read them."""

    entry = page.p.evaluate(f'({{ id: docs.list[{doc}].id, name: docs.list[{doc}].name }})')
    read = server.request(f'/api/documents/{entry["id"]}/pages/{number}')
    boxes = [[x / read['width'] if i % 2 == 0 else x / read['height'] for i, x in enumerate(w['box'])]
             for w in read['words'] if w['text'] in words]

    same(len(boxes), len(words), f'words of page {number}')

    return {'boxes': boxes, 'cited': cited, 'document': entry['id'], 'name': entry['name'], 'number': 1,
            'page': number, 'score': 1.5, 'text': read['text']}


def drawn_boxes(page):
    """The boxes over the page's picture, as shares of it."""

    return page.p.evaluate('''() => [...document.querySelectorAll('#overlay .found')].map((r) => {
        const n = (name) => Number(r.getAttribute(name));
        const [w, h] = [$('frame').clientWidth, $('frame').clientHeight];
        return [(n('x') + 2) / w, (n('y') + 2) / h, (n('x') + n('width') - 2) / w, (n('y') + n('height') - 2) / h];
    })''')


def pages_shown(page):
    return page.wait('[...document.querySelectorAll(".tiles img")].filter((i) => i.naturalWidth > 0).length === '
                     'document.querySelectorAll(".tiles button").length')


@test
def a_pdf_is_read_and_its_pages_are_shown(fixtures):
    server = reader(fixtures, 'read')
    page = opened(fixtures, server)
    check(page.p.get_by_role('button', name='Choose a PDF').is_visible(), 'the start offers it')

    drop(page, 'manual.pdf', 'application/pdf', pdf(MANUAL))
    page.wait('docs.list.length === 1 && docs.list[0].state === "ready"')
    same(page.text('#chips li'), 'manual.pdf 3 pages'.replace(' 3', '\n3'), 'the chip')
    same(page.p.locator('.tiles button').count(), 3, 'pages')
    pages_shown(page)
    same(page.p.evaluate('$("message").placeholder'), 'Ask about the documents', 'the question box')
    check(not page.shown('#tasks') and not page.shown('#empty'), 'no tasks, and no invitation to drop a picture')

    page.p.get_by_role('button', name='Page 2 of manual.pdf').click()
    page.wait('$("image").naturalWidth > 0 && stage.picture.page.number === 2')
    same(page.text('#page-name'), 'Page 2 of 3 · manual.pdf', 'the title')
    page.p.get_by_role('button', name='Next page').click()
    same(page.text('#page-name'), 'Page 3 of 3 · manual.pdf', 'the title of the next one')
    check(page.p.locator('#next').is_disabled(), 'there is none after it')
    page.p.get_by_role('button', name='All pages').click()
    check(page.shown('#pages') and not page.shown('#frame'), 'all pages are shown again')


@test
def the_progress_of_the_reading_is_shown_page_by_page(fixtures):
    server = reader(fixtures, 'progress')
    page = opened(fixtures, server)
    steps = [('waiting', 0, 0), ('reading', 12, 0), ('reading', 12, 5)]
    now = {'step': 0}

    def respond(route):
        answer = route.fetch()
        state, pages, done = steps[now['step']]
        route.fulfill(response=answer, json={**answer.json(), 'state': state, 'pages': pages,
                                             'pages_to_read': pages, 'pages_read': done})

    page.p.route('**/api/documents/*', respond)
    page.p.set_input_files('#pdf', {'name': 'long.pdf', 'mimeType': 'application/pdf', 'buffer': pdf(MANUAL)})

    for step, words in enumerate(('waits to be read', 'page 0 of 12', 'page 5 of 12')):
        now['step'] = step
        page.has('#chips', words)

    same(page.p.locator('.tiles button').count(), 12, 'tiles')
    same(page.p.locator('.tiles button.read').count(), 5, 'tiles of pages that are read')
    same(page.p.locator('.tiles img').count(), 0, 'pictures')

    page.begin('How fast is the belt?')
    page.has('.turn .wait', 'long.pdf: page 5 of 12')
    page.p.keyboard.press('Escape')
    page.finished(5)
    same(page.note(), 'Stopped.', 'the note of a question that waited')

    page.p.unroute_all(behavior='wait')    # a request may be on its way through it
    page.has('#chips', '3 pages')
    pages_shown(page)


@test
def documents_are_removed_from_the_conversation(fixtures):
    server = reader(fixtures, 'removed')
    page = opened(fixtures, server)
    add(page, 'manual.pdf')
    add(page, 'parts.pdf', pdf(MANUAL[2:]))
    same(page.p.locator('#chips li').count(), 2, 'documents')
    path = f'/api/session/{page.p.evaluate("talk.session")}/documents'

    page.p.get_by_role('button', name='Remove manual.pdf').click()
    wait_for('the server has one', lambda: [d['name'] for d in server.request(path)['documents']] == ['parts.pdf'])
    same(page.text('#chips b'), 'parts.pdf', 'the chip')

    page.p.get_by_role('button', name='Remove parts.pdf').click()
    wait_for('the server has none', lambda: server.request(path)['documents'] == [])
    check(page.shown('#empty') and page.shown('#tasks'), 'the page is as at first')


@test
def documents_are_there_after_a_reload_and_go_with_the_conversation(fixtures):
    server = reader(fixtures, 'again')
    page = opened(fixtures, server)
    add(page)
    page.p.reload()
    page.wait('docs.list.length === 1 && docs.list[0].state === "ready"')
    pages_shown(page)

    page.p.click('#new')
    check(page.shown('#empty'), 'a new conversation has none')
    same(page.p.evaluate('docs.list.length'), 0, 'documents')


@test
def the_server_answers_a_question_with_the_pages_that_the_model_was_given(fixtures):
    server = reader(fixtures, 'answered', ' max_tokens 24;')
    page = opened(fixtures, server)
    add(page)
    page.ask('How often is the belt checked?', seconds=120)
    same(page.note(), '', 'the note under the answer')
    same(page.text('.turn .task'), 'Documents', 'the words above the question')
    pages = page.p.evaluate('talk.turns[0].sources.map((s) => s.page)')
    same(pages, [1, 2, 3], 'the pages of a short document: all of them')

    for details in page.p.locator('.sources details').all():
        details.locator('summary').click()

    page.p.get_by_role('button', name='Source 2: manual.pdf, page 2').last.click()
    page.wait('stage.picture.page.number === 2 && $("image").naturalWidth > 0')
    check('checked every 250 hours' in page.text('#cited'), 'the text that the search found')

    answer, sources = page.answer(), page.p.evaluate('talk.turns[0].sources')
    page.p.reload()
    page.wait('talk.turns.length === 1 && docs.list.length === 1')
    same((page.text('.turn .task'), page.answer()), ('Documents', answer), 'after a reload')
    same(page.p.evaluate('talk.turns[0].sources'), sources, 'its sources, too')
    page.p.get_by_role('button', name='Retry').click()
    page.wait('talk.turns.length === 2 && talk.busy === null', 120)
    check(page.p.evaluate('talk.turns[1].sources.length') == 3, 'the question is asked of the documents again')


@test
def a_citation_opens_its_page_with_the_words_marked(fixtures):
    server = reader(fixtures, 'cited')
    page = opened(fixtures, server)
    add(page)
    first = source_of(page, server, 2, ['1.2', '250'])
    second = source_of(page, server, 3, ['BC-40-120'])
    third = source_of(page, server, 1, [], cited=False)
    asked = script(page, 'It runs at **1.2 m/s** [1] and needs BC-40-120 [1, 2], for 980 hours [7].',
                   [first, second, third], ['980', '7'])

    page.ask('How fast is the belt, and which one is it?')
    same(asked[-1]['session_id'], page.p.evaluate('talk.session'), 'the session')
    same(asked[-1]['question'], 'How fast is the belt, and which one is it?', 'the question')
    same(page.text('.turn .task'), 'Documents', 'the words above the question')
    same(page.answer(), 'It runs at 1.2 m/s [1] and needs BC-40-120 [1, 2], for 980 hours [7].', 'the answer')
    same(page.p.locator('.text .cite').count(), 3, 'citations: there is no seventh source')
    same(page.p.locator('.text .unsupported').all_inner_texts(), ['980', '7'], 'the underlined numbers')
    same(page.p.locator('.text .unsupported').first.get_attribute('title'), 'not found in the pages', 'its title')
    page.has('.sources', 'Underlined: not found in the pages: 980 · 7')
    same(page.p.locator('.sources > ul button').all_inner_texts(),
         ['1\nmanual.pdf, page 2', '2\nmanual.pdf, page 3'], 'the sources')
    page.has('.sources summary', '1 more source that the model was given')

    page.p.locator('.text .cite').first.click()
    page.wait('stage.picture.page.number === 2 && $("image").naturalWidth > 0')
    wait_for('the boxes are drawn', lambda: len(drawn_boxes(page)) == 2)

    for got, wanted in zip(drawn_boxes(page), first['boxes']):
        check(all(abs(a - b) < 0.005 for a, b in zip(got, wanted)), f'the box {got}, expected {wanted}')

    check('checked every 250 hours' in page.text('#cited'), 'the text of the source is below the page')
    same(page.p.locator('[aria-pressed=true][data-source]').count(), 3, 'pressed: both citations and the source')

    page.p.locator('.sources > ul button').nth(1).click()
    page.wait('stage.picture.page.number === 3')
    wait_for('one box is drawn', lambda: len(drawn_boxes(page)) == 1)
    page.p.get_by_role('button', name='Previous page').click()
    same(drawn_boxes(page), [], 'boxes on a page that was turned to')

    page.ask('And once more?')
    same(len(asked), 2, 'an opened page is no picture of the user: the question is about the documents')


@test
def sources_are_there_after_a_reload_as_long_as_their_conversation(fixtures):
    server = reader(fixtures, 'kept', ' max_tokens 8;')
    page = opened(fixtures, server)
    add(page)
    page.ask('Which belt?', seconds=120)
    page.p.evaluate("turn = talk.turns[0]; turn.unsupported = ['7']; forgetSources(talk.session); keepSources(turn)")
    page.p.reload()
    page.wait('talk.turns.length === 1 && docs.list.length === 1')
    same(page.p.evaluate('talk.turns[0].unsupported'), ['7'], 'numbers that no page has')
    page.p.locator('.sources summary').click()
    page.p.get_by_role('button', name='Source 2: manual.pdf, page 2').last.click()
    page.wait('stage.picture.page.number === 2 && $("image").naturalWidth > 0')
    check('checked every 250 hours' in page.text('#cited'), 'the text of the source')

    same(page.p.evaluate('keptSources("Which belt?", "another answer")'), {}, 'sources of another answer')
    page.p.evaluate('deleteChat(talk.session)')
    page.wait('localStorage.getItem("vlm.sources") === null')

    page.p.evaluate("localStorage.setItem('vlm.sources', '[{\"session\": 1}, null, {\"sources\": 5}]')")
    same(page.p.evaluate('keptAnswers()'), [], 'entries that are damaged')
    page.p.evaluate("""talk.session = 's'; for (let i = 0; i < 70; i++) {
        keepSources({ question: '?', answer: `${i}`, sources: [{ text: 'x'.repeat(30000) }], unsupported: [] });
    }""")
    same(page.p.evaluate('keptAnswers().length'), 49, 'answers of 30,000 characters are kept')
    same(page.p.evaluate('keptAnswers()[0].answer'), '69', 'the newest of them first')


@test
def it_is_chosen_how_the_model_reads_the_pages(fixtures):
    server = reader(fixtures, 'chosen')
    page = opened(fixtures, server)
    check(not page.shown('#reading'), 'without documents there is no choice')
    add(page)
    check(page.shown('#reading'), 'with documents there is one')
    asked = script(page, 'At 1.2 m/s.', [])
    page.ask('How fast?')
    same((asked[-1]['pages'], page.text('.turn .task')), ('auto', 'Documents'), 'the server chooses')

    page.p.locator('#reading').select_option('Text')
    page.ask('How fast?')
    same((asked[-1]['pages'], page.p.locator('.turn .task').last.inner_text()), ('text', 'Documents, as text'), 'text')

    page.p.reload()
    page.wait('docs.list.length === 1')
    same(page.p.locator('#reading').input_value(), 'text', 'the choice after a reload')
    page.p.locator('#reading').focus()
    page.p.keyboard.press('ArrowDown')
    page.ask('How fast?')
    same((asked[-1]['pages'], page.p.locator('.turn .task').last.inner_text()),
         ('pictures', 'Documents, as pictures'), 'pictures, chosen by a key')
    page.p.get_by_role('button', name='Remove manual.pdf').click()
    page.wait('!docs.list.length')
    check(not page.shown('#reading'), 'without documents there is none again')


@test
def a_page_that_was_read_by_ocr_says_so(fixtures):
    server = fixtures.server('ocr', engine=ON[:-1] + ' ocr=on;').start()
    page = opened(fixtures, server)

    with open(os.path.join(FILES, 'scan180.pdf'), 'rb') as file:
        add(page, 'scan.pdf', file.read())

    same(page.text('#chips li'), 'scan.pdf\n1 page, 1 by OCR', 'the chip')
    script(page, 'Above 70 [1].', [{**source_of(page, server, 1, ['70']), 'ocr': True}])
    page.ask('When is the bearing replaced?')
    same(page.p.locator('.sources > ul button').all_inner_texts(), ['1\nscan.pdf, page 1, read by OCR'], 'the source')
    page.p.locator('.text .cite').click()
    wait_for('the box is drawn', lambda: len(drawn_boxes(page)) == 1)
    same(page.text('#page-name'), 'Page 1 of 1 · read by OCR · scan.pdf', 'the line below the page')


@test
def pages_that_could_not_be_drawn_are_named(fixtures):
    server = reader(fixtures, 'undrawn')
    page = opened(fixtures, server)
    add(page)
    late = 'the page took longer than 5 s to be drawn'
    second = source_of(page, server, 2, ['1.2'])
    undrawn = [{'document': second['document'], 'page': n, 'why': late} for n in (2, 3)]

    script(page, 'At 1.2 m/s [1].', [second], not_drawn=undrawn[:1])
    page.ask('How fast?')
    page.has('.turn:last-child .sources', f'The model has not seen page 2 of manual.pdf as a picture: {late}.')

    script(page, 'No page says so.', [], not_drawn=undrawn)
    page.ask('How slow?')
    same(page.text('.turn:last-child .sources'),
         f'The model has not seen page 2 of manual.pdf, page 3 of manual.pdf as pictures: {late}.', 'without a source')

    script(page, 'At 1.2 m/s [1].', [second])
    page.ask('How fast?')
    check('has not seen' not in page.text('.turn:last-child .sources'), 'nothing is said where all pages were drawn')

    page.p.evaluate("forgetSources(talk.session); talk.turns.slice(0, 1).forEach(keepSources)")
    same(page.p.evaluate('keptSources("How fast?", "At 1.2 m/s [1].").notDrawn'), undrawn[:1], 'what is kept')


@test
def a_citation_is_opened_by_keys_and_announced(fixtures):
    server = reader(fixtures, 'keys')
    page = opened(fixtures, server)
    page.p.on('filechooser', lambda _: None)
    tab_to(page, 'choose')
    same(tab_to(page, 'choose-pdf'), ['choose-pdf'], 'the focus after the button for pictures')

    with page.p.expect_file_chooser() as chooser:
        page.p.keyboard.press('Enter')

    chooser.value.set_files({'name': 'manual.pdf', 'mimeType': 'application/pdf', 'buffer': pdf(MANUAL)})
    page.wait('docs.list.length === 1 && docs.list[0].state === "ready"')
    same(focused(page), 'message', 'the focus after a file was chosen')
    page.has('#say', 'manual.pdf is read, 3 pages.')
    script(page, 'At 1.2 m/s [1].', [source_of(page, server, 2, ['1.2'])])
    page.p.keyboard.type('How fast?')
    page.p.keyboard.press('Enter')
    page.finished()

    page.p.locator('.cite').focus()
    page.p.keyboard.press('Enter')
    page.has('#say', 'manual.pdf, page 2 of 3, 1 place marked.')
    check('cite' in page.p.evaluate('document.activeElement.className'), 'the focus stays in the answer')

    page.p.get_by_role('button', name='All pages').click()
    page.p.locator('.tiles button').nth(2).focus()
    page.p.keyboard.press('Enter')
    same(page.text('#page-name'), 'Page 3 of 3 · manual.pdf', 'the page opened by the keyboard')
    same(focused(page), 'all', 'the focus')

    nameless = page.p.evaluate('''() =>
        [...document.querySelectorAll('button, input, select, textarea, a[href], summary, progress')]
            .filter((n) => !(n.getAttribute('aria-label') || n.innerText?.trim()
                             || n.closest('label')?.innerText.trim()
                             || (n.id && document.querySelector(`label[for=${n.id}]`))))
            .map((n) => n.outerHTML.slice(0, 80))''')
    same(nameless, [], 'things without a name')


@test
def a_picture_is_asked_about_as_long_as_it_is_shown(fixtures):
    server = reader(fixtures, 'both')
    page = opened(fixtures, server)
    add(page)
    asked = script(page, 'In the manual.', [])
    page.take(picture('table-01.png'))
    check(page.shown('#tasks'), 'the tasks are there')
    same(page.ask('How many objects are on the table?', 'general'), '4', 'the answer about the picture')

    page.p.get_by_role('button', name='Remove the picture').click()
    check(page.shown('#pages'), 'the pages are shown')
    same(page.ask('Where is it?'), 'In the manual.', 'the answer about the documents')
    same(len(asked), 1, 'questions about documents')


@test
def a_file_that_cannot_be_read_is_reported_with_the_reason(fixtures):
    server = reader(fixtures, 'locked')
    page = opened(fixtures, server, allow=['400'])

    with open(os.path.join(FILES, 'locked.pdf'), 'rb') as file:
        add(page, 'locked.pdf', file.read())

    page.has('#pages .note', 'locked.pdf could not be read: a password is needed.')
    same(page.text('#chips span'), 'not read', 'the chip')

    page.p.set_input_files('#pdf', {'name': 'fake.pdf', 'mimeType': 'application/pdf', 'buffer': b'no PDF at all'})
    page.has('#pages .note', 'Not a PDF.')
    check(page.p.get_by_role('button', name='Remove fake.pdf').is_visible(), 'it can be removed')


@test
def refused_uploads_are_reported_and_sent_again(fixtures):
    server = reader(fixtures, 'refused')
    page = opened(fixtures, server, allow=['413', '429', '507', '409'])

    for status, error, words in (
            (413, 'The file is larger than 20971520 bytes', 'The file is larger than the server takes. Choose a smaller one.'),
            (429, '64 documents wait to be read', '64 documents wait to be read. Ask again in 5 seconds.'),
            (507, 'The disk is full', 'The disk is full. The error log of the server says more.'),
            (409, 'The session has 20 documents', 'The session has 20 documents.')):
        page.p.route('**/api/documents', lambda route: route.fulfill(status=status, json={'error': error}))
        page.p.set_input_files('#pdf', {'name': 'manual.pdf', 'mimeType': 'application/pdf', 'buffer': pdf(MANUAL)})
        page.has('#pages .note', words)
        page.p.get_by_role('button', name='Remove manual.pdf').click()

    page.p.set_input_files('#pdf', {'name': 'manual.pdf', 'mimeType': 'application/pdf', 'buffer': pdf(MANUAL)})
    page.has('#pages .note', 'The session has 20 documents.')
    page.p.unroute('**/api/documents')
    page.p.get_by_role('button', name='Send again').click()
    page.wait('docs.list.length === 1 && docs.list[0].state === "ready"')
    check(not page.shown('#pages .note'), 'the message goes')


@test
def a_question_that_the_server_refuses_is_reported(fixtures):
    server = reader(fixtures, 'asked')
    page = opened(fixtures, server, allow=['409', '404'])
    add(page)

    for status, error, words in (
            (409, 'The document is still being read', 'The document is still being read. Ask again in a moment.'),
            (404, 'Session not found', 'Session not found.')):
        page.p.route('**/api/ask', lambda route: route.fulfill(status=status, json={'error': error}))
        page.ask('How fast?')
        same(page.note().replace(' Ask again', '', 1) if status == 404 else page.note().rsplit(' Ask again', 1)[0],
             words, f'the note at {status}')
        page.p.unroute('**/api/ask')

    asked = script(page, 'At 1.2 m/s.', [])
    page.p.get_by_role('button', name='Ask again').last.click()
    page.wait('talk.busy === null && talk.turns.at(-1).answer')
    same(len(asked), 1, 'the question that is asked again is about the documents')


@test
def a_document_that_the_server_lost_is_reported(fixtures):
    server = reader(fixtures, 'gone')
    page = opened(fixtures, server, allow=['404', 'ERR_FAILED'])
    page.p.route('**/pages/*.png', lambda route: route.abort())
    add(page)
    page.p.unroute('**/pages/*.png')
    page.p.evaluate('''async () => {
        await request(`api/documents/${docs.list[0].id}?session_id=${talk.session}`, { method: 'DELETE' });
        openPage(docs.list[0].id, 2);
    }''')
    page.has('#picture-error', 'manual.pdf, page 2 of 3: Document not found.')


@test
def a_server_without_documents_says_what_is_missing(fixtures):
    page = opened(fixtures, fixtures.demo())
    check(not page.shown('#choose-pdf'), 'no button offers it')
    drop(page, 'manual.pdf', 'application/pdf', pdf(MANUAL))
    page.has('#picture-error', 'This server reads no PDF files. Its configuration needs “documents on”')
    same(page.p.evaluate('docs.list.length'), 0, 'documents')


@test
def texts_of_documents_never_become_html(fixtures):
    server = reader(fixtures, 'html')
    page = opened(fixtures, server)
    evil = '<img src=x onerror="document.title=1"><b>bold</b>'
    add(page, evil + '.pdf')
    source = {**source_of(page, server, 2, ['1.2']), 'name': evil, 'text': evil}
    script(page, evil + ' 42 [1]', [source], ['42', '.*', '('])
    page.ask('?')

    same(page.answer(), evil + ' 42 [1]', 'the answer')
    page.p.locator('.cite').click()
    same(page.text('#cited'), evil, 'the text of the source')
    same(page.p.locator('.turn img, .turn .text b, #chips b b, #pages h3 *, #cited *').count(), 0, 'elements made of text')
    same(page.p.title(), 'nginx-vlm', 'the title')


@test
def documents_fit_every_width(fixtures):
    server = reader(fixtures, 'widths')

    for width, height, phone in ((320, 568, True), (375, 740, True), (667, 375, True), (820, 600, False),
                                 (1024, 768, False), (1440, 900, False)):
        page = opened(fixtures, server, width=width, height=height, phone=phone)
        add(page)
        add(page, 'a-rather-long-name-of-a-second-file-with-spare-parts.pdf', pdf(MANUAL[2:]))
        script(page, 'At 1.2 m/s [1].', [source_of(page, server, 2, ['1.2'])])
        page.ask('How fast?')
        size = f'at {width} by {height}'

        for state in ('pages', 'page'):
            wide = page.p.evaluate('document.documentElement.scrollWidth')
            tall = page.p.evaluate('document.documentElement.scrollHeight')
            check(wide <= width and tall <= height, f'the page is {wide} by {tall} {size} with its {state}')

            for name in ('#send', '#message', '#add-pdf', '#reading') + (('#frame', '#next', '#all') if state == 'page' else ('#pages',)):
                box = page.p.locator(name).bounding_box()
                check(box['x'] >= 0 and box['y'] >= 0 and box['x'] + box['width'] <= width
                      and box['y'] + box['height'] <= height, f'{name} is cut off {size}')

            room = page.p.locator('#scroll').bounding_box()['height']
            check(room >= 90, f'{room} pixels are left for the conversation {size} with its {state}')
            page.p.locator('.cite').click()
            page.wait('$("image").naturalWidth > 0')

        page.p.context.close()

