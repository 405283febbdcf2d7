"""Trains the demo's byte-level BPE tokenizer in the layout of Qwen2's and writes its files.

  python tokenizer.py model        tokenizer.json, vocab.json, merges.txt, tokenizer_config.json, ...
"""

import json
import os
import random
import sys

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from questions import TASKS, WRAPPERS, ask_any, in_context, wrap
from scenes import make_scene

SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
         r"|\s*[\r\n]+|\s+(?!\S)|\s+")
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
           "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>",
           "<|vision_end|>", "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>")
ADDED = ("<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>",
         "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>")
BASE = 746                              # with the 22 added tokens a vocabulary of 768
SYSTEM = "You are a helpful assistant."
DEFAULT_SYSTEM = (
    "{% if loop.first and message['role'] != 'system' %}<|im_start|>system\n"
    "You are a helpful assistant.<|im_end|>\n{% endif %}")
TEMPLATE = (
    "{% set image_count = namespace(value=0) %}{% set video_count = namespace(value=0) %}"
    "{% for message in messages %}" + DEFAULT_SYSTEM + "<|im_start|>{{ message['role'] }}\n"
    "{% if message['content'] is string %}{{ message['content'] }}<|im_end|>\n{% else %}"
    "{% for content in message['content'] %}{% if content['type'] == 'image' or 'image' in content or "
    "'image_url' in content %}{% set image_count.value = image_count.value + 1 %}{% if add_vision_id %}"
    "Picture {{ image_count.value }}: {% endif %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif content['type'] == 'video' or 'video' in content %}"
    "{% set video_count.value = video_count.value + 1 %}{% if add_vision_id %}"
    "Video {{ video_count.value }}: {% endif %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% elif 'text' in content %}{{ content['text'] }}{% endif %}{% endfor %}<|im_end|>\n{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}")


def corpus(n=6000):
    rng = random.Random(11)
    for i in range(n):
        scene = make_scene(10_000_000 + i)
        turns = [ask_any(scene, rng) for _ in range(4)]
        for q, text, solution in turns:
            yield "user\n" + text + "\nassistant\n" + solution["answer"]
        if i % 20 == 0:
            yield in_context([(t, s["answer"]) for _, t, s in turns[:2]], turns[2][1])
            yield "system\n" + SYSTEM + "\n"
            for task in WRAPPERS:
                yield wrap(task, turns[3][1])


def train():
    tok = Tokenizer(models.BPE())
    tok.normalizer = normalizers.NFC()
    tok.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=BASE, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    size = tok.get_vocab_size()
    if size != BASE:
        raise SystemExit("the corpus gave a vocabulary of %d, not %d" % (size, BASE))
    tok.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in SPECIAL])
    tok.add_tokens([AddedToken(t, special=False, normalized=False) for t in ADDED])
    return tok


def write_json(folder, file, value):
    with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
        json.dump(value, out, indent=2, ensure_ascii=False)
        out.write("\n")


def write(tok, folder, template=TEMPLATE):
    os.makedirs(folder, exist_ok=True)
    whole = json.loads(tok.to_str())
    whole["model"]["merges"] = [m if isinstance(m, str) else " ".join(m) for m in whole["model"]["merges"]]
    write_json(folder, "tokenizer.json", whole)
    tok.model.save(folder)                                  # vocab.json and merges.txt
    added = {str(tok.token_to_id(t)): {"content": t, "lstrip": False, "normalized": False, "rstrip": False,
                                       "single_word": False, "special": t in SPECIAL}
             for t in SPECIAL + ADDED}
    write_json(folder, "tokenizer_config.json", {
        "add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added,
        "additional_special_tokens": list(SPECIAL[1:]), "bos_token": None, "chat_template": template,
        "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
        "model_max_length": 4096, "pad_token": "<|endoftext|>", "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer", "unk_token": None})
    write_json(folder, "chat_template.json", {"chat_template": template})


if __name__ == "__main__":
    write(train(), sys.argv[1])
