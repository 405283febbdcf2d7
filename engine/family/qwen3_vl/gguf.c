/* Qwen3-VL as GGUF: how its settings and its tensors are called there. */

#include "family/qwen.h"
#include "family/qwen3_vl/family.h"

#define DEEP(from, to)  { "v.deepstack.*." from, "visual.deepstack_merger_list.*." to, \
                          VLM_GGUF_DEEP, 0 }

static const vlm_gguf_key_t  vision[] = {
    { "is_deepstack_layers", "deepstack_visual_indexes", 0, NULL, 1 },
    { NULL, NULL, 0, NULL, 0 }
};

static const vlm_gguf_key_t  rows[] = {
    { "v.position_embd.weight", "num_position_embeddings", 0, NULL, 0 },
    { NULL, NULL, 0, NULL, 0 }
};

static const vlm_gguf_must_t  must[] = {
    { "use_silu", NULL, 0, 0 },
    { "use_gelu", NULL, 1, 0 },
    { "vision.n_wa_pattern", NULL, 0, 0 },
    { NULL, NULL, 0, 0 }
};

static const vlm_gguf_name_t  names[] = {
    VLM_GGUF_NAME("v.patch_embd.bias", "visual.patch_embed.proj.bias"),
    VLM_GGUF_NAME("v.position_embd.", "visual.pos_embed."),
    VLM_QWEN_GGUF_BLOCK("attn_qkv.", "attn.qkv."),
    VLM_QWEN_GGUF_BLOCK("ffn_up.", "mlp.linear_fc1."),
    VLM_QWEN_GGUF_BLOCK("ffn_down.", "mlp.linear_fc2."),
    DEEP("norm.", "norm."),
    DEEP("fc1.", "linear_fc1."),
    DEEP("fc2.", "linear_fc2."),
    VLM_GGUF_NAME("v.post_ln.", "visual.merger.norm."),
    VLM_GGUF_NAME("mm.0.", "visual.merger.linear_fc1."),
    VLM_GGUF_NAME("mm.2.", "visual.merger.linear_fc2."),
    VLM_GGUF_NAME(NULL, NULL)
};

const vlm_gguf_map_t  vlm_qwen3_vl_gguf = {
    .architecture = "qwen3vl",
    .projector = "qwen3vl_merger",
    VLM_QWEN_GGUF,
    .vision = { vlm_qwen_gguf_vision, vision },
    .rows = rows,
    .must_vision = { vlm_qwen_gguf_must_vision, must },
    .names = { vlm_decoder_gguf_names, vlm_qwen_gguf_head_norms, vlm_qwen_gguf_names, names }
};
