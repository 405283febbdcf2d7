"""Answers the evaluation's questions through transformers, greedily, as the server would."""

import os

import torch
from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessor

from check import FOLDER, prompt
from questions import TASKS, wrap
from scenes import render


def ask_torch(items, folder=None, size=24):
    """Fills in item["answer"], in batches of one task (so of like lengths)."""
    folder = folder or FOLDER
    tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    model = Qwen2_5_VLForConditionalGeneration.from_pretrained(folder, torch_dtype=torch.float32).eval()
    processor = Qwen2VLImageProcessor.from_pretrained(folder)
    ordered = sorted(items, key=lambda i: TASKS.index(i["task"]))
    for at in range(0, len(ordered), size):
        some = ordered[at:at + size]
        texts = [prompt(tokenizer, wrap(i["task"], i["text"])) for i in some]
        inputs = tokenizer(texts, return_tensors="pt", padding=True)
        inputs.update(processor([render(i["scene"]) for i in some], return_tensors="pt"))
        with torch.no_grad():
            out = model.generate(**inputs, max_new_tokens=64, do_sample=False)
        for item, row in zip(some, out[:, inputs["input_ids"].shape[1]:]):
            item["answer"] = tokenizer.decode(row, skip_special_tokens=True)
