/*
 * The recipe of language models that Llama has set and Qwen follows: RMS norms before attention and
 * mlp, rotated heads of q and k, of which several share one of keys and values, a gated mlp with
 * SiLU.  Families of this recipe differ in what a vlm_decoder_t says, and in their words.
 */

#ifndef VLM_DECODER_H
#define VLM_DECODER_H

#include <stddef.h>

#include "family/family.h"
#include "text/split.h"

#define VLM_LAYER(m)   offsetof(vlm_layer_t, m)    /* of a vlm_weight_t */
#define VLM_MODEL(m)   offsetof(vlm_model_t, m)

/* Re-saved by newer versions of transformers, tensors have longer names. */
extern const vlm_alias_t  vlm_decoder_aliases[];

/* Lists of the weights outside of layers. */
extern const vlm_weight_t  vlm_decoder_before[], vlm_decoder_after[];

/* The rows of a layer's list: norms; with norms of q and k by head, too; matrices. */
#define VLM_DECODER_NORMS                                                                          \
    { VLM_WEIGHT_RMS, VLM_LAYER(norm1), { "input_layernorm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },        \
    { VLM_WEIGHT_RMS, VLM_LAYER(norm2), { "post_attention_layernorm" }, VLM_DIM_D, { 0 },          \
      0, 0, 0 }
#define VLM_DECODER_HEAD_NORMS                                                                     \
    { VLM_WEIGHT_RMS, VLM_LAYER(q_norm), { "self_attn.q_norm" }, VLM_DIM_HEAD, { 0 }, 0, 0, 0 },   \
    { VLM_WEIGHT_RMS, VLM_LAYER(k_norm), { "self_attn.k_norm" }, VLM_DIM_HEAD, { 0 }, 0, 0, 0 }
#define VLM_DECODER_MATRICES(qkv_bias)                                                             \
    { VLM_WEIGHT_MATRIX, VLM_LAYER(qkv),                                                           \
      { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj" }, VLM_DIM_D,                   \
      { VLM_DIM_Q, VLM_DIM_KV, VLM_DIM_KV }, VLM_STACKED, VLM_STORE, qkv_bias },                   \
    { VLM_WEIGHT_MATRIX, VLM_LAYER(o), { "self_attn.o_proj" }, VLM_DIM_Q, { VLM_DIM_D },           \
      VLM_STACKED, VLM_ADD, 0 },                                                                   \
    { VLM_WEIGHT_MATRIX, VLM_LAYER(up), { "mlp.gate_proj", "mlp.up_proj" }, VLM_DIM_D,             \
      { VLM_DIM_F, VLM_DIM_F }, VLM_IN_TURN, VLM_SILU_MUL, 0 },                                    \
    { VLM_WEIGHT_MATRIX, VLM_LAYER(down), { "mlp.down_proj" }, VLM_DIM_F, { VLM_DIM_D },           \
      VLM_STACKED, VLM_ADD, 0 },                                                                   \
    { .kind = VLM_WEIGHT_END }

/* Of M-RoPE: which pairs of a head are rotated by time, row and column. */
typedef enum {
    VLM_SECTIONS_NONE,                 /* a row of the prompt has one position */
    VLM_SECTIONS_IN_A_ROW,
    VLM_SECTIONS_INTERLEAVED
} vlm_sections_t;

/* Where config.json says nothing; and what differs between families. */
typedef struct {
    uint32_t        max_positions;
    uint32_t        head_dim;          /* 0: hidden / heads */
    float           rope_theta, norm_eps;
    vlm_sections_t  sections;
    int             bias;              /* q, k and v have biases */
} vlm_decoder_t;

/* The settings of the language model; VLM_EMODEL has file, path and value. */
int vlm_decoder_read(const vlm_reader_t *r, const vlm_decoder_t *family, vlm_text_config_t *t);

/* One position for each row. */
void vlm_decoder_positions(struct vlm_prompt_s *p, uint32_t merge);

/* For a family none of whose models thinks. */
int vlm_decoder_thinks(const char *name);

/* ---- GGUF: decoder_gguf.c ------------------------------------------------- */

extern const vlm_gguf_key_t   vlm_decoder_gguf_text[], vlm_decoder_gguf_none[];
extern const vlm_gguf_must_t  vlm_decoder_gguf_must[];
extern const vlm_gguf_name_t  vlm_decoder_gguf_names[];

#define VLM_DECODER_GGUF                                                                           \
    .table = "token_embd.weight", .head = "output.weight", .text = vlm_decoder_gguf_text,          \
    .must = vlm_decoder_gguf_must

#define VLM_GGUF_NAME(from, to)        { from, to, VLM_GGUF_WHOLE, 0 }
#define VLM_GGUF_LAYER(from, to)       VLM_GGUF_NAME("blk.*." from, "model.layers.*." to)

#endif
