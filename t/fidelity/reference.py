#!/usr/bin/env python3
"""Computes the results of Hugging Face transformers for the cases of cases*.txt.

    reference.py check [CASE...]       recompute, compare with expected/ (`make fidelity` runs this)
    reference.py write [CASE...]       recompute, write expected/
    reference.py search CHECKPOINT     the first seed whose greedy answers have no close call
    reference.py mutations             measure the effect of small mistakes, write mutations.txt
    reference.py weights PROGRAM       compare random-checkpoint's files with numpy's, mutated too
    reference.py load PROGRAM          let transformers read those files, as other users do
    reference.py saved PROGRAM VLM     let the engine read what save_pretrained writes of them (`make fidelity`, too)

A video's pictures are what is encoded together: its pairs of frames.

weights.py makes the weights in numpy; the model is transformers' own class in f32, with its own
image processor, tokenizer and chat template.  An expected/*.ref file has this format, in little
endian:

    char  magic[8]     "VLMREF1\\n"
    u32   n_sections
    then each section:
    char  name[16]     padded with zeros
    u32   type         0: u32, 1: f32, 2: i32
    u32   n_dims, dims[4]                  slowest first, unused ones are 1
    data               4 bytes an element

    ids        u32 [T]          the prompt, picture tokens repeated
    pos        i32 [3][T]       M-RoPE: time, row, column; BLOOM has none
    grid       u32 [n][2]       patch rows and columns of each picture
    patches    u32 [n]          of pictures of a prompt with a video: the CRC-32 of their pixels
    features   f32 [cells][D]   output of the vision encoder, row-major cells, a picture after another
    deepstack  f32 [n][cells][D]    its further lists, in the order of the layers that they are for
    top_ids    u32 [T][32]      largest logits of each prompt position, largest first; of a short
    top        f32 [T][32]      case these are 8
    logits     f32 [T][V]       all of them, where cases.txt says "logits"
    answer     u32 [64]         greedy, eos not obeyed, ids past the tokenizer's last never picked; of
                                a short case 16
    gap        f32 [64]         of the two largest logits when answer[i] was picked
    step_ids   u32 [64][32]     largest logits when answer[i] was picked
    step       f32 [64][32]
"""

import copy
import glob
import importlib.metadata
import json
import os
import struct
import subprocess
import sys
import tempfile
import zlib

import numpy as np
import torch
from PIL import Image
from safetensors.torch import load_file
from transformers import (AutoTokenizer, BloomConfig, BloomForCausalLM, LogitsProcessor,
                          LogitsProcessorList, PreTrainedTokenizerFast, Qwen2_5_VLConfig,
                          Qwen2_5_VLForConditionalGeneration, Qwen2_5_VLProcessor,
                          Qwen2VLImageProcessor, Qwen2VLVideoProcessor, Qwen3VLConfig,
                          Qwen3VLForConditionalGeneration, Qwen3VLProcessor, Qwen3VLVideoProcessor)
from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
from transformers.models.qwen3_vl.video_processing_qwen3_vl import smart_resize as smart_resize_3
from transformers.utils import logging
from transformers.video_utils import VideoMetadata

import slips
import weights

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
MAGIC = b"VLMREF1\n"
TOP = 32
STEPS = 64
TOLERANCE = 1e-4                       # of the engine's test, relative and absolute
MIN_GAP = 2e-3                         # of a greedy choice: far above the differences of f32 sums
TYPES = [np.uint32, np.float32, np.int32]


# ---- cases.txt --------------------------------------------------------------------------------

class Checkpoint:
    def __init__(self, words):
        self.name, self.shape = words[0], words[1]
        self.flags = dict(zip([w[2:] for w in words[2::2]], words[3::2]))
        self.seed = int(self.flags["seed"])
        self.type = self.flags["type"]
        self.gain = self.flags.get("gain", "wild")
        self.cases = []


class Case:
    def __init__(self, checkpoint, words):
        self.checkpoint, self.name = checkpoint, words[0]
        self.logits = "logits" in words[1:]
        self.top, self.steps = (8, 16) if "short" in words[1:] else (TOP, STEPS)
        self.messages = []


def read_cases():
    checkpoints = []
    for path in sorted(glob.glob(os.path.join(HERE, "cases*.txt"))):
        with open(path, encoding="utf-8") as f:
            read_case_file(f, checkpoints)
    return checkpoints


def read_case_file(lines, checkpoints):
    for line in lines:
        word, _, rest = line.rstrip("\n").partition(" ")
        if word == "checkpoint":
            checkpoints.append(Checkpoint(rest.split()))
        elif word == "case":
            checkpoints[-1].cases.append(Case(checkpoints[-1], rest.split()))
        elif word == "message":
            checkpoints[-1].cases[-1].messages.append({"role": rest, "content": []})
        elif word in ("text", "picture"):
            value = rest.replace("\\n", "\n") if word == "text" else rest
            kind = "text" if word == "text" else "image"
            checkpoints[-1].cases[-1].messages[-1]["content"].append({"type": kind, kind: value})
        elif word == "video":
            fps, *files = rest.split()
            checkpoints[-1].cases[-1].messages[-1]["content"].append(
                {"type": word, word: files, "fps": float(fps)})


# ---- model ------------------------------------------------------------------------------------

def read_shape(cp):
    with open(os.path.join(ROOT, cp.shape)) as f:
        return json.load(f)


def make_weights(cp, shape, seed=None):
    return {name: weights.values(name, dims, kind, scale, cp.seed if seed is None else seed,
                                 cp.gain, cp.type)
            for name, dims, kind, scale in weights.tensors(shape)}


def make_config(shape):
    """A config.json of any spelling, as this version of transformers takes it."""
    c = copy.deepcopy(shape)
    if c["model_type"] == "bloom":
        return BloomConfig(**c)
    if c["model_type"] == "qwen2_5_vl":
        return Qwen2_5_VLConfig(**c)
    text = c["text_config"]
    rope = text.pop("rope_parameters", None)
    if rope is not None:                                   # of transformers 5
        text["rope_theta"] = rope.pop("rope_theta")
        text["rope_scaling"] = rope
        c["vision_config"]["model_type"] = "qwen3_vl"
        del c["vision_config"]["rope_parameters"]
    # Version 4.57 reads the flag of text_config, 5 reads the other; the file has a head or has not.
    c["tie_word_embeddings"] = text["tie_word_embeddings"] = weights.tied(c)
    return Qwen3VLConfig(**c)


def current(name):
    """The name that the class has for a tensor of a published Qwen2.5-VL."""
    for old, new in (("visual.", "model.visual."), ("model.", "model.language_model.")):
        if name.startswith(old):
            return new + name[len(old):]
    return name


def make_bloom(shape, tensors):
    model = BloomForCausalLM(make_config(shape)).float().eval()
    missing, unexpected = model.load_state_dict(
        {k if k.startswith("lm_head") else "transformer." + k: torch.from_numpy(v.copy())
         for k, v in tensors.items()}, strict=False)
    if unexpected or missing not in ([], ["lm_head.weight"]):
        raise SystemExit(f"missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model


def make_model(shape, tensors, attention="sdpa"):
    if shape["model_type"] == "bloom":
        return make_bloom(shape, tensors)      # which has one attention
    old = shape["model_type"] == "qwen2_5_vl"
    config = make_config(shape)
    config._attn_implementation = attention
    config.text_config._attn_implementation = attention
    config.vision_config._attn_implementation = attention
    kind = Qwen2_5_VLForConditionalGeneration if old else Qwen3VLForConditionalGeneration
    model = kind(config).float().eval()
    missing, unexpected = model.load_state_dict(
        {current(k) if old else k: torch.from_numpy(v.copy()) for k, v in tensors.items()},
        strict=False)
    if unexpected or [m for m in missing if not (m == "lm_head.weight" and weights.tied(shape))]:
        raise SystemExit(f"missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model


def make_processor(cp, shape):
    if shape["model_type"] == "bloom":
        return TextAlone()
    v = shape["vision_config"]
    tokenizer = AutoTokenizer.from_pretrained(os.path.join(HERE, "tokenizer"))
    sizes = {"patch_size": v["patch_size"], "merge_size": v["spatial_merge_size"],
             "temporal_patch_size": v["temporal_patch_size"]}
    if shape["model_type"] == "qwen2_5_vl":
        images = Qwen2VLImageProcessor(min_pixels=3136, max_pixels=12845056, **sizes)
        videos = Qwen2VLVideoProcessor(min_pixels=3136, max_pixels=12845056, **sizes)
        return Qwen2_5_VLProcessor(images, tokenizer, videos,
                                   chat_template=tokenizer.chat_template)
    # This version ignores the argument "size".
    images = Qwen2VLImageProcessor(min_pixels=int(cp.flags.get("min-pixels", 65536)),
                                   max_pixels=16777216, image_mean=[0.5] * 3, image_std=[0.5] * 3,
                                   **sizes)
    videos = Qwen3VLVideoProcessor(size={"shortest_edge": images.min_pixels,
                                         "longest_edge": images.max_pixels}, **sizes)
    with open(os.path.join(HERE, "tokenizer", "qwen3.jinja"), encoding="utf-8") as f:
        return Qwen3VLProcessor(images, tokenizer, videos, chat_template=f.read())


class TextAlone:
    """In place of a processor: the tokenizer of a family that takes neither pictures nor messages."""

    def __init__(self):
        self.tokenizer = PreTrainedTokenizerFast(
            tokenizer_file=os.path.join(HERE, "tokenizer-bloom", "tokenizer.json"))

    def inputs(self, case):
        inputs = self.tokenizer("".join(p["text"] for p in parts_of(case, ["text"])),
                                return_tensors="pt", return_token_type_ids=False)
        inputs.kinds = []
        return inputs


def open_picture(name):
    return Image.open(os.path.join(HERE, "pictures", name)).convert("RGB")


def make_frames(processor, names):
    """The frames of a video, at the size of the family's processor.

    Pillow resizes them as it does pictures: torchvision, which would, rounds some pixels otherwise.
    Qwen3-VL's processor refuses a single frame, which is then given twice.
    """
    v = processor.video_processor
    frames = [open_picture(name) for name in names]
    width, height = frames[0].size
    factor = v.patch_size * v.merge_size
    bounds = v.size["shortest_edge"], v.size["longest_edge"]
    if isinstance(processor, Qwen3VLProcessor):
        frames *= 1 + (len(frames) == 1)
        h, w = smart_resize_3(len(frames), height, width, v.temporal_patch_size, factor, *bounds)
    else:
        h, w = smart_resize(height, width, factor, *bounds)
    frames = [f.resize((w, h), Image.Resampling.BICUBIC) for f in frames]
    return torch.stack([torch.from_numpy(np.array(f)).permute(2, 0, 1) for f in frames])


def parts_of(case, kind):
    return [p for message in case.messages for p in message["content"] if p["type"] in kind]


def video_arguments(processor, videos):
    """The processor's arguments for videos, beside their frames."""
    out = {"do_resize": False, "do_sample_frames": False}
    if not isinstance(processor, Qwen3VLProcessor):
        return out | {"fps": [v["fps"] for v in videos]}
    out["video_metadata"] = []
    for v in videos:
        indices = list(range(len(v["video"])))
        out["video_metadata"].append(VideoMetadata(total_num_frames=len(indices), fps=v["fps"],
                                                   frames_indices=indices if indices[1:] else [0, 0]))
    return out


def make_inputs(processor, case):
    if isinstance(processor, TextAlone):
        return processor.inputs(case)
    pictures = [open_picture(part["image"]) for part in parts_of(case, ["image"])]
    videos = parts_of(case, ["video"])
    text = processor.apply_chat_template(case.messages, tokenize=False, add_generation_prompt=True)
    more = {}
    if videos:
        more = {"videos": [make_frames(processor, v["video"]) for v in videos],
                "videos_kwargs": video_arguments(processor, videos)}
    inputs = processor(text=[text], images=pictures or None, return_tensors="pt", **more)
    inputs.kinds = [part["type"] for part in parts_of(case, ["image", "video"])]
    return inputs


# ---- one case ---------------------------------------------------------------------------------

class PaddingNever(LogitsProcessor):
    def __init__(self, first):
        self.first = first

    def __call__(self, ids, scores):
        scores[:, self.first:] = -float("inf")
        return scores


def greedy(model, inputs, n_ids, steps):
    out = model.generate(**inputs, max_new_tokens=steps, min_new_tokens=steps, do_sample=False,
                         repetition_penalty=1.0, eos_token_id=None, pad_token_id=0,
                         logits_processor=LogitsProcessorList([PaddingNever(n_ids)]),
                         output_logits=True, return_dict_in_generate=True)
    return (out.sequences[0, -steps:].numpy().astype(np.uint32),
            torch.cat(out.logits).numpy().astype(np.float32))


def gaps(logits, n_ids):
    two = np.sort(logits[:, :n_ids], axis=1)[:, -2:]
    return two[:, 1] - two[:, 0]


def top(logits, n):
    order = np.argsort(-logits, axis=1, kind="stable")[:, :n].astype(np.uint32)
    return order, np.take_along_axis(logits, order.astype(np.int64), axis=1)


def prompt_logits(model, inputs):
    with torch.no_grad():
        return model(**inputs, use_cache=False).logits[0].numpy()


def seen(inputs):
    """Each picture and each video of a prompt in its order: patches, and rows of its grid."""
    at = {"image": [0, 0], "video": [0, 0]}
    for kind in inputs.kinds:
        values = inputs["pixel_values" + ("_videos" if kind == "video" else "")]
        grid = inputs[kind + "_grid_thw"]
        n, first = at[kind]
        size = int(grid[n].prod())
        at[kind] = [n + 1, first + size]
        yield values[first:first + size], grid[n:n + 1]


def features(model, inputs):
    """The vision encoder's output, and DeepStack's lists, each in the order of the prompt."""
    first, lists = [], []
    for patches, grid in seen(inputs):
        with torch.no_grad():
            out = model.model.visual(patches, grid)
        first.append(out[0] if isinstance(out, tuple) else out)
        # The language model leaves lists out that have no layer.
        lists.append(out[1][:len(model.model.language_model.layers)]
                     if isinstance(out, tuple) else [])
    return torch.cat(first).numpy(), [torch.cat(x).numpy() for x in zip(*lists)]


def checksums(model, processor, inputs):
    """The CRC-32 of the pixels of each picture, before they were normalised."""
    v = model.config.vision_config
    out = []
    for patches, grid in seen(inputs):
        a = patches.view(-1, 3, v.temporal_patch_size, v.patch_size, v.patch_size)
        mean = torch.tensor(processor.image_processor.image_mean).view(3, 1, 1, 1)
        std = torch.tensor(processor.image_processor.image_std).view(3, 1, 1, 1)
        a = ((a * std + mean) * 255).round().to(torch.uint8)
        out += [zlib.crc32(part.numpy().tobytes()) for part in a.chunk(int(grid[0, 0]))]
    return np.array(out, np.uint32)


def positions(model, inputs):
    more = [inputs.get("second_per_grid_ts")] if model.config.model_type == "qwen2_5_vl" else []
    pos, _ = model.model.get_rope_index(
        inputs["input_ids"], inputs.get("image_grid_thw"), inputs.get("video_grid_thw"), *more,
        attention_mask=inputs["attention_mask"])
    return pos[:, 0].numpy().astype(np.int32)


def run_case(model, processor, case):
    inputs = make_inputs(processor, case)
    n_ids = len(processor.tokenizer)
    out = {"ids": inputs["input_ids"][0].numpy().astype(np.uint32)}
    if model.config.model_type != "bloom":
        out["pos"] = positions(model, inputs)
    if inputs.kinds:
        out["grid"] = np.concatenate([np.repeat(grid[:, 1:].numpy(), int(grid[0, 0]), axis=0)
                                      for _, grid in seen(inputs)]).astype(np.uint32)
        if "video" in inputs.kinds:
            out["patches"] = checksums(model, processor, inputs)
        out["features"], lists = features(model, inputs)
        if lists:
            out["deepstack"] = np.stack(lists)
    logits = prompt_logits(model, inputs)
    out["top_ids"], out["top"] = top(logits, case.top)
    if case.logits:
        out["logits"] = logits
    out["answer"], steps = greedy(model, inputs, n_ids, case.steps)
    out["gap"] = gaps(steps, n_ids)
    out["step_ids"], out["step"] = top(steps, case.top)
    return out


# ---- files ------------------------------------------------------------------------------------

def ref_path(case):
    return os.path.join(HERE, "expected", case.name + ".ref")


def write_ref(path, sections):
    with open(path, "wb") as f:
        f.write(MAGIC + struct.pack("<I", len(sections)))
        for name, a in sections.items():
            dims = list(a.shape) + [1] * (4 - a.ndim)
            f.write(struct.pack("<16s6I", name.encode(), TYPES.index(a.dtype.type), a.ndim, *dims))
            f.write(np.ascontiguousarray(a).astype(a.dtype.newbyteorder("<")).tobytes())


def read_ref(path):
    with open(path, "rb") as f:
        data = f.read()
    if data[:8] != MAGIC:
        raise SystemExit(f"{path}: not a reference file")
    at, sections = 12, {}
    for _ in range(struct.unpack_from("<I", data, 8)[0]):
        name, kind, n_dims, *dims = struct.unpack_from("<16s6I", data, at)
        n = int(np.prod(dims))
        a = np.frombuffer(data, TYPES[kind], n, at + 40).reshape(dims[:n_dims])
        sections[name.rstrip(b"\0").decode()] = a
        at += 40 + 4 * n
    return sections


def difference(a, b):
    """Returns the largest distance over the reference's spread; infinite if integers differ."""
    if a.shape != b.shape:
        return float("inf")
    if a.dtype.kind in "iu":
        return 0.0 if np.array_equal(a, b) else float("inf")
    return float(np.max(np.abs(a.astype(np.float64) - b)) / max(float(np.std(a)), 1e-9))


# ---- commands ---------------------------------------------------------------------------------

def selected(names):
    for cp in read_cases():
        cases = [c for c in cp.cases if not names or c.name in names or cp.name in names]
        if cases:
            shape = read_shape(cp)
            yield cp, cases, make_model(shape, make_weights(cp, shape)), make_processor(cp, shape)


def bad_answer(out, processor):
    """Returns the reason for which a greedy answer is not a good test, or None."""
    control = set(range(4)) if isinstance(processor, TextAlone) else set(
        processor.tokenizer.convert_tokens_to_ids(
        ["<|im_end|>", "<|endoftext|>", "<|image_pad|>", "<|vision_start|>", "<|video_pad|>"]))
    if out["gap"].min() < MIN_GAP:
        return f"gap {out['gap'].min():.1e}"
    if control & set(out["answer"].tolist()):
        return "control token"
    # Where nothing but the distance of keys tells places apart, random models repeat themselves.
    if len(set(out["answer"].tolist())) < 8 and not isinstance(processor, TextAlone):
        return "monotonous"
    return None


def write(names):
    os.makedirs(os.path.join(HERE, "expected"), exist_ok=True)
    for _, cases, model, processor in selected(names):
        for case in cases:
            out = run_case(model, processor, case)
            write_ref(ref_path(case), out)
            print(f"{case.name:18} {len(out['ids']):4} tokens, logits std {out['top'].std():.2f}, "
                  f"smallest gap {out['gap'].min():.4f}, "
                  f"{len(set(out['answer'].tolist()))} different tokens, "
                  f"{bad_answer(out, processor) or 'good'}")


def check(names):
    worst = 0.0
    for _, cases, model, processor in selected(names):
        for case in cases:
            old, new = read_ref(ref_path(case)), run_case(model, processor, case)
            d = {k: difference(old[k], new[k]) if k in new else float("inf")
                 for k in old if not k.endswith("_ids")}
            worst = max(worst, max(d.values()))
            print(f"{case.name:18} " + " ".join(f"{k} {v:.1e}" for k, v in d.items()))
    print(f"largest difference {worst:.1e} of the spread, at most 1e-4 is taken")
    return 0 if worst <= 1e-4 else 1


def search(name):
    cp = next(c for c in read_cases() if c.name == name)
    shape = read_shape(cp)
    processor = make_processor(cp, shape)
    for seed in range(1, 1000):
        model = make_model(shape, make_weights(cp, shape, seed))
        for case in cp.cases:
            why = bad_answer(run_case(model, processor, case), processor)
            if why is not None:
                print(f"{name}: seed {seed}: {case.name}: {why}", flush=True)
                break
        else:
            print(f"{name}: seed {seed} is good")
            return 0
    return 1


def spread(x, y):
    """Returns the largest and the rms difference, in units of the spread of x."""
    d = np.abs(x.astype(np.float64) - y) / x.std()
    return float(d.max()), float(np.sqrt((d ** 2).mean()))


def excess(x, y):
    """Returns the largest difference in units of the tolerance of the engine's test."""
    d = np.abs(x.astype(np.float64) - y) / (1 + np.abs(x.astype(np.float64)))
    return float(d.max() / TOLERANCE)


def results(model, inputs):
    out = [prompt_logits(model, inputs)]
    if inputs.kinds:
        first, lists = features(model, inputs)
        out.append(np.stack([first] + lists))
    return out


def mutated(shape, tensors):
    """Yields a name and a model with that small mistake, for each mistake."""
    kind = shape["model_type"]
    yield "eager", make_model(shape, tensors, "eager")
    for name in weights.MUTATIONS[kind]:
        w, c = dict(tensors), copy.deepcopy(shape)
        weights.mutate(w, c, name)
        if name != "block" or max(c["vision_config"]["deepstack_visual_indexes"],
                                  default=-1) < c["vision_config"]["depth"]:
            yield name, make_model(c, w)
    for name, slip in slips.SLIPS[kind].items():
        model = make_model(shape, tensors)
        slip(model)
        yield name, model


def mutations(names):
    """Measures the effect of each small mistake in each checkpoint on the results of a case."""
    lines = ["# made by `reference.py mutations`: the largest and the root-mean-square difference",
             "# of the prompt's logits, in units of their standard deviation; then the largest",
             "# difference of a logit and of a feature in units of the test's tolerance: the test",
             "# sees what is more than 1.  A mistake that changes nothing in a case is left out.",
             "# \"eager\" is no mistake but transformers' other attention code: the noise of f32",
             "# sums in another order",
             "#", f"# {'case':16} {'mutation':14} {'largest':>9} {'rms':>9} {'logit':>9} "
             f"{'feature':>9}"]
    best = {}
    for cp in read_cases():
        shape = read_shape(cp)
        if names and cp.name not in names and shape["model_type"] not in names:
            continue
        tensors, processor = make_weights(cp, shape), make_processor(cp, shape)
        model = make_model(shape, tensors)
        others = dict(mutated(shape, tensors))
        for case in cp.cases:
            inputs = make_inputs(processor, case)
            want = results(model, inputs)
            for name, other in others.items():
                got = results(other, inputs)
                off = [excess(a, b) for a, b in zip(want, got)]
                key = shape["model_type"], name
                best[key] = max([best.get(key, 0.0)] + off)
                if max(off) > 0:
                    lines.append(f"  {case.name:16} {name:14} "
                                 + "%9.2e %9.2e " % spread(want[0], got[0])
                                 + " ".join(f"{x:9.2e}" for x in off))
                    print(lines[-1], flush=True)
    if not names:
        with open(os.path.join(HERE, "mutations.txt"), "w") as f:
            f.write("\n".join(lines) + "\n")
    for (kind, name), off in best.items():
        print(f"{kind} {name}: at most {off:.1e} of the tolerance")
    return 1 if min(off for (_, name), off in best.items() if name != "eager") < 2 else 0


def published(name):
    for new, old in (("model.language_model.", "model."), ("model.visual.", "visual."),
                     ("transformer.", "")):
        if name.startswith(new):
            return old + name[len(new):]
    return name


def compare_weights(directory, tensors):
    """Raises SystemExit unless the files hold these tensors, bit for bit, and no others."""
    left = set(tensors)
    for name in sorted(os.listdir(directory)):
        if name.endswith(".safetensors"):
            for key, a in load_file(os.path.join(directory, name)).items():
                key = key if key in tensors else published(key)
                if not np.array_equal(a.float().numpy(), tensors[key]):
                    raise SystemExit(f"{directory}: {key} differs")
                left.remove(key)
    if left:
        raise SystemExit(f"{directory}: {left} missing")


def run_program(program, cp, directory, more=()):
    flags = [x for k, v in cp.flags.items() for x in ("--" + k, v)]
    subprocess.run([program, os.path.join(ROOT, cp.shape), directory, *flags, *more], check=True)


def compare_config(c, shape):
    if shape["model_type"] == "bloom":
        return weights.bloom_sizes(c) == weights.bloom_sizes(shape)
    vision, wanted = c["vision_config"], shape["vision_config"]
    return (weights.rope_of(c)["mrope_section"] == weights.rope_of(shape)["mrope_section"]
            and all(vision.get(k) == wanted.get(k)
                    for k in ("fullatt_block_indexes", "deepstack_visual_indexes")))


def compare_program(program):
    for cp in read_cases():
        names = weights.MUTATIONS[read_shape(cp)["model_type"]]
        for mutation in (None,) + names:
            shape = read_shape(cp)
            tensors = make_weights(cp, shape)
            with tempfile.TemporaryDirectory() as directory:
                more = []
                if mutation is not None:
                    weights.mutate(tensors, shape, mutation)
                    more = ["--mutate", mutation]
                run_program(program, cp, directory, more)
                compare_weights(directory, tensors)
                with open(os.path.join(directory, "config.json")) as f:
                    if not compare_config(json.load(f), shape):
                        raise SystemExit(f"{cp.name}: config.json differs with --mutate {mutation}")
        print(f"{cp.name}: equal, with {len(names)} mutations")
    return 0


def load(program):
    """The model that from_pretrained makes of random-checkpoint's files is the one that is compared with."""
    for cp in read_cases():
        shape = read_shape(cp)
        model = make_model(shape, make_weights(cp, shape))
        inputs = make_inputs(make_processor(cp, shape), cp.cases[1])
        with tempfile.TemporaryDirectory() as directory:
            run_program(program, cp, directory)
            with open(os.path.join(directory, "config.json")) as f:
                config = make_config(json.load(f))
            other = type(model).from_pretrained(directory, config=config, dtype=torch.float32)
        pairs = zip(results(model, inputs), results(other.eval(), inputs))
        worst = max(excess(a, b) for a, b in pairs)
        print(f"{cp.name}: {worst:.1e} of the tolerance", flush=True)
    return 0


def engine_logits(vlm, directory, pictures):
    """All logits of a prompt in f32, as `vlm logits` prints them."""
    images = [x for p in pictures for x in ("--image", p)]
    return subprocess.run([vlm, "logits", directory, "--weights", "f32", "--top", "0", "--json", "--prompt", "the cup",
                           *images, *([] if pictures else ["--raw"])], check=True, stdout=subprocess.PIPE).stdout


def saved(program, vlm):
    """The engine computes the same bits from save_pretrained's files as from random-checkpoint's."""
    for cp in read_cases():
        shape = read_shape(cp)
        model, processor = make_model(shape, make_weights(cp, shape)), make_processor(cp, shape)
        blind = shape["model_type"] == "bloom"
        pictures = [] if blind else [os.path.join(HERE, "pictures", "118x62.png")]
        with tempfile.TemporaryDirectory() as directory:
            made, kept = os.path.join(directory, "made"), os.path.join(directory, "saved")
            run_program(program, cp, made, ["--tokenizer", os.path.join(HERE, "tokenizer-bloom" if blind else "tokenizer")])
            model.save_pretrained(kept)
            (processor.tokenizer if blind else processor).save_pretrained(kept)
            if engine_logits(vlm, made, pictures) != engine_logits(vlm, kept, pictures):
                raise SystemExit(f"{cp.name}: the files of save_pretrained have other logits")
        print(f"{cp.name}: the same bits", flush=True)
    return 0


def check_versions():
    """Checks the versions, because others compute other values: Pillow 13 resizes in another order."""
    with open(os.path.join(HERE, "requirements.txt")) as f:
        for line in f:
            name, _, wanted = line.strip().partition("==")
            found = importlib.metadata.version(name).partition("+")[0]
            if found != wanted:
                raise SystemExit(f"{name} {found} is installed, requirements.txt says {wanted}")


def main():
    check_versions()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    command, names = (sys.argv + ["check"])[1], sys.argv[2:]
    if command == "search":
        return search(names[0])
    if command == "write":
        return write(names)
    if command == "mutations":
        return mutations(names)
    if command == "weights":
        return compare_program(names[0])
    if command == "load":
        return load(names[0])
    if command == "saved":
        return saved(*names)
    if command == "check":
        return check(names)
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())
