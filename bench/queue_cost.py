#!/usr/bin/env python3
"""Measures the cost of a long queue for the requests that are answered meanwhile.

    bench/queue_cost.py [--waiting N] [--refused R] [--seconds S] [--rounds K] [--stream SHARE]

One engine answers in four slots all the time.  Alternately its queue has a few requests, or N
(5,000) of them with R (100) more requests a second, each of which is refused.  The script compares
the tokens in a second, the tokens in a second of processor time of the engine's threads, and the
time of a health check.  "load" is the share of the machine that clients and event loops take.

The script prints a line for each turn and then the ratios.  It exits with 1 if a limit of
docs/dev/reliability.md is exceeded: health under 5 ms (p99), tokens within 3 % beyond the processor time
of the load.
"""

import argparse
import getpass
import json
import multiprocessing
import os
import resource
import selectors
import shutil
import signal
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIR = ROOT + "/build/line"
FEW = 8                                 # requests in a short queue
FILES = 65536
TICK = os.sysconf("SC_CLK_TCK")

CONF = """
load_module {module};
user {user};
worker_processes 2;
worker_rlimit_nofile {files};
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log notice;
thread_pool vlm threads=1;
events {{ worker_connections 20000; }}
http {{
    access_log off;
    client_body_temp_path {dir}/body;
    proxy_temp_path {dir}/proxy;
    vlm_engine bench {{
        model {dir}/model;
        device cpu;
        threads 1;
        thinking off;
        context 1k;
        slots 4;
        max_tokens 64;
        sampling temperature=0 repetition_penalty=1;
        queue {queue} timeout=30m;
        timeout 30m;
        store {dir}/store;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /metrics {{ vlm_status bench; }}
        location / {{ vlm_pass bench; }}
    }}
}}
"""


# ---- the server ----------------------------------------------------------------------------------

def make_model():
    """Makes a model of random weights; its end of text is an id that the tokenizer does not have."""
    shape = json.load(open(ROOT + "/bench/shapes/tiny-f.json"))
    text = shape.get("text_config", shape)
    text["num_hidden_layers"] = 24
    json.dump(shape, open(DIR + "/shape.json", "w"))

    subprocess.run([ROOT + "/build/random-checkpoint", DIR + "/shape.json", DIR + "/model",
                    "--seed", "1", "--type", "bf16",
                    "--tokenizer", ROOT + "/t/fidelity/tokenizer"], check=True)

    with open(DIR + "/model/generation_config.json", "w") as f:
        json.dump({"eos_token_id": [text["vocab_size"] - 1]}, f)


def start(port, queue):
    shutil.rmtree(DIR, ignore_errors=True)
    os.makedirs(DIR)
    make_model()
    with open(DIR + "/nginx.conf", "w") as f:
        f.write(CONF.format(module=ROOT + "/build/ngx_http_vlm_module.so", dir=DIR, port=port,
                            user=getpass.getuser(), files=FILES, queue=queue))
    return subprocess.Popen(["nginx", "-p", DIR, "-c", DIR + "/nginx.conf", "-e",
                             DIR + "/error.log"])


def request(method, path, body=b""):
    return (f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body


def ask(port, method, path, body=b"", timeout=30):
    """Returns the status and body of an answer, or None if the connection closed without one."""
    with socket.create_connection(("127.0.0.1", port), timeout) as s:
        s.sendall(request(method, path, body))
        data = b""
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    return (int(head.split()[1]), rest) if head else None


def metrics(port):
    return json.loads(ask(port, "GET", "/metrics?format=json")[1])


def wait_for(what, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if what():
                return True
        except OSError:
            pass
        time.sleep(0.05)
    return False


# ---- processor time ------------------------------------------------------------------------------

def spent(path):
    fields = open(path + "/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def engine_and_loops(master):
    """Returns the processor time of the thread that runs the model, and of nginx's other threads."""
    times, loops = {}, 0.0
    for pid in open(f"/proc/{master}/task/{master}/children").read().split():
        for t in os.listdir(f"/proc/{pid}/task"):
            if t == pid:
                loops += spent(f"/proc/{pid}/task/{t}")
            else:
                times[t] = spent(f"/proc/{pid}/task/{t}")
    engine = max(times.values())
    return engine, loops + sum(times.values()) - engine


# ---- clients, each in a process of its own -------------------------------------------------------

def keep_waiting(port, n, share, open_now, stop):
    """Keeps n requests waiting or running: a client that is answered asks again."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(FILES, resource.getrlimit(
        resource.RLIMIT_NOFILE)[1]),) * 2)
    select, open_, number = selectors.DefaultSelector(), 0, 0
    while not stop.is_set():
        for _ in range(min(n - open_, 200)):
            number += 1
            body = {"messages": [{"role": "user", "content": f"count {number}"}],
                    "stream": number % 100 < share}
            s = socket.create_connection(("127.0.0.1", port), 30)
            s.sendall(request("POST", "/v1/chat/completions", json.dumps(body).encode()))
            s.setblocking(False)
            select.register(s, selectors.EVENT_READ)
            open_ += 1
        open_now.value = open_
        for key, _ in select.select(0.1):
            try:
                if key.fileobj.recv(65536):
                    continue
            except BlockingIOError:
                continue
            except OSError:
                pass
            select.unregister(key.fileobj)
            key.fileobj.close()
            open_ -= 1


def refused(port, rate, counts, stop):
    """Asks at this rate and counts the answers: 429, and all others.  A request that enters the queue,
    because a place has become free, is closed after 0.1 s and not counted."""
    body = json.dumps({"messages": [{"role": "user", "content": "hello"}]}).encode()
    at = time.monotonic()
    while not stop.is_set():
        at += 1 / rate
        time.sleep(max(0, at - time.monotonic()))
        try:
            a = ask(port, "POST", "/v1/chat/completions", body, 0.1)
            counts[0 if a and a[0] == 429 else 1] += 1
        except TimeoutError:
            pass


def probe(port, times, stop):
    """Asks for the health fifty times a second, each time over a new connection."""
    while not stop.is_set():
        begin = time.monotonic()
        a = ask(port, "GET", "/api/health")
        times.append((time.monotonic() - begin) * 1000 if a and a[0] == 200 else 1e6)
        time.sleep(0.02)


# ---- one turn ------------------------------------------------------------------------------------

def turn(port, master, waiting, rate, share, seconds):
    stop, open_now = multiprocessing.Event(), multiprocessing.Value("i", 0)
    counts = multiprocessing.Array("i", 2)
    with multiprocessing.Manager() as manager:
        times = manager.list()
        clients = [multiprocessing.Process(target=keep_waiting, args=(port, waiting + 4, share,
                                                              open_now, stop))]
        clients[0].start()
        if not wait_for(lambda: metrics(port)["vlm_queue_depth"] >= waiting - 4, 300):
            sys.exit(f"the queue has {metrics(port)['vlm_queue_depth']} requests instead of {waiting}")
        time.sleep(3)                   # the server parses the last requests

        clients.append(multiprocessing.Process(target=probe, args=(port, times, stop)))
        if rate:
            clients.append(multiprocessing.Process(target=refused, args=(port, rate, counts, stop)))
        for p in clients[1:]:
            p.start()

        def now():
            m = metrics(port)
            return (time.monotonic(), m["vlm_generation_tokens_total"], engine_and_loops(master),
                    sum(spent(f"/proc/{p.pid}") for p in clients))

        a = now()
        time.sleep(seconds)
        b = now()
        stop.set()
        for p in clients:
            p.join()
        took = sorted(times)
    wall, tokens, engine = b[0] - a[0], b[1] - a[1], b[2][0] - a[2][0]
    wait_for(lambda: metrics(port)["vlm_requests_running"] == 0
             and metrics(port)["vlm_queue_depth"] == 0, 60)
    return {
        "waiting": waiting, "refused": counts[0] / wall, "odd": counts[1],
        "tokens": tokens / wall, "by_cpu": tokens / engine,
        "load": (b[2][1] - a[2][1] + b[3] - a[3]) / wall / os.cpu_count(),
        "loops": (b[2][1] - a[2][1]) / wall,
        "p50": took[len(took) // 2], "p99": took[len(took) * 99 // 100], "max": took[-1],
    }


def median(turns, key):
    values = sorted(t[key] for t in turns)
    return values[len(values) // 2]


def main():
    p = argparse.ArgumentParser(description="the cost of a long queue", usage=__doc__)
    p.add_argument("--waiting", type=int, default=5000)
    p.add_argument("--refused", type=int, default=100)
    p.add_argument("--seconds", type=int, default=20)
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--stream", type=int, default=0, help="percentage of requests for a stream")
    args = p.parse_args()

    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]

    nginx = start(port, args.waiting)
    few, many = [], []
    try:
        if not wait_for(lambda: metrics(port)["vlm_ready"] == 1, 120):
            sys.exit("the server did not become ready: " + DIR)
        print("waiting  refused/s  tokens/s  tokens/cpu s    load  loops  health p50   p99   max ms")
        for _ in range(args.rounds):
            for turns, n, rate in ((few, FEW, 0), (many, args.waiting, args.refused)):
                t = turn(port, nginx.pid, n, rate, args.stream, args.seconds)
                turns.append(t)
                print("{waiting:7d}  {refused:9.1f}  {tokens:8.1f}  {by_cpu:12.1f}  {load:5.1%}  "
                      "{loops:5.2f}  {p50:10.2f}  {p99:5.2f}  {max:5.1f}".format(**t), flush=True)
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait(30)

    by_cpu = median(many, "by_cpu") / median(few, "by_cpu")
    by_wall = median(many, "tokens") / median(few, "tokens")
    left = 1 - max(0, median(many, "load") - median(few, "load"))
    p99 = median(many, "p99")
    print(f"tokens by the engine's processor time {by_cpu:.3f}, by the clock {by_wall:.3f} "
          f"of {left:.3f} that the load leaves; health p99 {p99:.2f} ms")
    kept = by_cpu > 0.97 and by_wall > left - 0.03 and p99 < 5
    sys.exit(0 if kept and not sum(t["odd"] for t in many) else 1)


if __name__ == "__main__":
    main()
