/* The language model: a loop of five operations, and steps of it that a device keeps. */

#include "model/model.h"


int
vlm_text_forward(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
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

    ops->embed(d, &m->embed, m->vision.features, b, w->x);

    for (i = 0; i < m->config.text.layers; i++) {
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

void
vlm_text_record(vlm_model_t *m, const vlm_batch_t *b)
{
    if (b->T <= VLM_KEPT && m->ops->record(m->device)) {
        (void) vlm_text_forward(m, b, NULL, NULL);
        vlm_text_head(m, b);
        m->ops->keep(m->device, b->T - 1);
    }
}


int
vlm_text_step(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
{
    if (m->ops->replay != NULL) {
        if (quit != NULL && quit(data)) {
            return -1;
        }

        if (m->ops->replay(m->device, b->T - 1)) {
            return 0;
        }
    }

    if (vlm_text_forward(m, b, quit, data) != 0) {
        return -1;
    }

    vlm_text_head(m, b);

    return 0;
}
