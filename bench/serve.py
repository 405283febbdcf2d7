#!/usr/bin/env python3
"""Measures the demo model behind nginx: the time of an answer, and the answers in a second.

    bench/serve.py [--seconds N]

Each question is about a new picture; one client asks, then eight clients ask at once.  The targets
are 0.2 s for an answer and 30 answers a second.
"""

import argparse
import http.client
import threading
import time

from server import ROOT, Server, altered, figure, median, url, way_to_first_token

PICTURE = ROOT + "/demo/pictures/table-01.png"
CLIENTS = 8


def question(seed):
    return {"session_id": f"bench-{seed}", "message": "How many cups are there?", "task": "general",
            "enable_thinking": False, "image": url(altered(PICTURE, seed))}


def sustained(s, seconds):
    """Returns the answers in a second, over persistent connections."""
    end = time.monotonic() + seconds
    counts = [0] * CLIENTS

    def client(i):
        c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
        while time.monotonic() < end:
            s.ask("/api/chat", question((i + 1) * 100000 + counts[i]), c)
            counts[i] += 1

    threads = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    start = time.monotonic()

    for t in threads:
        t.start()
    for t in threads:
        t.join()

    return sum(counts) / (time.monotonic() - start)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--seconds", type=float, default=10)
    a = p.parse_args()

    with Server(ROOT + "/demo/model") as s:
        times, answers = [], []

        for seed in range(25):
            body = question(seed)
            start = time.monotonic()
            answers.append(s.ask("/api/chat", dict(body, timings=True)))
            times.append(1e3 * (time.monotonic() - start))

        times = times[5:]
        figure("demo_answer", median(times), "ms", 200, is_time=True)
        figure("demo_answer_slowest", max(times), "ms", 200, is_time=True)
        way_to_first_token("demo", answers[5:])
        figure("demo_rate", median([sustained(s, a.seconds / 3) for _ in range(3)]), "requests/s",
               30)


if __name__ == "__main__":
    main()
