"""The environment of gpu.py: nginx with one engine, nvidia-smi, and the demo's scenes."""

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
        stall 10m;
{engine}    }}
    server {{ listen 127.0.0.1:{port}; location / {{ vlm_pass bench; }} }}
}}
"""


class BenchError(Exception):
    """A message for the report, and the results that were measured before the error."""

    def __init__(self, text, results=None):
        super().__init__(text)
        self.results = results


# -- the time ----------------------------------------------------------------------------------------

class Clock:
    """The time limit of all parts together; a process that is stopped at its end has some more seconds.

    Each step has a limit of its own, times `slow`: an emulated device on a busy machine takes long.
    """

    def __init__(self):
        self.begin(580)

    def begin(self, seconds, slow=1):
        self.seconds, self.end, self.slow = seconds, time.monotonic() + seconds, slow

    def left(self, most):
        """Returns the seconds that the next step may take."""
        rest = self.end - time.monotonic()
        if rest <= 0:
            raise BenchError("the %d s are over" % self.seconds)
        return min(most * self.slow, rest)


CLOCK = Clock()


def run(command, most, **more):
    """Runs a command and returns its output; kills its process group at the end.  An error has the last lines."""
    limit = CLOCK.left(most)
    p = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                         start_new_session=True, **more)
    try:
        out, _ = p.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise BenchError("%s took longer than %d s" % (" ".join(command[:3]), limit))
    finally:
        if p.poll() is None:
            os.killpg(p.pid, signal.SIGKILL)
            p.wait()
    if p.returncode:
        raise BenchError("%s ended with %d: %s"
                         % (" ".join(command[:3]), p.returncode, " / ".join(out.split("\n")[-8:])))
    return out


# -- the card ----------------------------------------------------------------------------------------

class Smi:
    """Queries nvidia-smi about device 0."""

    def __init__(self, command):
        self.command = command

    def ask(self, what):
        try:
            out = subprocess.run([self.command, "--query-gpu=" + what, "--format=csv,noheader,nounits", "-i", "0"],
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=CLOCK.left(30))
        except (OSError, subprocess.TimeoutExpired):
            raise BenchError("there is no NVIDIA GPU: %s does not run" % self.command)
        if out.returncode:
            raise BenchError("there is no NVIDIA GPU: nvidia-smi says \"%s\"" % out.stdout.strip().split("\n")[0])
        return [field.strip() for field in out.stdout.strip().split(",")]

    def name(self):
        return self.ask("name,driver_version")

    def arch(self):
        return int(self.ask("compute_cap")[0].replace(".", ""))

    def used(self):
        """Returns the bytes in use on the device, by all processes."""
        return int(self.ask("memory.used")[0]) * MIB

    def watch(self):
        return Watch(self)


class Watch(threading.Thread):
    """Records the maximum of the memory in use, as often as nvidia-smi answers."""

    def __init__(self, smi):
        super().__init__(daemon=True)
        self.smi, self.peak, self.stop, self.error = smi, 0, False, None
        self.start()

    def run(self):
        try:
            while not self.stop:
                self.peak = max(self.peak, self.smi.used())
                time.sleep(0.05)
        except Exception as e:
            self.error = e

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop = True
        self.join()

    def most(self):
        """Returns the peak, or raises an error if the watching ended early."""
        if self.error is not None:
            raise BenchError("the memory in use could not be watched: %s" % self.error)
        return self.peak


# -- the server --------------------------------------------------------------------------------------

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """One nginx with one engine; the context begins when it is ready and ends when it has exited."""

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
            raise BenchError("%s: nginx does not start: %s" % (self.name, self.log()))
        health = self.health()
        if health.get("state") == "failed":
            raise BenchError("%s: the model does not load: %s" % (self.name, health.get("reason")))

    def __exit__(self, *_):
        """SIGKILL goes to the group, because a worker may wait for a device that does not answer."""
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
            raise BenchError("%s: %s answers %d: %s" % (self.name, path, r.status, text[:200].decode(errors="replace")))
        return json.loads(text)

    # -- speed -----------------------------------------------------------------------------------

    def generate(self, prompt, tokens, pictures=()):
        """Asks for an answer of so many tokens over Ollama's API, which reports the time of each part."""
        return self.post("/api/generate", {"model": "bench", "prompt": prompt, "stream": False,
                                           "images": list(pictures), "options": {"num_predict": tokens}})

    def first(self, prompt, pictures=()):
        """Returns the seconds to the first piece of an answer at the client."""
        start = time.time()
        r = self.begin("POST", "/api/generate", {"model": "bench", "prompt": prompt, "stream": True,
                                                 "images": list(pictures), "options": {"num_predict": 8}})
        if r.status != 200 or not r.readline():
            raise BenchError("%s: a stream answers %d" % (self.name, r.status))
        seconds = time.time() - start
        r.read()
        return seconds

    def measure(self, pixels, tokens, at_once, repeats):
        """Measures one request, requests with the largest picture that is not scaled down, and several at once."""
        self.generate("Warm up.", 4, [picture(pixels, 0)])
        alone = self.generate("Tell me of the sea.", tokens)
        seen = [self.first("What is this?", [picture(pixels, 1 + i)]) for i in range(repeats)]
        results = {"first_text_seconds": min(self.first("How are you, number %d?" % i) for i in range(repeats)),
                "first_picture_seconds": min(seen),
                "tokens": alone["eval_count"],
                "tokens_per_second": alone["eval_count"] / max(alone["eval_duration"], 1) * 1e9,
                "at_once": at_once}
        answers, failed = [], []

        def one(i):
            try:
                answers.append(self.generate("Tell me of the sea, number %d." % i, tokens, [picture(pixels, 10 + i)]))
            except (BenchError, OSError) as e:
                failed.append(e)

        start = time.time()
        threads = [threading.Thread(target=one, args=(i,)) for i in range(at_once)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failed:
            raise BenchError("%s: of %d at once %d failed: %s" % (self.name, at_once, len(failed), failed[0]))
        results["at_once_seconds"] = time.time() - start
        results["tokens_per_second_at_once"] = sum(a["eval_count"] for a in answers) / results["at_once_seconds"]
        return results

    # -- the demo --------------------------------------------------------------------------------

    def ask_scenes(self, items):
        return [self.post("/v1/chat/completions", {
            "max_tokens": 64, "temperature": 0, "messages": [{"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64," + item["png"]}},
                {"type": "text", "text": item["text"]}]}]})["choices"][0]["message"]["content"] for item in items]


def picture(pixels, seed):
    """Returns a BMP in base64 of at most so many pixels, with sides that are multiples of 28."""
    side = max(int(pixels ** 0.5) // 28, 1) * 28
    rows = bytearray(((x * 7 + x // 84 * (seed + 3)) & 255) for x in range(side * 3))
    body = bytes(rows) * side
    head = struct.pack("<2sIHHI IiiHHIIiiII", b"BM", 54 + len(body), 0, 0, 54, 40, side, side, 1, 24, 0, len(body),
                       2835, 2835, 0, 0)
    return base64.b64encode(head + body[:3] + bytes([seed & 255]) + body[4:]).decode()


# -- the demo's scenes -------------------------------------------------------------------------------

def samples(count):
    """Returns so many questions about the sample pictures, for a rehearsal."""
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
    """Returns a question about each of so many held-out scenes, which are rendered once into build/."""
    kept = "%s/%d.json" % (SCENES_DIR, count)
    if not os.path.exists(kept):
        try:
            items = render_scenes(count)
        except ImportError as e:
            raise BenchError("the demo's scenes are not rendered: %s; where there is Pillow, bench/gpu.py --scenes "
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

    items, results = items_of(make_pairs(count // 2)), []
    by_scene = {}
    for item in items:
        by_scene.setdefault(item["scene"]["seed"], []).append(item)
    for n, of_scene in enumerate(by_scene.values()):
        CLOCK.left(1)
        item = of_scene[n % len(of_scene)]
        out = io.BytesIO()
        render(item["scene"]).save(out, "PNG")
        task = "general" if item["task"] in GENERAL else item["task"]
        results.append({"task": task, "text": wrap(task, item["text"]),
                     "png": base64.b64encode(out.getvalue()).decode()})
    return results
