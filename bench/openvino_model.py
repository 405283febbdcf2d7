#!/usr/bin/env python3
"""Converts a checkpoint to OpenVINO's format with int8 weights, for bench/openvino_bench.py.

    PYTHON bench/openvino_model.py CHECKPOINT OUT

PYTHON is that of a virtual environment with optimum-intel from PyPI, whose optimum-cli converts the
3B's shape in five minutes with 24 GB of memory.  It requires files that a checkpoint with random
weights does not have; the script makes them in a temporary directory, with links to the others.
"""

import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOKENIZER = {"tokenizer_class": "Qwen2TokenizerFast", "eos_token": "<|im_end|>",
             "pad_token": "<|endoftext|>", "bos_token": None, "errors": "replace",
             "clean_up_tokenization_spaces": False, "split_special_tokens": False}


def complete(checkpoint, folder):
    names = os.listdir(checkpoint)

    for name in names:
        os.symlink(os.path.abspath(os.path.join(checkpoint, name)), os.path.join(folder, name))

    if "tokenizer_config.json" not in names:
        with open(folder + "/tokenizer_config.json", "w") as f:
            json.dump(TOKENIZER, f)
    if "chat_template.json" not in names:
        os.symlink(ROOT + "/demo/model/chat_template.json", folder + "/chat_template.json")


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)

    with tempfile.TemporaryDirectory() as folder:
        complete(sys.argv[1], folder)
        subprocess.run([os.path.dirname(sys.executable) + "/optimum-cli", "export", "openvino",
                        "--model", folder, "--task", "image-text-to-text", "--weight-format",
                        "int8", "--sym", sys.argv[2]],
                       check=True, env=dict(os.environ, HF_HUB_OFFLINE="1"))


if __name__ == "__main__":
    main()
