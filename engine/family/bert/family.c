/*
 * BERT: the names of its tensors.  A row is the sum of a token, its position and the kind of its
 * text; all rows of a text see each other; a norm follows each sum.
 */

#include "family/bert/family.h"

#include <stddef.h>

#include "model/model.h"

#define LAYER(m)  offsetof(vlm_layer_t, m)
#define MODEL(m)  offsetof(vlm_model_t, m)
#define END       { .kind = VLM_WEIGHT_END }

/* Files of models with a head for a task have this beginning. */
static const vlm_alias_t  aliases[] = {
    { "bert.", "" },
    { NULL, NULL }
};

/* The numbers 0, 1, 2, ..., and a layer for a task of training. */
static const char *const  spare[] = {
    "embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias", NULL
};

static const vlm_weight_t  before[] = {
    { VLM_WEIGHT_MATRIX, MODEL(embed), { "embeddings.word_embeddings" }, VLM_DIM_D, { VLM_DIM_V },
      VLM_STACKED, VLM_STORE, 0 },
    { VLM_WEIGHT_TABLE, MODEL(positions), { "embeddings.position_embeddings" }, VLM_DIM_D,
      { VLM_DIM_POSITIONS }, 0, 0, 0 },
    { VLM_WEIGHT_TABLE, MODEL(kinds), { "embeddings.token_type_embeddings" }, VLM_DIM_D,
      { VLM_DIM_KINDS }, 0, 0, 0 },
    { VLM_WEIGHT_LAYER, MODEL(embed_norm), { "embeddings.LayerNorm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    END
};

static const vlm_weight_t  layer[] = {
    { VLM_WEIGHT_MATRIX, LAYER(qkv), { "attention.self.query", "attention.self.key",
      "attention.self.value" }, VLM_DIM_D, { VLM_DIM_Q, VLM_DIM_KV, VLM_DIM_KV }, VLM_STACKED,
      VLM_STORE, 1 },
    { VLM_WEIGHT_MATRIX, LAYER(o), { "attention.output.dense" }, VLM_DIM_Q, { VLM_DIM_D },
      VLM_STACKED, VLM_ADD, 1 },
    { VLM_WEIGHT_LAYER, LAYER(norm1), { "attention.output.LayerNorm" }, VLM_DIM_D, { 0 }, 0, 0,
      0 },
    { VLM_WEIGHT_MATRIX, LAYER(up), { "intermediate.dense" }, VLM_DIM_D, { VLM_DIM_F },
      VLM_STACKED, VLM_GELU, 1 },
    { VLM_WEIGHT_MATRIX, LAYER(down), { "output.dense" }, VLM_DIM_F, { VLM_DIM_D }, VLM_STACKED,
      VLM_ADD, 1 },
    { VLM_WEIGHT_LAYER, LAYER(norm2), { "output.LayerNorm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    END
};

static const vlm_subwords_t  pieces = {
    "WordPiece", "BertNormalizer", "BertPreTokenizer", "[CLS]", "[SEP]"
};

const vlm_family_t  vlm_bert = {
    .model_type = "bert",
    .title = "BERT",
    .read = vlm_bert_read,
    .aliases = aliases,
    .text = { before, layer, NULL, "encoder.layer." },
    .pieces = &pieces,
    .spare = spare
};
