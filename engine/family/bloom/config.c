/* config.json of BLOOM: published files and re-saved ones call some sizes differently. */

#include <stddef.h>

#include "family/bloom/family.h"

#define SEQ_LENGTH  2048               /* tokens in training, where the file says nothing */


/* A setting that has two names, of which the first is taken if both are there. */
static int
read_size(const vlm_reader_t *r, const char *name, const char *other, uint32_t most, uint32_t *out)
{
    vlm_item_t  it;

    it = vlm_item_text(r, name);

    return vlm_item_u32(r, it.j != NULL ? it : vlm_item_text(r, other), 1, most, out);
}


static int
read_heads(const vlm_reader_t *r, vlm_text_config_t *t)
{
    if (read_size(r, "n_head", "num_attention_heads", VLM_MAX_HEADS, &t->heads) != 0) {
        return -1;
    }

    t->kv_heads = t->heads;
    t->head_dim = t->hidden / t->heads;

    if (t->hidden % t->heads != 0 || t->head_dim % 2 != 0 || t->head_dim > VLM_MAX_HEAD_DIM) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: hidden_size %u in %u heads: a head's size should "
                        "be an even number up to %u", r->file, t->hidden, t->heads,
                        VLM_MAX_HEAD_DIM);
    }

    return 0;
}


int
vlm_bloom_read(const vlm_reader_t *r, vlm_config_t *c)
{
    vlm_item_t          it;
    vlm_text_config_t  *t = &c->text;

    if (read_size(r, "n_embed", "hidden_size", VLM_MAX_HIDDEN, &t->hidden) != 0
        || read_size(r, "n_layer", "num_hidden_layers", VLM_MAX_LAYERS, &t->layers) != 0
        || read_heads(r, t) != 0
        || vlm_item_u32(r, vlm_item_text(r, "vocab_size"), 1, VLM_MAX_VOCAB, &t->vocab) != 0
        || vlm_item_u32_or(r, vlm_item_text(r, "seq_length"), 1, VLM_MAX_POSITIONS, SEQ_LENGTH,
                           &t->max_positions) != 0
        || vlm_item_f32_or(r, vlm_item_text(r, "layer_norm_epsilon"), 0.0, 1.0, 1e-5,
                           &t->norm_eps) != 0)
    {
        return -1;
    }

    it = vlm_item_text(r, "apply_residual_connection_post_layernorm");

    if (vlm_json_bool(it.j, 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is true, which is not supported", r->file,
                        it.path);
    }

    t->mlp = 4 * t->hidden;
    t->alibi = 1;
    t->tied = vlm_json_bool(vlm_item_text(r, "tie_word_embeddings").j, 1);

    return 0;
}
