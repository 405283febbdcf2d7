#!/usr/bin/env python3
"""Runs the measuring programs and collects their figures: `make bench`.

    bench/run.py [--model DIR] [--json FILE] [--brief] [PART ...]

Each part prints a line of JSON for each figure.  The figures are written to build/bench.json, with
--brief to build/bench-brief.json, where those of parts that did not run remain, and printed as one
table.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import table

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# The commands of each part; {model} is the checkpoint of the 3B's shape.
PARTS = {
    "kernels": ["build/bench-kernels"],
    "model": ["build/bench-model {model}"],
    "avx512": ["build/bench-kernels --ops avx512 --rounds 3",
               "build/bench-model {model} --ops avx512 --label 3b_avx512 --what decode,prefill,encode"
               " --rounds 3"],
    "avx2": ["build/bench-kernels --ops avx2 --rounds 3",
             "build/bench-model {model} --ops avx2 --label 3b_avx2 --what decode,prefill --rounds 3"],
    "avxvnni": ["build/bench-kernels --ops avxvnni --rounds 3",
                "build/bench-model {model} --ops avxvnni --label 3b_avxvnni --what decode,prefill"
                " --rounds 1"],
    "again": ["build/again demo/model demo/pictures/table-01.png 11"],
    "deliver": ["bench/deliver.py"],
    "documents": ["bench/reading.py"],
    "serve": ["bench/serve.py"],
    "concurrent": ["bench/at_once.py {model}"],
    "promises": ["bench/promises.py {model}"],
    "memory": ["bench/resident.py {model} --requests 3"],
    "core": ["build/bench-model {model} --threads 1 --label 3b_core --rounds 1"
             " --what decode,together,prefill,encode"],
    "adapters": ["build/bench-adapters {model} --threads 1"],
}
ASKED = ("core", "adapters")            # parts that run only if they are named

# The words that make a part's program brief; "again" and "deliver" are brief as they are.
BRIEF = {"build/again": "", "bench/deliver.py": "", "bench/serve.py": " --seconds 0.3",
         "bench/resident.py": " --requests 1"}


failed = []                             # parts


def run(command, label):
    """Returns the figures that a command prints; its other output goes to stderr."""
    if "avx" in label and not runs_here(label):
        print(f"# {label}: this processor cannot run it", file=sys.stderr)
        return []

    p = subprocess.Popen(command, shell=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    figures = []

    for line in p.stdout:
        if line.startswith("{"):
            figures.append(json.loads(line))
            print(table.line(figures[-1]), flush=True)

    if p.wait() != 0:
        print(f"# {command}: ended with {p.returncode}", file=sys.stderr)
        failed.append(label)

    return figures


def make_model(path):
    """Makes the checkpoint of random weights by make, which has a rule for the default path only."""
    if not os.path.exists(path + "/config.json"):
        subprocess.run(["make", "--no-print-directory", os.path.relpath(path, ROOT)
                        + "/config.json"], cwd=ROOT, check=True, stdout=sys.stderr)


def runs_here(part):
    with open("/proc/cpuinfo") as f:
        flags = f.read()

    return {"avx512": "avx512_vnni", "avxvnni": "avx_vnni"}.get(part, part) in flags


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--model", default=ROOT + "/build/bench/3b")
    p.add_argument("--json", help="the file of the figures: build/bench.json, or bench-brief.json")
    p.add_argument("--brief", action="store_true", help="one round of each, to try it")
    p.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    a = p.parse_args()

    unknown = [part for part in a.parts if part not in PARTS]
    if unknown:
        p.error(f"no part {unknown[0]}: {', '.join(PARTS)}")

    a.json = a.json or ROOT + f"/build/bench{'-brief' * a.brief}.json"
    start = time.time()
    figures = []

    parts = a.parts or [part for part in PARTS if part not in ASKED]

    if any("{model}" in command for part in parts for command in PARTS[part]):
        make_model(a.model)

    print(table.machine())
    print(table.head())

    for part in parts:
        for command in PARTS[part]:
            words = BRIEF.get(command.split()[0], " --rounds 1") if a.brief else ""
            figures += run(command.format(model=a.model) + words, part)

    new = {f["name"] for f in figures}
    old = json.load(open(a.json)) if os.path.exists(a.json) else []
    figures = [f for f in old if f["name"] not in new] + figures

    with open(a.json, "w") as f:
        f.write("[\n" + ",\n".join(json.dumps(x) for x in figures) + "\n]\n")

    print(f"{len(new)} figures in {time.time() - start:.0f} s, {a.json}")

    if failed:
        sys.exit(f"failed: {', '.join(sorted(set(failed)))}")


if __name__ == "__main__":
    main()
