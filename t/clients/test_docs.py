"""
Runs the examples of README.md and docs/*.md from their own text: every fenced
block with curl, and every Python block that imports a client.

The output of a command must have the keys and types of the comment below it.
Parts that the docs omit ("...") are optional, and a shortened text ("9f2a...")
is replaced by its real value in later examples.  Only the address is changed;
files that a command names are pictures, or a PDF file.
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

from server import PICTURE, ROOT, URL
from tap import TESTS

HERE = os.path.join(ROOT, 'build/live/clients/examples')
PDF = os.path.join(ROOT, 't/documents/files/latin.pdf')
ADDRESS = re.compile(r'https?://(?:127\.0\.0\.1|localhost|HOST)(?::\d+)?')
ELSEWHERE = ('migrate.md', 'operations.md', 'scale.md', 'security.md')     # t/live/71-manual.t and 75-scale.t run these
FENCE = re.compile(r'^```(\w*)\n(.*?)^```', re.S | re.M)

# This function prints the status of each curl to stderr, apart from its output.
CURL = 'curl() { command curl -sS -m 60 -w "%{stderr}<%{http_code}>" "$@"; }\n'


class Page:
    """One file of the docs, with the values of its examples so far."""

    def __init__(self, path):
        self.name = os.path.relpath(path, ROOT)
        self.setting = ''               # S=http://...
        self.values = {}                # real values by their shortened text

        with open(path) as file:
            self.text = file.read()

    def real(self, text):
        for short in sorted(self.values, key=len, reverse=True):
            text = text.replace(short, self.values[short])

        return ADDRESS.sub(URL, text)

    def blocks(self):
        for match in FENCE.finditer(self.text):
            language, body = match.groups()
            line = self.text.count('\n', 0, match.start()) + 1

            if language == 'python' and re.search(r'^(import|from) (openai|ollama|langchain)', body, re.M):
                yield line, self.run_python, body
            elif language != 'python' and re.search(r'\bcurl\b', body):
                yield line, self.run_shell, body

    def run_python(self, body):
        done = run([sys.executable, '-B', '-'], self.real(body))
        assert done.returncode == 0 and done.stdout.strip(), done.stderr

    def run_shell(self, body):
        if re.search(r'/ID\b', body):
            self.values['/ID'] = '/' + a_session()

        for command, told in commands(body):
            if re.match(r'[A-Z]\w*=', command):
                self.setting += self.real(command) + '\n'
            elif re.search(r'\bcurl\b', command):
                self.run_command(command, told)

    def run_command(self, command, told):
        text = self.real(command)

        assert '...' not in text, f'no earlier example has the value of a shortened text: {text}'
        provide(text)

        done = run(['bash', '-c', self.setting + CURL + text])
        codes = re.findall(r'<(\d+)>', done.stderr)
        at = f'{text}\nanswered {codes} {done.stdout[:500]!r} {done.stderr!r}'

        assert done.returncode == 0 and codes and all(c.startswith('2') for c in codes), at

        try:
            self.compare(documents(map(whole, told)), documents(done.stdout.split('\n')), told)
        except ValueError as error:
            raise AssertionError(f'{error}: {at}')

    def compare(self, expected, got, told):
        """Compares the first and the last object in place, and others with any: a stream has any number."""

        if not told:
            return

        if len(expected) == 1:
            wanted(len(got) == 1, f'{len(got)} objects, the docs have one')

        for i, one in enumerate(expected):
            where = got[:1] if i == 0 else got[-1:] if i == len(expected) - 1 else got
            problems = [same(one, g, self.values) for g in where]
            wanted(None in problems, problems[0] if problems else 'the output is empty')


def wanted(truth, text):
    if not truth:
        raise ValueError(text)


def commands(body):
    """Returns each command with the comment lines that follow it."""

    found, lines = [], []

    for line in body.split('\n'):
        if not lines and (line.startswith('#') or not line.strip()):
            if found and line.startswith('#'):
                found[-1][1].append(line[1:].strip())
            continue

        lines.append(line)

        if subprocess.run(['bash', '-n', '-c', '\n'.join(lines)], capture_output=True).returncode == 0 \
                and not line.endswith('\\'):
            told = re.search(r'\s#\s([{\[].*)$', line)
            found.append(('\n'.join(lines), [told.group(1)] if told else []))
            lines = []

    assert not lines, f'this command does not end: {lines}'

    return found


def documents(lines):
    """Parses JSON from lines: a document over several lines, one on each line, or events."""

    found, text = [], ''

    for line in lines:
        line = re.sub(r'^data: ', '', line)

        if not line.strip() or line in ('...', '[DONE]') or line.startswith((':', 'event:')):
            continue

        text += line

        try:
            found.append(json.loads(text))
            text = ''
        except ValueError:
            pass

    wanted(not text, f'not JSON: {text[:300]!r}')

    return found


def whole(line):
    """Replaces the omitted part of an object by the key "..."."""

    line = re.sub(r',\s*\.\.\.\s*}', ', "...": 0}', line)
    line = re.sub(r'{\s*\.\.\.\s*}', '{"...": 0}', line)

    return re.sub(r',\s*\.\.\.\s*]', ']', line)


def same(told, got, values, path='$'):
    """Returns None or the difference in form; records the values of shortened texts."""

    if isinstance(told, dict) and isinstance(got, dict):
        keys = told.keys() - {'...'}

        if keys - got.keys() or (got.keys() - keys and '...' not in told):
            return f'{path} has {sorted(got)}, the docs say {sorted(told)}'

        return first(same(told[k], got[k], values, f'{path}.{k}') for k in keys)

    if isinstance(told, list) and isinstance(got, list):
        return first(same(t, g, values, f'{path}[{i}]') for i, (t, g) in enumerate(zip(told, got)))

    if isinstance(told, str) and isinstance(got, str):
        if '...' in told:
            values[told] = got
        return None

    if told is None or got is None or isinstance(told, type(got)) or isinstance(got, type(told)):
        return None

    return f'{path} is {got!r}, the docs say {told!r}'


def first(problems):
    return next((p for p in problems if p), None)


def run(command, text=None):
    return subprocess.run(command, input=text, cwd=HERE, capture_output=True, text=True, timeout=120)


def a_session():
    with urllib.request.urlopen(URL + '/api/session', b'') as answer:
        return json.load(answer)['session_id']


def provide(text):
    """Makes the files that a command sends or Python opens."""

    for name in re.findall(r'@([\w][\w ./-]*\.\w+)', text):
        path = os.path.join(HERE, name)

        if not os.path.exists(path):
            shutil.copy(PDF if path.endswith('.pdf') else PICTURE, path)


def register():
    for path in [os.path.join(ROOT, 'README.md')] + sorted(glob.glob(ROOT + '/docs/*.md')):
        if os.path.basename(path) in ELSEWHERE:
            continue

        page = Page(path)

        for line, function, body in page.blocks():
            def test(function=function, body=body):
                function(body)

            test.__name__ = f'the examples of {page.name} from line {line} on'
            TESTS.append(test)


shutil.rmtree(HERE, ignore_errors=True)
os.makedirs(HERE)
os.symlink(os.path.join(ROOT, 'demo'), os.path.join(HERE, 'demo'))
shutil.copy(PICTURE, os.path.join(HERE, 'kitchen.jpg'))
register()
