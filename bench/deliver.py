#!/usr/bin/env python3
"""Measures the time from the engine's wake-up for a token to the client's read of its event.

    bench/deliver.py [--model DIR] [--tokens N] [--runs N]

The script streams answers from Debian's nginx on loopback, from the worker that owns the model and
through the hop from another worker.  bench/wake_times.c records when the engine wakes the loop, and
this client records when it reads the event.  The time between two tokens is longer than the delay
of an event, which is checked, so each event belongs to the last wake-up before it.

The model has random weights, and enough layers for that time between tokens.
"""

import argparse
import bisect
import collections
import getpass
import http.client
import json
import mmap
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NOTES = 1 << 16
LAYERS = 24

CONF = """
load_module {root}/build/ngx_http_vlm_module.so;
user {user};
worker_processes 2;
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
        device cpu;
        weights int8;
        threads 1;
        thinking off;
        context 2k;
        slots 1;
        max_tokens {tokens};
        sampling temperature=0 repetition_penalty=1;
        store store;
    }}
    server {{
        listen 127.0.0.1:{port} reuseport;
        add_header X-Worker $pid always;
        location / {{ vlm_pass bench; }}
    }}
}}
"""


def make_model(where):
    shape = json.load(open(ROOT + "/bench/shapes/tiny-f.json"))
    shape.get("text_config", shape)["num_hidden_layers"] = LAYERS

    path = where + "/shape.json"
    json.dump(shape, open(path, "w"))

    subprocess.run([ROOT + "/build/random-checkpoint", path, where + "/model", "--seed", "1",
                    "--type", "bf16", "--tokenizer", ROOT + "/t/fidelity/tokenizer"], check=True)

    return where + "/model"


def start(where, port, model, tokens):
    with open(where + "/nginx.conf", "w") as f:
        f.write(CONF.format(root=ROOT, user=getpass.getuser(), port=port, model=model,
                            tokens=tokens))

    clock = where + "/clock"

    with open(clock, "wb") as f:
        f.truncate(8 + 16 * NOTES)

    env = dict(os.environ, LD_PRELOAD=ROOT + "/build/wake-times.so", WAKE_TIMES=clock)
    nginx = subprocess.Popen(["nginx", "-p", where, "-c", "nginx.conf", "-e", "error.log",
                              "-g", "daemon off;"], env=env)

    for _ in range(600):
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            c.request("GET", "/api/health")
            if json.load(c.getresponse())["state"] == "ready":
                return nginx, clock
        except OSError:
            pass
        time.sleep(0.1)

    nginx.send_signal(signal.SIGTERM)
    sys.exit("the server did not become ready: " + where)


def stream(port, picture):
    """Returns the worker that answered, and the time of each token's event in ns."""
    body = json.dumps({"session_id": "bench", "message": "count", "task": "general",
                       "enable_thinking": False, "image": picture, "stream": True})

    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", "/api/chat", body, {"Connection": "close"})
    answer = c.getresponse()
    read = []

    while True:
        line = answer.fp.readline()
        now = time.monotonic_ns()

        if not line:
            break

        if line.startswith(b"event: token"):
            read.append(now)

    return answer.getheader("X-Worker"), read


def wakes(clock):
    """Returns the wake-ups of the engine's descriptor, which is the one written most."""
    with open(clock, "rb") as f:
        m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
        n = min(struct.unpack_from("Q", m, 0)[0], NOTES)
        notes = [struct.unpack_from("QQ", m, 8 + 16 * i) for i in range(n)]

    fd = collections.Counter(fd for _, fd in notes).most_common(1)[0][0]

    return sorted(ns for ns, f in notes if f == fd)


def share(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))] / 1000


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model")
    p.add_argument("--tokens", type=int, default=400)
    p.add_argument("--runs", type=int, default=12)
    args = p.parse_args()

    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        model = args.model or make_model(where)
        port = 5900 + os.getpid() % 100
        nginx, clock = start(where, port, model, args.tokens)

        try:
            picture = "data:image/png;base64," + subprocess.check_output(
                ["base64", "-w0", ROOT + "/t/fidelity/pictures/200x150.png"], text=True)
            runs = [stream(port, picture) for _ in range(args.runs)]
        finally:
            nginx.send_signal(signal.SIGTERM)
            nginx.wait()

        told = wakes(clock)
        log = open(where + "/error.log").read()
        owner = re.search(r" (\d+)#\d+: .*model loaded", log).group(1)

    took = collections.defaultdict(list)
    gaps = []

    for worker, read in runs:
        for i, ns in enumerate(read):
            at = bisect.bisect_right(told, ns) - 1
            took[worker].append(ns - told[at])
            gaps += [told[at] - told[at - 1]] if i else []

    print("# %d tokens, one every %.2f ms (p50)" % (len(gaps), share(gaps, 0.5) / 1000),
          file=sys.stderr)

    for worker, values in took.items():
        way = "worker" if worker == owner else "hop"
        for q, name in ((0.5, "p50"), (0.99, "p99")):
            print(json.dumps({"name": f"deliver_{way}_{name}", "value": round(share(values, q)),
                              "unit": "us", "limit": 0, "share": 0}), flush=True)

    if share(gaps, 0.01) < share([v for t in took.values() for v in t], 0.99):
        sys.exit("tokens came closer together than their events take: is the machine busy?")


if __name__ == "__main__":
    main()
