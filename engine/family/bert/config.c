/* config.json of BERT. */

#include <stddef.h>

#include "family/bert/family.h"

#define TEXT(m)  offsetof(vlm_text_config_t, m)


static int
check_heads(const vlm_reader_t *r, vlm_text_config_t *t)
{
    t->kv_heads = t->heads;
    t->head_dim = t->hidden / t->heads;

    if (t->hidden % t->heads != 0 || t->head_dim % 4 != 0 || t->head_dim > VLM_MAX_HEAD_DIM) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: hidden_size %u in %u heads: a head's size should "
                        "be a multiple of 4 up to %u", r->file, t->hidden, t->heads,
                        VLM_MAX_HEAD_DIM);
    }

    return 0;
}


int
vlm_bert_read(const vlm_reader_t *r, vlm_config_t *c)
{
    vlm_item_t          it;
    vlm_text_config_t  *t = &c->text;

    static const vlm_field_t  fields[] = {
        { "hidden_size", TEXT(hidden), 1, VLM_MAX_HIDDEN, 0 },
        { "num_hidden_layers", TEXT(layers), 1, VLM_MAX_LAYERS, 0 },
        { "num_attention_heads", TEXT(heads), 1, VLM_MAX_HEADS, 0 },
        { "intermediate_size", TEXT(mlp), 1, VLM_MAX_MLP, 0 },
        { "vocab_size", TEXT(vocab), 1, VLM_MAX_VOCAB, 0 },
        { "max_position_embeddings", TEXT(max_positions), 3, 1u << 16, 0 },
        { "type_vocab_size", TEXT(kinds), 1, VLM_MAX_KINDS, 2 },
        { NULL, 0, 0, 0, 0 }
    };

    if (vlm_items_read(r, vlm_item_top, fields, t) != 0
        || vlm_item_f32_or(r, vlm_item_top(r, "layer_norm_eps"), 0.0, 1.0, 1e-12, &t->norm_eps)
           != 0
        || vlm_item_is(r, vlm_item_top(r, "hidden_act"), "gelu", "gelu") != 0
        || vlm_item_is(r, vlm_item_top(r, "position_embedding_type"), "absolute", "absolute") != 0
        || check_heads(r, t) != 0)
    {
        return -1;
    }

    it = vlm_item_top(r, "is_decoder");

    if (vlm_json_bool(it.j, 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is true, which is not supported", r->file,
                        it.path);
    }

    t->alibi = 1;                      /* heads are not rotated */
    t->tied = 1;                       /* nothing is read from the head's place */

    return 0;
}
