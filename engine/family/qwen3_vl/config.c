/* config.json of Qwen3-VL. */

#include <string.h>

#include "family/qwen.h"
#include "family/qwen3_vl/family.h"


/* One more block; each is another one of the encoder. */
static int
add_deep(const vlm_reader_t *r, const vlm_item_t *list, uint32_t block, vlm_vision_config_t *v)
{
    uint32_t  i;

    for (i = 0; i < v->deep && v->deep_block[i] != block; i++) { /* void */ }

    if (i < v->deep) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s names block %u twice, as numbers %u and %u of "
                        "the list", r->file, list->path, block, i + 1, v->deep + 1);
    }

    v->deep_block[v->deep++] = block;

    return 0;
}


/* The blocks of the class, where config.json names none. */
static int
default_deep(const vlm_reader_t *r, const vlm_item_t *list, vlm_vision_config_t *v)
{
    static const uint32_t  published[] = { 8, 16, 24 };

    if (v->depth <= published[2]) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no %s, and its default, blocks 8, 16 and 24, "
                        "does not fit an encoder of %u blocks", r->file, list->path,
                        v->depth);
    }

    v->deep = 3;
    memcpy(v->deep_block, published, sizeof(published));

    return 0;
}


/*
 * The blocks whose output the first layers of the language model add.  A list in another order than
 * the blocks' names the mergers; what is beyond the last layer is never added.
 */
static int
read_deep(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    uint32_t           i, n, block;
    vlm_item_t         it;
    const vlm_json_t  *e;

    it = vlm_item_vision(r, "deepstack_visual_indexes");

    if (it.j == NULL) {
        return default_deep(r, &it, v);
    }

    if (!vlm_json_is_array(it.j)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list", r->file, it.path);
    }

    n = vlm_json_count(it.j);

    if (n > VLM_MAX_DEEP) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s names %u blocks, at most %u are understood",
                        r->file, it.path, n, VLM_MAX_DEEP);
    }

    for (i = 0, e = vlm_json_first(it.j); i < n; i++, e = vlm_json_next(e)) {
        if (vlm_item_u32(r, vlm_item_element(&it, e, i), 0, v->depth - 1, &block) != 0
            || add_deep(r, &it, block, v) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/* Learned positions are of a square grid. */
static int
read_places(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    uint32_t    n;
    vlm_item_t  it;

    it = vlm_item_vision(r, "num_position_embeddings");

    if (vlm_item_u32_or(r, it, 1, VLM_MAX_PLACES * VLM_MAX_PLACES, 2304, &n) != 0) {
        return -1;
    }

    for (v->places = 1; v->places * v->places < n; v->places++) { /* void */ }

    if (v->places * v->places != n) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is %u, which is no square number", r->file,
                        it.path, n);
    }

    return 0;
}


static int
read_vision(const vlm_reader_t *r, vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    uint32_t  i;

    static const vlm_qwen_vision_t  family = {
        .hidden = 1152, .depth = 27, .heads = 16, .mlp = 4304, .out = 3584, .patch = 16,
        .act = "gelu_pytorch_tanh"
    };

    if (vlm_item_is(r, vlm_item_vision(r, "model_type"), "qwen3_vl_vision", "qwen3_vl") != 0
        || vlm_qwen_read_vision(r, &family, v, t) != 0
        || read_places(r, v) != 0
        || read_deep(r, v) != 0)
    {
        return -1;
    }

    for (i = 0; i < v->depth; i++) {
        v->full[i] = 1;
    }

    return 0;
}


/* Files have the setting at the top, under "text_config", or at both places. */
static int
is_tied(const vlm_reader_t *r)
{
    return vlm_json_bool(vlm_json_get(r->text, "tie_word_embeddings"), 0)
           || vlm_json_bool(vlm_json_get(r->top, "tie_word_embeddings"), 0);
}


int
vlm_qwen3_vl_read(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_decoder_t  family = {
        .max_positions = 128000, .head_dim = 128, .rope_theta = 5e6f, .norm_eps = 1e-6f,
        .sections = VLM_SECTIONS_INTERLEAVED
    };

    if (vlm_item_is(r, vlm_item(r->text, "text_config.", "model_type"), "qwen3_vl_text",
                    "qwen3_vl_text") != 0
        || vlm_decoder_read(r, &family, &c->text) != 0
        || read_vision(r, &c->vision, &c->text) != 0)
    {
        return -1;
    }

    c->text.tied = is_tied(r);

    return vlm_qwen_read_tokens(r, c->text.vocab, &c->generation);
}
