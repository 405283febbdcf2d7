"""Debian's nginx with the module and a model, for the figures that are measured over HTTP."""

import base64
import concurrent.futures
import getpass
import http.client
import json
import os
import signal
import struct
import subprocess
import tempfile
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The prompts of bench/compare for all engines.
TEXT = ("where on the table is the cup and what stands beside it and how would a robot with one "
        "arm take it away")
ANOTHER = "what is left of the cup and how many things can be seen on the table beside it"
SIDES = {"448": (448, 448), "896x672": (896, 672)}

CONF = """
load_module {root}/build/ngx_http_vlm_module.so;
user {user};
worker_processes {workers};
pid nginx.pid;
error_log error.log notice;
thread_pool vlm threads=1;
events {{ accept_mutex off; }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    vlm_engine bench {{
        model {model};
        device {device};
        weights int8;
        thinking off;
        context {context};
        slots {slots};
        queue {queue} timeout=1h;
        timeout 1h;
        sampling temperature=0 repetition_penalty=1;
        store store;
    }}
    server {{ listen 127.0.0.1:{port}; location / {{ vlm_pass bench; }} }}
}}
"""


class Server:
    """with Server(model) as s: s.ask(...)"""

    started = 0                         # servers of this program: each has its own port

    def __init__(self, model, workers=1, device="cpu", context="2k", slots=4,
                 queue=64):
        self.port = 5900 + (os.getpid() + Server.started) % 100
        Server.started += 1
        self.conf = dict(root=ROOT, user=getpass.getuser(), workers=workers, device=device,
                         model=os.path.abspath(model), context=context, slots=slots, queue=queue,
                         port=self.port)

    def __enter__(self):
        self.where = tempfile.TemporaryDirectory(prefix="vlm-bench-")
        os.chmod(self.where.name, 0o755)

        with open(self.where.name + "/nginx.conf", "w") as f:
            f.write(CONF.format(**self.conf))

        self.nginx = subprocess.Popen(["nginx", "-p", self.where.name, "-c", "nginx.conf", "-e",
                                       "error.log", "-g", "daemon off;"])

        while self.nginx.poll() is None:
            try:
                health = self.ask("/api/health", None)
                if health["state"] == "ready" and not health.get("filling"):
                    return self
            except OSError:
                pass
            time.sleep(0.1)

        raise RuntimeError(open(self.where.name + "/error.log").read()[-2000:])

    def __exit__(self, *_):
        self.nginx.send_signal(signal.SIGTERM)
        self.nginx.wait()
        self.where.cleanup()

    def ask(self, path, body, connection=None):
        c = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=3600)
        c.request("GET" if body is None else "POST", path,
                  None if body is None else json.dumps(body))
        answer = c.getresponse()
        text = answer.read()

        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status} {text[:300]}")

        return json.loads(text)

    def together(self, path, bodies):
        """Asks all at once; returns the seconds to the end of the last, and of each."""
        start = time.monotonic()

        def one(body):
            self.ask(path, body)
            return time.monotonic() - start

        with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
            seconds = list(pool.map(one, bodies))          # raises the exception of a call

        return max(seconds), seconds


def png(width, height, seed):
    """Returns a picture of coloured noise, which differs for each seed."""
    state, rows = seed * 2654435761 % 2 ** 32, []
    block = b""

    while len(block) < 1 << 16:
        state = (state * 1664525 + 1013904223) % 2 ** 32
        block += struct.pack(">I", state)

    data = block * (width * height * 3 // len(block) + 1)

    for y in range(height):
        rows.append(b"\0" + data[y * width * 3:(y + 1) * width * 3])

    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(b"".join(rows), 1)) + chunk(b"IEND", b""))


def words(seed, n):
    """Returns a prompt whose beginning differs for each seed."""
    w = TEXT.split()
    return f"{seed} " + " ".join(w[(seed * 7 + i * i) % len(w)] for i in range(n - 2))


def altered(path, seed):
    """Returns the same picture as different bytes, so that it is in no cache."""
    body = b"seed\0%d" % seed
    chunk = (struct.pack(">I", len(body)) + b"tEXt" + body
             + struct.pack(">I", zlib.crc32(b"tEXt" + body)))
    data = open(path, "rb").read()

    return data[:-12] + chunk + data[-12:]


def url(data):
    return "data:image/png;base64," + base64.b64encode(data).decode()


def way_to_first_token(label, answers):
    """Returns the parts of the time to the first token, from the timings of the answers."""
    for part in ("receive", "image_decode", "image_resize", "encode", "prefill", "first_step"):
        figure(f"first_{part}_{label}", median([a["timings"][part + "_ms"] or 0 for a in answers]), "ms")


def figure(name, value, unit, limit=0.0, is_time=False):
    share = 0 if not limit or not value else limit / value if is_time else value / limit
    print(json.dumps({"name": name, "value": float(f"{value:.6g}"), "unit": unit,
                      "limit": float(f"{limit:.6g}"), "share": round(share, 4)}), flush=True)


def median(values):
    s = sorted(values)
    return (s[(len(s) - 1) // 2] + s[len(s) // 2]) / 2
