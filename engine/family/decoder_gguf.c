/* Families of the recipe as GGUF: the settings and tensors that are called the same in all. */

#include "family/decoder.h"

#define LAST  { NULL, NULL, 0, NULL, 0 }


/* ---- settings ------------------------------------------------------------ */

const vlm_gguf_key_t  vlm_decoder_gguf_text[] = {
    { "embedding_length", "hidden_size", 0, NULL, 0 },
    { "block_count", "num_hidden_layers", 0, NULL, 0 },
    { "attention.head_count", "num_attention_heads", 0, NULL, 0 },
    { "attention.head_count_kv", "num_key_value_heads", 0, NULL, 0 },
    { "attention.key_length", "head_dim", 0, NULL, 0 },
    { "feed_forward_length", "intermediate_size", 0, NULL, 0 },
    { "context_length", "max_position_embeddings", 0, NULL, 0 },
    { "attention.layer_norm_rms_epsilon", "rms_norm_eps", 0, NULL, 0 },
    { "rope.freq_base", "rope_theta", 0, NULL, 0 },
    LAST
};

const vlm_gguf_key_t  vlm_decoder_gguf_none[] = { LAST };


/* ---- what is not computed ------------------------------------------------- */

#define NUMBER(key, n)     { key, NULL, n, 0 }
#define FIELD(key, field)  { key, NULL, 0, offsetof(vlm_config_t, field) }

const vlm_gguf_must_t  vlm_decoder_gguf_must[] = {
    NUMBER("rope.scaling.attn_factor", 1),
    NUMBER("rope.scaling.yarn_ext_factor", 1),
    NUMBER("rope.scaling.yarn_attn_factor", 1),
    NUMBER("rope.scaling.yarn_beta_fast", 32),
    NUMBER("rope.scaling.yarn_beta_slow", 1),
    NUMBER("rope.scaling.yarn_log_multiplier", 0),
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


/* ---- tensors ------------------------------------------------------------- */

const vlm_gguf_name_t  vlm_decoder_gguf_names[] = {
    VLM_GGUF_NAME("token_embd.", "model.embed_tokens."),
    VLM_GGUF_NAME("output_norm.", "model.norm."),
    VLM_GGUF_NAME("output.", "lm_head."),
    VLM_GGUF_LAYER("attn_norm.", "input_layernorm."),
    VLM_GGUF_LAYER("ffn_norm.", "post_attention_layernorm."),
    VLM_GGUF_LAYER("attn_q.", "self_attn.q_proj."),
    VLM_GGUF_LAYER("attn_k.", "self_attn.k_proj."),
    VLM_GGUF_LAYER("attn_v.", "self_attn.v_proj."),
    VLM_GGUF_LAYER("attn_output.", "self_attn.o_proj."),
    VLM_GGUF_LAYER("ffn_gate.", "mlp.gate_proj."),
    VLM_GGUF_LAYER("ffn_up.", "mlp.up_proj."),
    VLM_GGUF_LAYER("ffn_down.", "mlp.down_proj."),
    VLM_GGUF_NAME(NULL, NULL)
};
