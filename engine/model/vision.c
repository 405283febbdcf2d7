/*
 * The vision encoder, block by block so that others can step in between, and the mergers.
 *
 * Patches stay in the family's order from the first operation to the last; features come out as one
 * row for each merged cell, in the same order (see image/picture.h).
 */

#include "base/size.h"
#include "image/picture.h"
#include "model/model.h"

/*
 * The cost of attention's multiply-add in int16, in those of matrices in int8: 1.5 to 2 with
 * avx512, 3 to 4 in tiles.
 */
#define ATTEND_COST  3

static void mlp(vlm_model_t *m, vlm_layer_t *l);
static void merge_deep(vlm_model_t *m, uint32_t block);


void
vlm_vision_begin(vlm_model_t *m, const vlm_picture_t *p, uint32_t place)
{
    uint32_t             whole[2];
    vlm_device_t        *d = m->device;
    vlm_vision_work_t   *w = &m->vision;
    const vlm_basic_t   *basic = m->ops->basic;
    const vlm_linear_t  *patch = &m->patch[p->slices > 1];

    w->place = place;
    w->rows = p->grid_h;
    w->columns = p->grid_w;
    w->n_patches = p->n_patches;
    w->n_segments = p->n_segments;
    w->longest = p->longest;
    w->next_block = 0;

    whole[0] = 0;
    whole[1] = p->n_patches;

    basic->put(d, w->pixels, p->pixels, (uint64_t) p->n_patches * patch->K);
    basic->put(d, w->row, p->row, (uint64_t) p->n_patches * sizeof(uint32_t));
    basic->put(d, w->column, p->column, (uint64_t) p->n_patches * sizeof(uint32_t));
    basic->put(d, w->border, p->border, ((uint64_t) p->n_segments + 1) * sizeof(uint32_t));
    basic->put(d, w->whole, whole, sizeof(whole));

    m->ops->patch_embed(d, patch, w->pixels, p->n_patches, w->x);

    if (m->places.side > 0) {
        const vlm_patches_t  patches = { p->n_patches, w->row, w->column, w->rows, w->columns };

        m->ops->add_places(d, &m->places, &patches, m->config.vision.hidden, w->x);
    }
}


int
vlm_vision_blocks(vlm_model_t *m, uint32_t n)
{
    vlm_qkv_t                   qkv;
    vlm_layer_t                *l;
    vlm_device_t               *d = m->device;
    const vlm_ops_t            *ops = m->ops;
    vlm_vision_work_t          *w = &m->vision;
    const vlm_vision_config_t  *c = &m->config.vision;
    const uint32_t              P = w->n_patches;
    const vlm_rope_t            rope = { m->work.inv_freq_2d, NULL };
    const vlm_attend_t          attend = { c->heads, c->head_dim, vlm_head_scale(c->head_dim),
                                           NULL };
    const vlm_patches_t         patches = { P, w->row, w->column, w->rows, w->columns };
    const vlm_segments_t        whole = { w->whole, 1, P, P };
    const vlm_segments_t        parts = { w->border, w->n_segments, P, w->longest };

    for ( /* void */ ; n > 0 && w->next_block < c->depth; n--, w->next_block++) {
        l = &m->block[w->next_block];
        qkv = (vlm_qkv_t) { &l->qkv, &l->norm1, &rope, c->heads, NULL, NULL };

        ops->qkv_2d(d, &qkv, w->x, &patches, w->q, w->k, w->v);
        ops->attend_segments(d, &attend, w->q, w->k, w->v,
                             c->full[w->next_block] ? &whole : &parts, w->o);
        ops->linear(d, &l->o, NULL, w->o, P, w->x);

        mlp(m, l);
        merge_deep(m, w->next_block);
    }

    return w->next_block == c->depth;
}


/* Number of keys that a patch attends to, averaged over all blocks. */
static uint64_t
keys_of_patch(const vlm_vision_work_t *w, const vlm_vision_config_t *c)
{
    uint32_t  i;
    uint64_t  n;

    for (n = 0, i = 0; i < c->depth; i++) {
        n += c->full[i] ? w->n_patches : w->longest;
    }

    return n / c->depth;
}


static uint64_t
values_of(const vlm_linear_t *w)
{
    return (uint64_t) w->N * w->K;
}


/*
 * Number of blocks that are as much work as a slice of a prompt.  Work is counted in the values of
 * matrices, each of which is multiplied by each row, and in attention.
 */
uint32_t
vlm_vision_slice(const vlm_model_t *m)
{
    uint64_t                    row, patch, n;
    const vlm_layer_t          *l = &m->block[0];
    const vlm_text_config_t    *t = &m->config.text;
    const vlm_vision_config_t  *v = &m->config.vision;

    row = (uint64_t) t->layers * t->hidden * (2 * (t->heads + t->kv_heads) * t->head_dim
                                              + 3 * (uint64_t) t->mlp);
    patch = values_of(&l->qkv) + values_of(&l->o) + values_of(&l->up) + values_of(&l->down)
            + v->deep * (values_of(&m->merger.first) + values_of(&m->merger.second))
              / (v->merge * v->merge * v->depth)
            + ATTEND_COST * 2 * keys_of_patch(&m->vision, v) * v->hidden;
    n = VLM_SLICE * row / (m->vision.n_patches * patch);

    return n < 1 ? 1 : n < v->depth ? (uint32_t) n : v->depth;
}


/* The MLP takes a part of the patches at a time: h is the encoder's widest buffer. */
static void
mlp(vlm_model_t *m, vlm_layer_t *l)
{
    float              *x;
    uint32_t            p, n;
    vlm_vision_work_t  *w = &m->vision;

    for (p = 0; p < w->n_patches; p += n) {
        n = w->n_patches - p < VLM_VISION_ROWS ? w->n_patches - p : VLM_VISION_ROWS;
        x = w->x + (size_t) p * m->config.vision.hidden;

        m->ops->linear(m->device, &l->up, &l->norm2, x, n, w->h);
        m->ops->linear(m->device, &l->down, NULL, w->h, n, x);
    }
}


const void *
vlm_vision_part(const vlm_model_t *m, uint32_t part)
{
    uint64_t                  rows;
    const vlm_vision_work_t  *w = &m->vision;

    if (w->features == NULL) {
        return NULL;                   /* the plan, or a model without an encoder */
    }

    rows = (uint64_t) part * w->places * w->cells;

    return (uint8_t *) w->features + m->ops->basic->act_bytes(rows * m->config.vision.out);
}


/*
 * Makes a part of the picture's features.  The patches of a cell lie side by side: their rows are
 * one row of the merger's matrices, and of its norm, too, if that comes after they are joined.
 */
static void
merge(vlm_model_t *m, const vlm_merger_t *merger, uint32_t part, int joined)
{
    uint8_t                    *to;
    uint32_t                    area, cells;
    vlm_device_t               *d = m->device;
    const vlm_ops_t            *ops = m->ops;
    vlm_vision_work_t          *w = &m->vision;
    const vlm_vision_config_t  *c = &m->config.vision;

    area = c->merge * c->merge;
    cells = w->n_patches / area;
    to = (uint8_t *) vlm_vision_part(m, part)
         + ops->basic->act_bytes((uint64_t) w->place * w->cells * c->out);

    ops->norm(d, &merger->norm, w->x, joined ? cells : w->n_patches,
              joined ? area * c->hidden : c->hidden, w->q);
    ops->linear(d, &merger->first, NULL, w->q, cells, w->k);
    ops->linear(d, &merger->second, NULL, w->k, cells, to);
}


/*
 * The output of a block that the text layers see as well.  Mergers may be listed in any order, but
 * their features are parts in the order of the blocks.
 */
static void
merge_deep(vlm_model_t *m, uint32_t block)
{
    uint32_t                    i, merger, part;
    const vlm_vision_config_t  *c = &m->config.vision;

    merger = c->deep;
    part = 1;

    for (i = 0; i < c->deep; i++) {
        merger = c->deep_block[i] == block ? i : merger;
        part += c->deep_block[i] < block;
    }

    if (merger < c->deep) {
        merge(m, &m->deep[merger], part, 1);
    }
}


void
vlm_vision_end(vlm_model_t *m)
{
    merge(m, &m->merger, 0, 0);
}
