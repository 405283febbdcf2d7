/* Qwen2.5-VL as GGUF: how its settings and its tensors are called there. */

#include "family/qwen.h"
#include "family/qwen2_5_vl/family.h"

#define QKV(from, part)  { "v.blk.*." from, "visual.blocks.*.attn.qkv.", VLM_GGUF_ROWS, part }

static const vlm_gguf_key_t  vision[] = {
    { "window_size", "window_size", 0, NULL, 0 },
    { "n_wa_pattern", "fullatt_block_indexes", 0, "block_count", 0 },
    { NULL, NULL, 0, NULL, 0 }
};

static const vlm_gguf_must_t  must[] = {
    { "use_silu", NULL, 1, 0 },
    { "use_gelu", NULL, 0, 0 },
    { NULL, NULL, 0, 0 }
};

static const vlm_gguf_name_t  names[] = {
    QKV("attn_q.", 0),
    QKV("attn_k.", 1),
    QKV("attn_v.", 2),
    VLM_QWEN_GGUF_BLOCK("ffn_gate.", "mlp.gate_proj."),
    VLM_QWEN_GGUF_BLOCK("ffn_up.", "mlp.up_proj."),
    VLM_QWEN_GGUF_BLOCK("ffn_down.", "mlp.down_proj."),
    VLM_GGUF_NAME("v.post_ln.", "visual.merger.ln_q."),
    VLM_GGUF_NAME("mm.0.", "visual.merger.mlp.0."),
    VLM_GGUF_NAME("mm.2.", "visual.merger.mlp.2."),
    VLM_GGUF_NAME(NULL, NULL)
};

const vlm_gguf_map_t  vlm_qwen2_5_vl_gguf = {
    .architecture = "qwen2vl",
    .projector = "qwen2.5vl_merger",
    VLM_QWEN_GGUF,
    .constant = ",\"tokens_per_second\":2",
    .vision = { vlm_qwen_gguf_vision, vision },
    .must_vision = { vlm_qwen_gguf_must_vision, must },
    .names = { vlm_decoder_gguf_names, vlm_qwen_gguf_names, names }
};
