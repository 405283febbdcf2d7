"""
Fixtures of the tests: servers of nginx with this module, one Chromium, and its
pages.  All files are written below build/page/.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from PIL import Image
from playwright.sync_api import sync_playwright

from tap import Wrong, check, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.join(ROOT, 'build', 'page')
DEMO = os.path.join(ROOT, 'demo', 'model')
PICTURES = os.path.join(ROOT, 'demo', 'pictures')
MODULE = os.environ.get('TEST_NGINX_LOAD_MODULES',
                        os.path.join(ROOT, 'build', 'ngx_http_vlm_module.so'))
CHROMIUM = os.environ.get('CHROMIUM', '/usr/bin/chromium')

GREEDY = 'thinking off; sampling temperature=0 repetition_penalty=1;'

# With these settings an answer takes many seconds on every machine.
SLOW = '''device cpu ops=plain; weights f32; threads 1; thinking off; context 4k;
          sampling temperature=0 repetition_penalty=1;'''

# The default fonts of most systems resemble Inter more than Debian's.
FONTS = '''<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <match>
    <test name="family"><string>sans</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit>
  </match>
  <match>
    <test name="family"><string>sans-serif</string></test>
    <edit name="family" mode="prepend" binding="strong"><string>Inter</string></edit>
  </match>
</fontconfig>
'''


def picture(name):
    return os.path.join(PICTURES, name)


def small_picture():
    """A picture that even the slow model encodes in a short time."""

    path = os.path.join(BUILD, 'small.png')

    with Image.open(picture('table-01.png')) as image:
        image.resize((84, 84)).save(path)

    return path


def free_port():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        return s.getsockname()[1]


def random_model(name, shape, tokenizer, ends, *flags):
    """A model of random weights, whose end-of-text tokens are the given ones."""

    path = os.path.join(BUILD, name)
    generation = os.path.join(path, 'generation_config.json')

    if not os.path.exists(generation):
        os.makedirs(BUILD, exist_ok=True)

        with open(path + '.json', 'w') as file:
            json.dump(shape, file)

        program = os.path.join(os.path.dirname(MODULE), 'random-checkpoint')
        subprocess.run([program, path + '.json', path, '--seed', '1', '--type', 'bf16',
                        '--tokenizer', os.path.join(ROOT, 't/fidelity', tokenizer), *flags],
                       check=True, stdout=subprocess.DEVNULL)

        with open(generation, 'w') as file:
            json.dump({'eos_token_id': ends}, file)

    return path


def shape_of(name):
    with open(os.path.join(ROOT, 'bench/shapes', name + '.json')) as file:
        return json.load(file)


def slow_model():
    """A model that does not end: its end-of-text token is one that is never sampled."""

    shape = shape_of('tiny-f')
    shape['num_hidden_layers'] = 12

    return random_model('slow-model', shape, 'tokenizer', [shape['vocab_size'] - 1])


def text_model():
    """A model without a vision encoder and without a chat template."""

    return random_model('text-model', shape_of('tiny-p'), 'tokenizer-bloom', [2])


class Server:
    """One nginx with the page and the module, on a port of its own."""

    def __init__(self, name, model=DEMO, engine=GREEDY, server=''):
        self.dir = os.path.join(BUILD, name)
        self.port = free_port()
        self.url = f'http://127.0.0.1:{self.port}'
        self.store = os.path.join(self.dir, 'store')
        self.process = None

        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(os.path.join(self.dir, 'logs'))
        os.makedirs(self.store)

        with open(os.path.join(self.dir, 'nginx.conf'), 'w') as file:
            file.write(self.configuration(model, engine, server))

    def configuration(self, model, engine, server):
        user = 'user root;' if os.geteuid() == 0 else ''
        temp = '\n'.join(f'{kind}_temp_path {self.dir}/{kind};'
                         for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))

        return f'''
load_module {MODULE};
{user}
daemon off;
worker_processes 2;
pid {self.dir}/nginx.pid;
error_log {self.dir}/logs/error.log info;
thread_pool vlm threads=1;
events {{ worker_connections 256; }}
http {{
    include /etc/nginx/mime.types;
    access_log {self.dir}/logs/access.log;
    {temp}
    vlm_engine demo {{
        model {model};
        store {self.store};
        {engine}
    }}
    server {{
        listen 127.0.0.1:{self.port};
        {server}
        location / {{ root {ROOT}/html; add_header Cache-Control no-cache; }}
        location ~ ^/(api|uploads|result)/ {{ vlm_pass demo; }}
    }}
}}
'''

    def start(self, ready=True):
        log = open(os.path.join(self.dir, 'logs', 'stderr.log'), 'a')
        nginx = shutil.which('nginx') or '/usr/sbin/nginx'

        self.process = subprocess.Popen(
            [nginx, '-p', self.dir + '/', '-c', self.dir + '/nginx.conf',
             '-e', self.dir + '/logs/error.log'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        wait_for('nginx listens', lambda: self.health() or self.ended())
        check(not self.ended(), 'nginx does not start: ' + self.log()[-2000:])

        if ready:
            wait_for('the model is loaded', lambda: self.health().get('model_loaded'), 60)

        return self

    def ended(self):
        return self.process.poll() is not None

    def stop(self, how=signal.SIGTERM):
        if self.process and not self.ended():
            self.process.send_signal(how)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self):
        """Kills the master and its workers at once, as a power cut would."""

        pids = self.workers()
        self.process.kill()

        for pid in pids:
            os.kill(pid, signal.SIGKILL)

        self.process.wait()

    def reload(self):
        self.process.send_signal(signal.SIGHUP)

    def workers(self):
        path = f'/proc/{self.process.pid}/task/{self.process.pid}/children'

        with open(path) as file:
            return [int(pid) for pid in file.read().split()]

    def log(self):
        text = ''

        for name in ('error.log', 'stderr.log'):
            with open(os.path.join(self.dir, 'logs', name), errors='replace') as file:
                text += file.read()

        return text

    def lock(self):
        """Holds the engine's lock: the model loads once the returned file is closed."""

        file = open(os.path.join(self.store, 'demo.lock'), 'w')
        fcntl.flock(file, fcntl.LOCK_EX)

        return file

    def request(self, path, body=None, seconds=10):
        data = json.dumps(body).encode() if body is not None else None
        request = urllib.request.Request(self.url + path, data)

        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return json.load(answer)
        except (OSError, ValueError, urllib.error.URLError):
            return {}

    def health(self):
        return self.request('/api/health', seconds=3)

    def queue(self, what):
        return self.health().get('queue', {}).get(what)

    def wait_queue(self, seconds=20, **numbers):
        wait_for(f'{numbers} in the queue',
                 lambda: all(self.queue(k) == n for k, n in numbers.items()), seconds)

    def occupy(self, session, image):
        """Sends another client's question, which ends once the returned socket is closed."""

        body = json.dumps({'session_id': session, 'message': 'count', 'task': 'general',
                           'image': image, 'enable_thinking': False}).encode()
        s = socket.create_connection(('127.0.0.1', self.port))
        s.sendall(b'POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s'
                  % (len(body), body))
        return s


class Shipped(Server):
    """A shipped configuration, taken from its own text by t/lib/Shipped.pm."""

    PLACED = 'my %all = Shipped::all(); print Shipped::placed($all{$ARGV[0]}, @ARGV[1, 2])'

    def __init__(self, name):
        self.name = name
        super().__init__('shipped-' + name)

    def configuration(self, model, engine, server):
        return subprocess.run(['perl', '-It/lib', '-MShipped', '-e', self.PLACED, self.name, self.dir,
                               str(self.port)], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


class Fixtures:
    """The servers and pages of the current test, and one browser for all tests."""

    def __init__(self, playwright):
        fonts = os.path.join(BUILD, 'fonts.conf')

        with open(fonts, 'w') as file:
            file.write(FONTS)

        self.browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=['--no-sandbox', '--font-render-hinting=none'],
            env={**os.environ, 'FONTCONFIG_FILE': fonts})
        self.servers = []
        self.contexts = []
        self.pages = []
        self.demo_server = None

    def demo(self):
        """The server with the demo model that most tests share."""

        if self.demo_server is None:
            self.demo_server = Server('demo').start()

        return self.demo_server

    def server(self, name, **conf):
        self.servers.append(Server(name, **conf))

        return self.servers[-1]

    def context(self, width=1200, height=760, phone=False, dark=False, motion=False):
        context = self.browser.new_context(
            viewport={'width': width, 'height': height}, has_touch=phone, is_mobile=phone,
            device_scale_factor=1, color_scheme='dark' if dark else 'light',
            reduced_motion='no-preference' if motion else 'reduce')

        context.set_default_timeout(20000)
        self.contexts.append(context)

        return context

    def open(self, server, context=None, allow=(), **conf):
        """Opens a page and records its errors; allow has patterns of expected ones."""

        page = Page((context or self.context(**conf)).new_page(), server, allow)

        self.pages.append(page)
        page.p.goto(server.url + '/')

        return page

    def check_pages(self):
        for page in self.pages:
            page.check_log()

    def save_screens(self, name):
        folder = os.path.join(BUILD, 'failed')
        os.makedirs(folder, exist_ok=True)

        for i, page in enumerate(self.pages):
            try:
                page.p.screenshot(path=os.path.join(folder, f'{name[:80]}-{i}.png'))
            except Exception:
                pass                    # the page is closed: the message of the test suffices

    def clean_up(self):
        for context in self.contexts:
            context.close()

        for server in self.servers:
            server.stop()

        self.contexts, self.servers, self.pages = [], [], []

    def close(self):
        self.clean_up()

        if self.demo_server:
            self.demo_server.stop()

        self.browser.close()


class Page:
    """The page in a browser, with the operations that tests use."""

    def __init__(self, page, server, allow):
        self.p = page
        self.server = server
        self.allow = [re.compile(pattern) for pattern in allow]
        self.errors = []

        page.on('console', lambda m: m.type in ('error', 'warning') and self.add_error(m.text))
        page.on('pageerror', lambda e: self.add_error(str(e)))
        page.on('request', self.check_request)

    def add_error(self, text):
        if not any(pattern.search(text) for pattern in self.allow):
            self.errors.append(text)

    def check_request(self, request):
        if not request.url.startswith((self.server.url + '/', 'blob:')):
            self.errors.append(f'{request.url} is not of this server')

    def check_log(self):
        if self.errors:
            raise Wrong('the page logged errors: ' + '; '.join(self.errors[:5]))

    def take(self, path):
        """Chooses a picture with the file picker; returns when the server has it."""

        self.p.evaluate('globalThis.former = stage.picture')
        self.p.set_input_files('#file', path)
        self.wait('stage.picture && stage.picture !== former && stage.picture.name')

    def begin(self, question, task='auto'):
        if self.shown('#tasks'):
            self.p.locator(f'input[value={task}]').check(force=True)

        self.p.fill('#message', question)
        self.p.press('#message', 'Enter')

    def ask(self, question, task='auto', seconds=30):
        self.begin(question, task)
        self.finished(seconds)

        return self.answer()

    def finished(self, seconds=30):
        self.wait('talk.busy === null && talk.turns.length > 0', seconds)

    def wait(self, expression, seconds=30):
        return wait_for(expression, lambda: self.p.evaluate(f'Boolean({expression})'), seconds)

    def has(self, selector, text, seconds=20):
        """Waits until the element's text contains these words."""

        wait_for(f'"{text}" in {selector}, which has "{self.text(selector)}"',
                 lambda: text in self.text(selector), seconds)

    def text(self, selector):
        found = self.p.locator(selector)

        return found.last.inner_text() if found.count() else ''

    def shown(self, selector):
        found = self.p.locator(selector)

        return found.count() > 0 and found.last.is_visible()

    def answer(self):
        return self.text('.turn .text')

    def note(self):
        return self.text('.turn .note')

    def status(self):
        return self.text('#status-text')

    def ready(self, seconds=60):
        wait_for('the page says Ready', lambda: self.status() == 'Ready', seconds)

    def drawn(self):
        """Returns the marks over the picture, in pixels of the picture that the model saw."""

        return self.p.evaluate('''() => {
            const [w, h] = space(), f = $('frame');
            const sx = w / f.clientWidth, sy = h / f.clientHeight;
            const n = (node, ...names) => names.map((a) => Number(node.getAttribute(a)));
            return {
                boxes: [...document.querySelectorAll('#overlay rect.over')].map((r) => {
                    const [x, y, w, h] = n(r, 'x', 'y', 'width', 'height');
                    return [x * sx, y * sy, (x + w) * sx, (y + h) * sy];
                }),
                points: [...document.querySelectorAll('#overlay .disc')].map((c) => {
                    const [x, y] = n(c, 'cx', 'cy');
                    return [x * sx, y * sy];
                }),
                path: document.querySelectorAll('#overlay polyline.over').length,
            };
        }''')


def start():
    os.makedirs(BUILD, exist_ok=True)
    shutil.rmtree(os.path.join(BUILD, 'failed'), ignore_errors=True)

    return sync_playwright().start()
