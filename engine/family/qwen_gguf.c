/* Qwen's families as GGUF: the settings and tensors of vision that are called alike in all. */

#include "family/qwen.h"

#define LAST  { NULL, NULL, 0, NULL, 0 }


const vlm_gguf_splitter_t  vlm_qwen_splitter[] = {
    { "qwen2", vlm_qwen_split, 1, 0 },
    { NULL, NULL, 0, 0 }
};


/* ---- settings ------------------------------------------------------------ */

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

const vlm_gguf_must_t  vlm_qwen_gguf_must_vision[] = {
    NUMBER("vision.attention.layer_norm_epsilon", 1e-6),
    NUMBER("vision.feature_layer", 0),
    NUMBER("vision.wa_layer_indexes", 0),
    NUMBER(NULL, 0)
};


/* ---- tensors ------------------------------------------------------------- */

const vlm_gguf_name_t  vlm_qwen_gguf_head_norms[] = {
    VLM_GGUF_LAYER("attn_q_norm.", "self_attn.q_norm."),
    VLM_GGUF_LAYER("attn_k_norm.", "self_attn.k_norm."),
    VLM_GGUF_NAME(NULL, NULL)
};

const vlm_gguf_name_t  vlm_qwen_gguf_names[] = {
    { "v.patch_embd.weight.1", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 1 },
    { "v.patch_embd.weight", "visual.patch_embed.proj.weight", VLM_GGUF_SLICE, 0 },
    VLM_QWEN_GGUF_BLOCK("ln1.", "norm1."),
    VLM_QWEN_GGUF_BLOCK("ln2.", "norm2."),
    VLM_QWEN_GGUF_BLOCK("attn_out.", "attn.proj."),
    VLM_GGUF_NAME(NULL, NULL)
};
