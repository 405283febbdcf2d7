"""What gpu.py needs of the world: nginx with one engine, nvidia-smi, and the demo's scenes."""

import base64
import getpass
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENES_DIR = ROOT + "/build/gpu-scenes"
MIB = 1 << 20

CONF = """
env CUDA_DEVICE_ORDER=PCI_BUS_ID;    # as nvidia-smi counts
env VLM_EMULATOR;
load_module {where}/ngx_http_vlm_module.so;
user {user};
worker_processes 1;
pid nginx.pid;
error_log error.log notice;
thread_pool vlm threads=1;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    vlm_engine bench {{
        model {model};
        device {device};
        thinking off;
        store store;
{engine}    }}
    server {{ listen 127.0.0.1:{port}; location / {{ vlm_pass bench; }} }}
}}
"""


class Trouble(Exception):
    """A sentence for the report, and what was measured all the same."""

    def __init__(self, text, told=None):
        super().__init__(text)
        self.told = told


# -- the time ----------------------------------------------------------------------------------------

class Clock:
    """The time that all have together; what is stopped at its end has some seconds more to go away."""

    def __init__(self):
        self.begin(580)

    def begin(self, seconds):
        self.seconds, self.end = seconds, time.monotonic() + seconds

    def left(self, most):
        """Seconds that the next thing may take."""
        rest = self.end - time.monotonic()
        if rest <= 0:
            raise Trouble("the %d s are over" % self.seconds)
        return min(most, rest)


CLOCK = Clock()


def run(command, most, **more):
    """Its output; Trouble has the end of it if it fails.  What it started ends with it."""
    limit = CLOCK.left(most)
    p = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         start_new_session=True, **more)
    try:
        out, _ = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise Trouble("%s took longer than %d s" % (" ".join(command[:3]), limit))
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    if p.returncode:
        raise Trouble("%s ended with %d: %s" % (" ".join(command[:3]), p.returncode, " / ".join(out.split("\n")[-8:])))
    return out


# -- the card ----------------------------------------------------------------------------------------

class Smi:
    """nvidia-smi, of device 0."""

    def __init__(self, command):
        self.command = command

    def ask(self, what):
        try:
            out = subprocess.run([self.command, "--query-gpu=" + what, "--format=csv,noheader,nounits", "-i", "0"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=CLOCK.left(30))
        except (OSError, subprocess.TimeoutExpired):
            raise Trouble("there is no NVIDIA GPU: %s does not run" % self.command)
        if out.returncode:
            raise Trouble("there is no NVIDIA GPU: nvidia-smi says \"%s\"" % out.stdout.strip().split("\n")[0])
        return [field.strip() for field in out.stdout.strip().split(",")]

    def name(self):
        return self.ask("name,driver_version")

    def arch(self):
        return int(self.ask("compute_cap")[0].replace(".", ""))

    def used(self):
        """Bytes of the device's memory that anybody uses."""
        return int(self.ask("memory.used")[0]) * MIB

    def watch(self):
        return Watch(self)


class Watch(threading.Thread):
    """The most that was used, looked at as often as nvidia-smi answers."""

    def __init__(self, smi):
        super().__init__(daemon=True)
        self.smi, self.peak, self.stop, self.trouble = smi, 0, False, None
        self.start()

    def run(self):
        try:
            while not self.stop:
                self.peak = max(self.peak, self.smi.used())
                time.sleep(0.05)
        except Exception as e:
            self.trouble = e

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop = True
        self.join()

    def most(self):
        """A peak that was not watched to the end is none."""
        if self.trouble is not None:
            raise Trouble("the memory in use could not be watched: %s" % self.trouble)
        return self.peak


# -- the server --------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One nginx with one engine, ready when entered, gone when left."""

    def __init__(self, where, model, device, engine, name):
        self.dir = tempfile.TemporaryDirectory(prefix="vlm-gpu-")
        self.port = free_port()
        self.name = name
        with open(self.dir.name + "/nginx.conf", "w") as f:
            f.write(CONF.format(where=where, model=model, device=device, port=self.port, user=getpass.getuser(),
                                engine="".join("        %s %s;\n" % e for e in engine.items() if e[1] is not None)))

    def __enter__(self):
        start = time.time()
        os.chmod(self.dir.name, 0o755)
        self.nginx = subprocess.Popen(["nginx", "-p", self.dir.name, "-c", "nginx.conf", "-e", "error.log", "-g",
                                       "daemon off;"], start_new_session=True)
        try:
            while self.health().get("state") not in ("ready", "busy"):
                self.check_load()
                time.sleep(0.05)
        except BaseException:
            self.__exit__()
            raise
        self.load_seconds = time.time() - start
        return self

    def check_load(self):
        if self.nginx.poll() is not None:
            raise Trouble("%s: nginx does not start: %s" % (self.name, self.log()))
        health = self.health()
        if health.get("state") == "failed":
            raise Trouble("%s: the model does not load: %s" % (self.name, health.get("reason")))

    def __exit__(self, *_):
        """The worker gets the group's SIGKILL, too: it may wait for a device that does not answer."""
        self.nginx.send_signal(signal.SIGTERM)
        try:
            self.nginx.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.nginx.pid, signal.SIGKILL)
            self.nginx.wait()
        self.dir.cleanup()

    def log(self):
        with open(self.dir.name + "/error.log") as f:
            return " / ".join(f.read().split("\n")[-4:])

    def health(self):
        try:
            return json.loads(self.begin("GET", "/api/health").read())
        except OSError:
            return {}

    def begin(self, method, path, body=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=CLOCK.left(400))
        c.request(method, path, None if body is None else json.dumps(body), {"Content-Type": "application/json"})
        return c.getresponse()

    def post(self, path, body):
        r = self.begin("POST", path, body)
        text = r.read()
        if r.status != 200:
            raise Trouble("%s: %s answers %d: %s" % (self.name, path, r.status, text[:200].decode(errors="replace")))
        return json.loads(text)

    # -- speed -----------------------------------------------------------------------------------

    def generate(self, prompt, tokens, pictures=()):
        """An answer of so many tokens in Ollama's dialect, which tells what each part took."""
        return self.post("/api/generate", {"model": "bench", "prompt": prompt, "stream": False,
                                           "images": list(pictures), "options": {"num_predict": tokens}})

    def first(self, prompt, pictures=()):
        """Seconds to the first piece of an answer, as a client sees it."""
        start = time.time()
        r = self.begin("POST", "/api/generate", {"model": "bench", "prompt": prompt, "stream": True,
                                                 "images": list(pictures), "options": {"num_predict": 8}})
        if r.status != 200 or not r.readline():
            raise Trouble("%s: a stream answers %d" % (self.name, r.status))
        seconds = time.time() - start
        r.read()
        return seconds

    def measure(self, pixels, tokens, at_once, repeats):
        """Alone, with the largest picture that is not shrunk, and several at once."""
        self.generate("Warm up.", 4, [picture(pixels, 0)])
        alone = self.generate("Tell me of the sea.", tokens)
        seen = [self.first("What is this?", [picture(pixels, 1 + i)]) for i in range(repeats)]
        told = {"first_text_seconds": min(self.first("How are you, number %d?" % i) for i in range(repeats)),
                "first_picture_seconds": min(seen),
                "tokens": alone["eval_count"],
                "tokens_per_second": alone["eval_count"] / max(alone["eval_duration"], 1) * 1e9,
                "at_once": at_once}
        answers, failed = [], []

        def one(i):
            try:
                answers.append(self.generate("Tell me of the sea, number %d." % i, tokens, [picture(pixels, 10 + i)]))
            except (Trouble, OSError) as e:
                failed.append(e)

        start = time.time()
        threads = [threading.Thread(target=one, args=(i,)) for i in range(at_once)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise Trouble("%s: of %d at once %d failed: %s" % (self.name, at_once, len(failed), failed[0]))
        told["at_once_seconds"] = time.time() - start
        told["tokens_per_second_at_once"] = sum(a["eval_count"] for a in answers) / told["at_once_seconds"]
        return told

    # -- the demo --------------------------------------------------------------------------------

    def ask_scenes(self, items):
        return [self.post("/v1/chat/completions", {
            "max_tokens": 64, "temperature": 0, "messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + item["png"]}},
                {"type": "text", "text": item["text"]}]}]})["choices"][0]["message"]["content"] for item in items]


def picture(pixels, seed):
    """A BMP of so many pixels, sides of 28, no two the same: base64."""
    side = max(int(pixels ** 0.5) // 28, 1) * 28
    rows = bytearray(((x * 7 + x // 84 * (seed + 3)) & 255) for x in range(side * 3))
    body = bytes(rows) * side
    head = struct.pack("<2sIHHI IiiHHIIiiII", b"BM", 54 + len(body), 0, 0, 54, 40, side, side, 1, 24, 0, len(body),
                       2835, 2835, 0, 0)
    return base64.b64encode(head + body[:3] + bytes([seed & 255]) + body[4:]).decode()


# -- the demo's scenes -------------------------------------------------------------------------------

def samples(count):
    """As many questions to the sample pictures: where a rehearsal is all that is wanted."""
    where = ROOT + "/demo/pictures/"
    with open(where + "expected.json") as f:
        pictures = json.load(f)
    items = []
    for name, of in sorted(pictures.items())[:count]:
        with open(where + name, "rb") as f:
            items.append({"task": "general", "text": of["questions"][0]["question"],
                          "png": base64.b64encode(f.read()).decode()})
    return items


def scenes(count):
    """A question to each of so many held-out scenes: rendered once, kept below build/."""
    kept = "%s/%d.json" % (SCENES_DIR, count)
    if not os.path.exists(kept):
        try:
            items = render_scenes(count)
        except ImportError as e:
            raise Trouble("the demo's scenes are not rendered: %s; where there is Pillow, bench/gpu.py --scenes "
                          "makes %s" % (e, kept))
        os.makedirs(SCENES_DIR, exist_ok=True)
        with open(kept, "w") as f:
            json.dump(items, f)
    with open(kept) as f:
        return json.load(f)


def render_scenes(count):
    sys.path.insert(0, ROOT + "/demo")
    import io
    from eval import GENERAL, items_of, make_pairs
    from questions import wrap
    from scenes import render

    items, told = items_of(make_pairs(count // 2)), []
    by_scene = {}
    for item in items:
        by_scene.setdefault(item["scene"]["seed"], []).append(item)
    for n, of_scene in enumerate(by_scene.values()):
        CLOCK.left(1)
        item = of_scene[n % len(of_scene)]
        out = io.BytesIO()
        render(item["scene"]).save(out, "PNG")
        task = "general" if item["task"] in GENERAL else item["task"]
        told.append({"task": task, "text": wrap(task, item["text"]),
                     "png": base64.b64encode(out.getvalue()).decode()})
    return told
