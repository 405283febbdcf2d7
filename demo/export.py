"""Writes the model as an ordinary checkpoint directory, and reads one back."""

import os

from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

import tokenizer
from tokenizer import write_json


def names(conf):
    """Our name -> the family's name, for every tensor stored as it is."""
    return names_of_qwen3(conf) if conf["family"] == "qwen3_vl" else names_of_qwen2_5(conf)


def both(names):
    """Both names of a matrix or norm with a bias, for its weight and its bias."""
    return {"%s.%s" % (ours, kind): "%s.%s" % (theirs, kind) for ours, theirs in names for kind in ("weight", "bias")}


def names_of_qwen3(conf):
    text = "model.language_model."
    found = {"embed.weight": text + "embed_tokens.weight", "norm.weight": text + "norm.weight",
             "vision.pos_embed.weight": "model.visual.pos_embed.weight",
             "vision.patch.bias": "model.visual.patch_embed.proj.bias"}
    mergers = [("vision.merger", "model.visual.merger")]
    mergers += [("vision.deep.%d" % i, "model.visual.deepstack_merger_list.%d" % i)
                for i in range(len(conf["vision"]["deepstack_visual_indexes"]))]
    for ours, theirs in mergers:
        found.update(both([(ours + ".norm", theirs + ".norm"), (ours + ".merge1", theirs + ".linear_fc1"),
                           (ours + ".merge2", theirs + ".linear_fc2")]))
    for i in range(conf["vision"]["depth"]):
        found.update(both([("vision.blocks.%d.%s" % (i, ours), "model.visual.blocks.%d.%s" % (i, theirs))
                           for ours, theirs in (("norm1", "norm1"), ("norm2", "norm2"), ("qkv", "attn.qkv"),
                                                ("proj", "attn.proj"), ("up", "mlp.linear_fc1"),
                                                ("down", "mlp.linear_fc2"))]))
    for i in range(conf["num_hidden_layers"]):
        found.update({"layers.%d.%s.weight" % (i, ours): "%slayers.%d.%s.weight" % (text, i, theirs)
                      for ours, theirs in LAYER + (("q_norm", "self_attn.q_norm"), ("k_norm", "self_attn.k_norm"))})
    return found


LAYER = (("norm1", "input_layernorm"), ("norm2", "post_attention_layernorm"), ("q", "self_attn.q_proj"),
         ("k", "self_attn.k_proj"), ("v", "self_attn.v_proj"), ("o", "self_attn.o_proj"), ("gate", "mlp.gate_proj"),
         ("up", "mlp.up_proj"), ("down", "mlp.down_proj"))


def names_of_qwen2_5(conf):
    found = {"embed.weight": "model.embed_tokens.weight", "norm.weight": "model.norm.weight",
             "vision.ln_q.weight": "visual.merger.ln_q.weight"}
    for ours, theirs in (("merge1", "mlp.0"), ("merge2", "mlp.2")):
        for kind in ("weight", "bias"):
            found["vision.%s.%s" % (ours, kind)] = "visual.merger.%s.%s" % (theirs, kind)
    for i in range(conf["vision"]["depth"]):
        for ours, theirs in (("norm1", "norm1"), ("norm2", "norm2"), ("qkv", "attn.qkv"), ("proj", "attn.proj"),
                             ("gate", "mlp.gate_proj"), ("up", "mlp.up_proj"), ("down", "mlp.down_proj")):
            for kind in ("weight",) if "norm" in ours else ("weight", "bias"):
                found["vision.blocks.%d.%s.%s" % (i, ours, kind)] = "visual.blocks.%d.%s.%s" % (i, theirs, kind)
    for i in range(conf["num_hidden_layers"]):
        for ours, theirs in LAYER:
            for kind in ("weight", "bias") if ours in "qkv" else ("weight",):
                found["layers.%d.%s.%s" % (i, ours, kind)] = "model.layers.%d.%s.%s" % (i, theirs, kind)
    return found


def patch_name(conf):
    return ("model." if conf["family"] == "qwen3_vl" else "") + "visual.patch_embed.proj.weight"


def to_family(model):
    ours, side = model.state_dict(), model.conf["vision"]["patch_size"]
    tensors = {theirs: ours[name].bfloat16().contiguous() for name, theirs in names(model.conf).items()}
    patch = ours["vision.patch.weight"].view(-1, 3, 1, side, side) / 2      # half to each of two frames
    tensors[patch_name(model.conf)] = patch.expand(-1, 3, 2, side, side).bfloat16().contiguous()
    return tensors


def from_family(model, file):
    tensors = load_file(file)
    ours = {name: tensors[theirs].float() for name, theirs in names(model.conf).items()}
    ours["vision.patch.weight"] = tensors[patch_name(model.conf)].float().sum(2).flatten(1)
    model.load_state_dict(ours)


def write_generation(folder, token, version):
    write_json(folder, "generation_config.json", {
        "do_sample": False, "eos_token_id": [token("<|im_end|>"), token("<|endoftext|>")],
        "pad_token_id": token("<|endoftext|>"), "repetition_penalty": 1.0, "temperature": 0.0,
        "transformers_version": version})


def write_qwen3(conf, folder, token):
    """token: the id of an added token's text."""
    vision, version = conf["vision"], "4.57.6"
    write_json(folder, "config.json", {
        "architectures": ["Qwen3VLForConditionalGeneration"], "model_type": "qwen3_vl",
        "image_token_id": token("<|image_pad|>"), "video_token_id": token("<|video_pad|>"),
        "vision_start_token_id": token("<|vision_start|>"), "vision_end_token_id": token("<|vision_end|>"),
        "text_config": {
            "attention_bias": False, "attention_dropout": 0.0, "bos_token_id": token("<|endoftext|>"),
            "dtype": "bfloat16", "eos_token_id": token("<|im_end|>"), "head_dim": 32, "hidden_act": "silu",
            "hidden_size": conf["hidden_size"], "initializer_range": 0.02,
            "intermediate_size": conf["intermediate_size"], "max_position_embeddings": 4096,
            "model_type": "qwen3_vl_text", "num_attention_heads": conf["num_attention_heads"],
            "num_hidden_layers": conf["num_hidden_layers"], "num_key_value_heads": conf["num_key_value_heads"],
            "rms_norm_eps": conf["rms_norm_eps"],
            "rope_scaling": {"mrope_interleaved": True, "mrope_section": conf["mrope_section"],
                             "rope_type": "default"},
            "rope_theta": conf["rope_theta"], "tie_word_embeddings": True, "use_cache": True,
            "vocab_size": conf["vocab_size"]},
        "tie_word_embeddings": True, "transformers_version": version,
        "vision_config": {
            "deepstack_visual_indexes": vision["deepstack_visual_indexes"], "depth": vision["depth"],
            "hidden_act": "gelu_pytorch_tanh", "hidden_size": vision["hidden_size"], "in_channels": 3,
            "initializer_range": 0.02, "intermediate_size": vision["intermediate_size"], "model_type": "qwen3_vl",
            "num_heads": vision["num_heads"], "num_position_embeddings": vision["places"] ** 2,
            "out_hidden_size": conf["hidden_size"], "patch_size": vision["patch_size"], "spatial_merge_size": 2,
            "temporal_patch_size": 2}})
    write_generation(folder, token, version)
    # 286 and 290 squared: every square picture becomes 288x288, as below.
    write_json(folder, "preprocessor_config.json", {
        "size": {"shortest_edge": 81796, "longest_edge": 84100}, "patch_size": 16, "temporal_patch_size": 2,
        "merge_size": 2, "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
        "image_processor_type": "Qwen2VLImageProcessorFast", "processor_class": "Qwen3VLProcessor"})


def write_tokenizer(folder, file):
    """The first demo's, with a template that has no default system message."""
    tokenizer.write(Tokenizer.from_file(file), folder, tokenizer.TEMPLATE.replace(tokenizer.DEFAULT_SYSTEM, ""))


def write_qwen2_5(conf, folder, token):
    """token: the id of an added token's text."""
    vision = conf["vision"]
    write_json(folder, "config.json", {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "attention_dropout": 0.0,
        "bos_token_id": token("<|endoftext|>"), "eos_token_id": token("<|im_end|>"),
        "vision_start_token_id": token("<|vision_start|>"), "vision_end_token_id": token("<|vision_end|>"),
        "vision_token_id": token("<|vision_pad|>"), "image_token_id": token("<|image_pad|>"),
        "video_token_id": token("<|video_pad|>"), "hidden_act": "silu", "hidden_size": conf["hidden_size"],
        "initializer_range": 0.02, "intermediate_size": conf["intermediate_size"],
        "max_position_embeddings": 4096, "max_window_layers": conf["num_hidden_layers"],
        "model_type": "qwen2_5_vl", "num_attention_heads": conf["num_attention_heads"],
        "num_hidden_layers": conf["num_hidden_layers"], "num_key_value_heads": conf["num_key_value_heads"],
        "rms_norm_eps": conf["rms_norm_eps"], "rope_theta": conf["rope_theta"], "sliding_window": 4096,
        "tie_word_embeddings": True, "torch_dtype": "bfloat16", "transformers_version": "4.51.3",
        "use_cache": True, "use_sliding_window": False,
        "vision_config": {
            "depth": vision["depth"], "hidden_act": "silu", "hidden_size": vision["hidden_size"],
            "intermediate_size": vision["intermediate_size"], "num_heads": vision["num_heads"],
            "in_chans": 3, "in_channels": 3, "out_hidden_size": conf["hidden_size"], "patch_size": 14,
            "spatial_merge_size": 2, "spatial_patch_size": 14, "window_size": vision["window_size"],
            "fullatt_block_indexes": vision["fullatt_block_indexes"], "tokens_per_second": 2,
            "temporal_patch_size": 2, "model_type": "qwen2_5_vl"},
        "rope_scaling": {"type": "mrope", "mrope_section": conf["mrope_section"]},
        "vocab_size": conf["vocab_size"]})
    write_generation(folder, token, "4.51.3")
    # 250 and 256 squared: every square picture becomes 252x252, which it was trained on.  With 252 squared for
    # both the family's formula makes 224 or 280 of many a size, by the last bit of a square root.
    write_json(folder, "preprocessor_config.json", {
        "min_pixels": 62500, "max_pixels": 65536, "patch_size": 14, "temporal_patch_size": 2, "merge_size": 2,
        "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
        "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"})


def write(model, folder, token, tokenizer_file=None):
    """The weights have a temporary name first: a reader never sees half a file."""
    os.makedirs(folder, exist_ok=True)
    if model.conf["family"] == "qwen3_vl":
        write_qwen3(model.conf, folder, token)
        write_tokenizer(folder, tokenizer_file)
    else:
        write_qwen2_5(model.conf, folder, token)
    file = os.path.join(folder, "model.safetensors")
    save_file(to_family(model), file + ".new", metadata={"format": "pt"})
    os.chmod(file + ".new", 0o644)
    os.replace(file + ".new", file)
