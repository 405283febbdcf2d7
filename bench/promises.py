#!/usr/bin/env python3
"""Measures the times that docs/dev/reliability.md promises: `make bench PARTS=promises`.

    bench/promises.py DIR [--rounds N]

The script measures how soon a full queue refuses, how soon a picture of 20,000 x 20,000 pixels is
refused, how soon the engine is free when a client leaves, and how long health takes at most while
the worker with the model is killed and replaced.  t/live/52-twelve.t checks the answers.
"""

import argparse
import json
import os
import signal
import socket
import struct
import time
import zlib

from server import Server, figure, median, png, url, words

CHAT = "/v1/chat/completions"
ENDLESS = {"max_tokens": 1500, "temperature": 0, "logit_bias": {"151645": -100, "151643": -100}}


def begin(s, body, length=None):
    """A chat whose answer is not read; with a length, its headers alone."""
    data = b"" if length else json.dumps(body).encode()
    sock = socket.create_connection(("127.0.0.1", s.port))
    sock.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                 b"Content-Length: %d\r\n\r\n" % (CHAT.encode(), length or len(data)) + data)

    return sock


def message(text, picture=None):
    parts = [{"type": "text", "text": text}]

    if picture is not None:
        parts.insert(0, {"type": "image_url", "image_url": {"url": url(picture)}})

    return dict(ENDLESS, messages=[{"role": "user", "content": parts}])


def until(happened):
    """The milliseconds that it takes."""
    start = time.monotonic()

    while not happened():
        time.sleep(0.001)

    return 1e3 * (time.monotonic() - start)


def queue(s, running, waiting):
    q = s.ask("/api/health", None)["queue"]

    return q["running"] == running and q["waiting"] == waiting


def answered(sock, status):
    """The milliseconds until the first bytes of an answer."""
    start = time.monotonic()
    line = sock.recv(4096).split(b"\r\n")[0]

    if int(line.split()[1]) != status:
        raise RuntimeError(line.decode())

    return 1e3 * (time.monotonic() - start)


def leave(s, *socks):
    for sock in socks:
        sock.close()

    return until(lambda: queue(s, 0, 0))


def refusals(s, rounds):
    held = [begin(s, message("count"))]
    until(lambda: queue(s, 1, 0))
    held += [begin(s, message(f"count {i}")) for i in range(1, 17)]
    until(lambda: queue(s, 1, 16))

    times = []
    for _ in range(rounds):
        with begin(s, None, 5_000_000) as sock:
            times.append(answered(sock, 429))

    leave(s, *held)
    figure("promise_refused_queue_full", median(times), "ms", 5, is_time=True)


def bomb(side):
    """All bits are zero: some 50 KB for 20,000 x 20,000 pixels."""
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    return (b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(side * (1 + side // 8)), 9)) + chunk(b"IEND", b""))


def bombs(s, rounds):
    body, times = message("?", bomb(20000)), []

    for _ in range(rounds):
        with begin(s, body) as sock:
            times.append(answered(sock, 400))

    figure("promise_refused_bomb", median(times), "ms", 5, is_time=True)


def cancels(s, rounds):
    stages = {"vision": (0.5, lambda i: message("count", png(896, 672, 100 + i))),
              "prompt": (0.3, lambda i: message(words(200 + i, 1500))),
              "decode": (3, lambda i: message(f"count {i}"))}

    for stage, (delay, body) in stages.items():
        times = []

        for i in range(rounds):
            sock = begin(s, body(i))
            until(lambda: queue(s, 1, 0))
            time.sleep(delay)
            times.append(leave(s, sock))

        figure(f"promise_free_{stage}", median(times), "ms", 100, is_time=True)


def death(s):
    """Health of the other worker, from the kill on."""
    pid, longest = s.ask("/api/health", None)["heartbeat"]["pid"], 0
    os.kill(pid, signal.SIGKILL)

    while True:
        start = time.monotonic()
        try:
            health = s.ask("/api/health", None)
        except (OSError, RuntimeError):
            continue
        longest = max(longest, 1e3 * (time.monotonic() - start))

        if health["state"] == "ready" and health["heartbeat"]["pid"] != pid:
            break

    figure("promise_health_at_a_death", longest, "ms", 2000, is_time=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("dir")
    p.add_argument("--rounds", type=int, default=8)
    a = p.parse_args()

    with Server(a.dir, workers=2, context="4k", slots=1, queue=16) as s:
        refusals(s, a.rounds)
        bombs(s, a.rounds)
        cancels(s, a.rounds)
        death(s)


if __name__ == "__main__":
    main()
