#!/usr/bin/env python3
"""Measures the pauses of the event loop on a busy machine while planned memory is taken.

    bench/pauses.py [--loops N] [--slots N] [--seconds S]

N (8) busy loops run beside the server, at the same priority.  While the engine takes its memory
after the load, pictures are decoded in nginx's threads, which map and unmap memory, and a probe
asks for /api/health/live every 5 ms over one connection.  The script should run as root: the probe
and the event loop then have the highest priority, so that the loop waits for locks only.  It prints
the median, the p99 and the maximum of the answers' times, and how many took more than 50 ms.  A
process of the probe's priority that only sleeps shows how late the machine itself wakes a process.
"""

import argparse
import base64
import getpass
import json
import multiprocessing
import os
import shutil
import socket
import struct
import subprocess
import sys
import time
import zlib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIR = ROOT + "/build/pauses"

CONF = """
load_module {module};
user {user};
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log notice;
thread_pool vlm threads=1;
events {{ worker_connections 512; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    vlm_engine pauses {{
        model {root}/demo/model;
        device cpu;
        threads 1;
        thinking off;
        context 4k;
        slots {slots};
        max_tokens 1;
        max_pixels 50176;
        store {dir}/store;
    }}
    server {{
        listen 127.0.0.1:{port};
        keepalive_requests 1000000;
        location / {{ vlm_pass pauses; }}
    }}
}}
"""


class Client:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), 60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.sock.makefile("rb")

    def ask(self, method, path, body=b""):
        self.sock.sendall(b"%s %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n"
                          % (method.encode(), path.encode(), len(body)) + body)
        status = int(self.file.readline().split()[1])
        length = 0

        for line in iter(self.file.readline, b"\r\n"):
            key, value = line.split(b":", 1)
            if key.lower() == b"content-length":
                length = int(value)

        return status, self.file.read(length)


def png(width, height):
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))

    rows = (b"\0" + b"\x40\x80\xc0" * width) * height

    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def pictures(port):
    data = base64.b64encode(png(2000, 1500)).decode()
    body = json.dumps({"max_tokens": 1, "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + data}},
        {"type": "text", "text": "what"}]}]}).encode()
    client = Client(port)

    while client.ask("POST", "/v1/chat/completions", body)[0] == 200:
        pass


def probe(client, seconds):
    took = []
    end = time.monotonic() + seconds
    filling = True
    filled = None
    start = time.monotonic()

    while time.monotonic() < end and filling:
        at = time.monotonic()
        client.ask("GET", "/api/health/live")
        took.append((time.monotonic() - at) * 1000)
        time.sleep(0.005)

        if len(took) % 20 == 0:
            filling = json.loads(client.ask("GET", "/api/health")[1]).get("filling", False)
            if not filling:
                filled = time.monotonic() - start

    return sorted(took), filled


def sleeper(pipe):
    """The longest delay of a process that only sleeps, in ms, until the pipe has a byte."""
    longest = 0

    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, -20)

    while not pipe.poll():
        at = time.monotonic()
        time.sleep(0.005)
        longest = max(longest, (time.monotonic() - at) * 1000 - 5)

    pipe.send(longest)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--loops", type=int, default=8)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--module", default=ROOT + "/build/ngx_http_vlm_module.so")
    args = parser.parse_args()

    shutil.rmtree(DIR, ignore_errors=True)
    os.makedirs(DIR)

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    with open(DIR + "/nginx.conf", "w") as f:
        f.write(CONF.format(module=args.module, user=getpass.getuser(), dir=DIR, root=ROOT,
                            port=port, slots=args.slots))

    loops = [subprocess.Popen([sys.executable, "-c",
                               "import time\nend = time.monotonic() + %f\n"
                               "while time.monotonic() < end: pass" % (args.seconds + 60)])
             for _ in range(args.loops)]
    server = subprocess.Popen(["nginx", "-p", DIR, "-c", DIR + "/nginx.conf", "-e", DIR + "/error.log"])
    senders = []

    try:
        client = None

        for _ in range(600):
            try:
                client = client or Client(port)
                health = json.loads(client.ask("GET", "/api/health")[1])
                if health["model_loaded"]:
                    break
            except OSError:
                client = None
            time.sleep(0.05)
        else:
            sys.exit("the model does not load: " + DIR + "/error.log")

        # The loop's wait for a processor is subtracted, because the server cannot avoid it.
        if os.geteuid() == 0:
            os.setpriority(os.PRIO_PROCESS, health["heartbeat"]["pid"], -20)

        senders = [multiprocessing.Process(target=pictures, args=(port,)) for _ in range(2)]

        for p in senders:
            p.start()

        if os.geteuid() == 0:
            os.setpriority(os.PRIO_PROCESS, 0, -20)

        ours, theirs = multiprocessing.Pipe()
        control = multiprocessing.Process(target=sleeper, args=(theirs,))
        control.start()

        took, filled = probe(client, args.seconds)
        n = len(took)
        ours.send(True)
        late = ours.recv()

        print("%d loops, %d MiB planned, memory taken %s: %d answers, median %.1f ms, p99 %.1f ms, "
              "longest %.1f ms, %d above 50 ms; a process that only sleeps: longest %.1f ms"
              % (args.loops, health["plan"]["total"] >> 20,
                 "in %.1f s" % filled if filled is not None else "in part", n, took[n // 2],
                 took[n * 99 // 100], took[-1], sum(t > 50 for t in took), late))
    finally:
        for p in senders + loops + [server]:
            p.terminate()
        for p in senders:
            p.join()
        for p in loops + [server]:
            p.wait()


if __name__ == "__main__":
    main()
