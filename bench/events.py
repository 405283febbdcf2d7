#!/usr/bin/env python3
"""Counts the functions of http/ that an event of the engine passes on its way to the client.

    bench/events.py [--list]

The script compiles the module with -finstrument-functions in build/calls, streams one answer of
/v1/chat/completions from the demo model, and prints for a token in the middle of the answer and for
the last event: the calls from ngx_http_vlm_deliver() on, the different functions among them, their
files, and how often control changes between two files.  --list prints the calls, too.
"""

import argparse
import getpass
import http.client
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULE = ROOT + "/build/calls/ngx_http_vlm_module.so"
FIRST = "ngx_http_vlm_deliver"

CONF = """
load_module {module};
user {user};
pid nginx.pid;
error_log error.log notice;
thread_pool vlm threads=1;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    vlm_engine events {{
        model {root}/demo/model;
        device cpu;
        sampling temperature=0;
        store store;
    }}
    server {{
        listen 127.0.0.1:{port};
        location / {{ vlm_pass events; }}
    }}
}}
"""


def build():
    os.makedirs(os.path.dirname(MODULE), exist_ok=True)
    subprocess.run(["make", "-s", "-C", ROOT, "O=build/calls", "build/calls/ngx_http_vlm_module.so",
                    'NGX_OPT=--with-cc-opt="-O1 -g -Wno-error -finstrument-functions"'],
                   check=True, stdout=sys.stderr)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", ROOT + "/build/calls/calls.so",
                    ROOT + "/bench/calls.c"], check=True)


def start(where, port):
    with open(where + "/nginx.conf", "w") as f:
        f.write(CONF.format(root=ROOT, module=MODULE, user=getpass.getuser(), port=port))

    open(where + "/calls", "w").close()

    env = dict(os.environ, LD_PRELOAD=ROOT + "/build/calls/calls.so", CALLS=where + "/calls")
    nginx = subprocess.Popen(["nginx", "-p", where, "-c", "nginx.conf", "-e", "error.log",
                              "-g", "daemon off;"], env=env)

    while nginx.poll() is None:
        try:
            c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            c.request("GET", "/api/health")
            if json.load(c.getresponse())["state"] == "ready":
                return nginx
        except OSError:
            pass
        time.sleep(0.1)

    sys.exit("the server has ended: " + open(where + "/error.log").read())


def stream(port):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    c.request("POST", "/v1/chat/completions", json.dumps({
        "stream": True, "max_tokens": 8, "messages": [{"role": "user", "content": "Count."}]}))

    return c.getresponse().read().count(b"data: {")


def names(addresses):
    """Returns for each address of the module its function and its file below http/, or None."""
    told = subprocess.run(["addr2line", "-f", "-e", MODULE, *map(hex, addresses)], check=True,
                          text=True, stdout=subprocess.PIPE).stdout.split("\n")

    return {a: (told[2 * i], told[2 * i + 1].split(":")[0].partition(ROOT + "/http/")[2])
            for i, a in enumerate(addresses)}


def events(path):
    """Returns a list of calls for each event: depth, function, file, begin or end."""
    with open(path, "rb") as f:
        records = list(struct.iter_unpack("qq", f.read()))

    name = names(sorted({abs(a) for _, a in records}))
    loop = {t for t, a in records if name[abs(a)][0] == FIRST}
    found, depth = [], 0

    for thread, a in records:
        function, file = name[abs(a)]

        if thread not in loop or not file or (depth == 0 and function != FIRST):
            continue

        if depth == 0:
            found.append([])

        depth -= a < 0
        found[-1].append((depth, function, file, a > 0))
        depth += a > 0

    return found


def show(what, calls, every):
    begun = [c for c in calls if c[3]]
    stack, files = [], []

    for _, _, file, begins in calls:
        if begins:
            stack.append(file)
        else:
            stack.pop()
        files += stack[-1:]

    print("%s: %d calls of %d functions in %d files, %d changes of the file" % (
        what, len(begun), len({c[1] for c in begun}), len({c[2] for c in begun}),
        sum(a != b for a, b in zip(files, files[1:]))))

    if every:
        for depth, function, file, _ in begun:
            print("    %s%s  %s" % ("  " * depth, function, file))


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--list", action="store_true")
    args = p.parse_args()

    build()

    with tempfile.TemporaryDirectory() as where:
        os.chmod(where, 0o755)
        port = 5900 + os.getpid() % 100
        nginx = start(where, port)

        try:
            stream(port)
        finally:
            nginx.send_signal(signal.SIGQUIT)
            nginx.wait()

        found = events(where + "/calls")

    # the first event begins the job, the next ones are tokens
    show("a token", found[len(found) // 2], args.list)
    show("the last event", found[-1], args.list)


if __name__ == "__main__":
    main()
