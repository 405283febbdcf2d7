#!/usr/bin/env python3
"""Compares the resident memory of the worker that owns the model with the plan.

    bench/resident.py DIR [--requests N] [--weights int8] [--picture FILE]

The script starts Debian's nginx with the module and the checkpoint in DIR, asks N questions about a
picture, and prints the worker's resident memory beside the figure of `vlm plan`.  This command makes
a checkpoint of the 3B's shape with random weights (7.5 GB):

    build/random-checkpoint bench/shapes/3b.json DIR --seed 1 --type bf16 --names old --shards 2 \\
        --gain trivial --tokenizer build/qwen-tokenizer/json

Random weights answer nonsense, but take the same memory and the same time as trained ones.
"""

import argparse
import base64
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SETTINGS = {"context": "4k", "slots": "4", "max_tokens": "8"}

CONF = """
load_module {root}/build/ngx_http_vlm_module.so;
user {user};
worker_processes 2;
pid nginx.pid;
error_log error.log notice;
thread_pool vlm threads=1;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    vlm_engine bench {{
        model {model};
        device cpu;
        weights {weights};
        context {context};
        slots {slots};
        max_tokens {max_tokens};
        queue 64 timeout=1h;
        timeout 1h;
        store store;
    }}
    server {{ listen 127.0.0.1:{port}; location / {{ vlm_pass bench; }} }}
}}
"""


def ask(port, method, path, body=None):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=3600)
    c.request(method, path, None if body is None else json.dumps(body),
              {"Content-Type": "application/json"})
    answer = c.getresponse()
    text = answer.read()
    c.close()
    return answer.status, json.loads(text)


def wait_until_ready(port, nginx):
    while nginx.poll() is None:
        try:
            health = ask(port, "GET", "/api/health")[1]
        except OSError:
            health = {}
        if health.get("state") == "failed":
            sys.exit(f"the model did not load: {health}")
        if health.get("model_loaded") and not health.get("filling"):
            return
        time.sleep(0.2)
    sys.exit("nginx stopped; see error.log")


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        fields = dict(line.split(":", 1) for line in f)
    return {k: int(fields[k].split()[0]) * 1024 for k in ("VmRSS", "RssAnon", "RssFile", "VmHWM")}


def owner(parent):
    """Returns the largest of nginx's workers, which owns the model."""
    workers = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True)
    return max((int(p) for p in workers.stdout.split()), key=lambda p: resident(p)["VmRSS"])


def plan(model, weights):
    args = [f"{ROOT}/build/vlm", "plan", model, "--json", "--weights", weights, "--device", "cpu"]
    for name in ("context", "slots"):
        args += [f"--{name}", SETTINGS[name]]
    return json.loads(subprocess.run(args, capture_output=True, check=True).stdout)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("dir")
    p.add_argument("--requests", type=int, default=20)
    p.add_argument("--weights", default="int8")
    p.add_argument("--picture", default=f"{ROOT}/t/fidelity/pictures/200x150.png")
    p.add_argument("--port", type=int, default=5099)
    a = p.parse_args()

    prefix = tempfile.mkdtemp(prefix="vlm-resident-")
    os.chmod(prefix, 0o755)
    os.makedirs(f"{prefix}/store")
    with open(f"{prefix}/nginx.conf", "w") as f:
        f.write(CONF.format(root=ROOT, model=os.path.abspath(a.dir), weights=a.weights,
                            port=a.port, user="root" if os.getuid() == 0 else "nobody",
                            **SETTINGS))

    promised = plan(a.dir, a.weights)["total"]
    started = time.time()
    nginx = subprocess.Popen(["/usr/sbin/nginx", "-p", prefix, "-c", f"{prefix}/nginx.conf",
                              "-e", f"{prefix}/error.log", "-g", "daemon off;"])
    try:
        wait_until_ready(a.port, nginx)
        loaded = time.time() - started
        worker = owner(nginx.pid)
        before = resident(worker)

        with open(a.picture, "rb") as f:
            image = "data:image/png;base64," + base64.b64encode(f.read()).decode()

        for i in range(a.requests):
            status, body = ask(a.port, "POST", "/api/chat", {
                "session_id": f"bench-{i}", "message": "How many objects are there?",
                "image": image, "task": "general", "enable_thinking": False})
            if status != 200 or "error" in body:
                sys.exit(f"request {i}: {status} {body}")

        after = resident(worker)
    finally:
        nginx.send_signal(signal.SIGTERM)
        nginx.wait()

    print(f"# loaded in {loaded:.1f} s; after the load {before['VmRSS'] / 1e6:.0f} MB resident, of "
          f"which {before['RssFile'] / 1e6:.0f} of files", file=sys.stderr)
    value = after["VmRSS"] / 1e6
    print(json.dumps({"name": f"resident_{a.weights}_3b", "value": round(value), "unit": "MB",
                      "limit": round(promised / 1e6), "share": round(value / promised * 1e6, 4)}))

    return 0 if after["VmRSS"] <= promised + 300e6 else 1


if __name__ == "__main__":
    sys.exit(main())
