/* Qwen3-VL as GGUF: how its settings and its tensors are called there. */

#include "family/qwen3_vl/family.h"

#define END   { NULL, NULL, 0, NULL, 0 }
#define ARCH  "qwen3vl."
#define CLIP  "clip.vision."

static const vlm_gguf_key_t  text[] = {
    { ARCH "embedding_length", "hidden_size", 0, NULL, 0 },
    { ARCH "block_count", "num_hidden_layers", 0, NULL, 0 },
    { ARCH "attention.head_count", "num_attention_heads", 0, NULL, 0 },
    { ARCH "attention.head_count_kv", "num_key_value_heads", 0, NULL, 0 },
    { ARCH "attention.key_length", "head_dim", 0, NULL, 0 },
    { ARCH "feed_forward_length", "intermediate_size", 0, NULL, 0 },
    { ARCH "context_length", "max_position_embeddings", 0, NULL, 0 },
    { ARCH "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, NULL, 0 },
    { ARCH "rope.freq_base", "rope_theta", 0, NULL, 0 },
    { ARCH "rope.dimension_sections", "rope_scaling.mrope_section", 3, NULL, 0 },
    END
};

static const vlm_gguf_key_t  vision[] = {
    { CLIP "embedding_length", "hidden_size", 0, NULL, 0 },
    { CLIP "block_count", "depth", 0, NULL, 0 },
    { CLIP "attention.head_count", "num_heads", 0, NULL, 0 },
    { CLIP "feed_forward_length", "intermediate_size", 0, NULL, 0 },
    { CLIP "projection_dim", "out_hidden_size", 0, NULL, 0 },
    { CLIP "patch_size", "patch_size", 0, NULL, 0 },
    { CLIP "spatial_merge_size", "spatial_merge_size", 0, NULL, 0 },
    { CLIP "is_deepstack_layers", "deepstack_visual_indexes", 0, NULL, 1 },
    END
};

static const vlm_gguf_key_t  pixels[] = {
    { CLIP "patch_size", "patch_size", 0, NULL, 0 },
    { CLIP "image_mean", "image_mean", 3, NULL, 0 },
    { CLIP "image_std", "image_std", 3, NULL, 0 },
    { CLIP "image_min_pixels", "min_pixels", 0, NULL, 0 },
    { CLIP "image_max_pixels", "max_pixels", 0, NULL, 0 },
    END
};

static const vlm_gguf_key_t  tokens[] = {
    { "<|image_pad|>", "image_token_id", 0, NULL, 0 },
    { "<|vision_start|>", "vision_start_token_id", 0, NULL, 0 },
    { "<|vision_end|>", "vision_end_token_id", 0, NULL, 0 },
    END
};

static const vlm_gguf_key_t  rows[] = {
    { "v.position_embd.weight", "num_position_embeddings", 0, NULL, 0 },
    END
};

#define LAYER(from, to)  { "blk.*." from, "model.layers.*." to, VLM_GGUF_WHOLE, 0 }
#define BLOCK(from, to)  { "v.blk.*." from, "visual.blocks.*." to, VLM_GGUF_WHOLE, 0 }
#define DEEP(from, to)   { "v.deepstack.*." from, "visual.deepstack_merger_list.*." to, \
                           VLM_GGUF_DEEP, 0 }

static const vlm_gguf_name_t  names[] = {
    { "token_embd.", "model.embed_tokens.", VLM_GGUF_WHOLE, 0 },
    { "output_norm.", "model.norm.", VLM_GGUF_WHOLE, 0 },
    { "output.", "lm_head.", VLM_GGUF_WHOLE, 0 },
    LAYER("attn_norm.", "input_layernorm."),
    LAYER("ffn_norm.", "post_attention_layernorm."),
    LAYER("attn_q_norm.", "self_attn.q_norm."),
    LAYER("attn_k_norm.", "self_attn.k_norm."),
    LAYER("attn_q.", "self_attn.q_proj."),
    LAYER("attn_k.", "self_attn.k_proj."),
    LAYER("attn_v.", "self_attn.v_proj."),
    LAYER("attn_output.", "self_attn.o_proj."),
    LAYER("ffn_gate.", "mlp.gate_proj."),
    LAYER("ffn_up.", "mlp.up_proj."),
    LAYER("ffn_down.", "mlp.down_proj."),
    { "v.patch_embd.weight.1", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 1 },
    { "v.patch_embd.weight", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 0 },
    { "v.patch_embd.bias", "visual.patch_embed.proj.bias", VLM_GGUF_WHOLE, 0 },
    { "v.position_embd.", "visual.pos_embed.", VLM_GGUF_WHOLE, 0 },
    BLOCK("ln1.", "norm1."),
    BLOCK("ln2.", "norm2."),
    BLOCK("attn_qkv.", "attn.qkv."),
    BLOCK("attn_out.", "attn.proj."),
    BLOCK("ffn_up.", "mlp.linear_fc1."),
    BLOCK("ffn_down.", "mlp.linear_fc2."),
    DEEP("norm.", "norm."),
    DEEP("fc1.", "linear_fc1."),
    DEEP("fc2.", "linear_fc2."),
    { "v.post_ln.", "visual.merger.norm.", VLM_GGUF_WHOLE, 0 },
    { "mm.0.", "visual.merger.linear_fc1.", VLM_GGUF_WHOLE, 0 },
    { "mm.2.", "visual.merger.linear_fc2.", VLM_GGUF_WHOLE, 0 },
    { NULL, NULL, VLM_GGUF_WHOLE, 0 }
};

const vlm_gguf_map_t  vlm_qwen3_vl_gguf = {
    .architecture = "qwen3vl",
    .projector = "qwen3vl_merger",
    .splitter = "qwen2",
    .table = "token_embd.weight",
    .head = "output.weight",
    .merge = 2,
    .text = text,
    .vision = vision,
    .pixels = pixels,
    .tokens = tokens,
    .rows = rows,
    .names = names
};
