#!/usr/bin/env python3
"""Makes the tables of docs/speed.md from build/bench.json and build/compare.json.

    bench/table.py [--json FILE] [--write]

The script prints the table of one file, or writes both tables and the description of the machine
between the marks in docs/speed.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = ROOT + "/docs/speed.md"
TABLES = {"bench.json": "<!-- bench/table.py --write -->\n",
          "compare.json": "<!-- bench/table.py --write, of bench/compare -->\n"}
END = "<!-- end -->"


def machine():
    """Describes processor, cores, memory, caches and load in one line."""
    cpu = dict(re.findall(r"^([^:\n]+?):\s+(.+)$", subprocess.run(
        ["lscpu"], capture_output=True, text=True, env=dict(os.environ, LC_ALL="C")).stdout, re.M))
    flags = cpu.get("Flags", "").split()
    units = [name for flag, name in (("avx2", "AVX2"), ("avx512_vnni", "AVX-512 VNNI"),
                                     ("amx_int8", "AMX int8")) if flag in flags]
    memory = int(re.search(r"MemTotal:\s+(\d+)", open("/proc/meminfo").read())[1]) / 2 ** 20

    return (f"{cpu.get('Model name', 'processor')}, {os.cpu_count()} cores, {', '.join(units)}; "
            f"L2 {cpu.get('L2 cache', '?').split(' (')[0]}, {memory:.0f} GiB; "
            f"load {os.getloadavg()[0]:.1f}")


def number(x):
    return f"{x:,.0f}" if x >= 1000 else f"{x:.0f}" if x >= 100 else f"{x:.3g}"


def head():
    return f"{'name':34} {'value':>10} {'unit':10} {'limit':>10} {'share':>7}"


def line(f):
    limit = number(f["limit"]) if f["limit"] else "-"
    share = f"{100 * f['share']:.0f} %" if f["limit"] else "-"

    return f"{f['name']:34} {number(f['value']):>10} {f['unit']:10} {limit:>10} {share:>7}"


def markdown(figures):
    rows = ["| | | | limit | share of it |", "|---|---:|---|---:|---:|"]

    for f in figures:
        limit = number(f["limit"]) if f["limit"] else ""
        share = f"{100 * f['share']:.0f} %" if f["limit"] else ""
        rows.append(f"| `{f['name']}` | {number(f['value'])} | {f['unit']} | {limit} | {share} |")

    return "\n".join(rows) + "\n"


def write(page, begin, text):
    """Returns the page with this text between the begin and end marks."""
    if begin not in page or END not in page.split(begin)[1]:
        sys.exit(f"{PAGE} has no place for the table: {begin.strip()} ... {END}")

    before, rest = page.split(begin)

    return before + begin + "\n" + text + "\n" + END + rest.split(END, 1)[1]


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--json", default=ROOT + "/build/bench.json")
    p.add_argument("--write", action="store_true")
    a = p.parse_args()

    if not a.write:
        print(f"{machine()}.\n\n{markdown(json.load(open(a.json)))}", end="")
        return

    page = open(PAGE).read()

    for name, begin in TABLES.items():
        path = f"{ROOT}/build/{name}"

        if os.path.exists(path):
            page = write(page, begin, f"{machine()}.\n\n{markdown(json.load(open(path)))}")

    open(PAGE, "w").write(page)


if __name__ == "__main__":
    main()
