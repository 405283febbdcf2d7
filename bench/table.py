#!/usr/bin/env python3
"""Makes the tables of bench/README.md and docs/speed.md from build/bench.json and compare.json.

    bench/table.py [--json FILE] [--write]

The script prints the table of one file, or writes both tables and the description of the machine
between the marks in bench/README.md, and the ratios of compare.json in docs/speed.md.
"""

import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = ROOT + "/bench/README.md"
SHORT_PAGE = ROOT + "/docs/speed.md"
TABLES = {"bench.json": "<!-- bench/table.py --write -->\n",
          "compare.json": "<!-- bench/table.py --write, of bench/compare -->\n"}
RATIOS = "<!-- bench/table.py --write, ratios of bench/compare -->\n"
END = "<!-- end -->"

ROWS = {"decode": "tokens/s", "prefill512": "prompt of 512 tokens",
        "ttft448": "first token, 448x448", "ttft896x672": "first token, 896x672",
        "again448": "second question about a picture", "four": "four requests at once"}
ENGINES = {"llama": "llama.cpp", "ik": "ik_llama.cpp", "openvino": "OpenVINO",
           "llama_q4": "llama.cpp Q4_K_M", "ik_q4": "ik_llama.cpp Q4_K_M",
           "openvino_default": "OpenVINO, defaults"}


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


def ratios(figures):
    """Has a row for each measurement, and a column for each engine and set of our operations."""
    found = {}

    for f in figures:
        name, _, rest = f["name"].partition("_over_")
        engine = max((e for e in ENGINES if (rest + "_").startswith(e + "_")), key=len,
                     default=None)

        if name in ROWS and engine:
            column = (rest[len(engine) + 1:], list(ENGINES).index(engine))
            found.setdefault(column, {})[name] = f["value"]

    columns = sorted(found)
    titles = [list(ENGINES.values())[i] + (f", `{ops}`" if ops else "") for ops, i in columns]
    rows = ["| times as fast as | " + " | ".join(titles) + " |",
            "|---" + "|---:" * len(columns) + "|"]

    for name in (n for n in ROWS if any(n in found[c] for c in columns)):
        cells = [f"{found[c][name]:.2f}" if name in found[c] else "" for c in columns]
        rows.append(f"| {ROWS[name]} | " + " | ".join(cells) + " |")

    return "\n".join(rows) + "\n"


def write(path, begin, text):
    """Writes this text between the begin and end marks of the page."""
    page = open(path).read()

    if begin not in page or END not in page.split(begin)[1]:
        sys.exit(f"{path} has no place for the table: {begin.strip()} ... {END}")

    before, rest = page.split(begin)

    with open(path, "w") as f:
        f.write(before + begin + "\n" + text + "\n" + END + rest.split(END, 1)[1])


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--json", default=ROOT + "/build/bench.json")
    p.add_argument("--write", action="store_true")
    a = p.parse_args()

    if not a.write:
        print(f"{machine()}.\n\n{markdown(json.load(open(a.json)))}", end="")
        return

    for name, begin in TABLES.items():
        path = f"{ROOT}/build/{name}"

        if os.path.exists(path):
            figures = json.load(open(path))
            write(PAGE, begin, f"{machine()}.\n\n{markdown(figures)}")

            if name == "compare.json":
                write(SHORT_PAGE, RATIOS, f"{machine()}.\n\n{ratios(figures)}")


if __name__ == "__main__":
    main()
