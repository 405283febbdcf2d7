/*
 * The language model: a loop of five operations, and steps of it that a device keeps.
 *
 * A step is kept in pieces: the first begins with the embedding, the last ends with the head, and
 * the pieces share the layers.
 */

#include "model/model.h"

/*
 * Bytes of weights and cache that a small card, of 192 GB a second, reads in 42 ms.  That leaves 8
 * of 50 ms for the head, which the last piece has besides, and for one layer more than other pieces
 * have.
 */
#define PIECE_BYTES  UINT64_C(8000000000)

static int layers(vlm_model_t *m, const vlm_batch_t *b, uint32_t first, uint32_t end,
                  vlm_quit_fn quit, void *data);


static void
embed(vlm_model_t *m, const vlm_batch_t *b)
{
    m->ops->embed(m->device, &m->embed, m->vision.features, b, m->work.x);
}


int
vlm_text_forward(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
{
    embed(m, b);

    return layers(m, b, 0, m->config.text.layers, quit, data);
}


static int
layers(vlm_model_t *m, const vlm_batch_t *b, uint32_t first, uint32_t end, vlm_quit_fn quit,
       void *data)
{
    float               eps;
    uint32_t            i, T, heads;
    vlm_layer_t        *l;
    vlm_rope_t          rope = { m->work.inv_freq, m->work.axis };
    vlm_device_t       *d = m->device;
    const vlm_ops_t    *ops = m->ops;
    vlm_text_work_t    *w = &m->work;

    T = b->T;
    heads = m->config.text.heads;
    eps = m->config.text.norm_eps;

    for (i = first; i < end; i++) {
        if (quit != NULL && quit(data)) {
            return -1;
        }

        l = &m->layer[i];

        ops->qkv(d, &l->qkv, w->x, l->norm1, eps, &rope, b, &m->kv, i, heads, w->q);
        ops->attend(d, w->q, b, &m->kv, i, heads, w->o);
        ops->linear(d, &l->o, w->o, NULL, 0, T, w->x);
        ops->linear(d, &l->gate_up, w->x, l->norm2, eps, T, w->h);
        ops->linear(d, &l->down, w->h, NULL, 0, T, w->x);
    }

    return 0;
}


void
vlm_text_head(vlm_model_t *m, const vlm_batch_t *b)
{
    m->ops->head(m->device, &m->head, m->work.x, m->norm, m->config.text.norm_eps, b,
                 m->work.logits);
}


/* ---- steps --------------------------------------------------------------- */

uint32_t
vlm_text_pieces(const vlm_text_config_t *c, uint64_t bytes)
{
    uint64_t  n;

    n = bytes / PIECE_BYTES + (bytes % PIECE_BYTES != 0);

    return n < 1 ? 1 : n < c->layers ? (uint32_t) n : c->layers;
}


static int
do_piece(vlm_model_t *m, const vlm_batch_t *b, uint32_t piece, vlm_quit_fn quit, void *data)
{
    uint64_t  L = m->config.text.layers;

    if (piece == 0) {
        embed(m, b);
    }

    if (layers(m, b, (uint32_t) (L * piece / m->pieces), (uint32_t) (L * (piece + 1) / m->pieces),
               quit, data) != 0)
    {
        return -1;
    }

    if (piece + 1 == m->pieces) {
        vlm_text_head(m, b);
    }

    return 0;
}


void
vlm_text_record(vlm_model_t *m, const vlm_batch_t *b)
{
    uint32_t  i, number;

    for (i = 0; i < m->pieces; i++) {
        number = (b->T - 1) * m->pieces + i;

        if (number >= VLM_KEPT || !m->ops->record(m->device)) {
            return;
        }

        (void) do_piece(m, b, i, NULL, NULL);
        m->ops->keep(m->device, number);
    }
}


int
vlm_text_step(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
{
    uint32_t  i;

    for (i = 0; i < m->pieces; i++) {
        if (m->ops->replay != NULL) {
            if (quit != NULL && quit(data)) {
                return -1;
            }

            if (m->ops->replay(m->device, (b->T - 1) * m->pieces + i)) {
                continue;
            }
        }

        if (do_piece(m, b, i, quit, data) != 0) {
            return -1;
        }
    }

    return 0;
}
