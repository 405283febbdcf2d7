#!/usr/bin/env python3
"""Makes t/fidelity/tokenizer/: a small byte-level BPE tokenizer in the family's file format.

The tokenizer has 256 bytes, then merges trained on the text below (by pair counts, ties by the
pair's bytes, so that a rerun writes the same files), then the family's added tokens in their order.
The script uses only Python's standard library.
"""

import json
import os
import re
import unicodedata

N_MERGES = 300
HERE = os.path.dirname(os.path.abspath(__file__))

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")

ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>",
         "<|object_ref_end|>", "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>",
         "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>",
         "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
         "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"]
N_SPECIAL = 14                         # of ADDED; the others are shown in decoded text

TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}"
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}<|im_start|>"
    "{{ message['role'] }}\n{% if message['content'] is string %}{{ message['content'] }}"
    "<|im_end|>\n{% else %}{% for content in message['content'] %}{% if content['type'] == "
    "'image' or 'image' in content or 'image_url' in content %}{% set image_count.value = "
    "image_count.value + 1 %}{% if add_vision_id %}Picture {{ image_count.value }}: {% endif %}"
    "<|vision_start|><|image_pad|><|vision_end|>{% elif content['type'] == 'video' or 'video' in "
    "content %}{% set video_count.value = video_count.value + 1 %}{% if add_vision_id %}Video "
    "{{ video_count.value }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endif %}{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

# Qwen3-VL's, without tools: no message is put before those of the conversation.
TEMPLATE_QWEN3 = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{% if message['content'] is "
    "string %}{{ message['content'] }}{% else %}{% for content in message['content'] %}"
    "{% if content['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif content['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}{% endif %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")

TEXT = """
You are a helpful assistant. The user shows a picture and asks about it; the assistant answers.
Where is the cup? The cup is on the table, to the left of the plate. What is shown in this
picture? The picture shows a red box, a green ball and a small blue chair in front of the window.
Please provide the bounding box coordinate of the region this sentence describes: the person who
is wearing a hat. Describe the image. How many objects are there? There are three objects: two
cups and one bowl. Which of them is the largest? The bowl is the largest of them, and it is empty.
Pick up the cup, then move the arm to the right and put it down on the shelf. Reach for the
handle of the drawer and open it. The robot's gripper holds the bottle. I'm sure that it's there;
they've seen it, we'll see it, and you'd see it too. Point to the free space between the plates.
What should be done next? First open the door, second take the towel, third wipe the table. Is
the light on or off? It is off. And the second picture? It shows the same room from another side.
Le café est près de la fenêtre. Das Glas steht auf dem Tisch, größer als die Tasse.
"""


def byte_letters():
    """Returns the letters of GPT-2's byte-level alphabet for the 256 bytes."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    letters, extra = {}, 0
    for b in range(256):
        if b in keep:
            letters[b] = chr(b)
        else:
            letters[b] = chr(256 + extra)
            extra += 1
    return letters


def words(text):
    """Returns the pieces of the split rule for text of letters, spaces, line feeds and punctuation."""
    rule = re.compile(r"'(?:s|t|re|ve|m|ll|d)\b|[^\r\n\w]?[^\W\d_]+|\d| ?[^\s\w]+[\r\n]*"
                      r"|\s*[\r\n]+|\s+(?!\S)|\s+")
    return rule.findall(unicodedata.normalize("NFC", text))


def learn(text, letters):
    counts = {}
    for w in words(text):
        key = tuple(letters[b] for b in w.encode())
        counts[key] = counts.get(key, 0) + 1
    merges = []
    while len(merges) < N_MERGES:
        pairs = {}
        for w, n in counts.items():
            for pair in zip(w, w[1:]):
                pairs[pair] = pairs.get(pair, 0) + n
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        merged = {}
        for w, n in counts.items():
            out, i = [], 0
            while i < len(w):
                if w[i:i + 2] == best:
                    out.append(w[i] + w[i + 1])
                    i += 2
                else:
                    out.append(w[i])
                    i += 1
            merged[tuple(out)] = merged.get(tuple(out), 0) + n
        counts = merged
    return merges


def write(name, value, indent=None):
    with open(os.path.join(HERE, "tokenizer", name), "w", encoding="utf-8") as f:
        if isinstance(value, str):
            f.write(value)
        else:
            json.dump(value, f, ensure_ascii=False, indent=indent)
            f.write("\n")


def main():
    letters = byte_letters()
    merges = learn(TEXT, letters)
    order = [letters[b] for b in sorted(letters, key=lambda b: (ord(letters[b]) >= 256, b))]
    vocab = {}
    for token in order + [a + b for a, b in merges]:
        vocab.setdefault(token, len(vocab))

    added = [{"id": len(vocab) + i, "content": name, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": i < N_SPECIAL}
             for i, name in enumerate(ADDED)]

    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False,
                  "use_regex": False}
    write("tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": SPLIT}, "behavior": "Isolated",
             "invert": False}, byte_level]},
        "post_processor": byte_level, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
                  "byte_fallback": False, "ignore_merges": False, "vocab": vocab,
                  "merges": [a + " " + b for a, b in merges]}})
    write("vocab.json", vocab)
    write("merges.txt", "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in merges))
    write("tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False,
        "added_tokens_decoder": {str(a["id"]): {k: a[k] for k in a if k != "id"} for a in added},
        "additional_special_tokens": [a["content"] for a in added[1:N_SPECIAL]],
        "bos_token": None, "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>", "errors": "replace", "model_max_length": 131072,
        "pad_token": "<|endoftext|>", "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer", "unk_token": None,
        "chat_template": TEMPLATE}, indent=2)
    write("chat_template.json", {"chat_template": TEMPLATE}, indent=2)
    write("qwen3.jinja", TEMPLATE_QWEN3)
    print(f"{len(vocab)} base tokens, {len(added)} added, "
          + ", ".join(f"{a['content']} {a['id']}" for a in added[:3] + added[9:13]))


if __name__ == "__main__":
    main()
