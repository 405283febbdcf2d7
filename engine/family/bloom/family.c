/*
 * BLOOM: the names of its tensors.  Attention scores fall with the distance of keys (ALiBi), so
 * heads are not rotated; every norm subtracts a mean, and the embedding has a norm, too.
 */

#include "family/bloom/family.h"

#include <stddef.h>

#include "chat/prompt.h"
#include "model/model.h"

#define LAYER(m)  offsetof(vlm_layer_t, m)
#define MODEL(m)  offsetof(vlm_model_t, m)
#define END       { .kind = VLM_WEIGHT_END }

/* Published files lack the beginning that re-saved ones have. */
static const vlm_alias_t  aliases[] = {
    { "transformer.", "" },
    { NULL, NULL }
};

static const vlm_weight_t  before[] = {
    { VLM_WEIGHT_MATRIX, MODEL(embed), { "word_embeddings" }, VLM_DIM_D, { VLM_DIM_V },
      VLM_STACKED, VLM_STORE, 0 },
    { VLM_WEIGHT_HEAD, MODEL(head), { "lm_head", "word_embeddings" }, VLM_DIM_D, { VLM_DIM_V },
      VLM_STACKED, VLM_STORE, 0 },
    { VLM_WEIGHT_LAYER, MODEL(embed_norm), { "word_embeddings_layernorm" }, VLM_DIM_D, { 0 },
      0, 0, 0 },
    END
};

static const vlm_weight_t  layer[] = {
    { VLM_WEIGHT_LAYER, LAYER(norm1), { "input_layernorm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_LAYER, LAYER(norm2), { "post_attention_layernorm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_MATRIX, LAYER(qkv), { "self_attention.query_key_value" }, VLM_DIM_D,
      { VLM_DIM_QKV }, VLM_BY_HEAD, VLM_STORE, 1 },
    { VLM_WEIGHT_MATRIX, LAYER(o), { "self_attention.dense" }, VLM_DIM_Q, { VLM_DIM_D },
      VLM_STACKED, VLM_ADD, 1 },
    { VLM_WEIGHT_MATRIX, LAYER(up), { "mlp.dense_h_to_4h" }, VLM_DIM_D, { VLM_DIM_F },
      VLM_STACKED, VLM_GELU_TANH, 1 },
    { VLM_WEIGHT_MATRIX, LAYER(down), { "mlp.dense_4h_to_h" }, VLM_DIM_F, { VLM_DIM_D },
      VLM_STACKED, VLM_ADD, 1 },
    END
};

static const vlm_weight_t  after[] = {
    { VLM_WEIGHT_LAYER, MODEL(norm), { "ln_f" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    END
};


/* A prompt is text alone; attention uses the distance of rows, and needs no positions. */
static void
positions(vlm_prompt_t *p, uint32_t merge)
{
    uint32_t  i;

    (void) merge;

    for (i = 0; i < 3 * p->n; i++) {
        p->pos[i] = (int32_t) (i / 3);
    }

    p->next_pos = (int32_t) p->n;
}


static int
thinks(const char *name)
{
    (void) name;

    return 0;
}


const vlm_family_t  vlm_bloom = {
    .model_type = "bloom",
    .title = "BLOOM",
    .read = vlm_bloom_read,
    .eos = { 2 },
    .n_eos = 1,
    .split = " ?[^(\\s|[.,!?…。，、।۔،])]+",
    .aliases = aliases,
    .text = { before, layer, after, "h." },
    .positions = positions,
    .tasks = 20,
    .thinks = thinks
};
