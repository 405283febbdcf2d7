#!/usr/bin/env python3
"""Runs every check that needs a GPU: correctness, memory and speed.

    make gpu                             all parts, build/gpu.json, at most ten minutes
    make gpu PARTS="parity demo"         some of them; the others stay in build/gpu.json as they were
    bench/gpu.py --table build/gpu.json  the tables for docs/gpu.md
    bench/gpu.py --scenes                renders the demo's scenes beforehand (this needs Pillow)
    bench/gpu.py --emulated ...          a rehearsal with tiny shapes on the emulated device
    bench/gpu.py --built ...             builds nothing: build/ is of another machine

The parts are build, sanitizer, parity, fidelity, demo, memory and speed.  Nothing is downloaded.
Checkpoints of random weights, 7.5 and 16 GB, are written below build/gpu (--data) while the first
parts run, and are used again by later runs.  The exit status is 0 if every requested part passed.
"""

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import time

import gpu_server
from gpu_server import CLOCK, ROOT, BenchError, run

PARTS = ["build", "sanitizer", "parity", "fidelity", "demo", "memory", "speed"]
WANT_LIBRARY = ["fidelity", "demo", "memory", "speed"]
LIBRARY = ROOT + "/build/libvlm_cuda.so"
ARCHS = ["75", "80", "86", "89", "90", "100", "120"]
NVCC = ["/usr/local/cuda/bin/nvcc", "build/nvcc/done"]
TINY = ["tiny-a", "tiny-b", "tiny-g", "tiny-i"]
ALONE, CACHED, PATCHES = "a_row_has_the_same_bits_alone*", "a_row_has_the_same_bits_as*", "patches_attend*"
HEADS = "a_row_turns*"
SANITIZED = [                           # tensor cores, asynchronous copies, sums over blocks; few shapes
    ("memcheck", "rows_test"), ("memcheck", "sample_test"),
    *((look, *which) for look in ("memcheck", "racecheck")
      for which in (("linear_test", ALONE), ("attend_test", CACHED), ("attend_test", PATCHES),
                    ("attend_test", HEADS)))]
NEAR = 0.06                             # rms of differences, in standard deviations of the logits
SCENES, ALIKE = 300, 297
APART = 8                               # pixels of 252: of 300 answers, int8 and f32 of one CPU have 297 within that
MIB = 1 << 20
MEMORY_NEAR = 64 * MIB
OF_MEMORY = ("plan", "overhead", "idle", "peak")


class Bench:
    """The settings and results that the parts share: paths, shapes, sizes."""

    def __init__(self, emulated, data, built=False):
        self.emulated = emulated
        self.builds = not emulated and not built
        self.data = data
        self.smi = gpu_server.Smi(os.environ.get("VLM_SMI", "nvidia-smi"))
        gpu, driver = self.smi.name()
        self.on = {"gpu": gpu, "driver": driver, "commit": commit(), "emulated": emulated}
        self.arch = best_arch(self.smi.arch())
        self.where = ROOT + ("/build/cuda" if emulated else "/build/cuda/one-" + self.arch)
        self.shapes = {"tiny": "tiny-g.json"} if emulated else {"3B": "3b.json", "7B": "7b.json"}
        self.pixels = 3136 if emulated else 1003520
        self.tokens = 4 if emulated else 128
        self.repeats = 1 if emulated else 3
        self.scenes = 2 if emulated else SCENES
        self.making = {}
        self.served = {}
        self.built = None

    def settings(self, **more):
        return dict({"max_pixels": str(self.pixels)}, **more)

    def make(self, *targets):
        """Builds targets of this commit for a part; for a rehearsal, make test-cuda has built them."""
        if self.builds:
            run(["make", "--no-print-directory", *targets], 580)

    # -- checkpoints -----------------------------------------------------------------------------

    def begin_checkpoints(self):
        self.make("build/random-checkpoint")
        os.makedirs(self.data, exist_ok=True)
        for name, shape in self.shapes.items():
            path = self.path(name)
            if not os.path.exists(path):
                self.making[name] = subprocess.Popen(
                    [ROOT + "/build/random-checkpoint", ROOT + "/bench/shapes/" + shape, path + ".new", "--seed", "1",
                     "--type", "bf16", "--gain", "trivial", "--tokenizer", ROOT + "/t/fidelity/tokenizer"],
                    stdout=subprocess.DEVNULL)

    def path(self, name):
        return "%s/%s" % (self.data, name)

    def checkpoint(self, name):
        making = self.making.get(name)
        if making is not None:
            if making.wait(CLOCK.left(580)) != 0:
                raise BenchError("the checkpoint %s could not be written below %s" % (name, self.data))
            del self.making[name]
            self.never_ends(name)
            os.rename(self.path(name) + ".new", self.path(name))
        if not os.path.exists(self.path(name)):
            raise BenchError("there is no checkpoint %s" % self.path(name))
        return self.path(name)

    def never_ends(self, name):
        """Makes an id beyond the tokenizer's last the end of text, so that no answer ends early."""
        with open(ROOT + "/bench/shapes/" + self.shapes[name]) as f:
            shape = json.load(f)
        last = shape.get("text_config", shape)["vocab_size"] - 1
        with open(self.path(name) + ".new/generation_config.json", "w") as f:
            json.dump({"eos_token_id": [last]}, f)

    def end(self):
        for making in self.making.values():
            making.kill()
            making.wait()


# -- the parts ---------------------------------------------------------------------------------------

def has_nvcc():
    return shutil.which("nvcc") or any(os.path.exists(os.path.join(ROOT, nvcc)) for nvcc in NVCC)


def part_build(b):
    """Builds once for all parts, so that no part measures a build of another commit."""
    if b.built is None:
        start = time.time()
        b.built = dict(library(b), seconds=time.time() - start)
    return b.built


def library(b):
    """Builds the library for this card only, in a directory with the module and build/vlm."""
    if b.emulated:
        shutil.copy(ROOT + "/build/vlm", b.where)
        return {"library": "emulated"}
    if not b.builds:
        return {"library": "of another machine, sm_" + b.arch}
    if has_nvcc():
        b.make("cuda-one", "ARCHS=" + b.arch)
        return {"library": "sm_" + b.arch}
    if not os.path.exists(LIBRARY):
        raise BenchError("there is no nvcc and no %s from another machine" % LIBRARY)
    b.make("module", "tools")
    os.makedirs(b.where, exist_ok=True)
    for path in (LIBRARY, ROOT + "/build/ngx_http_vlm_module.so", ROOT + "/build/vlm"):
        shutil.copy(path, b.where)
    return {"library": "not rebuilt: there is no nvcc"}


def best_arch(card):
    """Returns the newest architecture of the build that the card supports."""
    fit = [a for a in ARCHS if int(a.rstrip("a")) <= card]
    if not fit:
        raise BenchError("the card has sm_%d; at least sm_%s is needed" % (card, ARCHS[0]))
    return fit[-1]


def card_tests(b):
    """Returns the programs that compare the operations with their definitions on the card."""
    if b.emulated:
        return [b.where + "/fault_test", b.where + "/rows_test"]
    where = b.where + "/card-tests"
    if b.builds and has_nvcc():
        b.make("cuda-one-tests", "ARCHS=" + b.arch)
    if not os.path.exists(where):
        raise BenchError("there is no %s: it needs nvcc" % where)
    return sorted(os.path.join(where, name) for name in os.listdir(where) if name.endswith("_test"))


def compared(command, most, results):
    """Returns how many tests of a program passed; zero is an error."""
    out = run(command, most, env=dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP"))
    passed = len(re.findall("^ok ", out, re.MULTILINE))
    if passed == 0:
        raise BenchError("%s has compared nothing" % " ".join(os.path.basename(word) for word in command), results)
    return passed


def part_sanitizer(b):
    """A rehearsal needs no tool: the emulator checks for the same errors."""
    tool = shutil.which("compute-sanitizer") or shutil.which("/usr/local/cuda/bin/compute-sanitizer")
    if tool is None and not b.emulated:
        return {"skipped": "there is no compute-sanitizer"}
    results = {}
    where = os.path.dirname(card_tests(b)[0])
    for look, program, *names in SANITIZED:
        command = [] if b.emulated else [tool, "--tool", look, "--error-exitcode", "9"]
        results[" ".join([look, program, *names])] = compared([*command, where + "/" + program, *names], 40, results)
    return results


def part_parity(b):
    """Compares each operation of the device with its definition."""
    results = {}
    for test in card_tests(b):
        start = time.time()
        passed = compared([test], 300, results)
        results[os.path.basename(test)] = {"passed": passed, "seconds": time.time() - start}
    return results


def logits(b, model, device, weights, prompt, pictures):
    program = (b.where if device == "cuda" else ROOT + "/build") + "/vlm"
    command = [program, "logits", model, "--prompt", prompt, "--device", device, "--weights", weights, "--top", "0",
               "--json", "--max-pixels", "3136", "--context", "400"]
    for picture in pictures:
        command += ["--image", ROOT + "/t/fidelity/pictures/" + picture]
    rows = []
    for line in run(command, 120).split("\n"):
        if line.startswith("{"):
            rows.append([value for _, value in sorted(json.loads(line)["top"])])
    return rows


def rms(rows, wanted):
    """Returns the root mean square of the differences, in standard deviations of the expected row."""
    shape, right = [len(row) for row in rows], [len(row) for row in wanted]
    if shape != right or 0 in right or not right:
        raise BenchError("rows of logits are %s long, %s was expected" % (shape, right))
    total, n = 0.0, 0
    for row, want in zip(rows, wanted):
        mean = sum(want) / len(want)
        spread = math.sqrt(sum((w - mean) ** 2 for w in want) / len(want)) or 1.0
        total += sum(((r - w) / spread) ** 2 for r, w in zip(row, want))
        n += len(want)
    return math.sqrt(total / n)


def part_fidelity(b):
    b.make("checkpoints")
    results = {}
    for name in TINY:
        model = "%s/build/fidelity/%s" % (ROOT, name)
        question = ("Where is the cup?", ["61x117.png", "40x30.png"])
        wanted = logits(b, model, "cpu", "f32", *question)
        results[name] = {"gpu": rms(logits(b, model, "cuda", "int8", *question), wanted),
                      "cpu": rms(logits(b, model, "cpu", "int8", *question), wanted)}
        near(name, results)
    return results


def near(name, results):
    if not results[name]["gpu"] <= NEAR:                # also true for a NaN
        raise BenchError("%s: logits are %.3f of their spread away from the CPU's f32, %.2f is allowed"
                      % (name, results[name]["gpu"], NEAR), results)


def part_demo(b):
    """Compares the answers of the CPU and the GPU to one question about each of the demo's scenes."""
    items = gpu_server.samples(b.scenes) if b.emulated else gpu_server.scenes(b.scenes)
    answers = {}
    for device in ("cpu", "cuda"):
        engine = {"max_tokens": "64", "sampling": "temperature=0"}
        with gpu_server.Server(b.where, ROOT + "/demo/model", device, engine, "demo-" + device) as s:
            start = time.time()
            answers[device] = s.ask_scenes(items)
            answers[device + "_seconds"] = time.time() - start
    results = {"cpu_seconds": answers["cpu_seconds"], "gpu_seconds": answers["cuda_seconds"]}
    return alike(results, b.scenes, items, answers["cpu"], answers["cuda"])


def is_alike(item, cpu, gpu):
    """Tells whether two answers say the same, with coordinates that may be some pixels apart."""
    if cpu == gpu or item["task"] == "general":
        return cpu == gpu
    places = [[int(n) for n in re.findall(r"\d+", answer)] for answer in (cpu, gpu)]
    return (re.sub(r"\d+", "0", cpu) == re.sub(r"\d+", "0", gpu)
            and all(abs(a - c) <= APART for a, c in zip(*places)))


def alike(results, wanted, items, cpu, gpu):
    """Checks that the GPU answered almost all of at least so many scenes as the CPU did."""
    asked = list(zip(items, cpu, gpu))
    results.update(scenes=len(items), same=sum(a == c for _, a, c in asked),
                alike=sum(is_alike(*one) for one in asked),
                different=[{"text": i["text"], "cpu": a, "gpu": c} for i, a, c in asked if a != c])
    if len(items) < wanted:
        raise BenchError("there are %d scenes, %d are wanted" % (len(items), wanted), results)
    if results["alike"] * SCENES < ALIKE * len(items):
        raise BenchError("the GPU answers %d of %d scenes as the CPU does, %d of %d are wanted"
                      % (results["alike"], len(items), ALIKE, SCENES), results)
    return results


def serve(b, name, slots):
    """Measures the memory and the times of one shape on the device, once for all parts."""
    key = "%s-%d" % (name, slots)
    if key not in b.served:
        before = b.smi.used()
        with gpu_server.Server(b.where, b.checkpoint(name), "cuda",
                               b.settings(context="4k", slots=str(slots), max_tokens="512", features=None,
                                          sampling="temperature=0 repetition_penalty=1", queue="8 timeout=300s",
                                          timeout="300s"), key) as s:
            health = s.health()
            if not health.get("device_overhead"):
                raise BenchError("%s: the driver's own memory could not be measured: there is no NVML" % key)
            results = {"load_seconds": s.load_seconds, "plan": health["plan"], "device": health["device"],
                    "overhead": health["device_overhead"], "idle": b.smi.used() - before}
            with b.smi.watch() as watch:
                results.update(s.measure(b.pixels, b.tokens, slots + 1, b.repeats))
            results["peak"] = watch.most() - before
        b.served[key] = results
    return b.served[key]


def part_memory(b):
    results = {}
    for name in b.shapes:
        for slots in (1, 4):
            s = serve(b, name, slots)
            results["%s-%d" % (name, slots)] = {k: s[k] for k in OF_MEMORY}
    wrong = ["%s: %d MiB at most, %d planned and %d of the driver's own"
             % (key, m["peak"] // MIB, planned(m) // MIB, m["overhead"] // MIB)
             for key, m in results.items() if abs(m["peak"] - planned(m) - m["overhead"]) > MEMORY_NEAR]
    if wrong:
        raise BenchError("; ".join(wrong), results)
    return results


def planned(m):
    """Returns the plan without the declared overhead of the driver, which is measured instead."""
    return m["plan"]["total"] - m["plan"]["device"]


def part_speed(b):
    results = {}
    for name in b.shapes:
        for slots in (1, 4):
            s = serve(b, name, slots)
            results["%s-%d" % (name, slots)] = {k: v for k, v in s.items() if k not in OF_MEMORY}
    return results


# -- the tables --------------------------------------------------------------------------------------

def tables(results):
    """Returns the results as Markdown, with a section for each card, driver and commit."""
    on = []
    for part in results["parts"].values():
        if part["on"] not in on:
            on.append(part["on"])
    return "\n".join(tables_of(o, {k: v for k, v in results["parts"].items() if v["on"] == o}) for o in on)


def tables_of(on, parts):
    lines = ["On %s, driver %s, commit %s:" % (on["gpu"], on["driver"], on["commit"]), ""]
    if on["emulated"]:
        lines = ["A rehearsal on the emulated device: these are no figures of a GPU.", ""]
    good = {k: v for k, v in parts.items() if "failed" not in v}
    if "memory" in parts and "of" in parts["memory"]:
        lines += ["| model | slots | planned, MiB | the driver's own | idle | peak |",
                  "|---|---:|---:|---:|---:|---:|"]
        for key, m in parts["memory"]["of"].items():
            lines.append("| %s | %s | %d | %d | %d | %d |" % (*key.split("-"), planned(m) // MIB, m["overhead"] // MIB,
                                                             m["idle"] // MIB, m["peak"] // MIB))
        lines.append("")
    if "speed" in good:
        lines += ["| model | slots | load, s | first token, s | with a picture, s | tokens/s | at once "
                  "| tokens/s of all |",
                  "|---|---:|---:|---:|---:|---:|---:|---:|"]
        for key, s in parts["speed"]["of"].items():
            lines.append("| %s | %s | %.1f | %.3f | %.3f | %.1f | %d | %.1f |" % (
                *key.split("-"), s["load_seconds"], s["first_text_seconds"], s["first_picture_seconds"],
                s["tokens_per_second"], s["at_once"], s["tokens_per_second_at_once"]))
        lines.append("")
    if "demo" in good:
        d = parts["demo"]["of"]
        lines.append("Of the demo's %d scenes the GPU answers %d as the CPU does, %d of them in the same words."
                     % (d["scenes"], d["alike"], d["same"]))
    if "fidelity" in good:
        lines += ["", "| model | GPU | CPU |", "|---|---:|---:|"]
        lines += ["| %s | %.3f | %.3f |" % (k, f["gpu"], f["cpu"]) for k, f in parts["fidelity"]["of"].items()]
    if "parity" in good:
        lines += ["", "%d comparisons of operations with their definitions passed."
                  % sum(t["passed"] for t in parts["parity"]["of"].values())]
    if "sanitizer" in good and not skipped(good["sanitizer"]):
        lines += ["", "compute-sanitizer found nothing in %d runs." % len(good["sanitizer"]["of"])]
    lines += ["", *("%s was not passed: %s" % (k, v["failed"]) for k, v in parts.items() if "failed" in v)]
    lines += ["", *("%s was not done: %s" % (k, skipped(v)) for k, v in good.items() if skipped(v))]
    return re.sub("\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


# -- the run -----------------------------------------------------------------------------------------

def one(b, name, results):
    """Runs a part and records its result or its error; the other parts run in both cases."""
    start = time.time()
    try:
        CLOCK.left(1)
        if name in WANT_LIBRARY:
            part_build(b)
        part = {"of": globals()["part_" + name](b)}
    except BenchError as t:
        part = {"failed": str(t)}
        if t.results is not None:
            part["of"] = t.results
    except Exception as e:
        part = {"failed": "%s: %s" % (type(e).__name__, e)}
    part.update(on=b.on, time=time.strftime("%Y-%m-%d"), took_seconds=round(time.time() - start, 1))
    results["parts"][name] = part
    print("%-10s %6.1f s  %s" % (name, part["took_seconds"], part.get("failed", skipped(part) or "passed")), flush=True)


def skipped(part):
    return part.get("of", {}).get("skipped")


def begin(b):
    """Starts to write the checkpoints; if that fails, the parts that need them report it."""
    try:
        b.begin_checkpoints()
    except (BenchError, OSError) as e:
        print("checkpoints: %s" % e, flush=True)


def earlier(path):
    """Returns the results of earlier runs that name their machine."""
    if not os.path.exists(path):
        return {"parts": {}}
    try:
        with open(path) as f:
            parts = json.load(f)["parts"]
        return {"parts": {name: part for name, part in parts.items() if "on" in part}}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        raise BenchError("%s was not written by this program: move it away" % path)


def commit():
    """Returns the commit, with "-dirty" if files differ from it, or "unknown" without git."""
    try:
        return run(["git", "describe", "--always", "--exclude=*", "--dirty"], 10).strip()
    except (BenchError, OSError):
        return "unknown"


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--parts", default="")
    p.add_argument("--emulated", action="store_true")
    p.add_argument("--built", action="store_true")
    p.add_argument("--out")
    p.add_argument("--data", default=ROOT + "/build/gpu")
    p.add_argument("--table", metavar="JSON")
    p.add_argument("--scenes", action="store_true")
    p.add_argument("--seconds", type=int)
    args = p.parse_args()

    if args.table:
        print(tables(earlier(args.table)), end="")
        return 0
    if args.scenes:
        print("%d scenes below %s" % (len(gpu_server.scenes(SCENES)), gpu_server.SCENES_DIR))
        return 0

    parts = args.parts.split() or PARTS
    unknown = [name for name in parts if name not in PARTS]
    if unknown:
        print("no part %s; there are %s" % (", ".join(unknown), ", ".join(PARTS)), file=sys.stderr)
        return 2

    slow = 10 if args.emulated else 1
    CLOCK.begin(args.seconds or 580 * slow, slow)
    args.out = args.out or ROOT + ("/build/gpu-rehearsal.json" if args.emulated else "/build/gpu.json")
    try:
        results = earlier(args.out)
        b = Bench(args.emulated, args.data, args.built)
    except BenchError as t:
        print("nothing was measured: %s" % t, file=sys.stderr)
        return 1

    try:
        if {"memory", "speed"} & set(parts):
            begin(b)
        for name in parts:
            one(b, name, results)
            with open(args.out + ".new", "w") as f:
                json.dump(results, f, indent=1)
                f.write("\n")
            os.rename(args.out + ".new", args.out)
    finally:
        b.end()

    print("\n" + tables(results), end="")
    return 1 if any("failed" in results["parts"][name] for name in parts) else 0


if __name__ == "__main__":
    sys.exit(main())
