#!/usr/bin/env python3
"""Measures the shapes of bench/compare in OpenVINO GenAI, on the CPU.

    PYTHON bench/openvino_bench.py IR [--ops amx|avx512] [--settings fast|default]
                                   [--what NAME,...] [--set NAME=VALUE ...]

PYTHON is that of a virtual environment with openvino-genai from PyPI, and IR the output of
bench/openvino_model.py.  The script prints a line of JSON for each of NAMES.  It runs the pipeline
inside VLMPipeline with VLMPipeline's settings, because only that one takes four prompts in one call.
--ops avx512 turns AMX off; --set sets a property of OpenVINO's CPU device.
"""

import argparse
import os
import sys
import time

from server import ANOTHER, SIDES, TEXT, figure

NAMES = ("prefill512", "decode", "ttft448", "ttft896x672", "again448", "four")
WORDS = " cup"                          # one token; a letter is one, too

# OpenVINO multiplies int8 by int8 in tiles only if a row of activations has one scale; otherwise it
# widens weights to bf16.  Without tiles it quantises from f32 only, in groups of 32 by default; groups
# of 128 were the fastest of 32, 64, 128, 512 and a row.
SETTINGS = {
    ("amx", "fast"): {"DYNAMIC_QUANTIZATION_GROUP_SIZE": str(2 ** 64 - 1)},
    ("amx", "default"): {},
    ("avx512", "fast"): {"INFERENCE_PRECISION_HINT": "f32",
                         "DYNAMIC_QUANTIZATION_GROUP_SIZE": "128"},
    ("avx512", "default"): {"INFERENCE_PRECISION_HINT": "f32"},
}


class Pipeline:
    def __init__(self, path, settings):
        import numpy
        import openvino
        import openvino_genai

        self.genai, self.openvino = openvino_genai, openvino
        self.random = numpy.random.default_rng()
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.max_num_batched_tokens = sys.maxsize
        scheduler.enable_prefix_caching = True
        settings = dict(settings, INFERENCE_NUM_THREADS=os.cpu_count())
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(path, scheduler, "CPU", settings)
        self.letters = iter("abcdefghijklmnopqrstuvwxyz")
        print(f"# OpenVINO GenAI {openvino_genai.__version__}: {settings}", file=sys.stderr,
              flush=True)

    def ask(self, prompts, tokens, pictures=None, template=False):
        """Returns the seconds of all prompts, and the statistics of the first."""
        config = self.genai.GenerationConfig(max_new_tokens=tokens, ignore_eos=True,
                                             do_sample=False, apply_chat_template=template)
        more = {} if pictures is None else {"images": [[p] for p in pictures]}
        start = time.monotonic()
        results = self.pipeline.generate(prompts, generation_config=[config] * len(prompts), **more)

        return time.monotonic() - start, results[0].perf_metrics

    def prompt(self, tokens):
        """Returns prompts with different beginnings, because OpenVINO caches keys and values of a prefix."""
        return next(self.letters) + WORDS * (tokens - 1)

    def picture(self, name):
        width, height = SIDES[name]
        return self.openvino.Tensor(self.random.integers(0, 256, (1, height, width, 3), "uint8"))


def measure(p, name):
    if name == "prefill512":
        seconds, said = p.ask([p.prompt(512)], 1)
        return said.get_num_input_tokens() / seconds, "tokens/s"

    if name == "decode":
        said = p.ask([p.prompt(128)], 33)[1]
        return 1000 / said.get_tpot().mean, "tokens/s"

    if name == "four":
        return p.ask([p.prompt(128) for _ in range(4)], 32)[0], "s"

    picture = p.picture(name.removeprefix("ttft").removeprefix("again"))
    seconds = p.ask([TEXT], 1, [picture], template=True)[0]

    if name.startswith("again"):
        seconds = p.ask([ANOTHER], 1, [picture], template=True)[0]

    return seconds, "s"


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("ir")
    p.add_argument("--ops", choices=["amx", "avx512"])
    p.add_argument("--settings", choices=["fast", "default"], default="fast")
    p.add_argument("--what", default=",".join(NAMES))
    p.add_argument("--set", nargs="*", default=[])
    a = p.parse_args()

    has_amx = "amx_int8" in open("/proc/cpuinfo").read()
    ops = a.ops or ("amx" if has_amx else "avx512")

    if ops == "avx512":                 # before the library is loaded
        os.environ["ONEDNN_MAX_CPU_ISA"] = "AVX512_CORE_VNNI"

    pipeline = Pipeline(a.ir, dict(SETTINGS[ops, a.settings], **dict(s.split("=") for s in a.set)))

    for name in a.what.split(","):
        measure(pipeline, name)         # the first call generates code and repacks weights
        value, unit = measure(pipeline, name)
        figure(name, value, unit)


if __name__ == "__main__":
    main()
