"""
The screenshots of docs/page.md.  Every run makes them in build/page/pictures/.
`t/page/run -p` copies them to docs/pictures/, with a checksum of the files of the
page, so that a test fails if the screenshots are older than the page.
"""

import glob
import hashlib
import os
import re
import shutil

from PIL import Image

from documents import MANUAL, add, pages_shown, pdf, reader, script, source_of
from fixtures import BUILD, ROOT, Shipped, picture
from tap import check, same, test

PUBLISH = False                         # set by main.py

MADE = os.path.join(BUILD, 'pictures')
DOCS = os.path.join(ROOT, 'docs', 'pictures')
SUM = os.path.join(DOCS, 'page.sha256')
LIMIT = 1200 * 1024                     # bytes, of all together
COLOURS = {'frame': 110, 'page': 56}
MARKS = [(18, 194, 127), (255, 255, 255), (7, 117, 74), (62, 207, 142)]

NAMES = ['start', 'general', 'grounding', 'pointing', 'affordance', 'trajectory', 'dark',
         'server', 'loading', 'phone', 'phone-dark', 'documents', 'citation', 'phone-citation']


def shoot(page, name):
    """Saves a screenshot with a reduced palette."""

    os.makedirs(MADE, exist_ok=True)
    path = os.path.join(MADE, name + '.png')

    page.p.mouse.move(1, 1)
    page.wait('$("image").complete')
    page.p.screenshot(path=path)

    with Image.open(path) as image:
        image = image.convert('RGB')

    check(len(image.getcolors(1 << 24)) > 50, f'{name} is not empty')
    frame = next((box for box in map(lambda name: page.p.locator(name).bounding_box(),
                                     ('#frame', '#samples', '#pages')) if box), None)
    reduce(image, frame).save(path, optimize=True)


def reduce(image, frame):
    """Reduces the colours: one palette for the picture, another for the rest of the page."""

    page, colours = image.copy(), MARKS

    if frame:
        box = [round(frame['x']), round(frame['y']),
               round(frame['x'] + frame['width']), round(frame['y'] + frame['height'])]
        colours = colours + first_colours(image.crop(box), COLOURS['frame'])
        page.paste(image.getpixel((2, 2)), box)

    colours = colours + first_colours(page, COLOURS['page'])
    palette = Image.new('P', (1, 1))
    palette.putpalette([value for colour in colours for value in colour])

    return image.quantize(palette=palette, dither=Image.Dither.NONE)


def first_colours(image, n):
    values = image.quantize(n).getpalette()[:3 * n]

    return list(zip(values[::3], values[1::3], values[2::3]))


def page_sum():
    total = hashlib.sha256()

    # The page, and the model and pictures in its screenshots.
    for path in sorted(glob.glob(os.path.join(ROOT, 'html', '*.[!j]*')) +
                       glob.glob(os.path.join(ROOT, 'html', '*.js')) +
                       glob.glob(os.path.join(ROOT, 'demo', 'model', '*.safetensors')) +
                       glob.glob(os.path.join(ROOT, 'demo', 'pictures', '*'))):
        with open(path, 'rb') as file:
            total.update(file.read())

    return total.hexdigest()


def desktop(fixtures, **conf):
    page = fixtures.open(fixtures.demo(), width=1080, height=660, **conf)
    page.ready()

    return page


@test
def screenshot_of_the_start(fixtures):
    shoot(desktop(fixtures), 'start')


def shipped_with_a_page():
    """README's configuration, and those of conf/ that serve html/."""

    names = []

    for path in sorted(glob.glob(os.path.join(ROOT, 'conf', '*.conf'))):
        with open(path) as file:
            if re.search(r'^ *root ', file.read(), re.M):
                names.append(os.path.basename(path))

    return ['README.md'] + names


@test
def the_page_of_a_shipped_configuration_has_its_style_and_answers(fixtures):
    names = shipped_with_a_page()
    same(names, ['README.md', 'full.conf', 'minimal.conf', 'robobrain.conf', 'several-models.conf'],
         'shipped configurations with a page')

    for name in names:
        server = Shipped(name)
        fixtures.servers.append(server)
        page = fixtures.open(server.start(), width=1080, height=660)
        page.ready()
        same(page.p.evaluate('[...document.styleSheets].map((s) => s.cssRules.length > 50)'), [True],
             f'the style sheet of {name} is applied')
        page.take(picture('table-01.png'))
        check(page.ask('How many objects are on the table?', 'general'), f'the page of {name} has an answer')
        shoot(page, 'shipped-' + name)


@test
def screenshots_of_each_task(fixtures):
    for name, task, file, question in (
            ('general', 'general', 'table-07.png', 'How many cups are on the table?'),
            ('grounding', 'grounding', 'table-02.png', 'where is the red ball?'),
            ('pointing', 'pointing', 'table-07.png', 'Show me the yellow cup'),
            ('affordance', 'affordance', 'table-05.png', 'hold the cup'),
            ('trajectory', 'trajectory', 'table-08.png',
             'put the white bowl next to the purple one')):
        page = desktop(fixtures)
        page.take(picture(file))
        page.ask(question, task)
        shoot(page, name)


@test
def screenshot_of_a_conversation_with_dark_colours(fixtures):
    page = desktop(fixtures, dark=True)
    page.take(picture('table-02.png'))
    page.ask('How many objects are on the table?', 'general')
    page.ask('is there a red bottle on the table?', 'general')
    page.ask('move the red ball to the yellow ball', 'trajectory')
    shoot(page, 'dark')


@test
def screenshot_of_the_server_s_panel(fixtures):
    page = desktop(fixtures)
    page.take(picture('table-02.png'))
    page.ask('where is the red ball?', 'grounding')
    page.p.click('#status')
    page.has('#facts', 'tokens/s')
    shoot(page, 'server')


@test
def screenshot_while_the_model_loads(fixtures):
    server = fixtures.server('shot')
    lock = server.lock()
    server.start(ready=False)
    page = fixtures.open(server, width=1080, height=660)
    page.take(picture('table-01.png'))
    page.begin('Find the red ball', 'auto')
    page.has('.turn .wait', 'The model is loading')
    shoot(page, 'loading')
    lock.close()
    page.finished(60)


@test
def screenshots_of_a_phone_with_light_and_dark_colours(fixtures):
    for name, dark, task, file, question in (
            ('phone', False, 'trajectory', 'table-08.png',
             'put the white bowl next to the purple one'),
            ('phone-dark', True, 'grounding', 'table-02.png', 'where is the red ball?')):
        page = fixtures.open(fixtures.demo(), width=375, height=740, phone=True, dark=dark)
        page.ready()
        page.take(picture(file))
        page.ask(question, task)
        shoot(page, name)


ANSWER = ('The belt runs at **1.2 m/s** [1] and is checked every **250 hours** [1]. '
          'The spare belt is BC-40-120 [2]; it weighs 14 kg.')


def asked(fixtures, **conf):
    """A conversation about two documents, whose answer is scripted."""

    server = reader(fixtures, 'manuals', 'max_pixels 800000;')
    page = fixtures.open(server, **conf)
    page.ready()
    add(page, 'conveyor.pdf', pdf(MANUAL))
    add(page, 'parts.pdf', pdf(MANUAL[2:]))
    script(page, ANSWER, [source_of(page, server, 2, ['1.2', '250', 'hours.', 'm/s', 'runs', 'belt']),
                          source_of(page, server, 3, ['BC-40-120']),
                          source_of(page, server, 1, [], cited=False)], ['14'])

    return page


@test
def screenshots_of_documents_and_of_a_citation(fixtures):
    page = asked(fixtures, width=1080, height=660)
    pages_shown(page)
    shoot(page, 'documents')
    page.ask('How fast is the belt, how often is it checked, and what is the spare part?')
    page.p.locator('.cite').first.click()
    page.wait('stage.picture.width > 0')
    shoot(page, 'citation')


@test
def screenshot_of_a_citation_on_a_phone(fixtures):
    page = asked(fixtures, width=375, height=740, phone=True)
    page.ask('How fast is the belt, how often is it checked, and what is the spare part?')
    page.p.locator('.cite').first.click()
    page.wait('stage.picture.width > 0')
    shoot(page, 'phone-citation')


@test
def the_pictures_in_the_docs_are_of_this_page(fixtures):
    made = [os.path.join(MADE, name + '.png') for name in NAMES]

    if PUBLISH:
        shutil.rmtree(DOCS, ignore_errors=True)
        os.makedirs(DOCS)

        for path in made:
            shutil.copy(path, DOCS)

        with open(SUM, 'w') as file:
            file.write(page_sum() + '\n')

    with open(SUM) as file:
        same(file.read().strip(), page_sum(), 'checksum of page, model and pictures (t/page/run -p renews it)')

    there = glob.glob(os.path.join(DOCS, '*.png'))

    same(sorted(os.path.basename(p)[:-4] for p in there), sorted(NAMES), 'pictures in docs')
    check(sum(map(os.path.getsize, there)) < LIMIT, 'the total size is below the limit')
