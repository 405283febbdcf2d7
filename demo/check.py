"""Proves that the checkpoint directory gives in transformers what the training code computes.

Both run in float32 on held-out scenes; prints the largest difference of logits at the answers' tokens,
and compares transformers' greedy answer with its own prompt handling.  Exit status 1 if they differ.
"""

import os
import random
import sys

import torch
from transformers import AutoTokenizer, Qwen2_5_VLForConditionalGeneration, Qwen2VLImageProcessor

import export
from batches import Encoder, patches_of
from model import Model
from questions import TASKS, ask, in_context, wrap
from scenes import make_scene, render

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model")


def prompt(tokenizer, text):
    messages = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": text}]}]
    chat = tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    return chat.replace("<|image_pad|>", "<|image_pad|>" * 81)


def main():
    torch.set_num_threads(1)            # threads that share a busy machine wait for each other
    encoder, tokenizer = Encoder(os.path.join(FOLDER, "tokenizer.json")), AutoTokenizer.from_pretrained(FOLDER)
    ours = Model(*encoder.prefix()).eval()
    export.from_family(ours, os.path.join(FOLDER, "model.safetensors"))
    theirs = Qwen2_5_VLForConditionalGeneration.from_pretrained(FOLDER, torch_dtype=torch.float32).eval()
    processor = Qwen2VLImageProcessor.from_pretrained(FOLDER)
    rng, worst, same = random.Random(5), 0.0, 0
    for i, task in enumerate(TASKS):
        scene, found = None, None
        while not found:
            scene = make_scene(990_000_000 + rng.randrange(10 ** 6))
            found = ask(task, scene, rng)
        picture = render(scene)
        text = in_context([("hello", "hi")], found[1]) if i % 2 else found[1]
        pixels = processor(picture, return_tensors="pt")
        ids = tokenizer(prompt(tokenizer, wrap(task, text)), return_tensors="pt")["input_ids"]
        branch = encoder.ids(wrap(task, text)) + encoder.tail
        assert ids[0].tolist() == ours.before + [tokenizer.convert_tokens_to_ids("<|image_pad|>")] * 81 \
            + ours.after + branch, "the two prompts differ"
        with torch.no_grad():
            theirs_logits = theirs(input_ids=ids, attention_mask=torch.ones_like(ids), **pixels).logits[0]
            hidden, _, _ = ours(torch.from_numpy(patches_of(picture))[None], [torch.tensor([[branch]])],
                             dtype=torch.float32)
            ours_logits = ours.logits(hidden[0][0, 0])
            out = theirs.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=60,
                                  do_sample=False, **pixels)[0, ids.shape[1]:]
        difference = (theirs_logits[-len(branch):] - ours_logits).abs().max().item()
        answer = tokenizer.decode(out, skip_special_tokens=True)
        worst, same = max(worst, difference), same + (answer == found[2]["answer"])
        print("%-10s %.2e  %s -> %s (%s)" % (task, difference, found[1], answer, found[2]["answer"]))
    print("largest difference of logits %.2e, %d of %d answers as expected" % (worst, same, len(TASKS)))
    return 0 if worst < 1e-3 else 1


if __name__ == "__main__":
    sys.exit(main())
