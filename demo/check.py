"""Proves that a checkpoint directory gives in transformers what the training code computes.

  python check.py                       model, the first demo
  python check.py model-3               the second one

Both run in float32 on held-out scenes; prints the largest difference of logits at the answers' tokens,
and compares transformers' greedy answer with its own prompt handling.  Exit status 1 if they differ.
"""

import json
import os
import random
import sys

import torch
import transformers
from transformers import AutoTokenizer, Qwen2VLImageProcessor

from ask_torch import FOLDER, load
from families import family_of
from questions import TASKS, ask, in_context
from scenes import make_scene, render


def prompt(tokenizer, text):
    messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]
    chat = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return chat.replace("<|image_pad|>", "<|image_pad|>" * 81)


def theirs_of(folder):
    with open(os.path.join(folder, "config.json")) as f:
        kind = getattr(transformers, json.load(f)["architectures"][0])
    return kind.from_pretrained(folder, torch_dtype=torch.float32).eval()


def size_of(folder):
    """The pixel counts of a preprocessor; this class, which needs no torchvision, forgets them where it reads them."""
    with open(os.path.join(folder, "preprocessor_config.json")) as f:
        conf = json.load(f)
    return {"size": conf["size"]} if "size" in conf else {}


def main(folder):
    torch.set_num_threads(1)            # threads that share a busy machine wait for each other
    family, tokenizer, theirs = family_of(folder), AutoTokenizer.from_pretrained(folder), theirs_of(folder)
    ours, encoder = load(folder)
    processor = Qwen2VLImageProcessor.from_pretrained(folder)
    rng, worst, same = random.Random(5), 0.0, 0
    for i, task in enumerate(TASKS):
        scene, found = None, None
        while not found:
            scene = make_scene(990_000_000 + rng.randrange(10 ** 6))
            found = ask(task, scene, rng)
        picture = render(scene)
        text = in_context([("hello", "hi")], found[1]) if i % 2 else found[1]
        pixels = processor(picture, return_tensors="pt", **size_of(folder))
        ids = tokenizer(prompt(tokenizer, family.release.wrap(task, text)), return_tensors="pt")["input_ids"]
        branch = encoder.ids(family.release.wrap(task, text)) + encoder.tail
        assert ids[0].tolist() == ours.before + [tokenizer.convert_tokens_to_ids("<|image_pad|>")] * 81 \
            + ours.after + branch, "the two prompts differ"
        with torch.no_grad():
            theirs_logits = theirs(input_ids=ids, attention_mask=torch.ones_like(ids), **pixels).logits[0]
            hidden, _, _ = ours(torch.from_numpy(family.patches(picture))[None], [torch.tensor([[branch]])],
                             dtype=torch.float32)
            ours_logits = ours.logits(hidden[0][0, 0])
            out = theirs.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=90,
                                  do_sample=False, **pixels)[0, ids.shape[1]:]
        difference = (theirs_logits[-len(branch):] - ours_logits).abs().max().item()
        answer, expected = tokenizer.decode(out, skip_special_tokens=True), family.release.answer(found[0], found[2])
        worst, same = max(worst, difference), same + (answer == expected)
        print("%-10s %.2e  %s -> %s (%s)" % (task, difference, found[1], answer, expected))
    print("largest difference of logits %.2e, %d of %d answers as expected" % (worst, same, len(TASKS)))
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else FOLDER))
