/*
 * The layers of an encoder of texts, by the operations of ops.h: all rows of a text see each other,
 * and a norm follows each sum.
 */

#include <math.h>

#include "embed/embed.h"
#include "format/turn.h"


/* A norm of the stream, which may be turned. */
static void
norm(const vlm_embedder_t *e, const vlm_norm_t *norm, uint32_t R)
{
    const vlm_model_t  *m = &e->m;

    m->ops->norm_stream(m->device, norm, m->turned ? &m->turn : NULL, e->work.x, R,
                        m->config.text.hidden);
}


/* Rows of tokens, with the row of their position and of the first kind of text. */
static void
embed(vlm_embedder_t *e, uint32_t n)
{
    float             *x;
    vlm_model_t       *m = &e->m;
    vlm_batch_t        b = { .T = e->work.border[n], .token = e->work.ids,
                             .source = e->work.none };
    uint32_t           i, t, k, D = m->config.text.hidden;
    vlm_embed_work_t  *w = &e->work;
    const float       *at;

    m->ops->embed(m->device, &m->embed, NULL, &b, w->x);

    for (i = 0; i < n; i++) {
        for (t = w->border[i]; t < w->border[i + 1]; t++) {
            x = w->x + (size_t) t * D;
            at = m->positions + (size_t) (t - w->border[i]) * D;

            for (k = 0; k < D; k++) {
                x[k] += m->kinds[k] + at[k];
            }
        }
    }

    norm(e, &m->embed_norm, b.T);
}


void
vlm_embed_forward(vlm_embedder_t *e, uint32_t n)
{
    vlm_model_t              *m = &e->m;
    vlm_embed_work_t         *w = &e->work;
    const vlm_ops_t          *ops = m->ops;
    const vlm_text_config_t  *c = &m->config.text;
    const uint32_t            R = w->border[n];
    const vlm_rope_t          rope = { w->inv_freq, NULL };
    const vlm_attend_t        attend = { c->heads, c->head_dim, vlm_head_scale(c->head_dim), NULL };
    const vlm_patches_t       rows = { R, w->zero, w->zero, 1, R };
    vlm_segments_t            texts = { w->border, n, R, 0 };
    uint32_t                  i;
    vlm_qkv_t                 qkv;
    vlm_layer_t              *l;

    for (i = 0; i < n; i++) {
        if (w->border[i + 1] - w->border[i] > texts.longest) {
            texts.longest = w->border[i + 1] - w->border[i];
        }
    }

    embed(e, n);

    for (i = 0; i < c->layers; i++) {
        l = &m->layer[i];
        qkv = (vlm_qkv_t) { &l->qkv, NULL, &rope, c->heads, NULL, NULL };

        ops->qkv_2d(m->device, &qkv, w->x, &rows, w->q, w->k, w->v);
        ops->attend_segments(m->device, &attend, w->q, w->k, w->v, &texts, w->o);
        ops->linear(m->device, &l->o, NULL, w->o, R, w->x);
        norm(e, &l->norm1, R);

        ops->linear(m->device, &l->up, NULL, w->x, R, w->h);
        ops->linear(m->device, &l->down, NULL, w->h, R, w->x);
        norm(e, &l->norm2, R);
    }
}


int
vlm_embed_mean(const vlm_embedder_t *e, uint32_t i, float *out)
{
    double                   sum, squares;
    uint32_t                 t, k, D = e->m.config.text.hidden;
    const vlm_embed_work_t  *w = &e->work;

    for (squares = 0, k = 0; k < D; k++) {
        for (sum = 0, t = w->border[i]; t < w->border[i + 1]; t++) {
            sum += w->x[(size_t) t * D + k];
        }

        sum /= w->border[i + 1] - w->border[i];
        squares += sum * sum;
        out[k] = (float) sum;
    }

    if (!isfinite(squares)) {
        return -1;
    }

    if (e->m.turned) {
        vlm_turn_back(&e->m.turn, out, e->work.row);
    }

    for (k = 0; squares > 0 && k < D; k++) {
        out[k] = (float) (out[k] / sqrt(squares));
    }

    return 0;
}
