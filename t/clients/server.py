"""
The addresses of the servers, and the requests that tests send without a client.
"""

import base64
import json
import os
import time
import urllib.request
from contextlib import contextmanager

URL = os.environ['VLM_URL']             # the demo model, quick
SLOW = os.environ['VLM_SLOW_URL']       # one slot, a queue of one, endless answers
LATE = os.environ['VLM_LATE_URL']       # endless answers, "timeout 3s"
MODELS = os.environ['VLM_MODELS_URL']   # three engines: "live", "bloom" with an adapter, "third"
MODEL = os.environ['VLM_MODEL']

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PICTURE = os.path.join(ROOT, 'demo/pictures/table-01.png')
SMALL = os.path.join(ROOT, 't/fidelity/pictures/118x62.png')


def data_url(path):
    with open(path, 'rb') as file:
        return 'data:image/png;base64,' + base64.b64encode(file.read()).decode()


def health(url=URL):
    with urllib.request.urlopen(url + '/api/health', timeout=10) as answer:
        return json.load(answer)


def load(url=URL):
    queue = health(url)['queue']

    return queue['running'], queue['waiting']


def until(running, waiting, url=SLOW, seconds=20):
    """Waits until so many requests are in the engine and so many in the queue."""

    end = time.monotonic() + seconds

    while load(url) != (running, waiting):
        assert time.monotonic() < end, f'{load(url)} run and wait, not {running} and {waiting}'
        time.sleep(0.03)


@contextmanager
def raises(kind, **facts):
    """Expects the client's exception of this kind; attributes are equal to, or texts contain, these values."""

    try:
        yield
    except kind as error:
        for name, expected in facts.items():
            got = getattr(error, name)
            ok = expected in got if isinstance(expected, str) and name in ('message', 'error') else expected == got
            assert ok, f'{name} is {got!r}, expected {expected!r}'
        return

    raise AssertionError(f'no {kind.__name__}')
