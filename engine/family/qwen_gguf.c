/* Qwen's families as GGUF: the settings and tensors that are called the same in all of them. */

#include <stddef.h>

#include "family/qwen.h"

#define LAST  { NULL, NULL, 0, NULL, 0 }


/* ---- settings ------------------------------------------------------------ */

const vlm_gguf_key_t  vlm_qwen_gguf_text[] = {
    { "embedding_length", "hidden_size", 0, NULL, 0 },
    { "block_count", "num_hidden_layers", 0, NULL, 0 },
    { "attention.head_count", "num_attention_heads", 0, NULL, 0 },
    { "attention.head_count_kv", "num_key_value_heads", 0, NULL, 0 },
    { "attention.key_length", "head_dim", 0, NULL, 0 },
    { "feed_forward_length", "intermediate_size", 0, NULL, 0 },
    { "context_length", "max_position_embeddings", 0, NULL, 0 },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, NULL, 0 },
    { "rope.freq_base", "rope_theta", 0, NULL, 0 },
    { "rope.dimension_sections", "rope_scaling.mrope_section", 3, NULL, 0 },
    LAST
};

const vlm_gguf_key_t  vlm_qwen_gguf_vision[] = {
    { "embedding_length", "hidden_size", 0, NULL, 0 },
    { "block_count", "depth", 0, NULL, 0 },
    { "attention.head_count", "num_heads", 0, NULL, 0 },
    { "feed_forward_length", "intermediate_size", 0, NULL, 0 },
    { "projection_dim", "out_hidden_size", 0, NULL, 0 },
    { "patch_size", "patch_size", 0, NULL, 0 },
    { "spatial_merge_size", "spatial_merge_size", 0, NULL, 0 },
    LAST
};

const vlm_gguf_key_t  vlm_qwen_gguf_pixels[] = {
    { "patch_size", "patch_size", 0, NULL, 0 },
    { "image_mean", "image_mean", 3, NULL, 0 },
    { "image_std", "image_std", 3, NULL, 0 },
    { "image_min_pixels", "min_pixels", 0, NULL, 0 },
    { "image_max_pixels", "max_pixels", 0, NULL, 0 },
    LAST
};

const vlm_gguf_key_t  vlm_qwen_gguf_tokens[] = {
    { "<|image_pad|>", "image_token_id", 0, NULL, 0 },
    { "<|vision_start|>", "vision_start_token_id", 0, NULL, 0 },
    { "<|vision_end|>", "vision_end_token_id", 0, NULL, 0 },
    LAST
};


/* ---- what is not computed ------------------------------------------------- */

#define NUMBER(key, n)     { key, NULL, n, 0 }
#define FIELD(key, field)  { key, NULL, 0, offsetof(vlm_config_t, field) }

const vlm_gguf_must_t  vlm_qwen_gguf_must[] = {
    { "rope.scaling.type", "none", 0, 0 },
    NUMBER("rope.scaling.factor", 1),
    NUMBER("rope.scaling.attn_factor", 1),
    NUMBER("rope.scale_linear", 1),
    FIELD("rope.dimension_count", text.head_dim),
    FIELD("attention.value_length", text.head_dim),
    NUMBER("attention.sliding_window", 0),
    NUMBER("attention.scale", 0),
    NUMBER("attention.causal", 1),
    NUMBER("attention.clamp_kqv", 0),
    NUMBER("attention.max_alibi_bias", 0),
    NUMBER("attn_logit_softcapping", 0),
    NUMBER("final_logit_softcapping", 0),
    NUMBER("logit_scale", 1),
    NUMBER("residual_scale", 1),
    NUMBER("embedding_scale", 1),
    NUMBER("use_parallel_residual", 0),
    NUMBER("expert_count", 0),
    NUMBER("expert_used_count", 0),
    FIELD("n_deepstack_layers", vision.deep),
    NUMBER(NULL, 0)
};

const vlm_gguf_must_t  vlm_qwen_gguf_must_vision[] = {
    NUMBER("vision.attention.layer_norm_epsilon", 1e-6),
    NUMBER("vision.feature_layer", 0),
    NUMBER("vision.wa_layer_indexes", 0),
    NUMBER(NULL, 0)
};


/* ---- tensors ------------------------------------------------------------- */

const vlm_gguf_name_t  vlm_qwen_gguf_names[] = {
    VLM_QWEN_GGUF_NAME("token_embd.", "model.embed_tokens."),
    VLM_QWEN_GGUF_NAME("output_norm.", "model.norm."),
    VLM_QWEN_GGUF_NAME("output.", "lm_head."),
    VLM_QWEN_GGUF_LAYER("attn_norm.", "input_layernorm."),
    VLM_QWEN_GGUF_LAYER("ffn_norm.", "post_attention_layernorm."),
    VLM_QWEN_GGUF_LAYER("attn_q.", "self_attn.q_proj."),
    VLM_QWEN_GGUF_LAYER("attn_k.", "self_attn.k_proj."),
    VLM_QWEN_GGUF_LAYER("attn_v.", "self_attn.v_proj."),
    VLM_QWEN_GGUF_LAYER("attn_output.", "self_attn.o_proj."),
    VLM_QWEN_GGUF_LAYER("ffn_gate.", "mlp.gate_proj."),
    VLM_QWEN_GGUF_LAYER("ffn_up.", "mlp.up_proj."),
    VLM_QWEN_GGUF_LAYER("ffn_down.", "mlp.down_proj."),
    { "v.patch_embd.weight.1", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 1 },
    { "v.patch_embd.weight", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 0 },
    VLM_QWEN_GGUF_BLOCK("ln1.", "norm1."),
    VLM_QWEN_GGUF_BLOCK("ln2.", "norm2."),
    VLM_QWEN_GGUF_BLOCK("attn_out.", "attn.proj."),
    VLM_QWEN_GGUF_NAME(NULL, NULL)
};
