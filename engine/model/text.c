/* The language model: a loop of five operations or six, and steps of it that a device keeps. */

#include "model/lora.h"
#include "model/model.h"


int
vlm_text_forward(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
{
    uint32_t                  i, T = b->T;
    vlm_layer_t              *l;
    vlm_qkv_t                 qkv;
    vlm_device_t             *d = m->device;
    vlm_text_work_t          *w = &m->work;
    const vlm_ops_t          *ops = m->ops;
    const vlm_text_config_t  *c = &m->config.text;
    const vlm_rope_t          rope = { w->inv_freq, w->axis };
    const vlm_attend_t        attend = { c->heads, c->head_dim,
                                         vlm_head_scale(c->head_dim) * vlm_rope_size(c), w->slope };

    ops->embed(d, &m->embed, vlm_vision_part(m, 0), b, w->x);

    if (m->embed_norm.gain != NULL) {
        ops->norm_stream(d, &m->embed_norm, m->turned ? &m->turn : NULL, w->x, T, c->hidden);
    }

    for (i = 0; i < c->layers; i++) {
        if (quit != NULL && quit(data)) {
            return -1;
        }

        l = &m->layer[i];

        qkv = (vlm_qkv_t) { &l->qkv, &l->norm1, &rope, c->heads,
                            l->q_norm.gain == NULL ? NULL : &l->q_norm,
                            l->k_norm.gain == NULL ? NULL : &l->k_norm };

        ops->qkv(d, &qkv, w->x, b, &m->kv, i, w->q);
        ops->attend(d, &attend, w->q, b, &m->kv, i, w->o);
        ops->linear(d, &l->o, NULL, w->o, T, w->x);
        ops->linear(d, &l->up, &l->norm2, w->x, T, w->h);
        ops->linear(d, &l->down, NULL, w->h, T, w->x);

        if (i < m->config.vision.deep && b->pictures > 0) {
            ops->add_features(d, vlm_vision_part(m, 1 + i), b, c->hidden, w->x);
        }
    }

    return 0;
}


void
vlm_text_head(vlm_model_t *m, const vlm_batch_t *b)
{
    m->ops->head(m->device, &m->head, &m->norm, m->work.x, b, m->work.logits);
}


/* ---- steps --------------------------------------------------------------- */

/* Of a step that is kept: those whose rows have adapters follow the others. */
static uint32_t
number_of(const vlm_model_t *m, const vlm_batch_t *b)
{
    return b->T - 1 + (m->lora != NULL && m->lora->rows.any ? VLM_KEPT_ROWS : 0);
}


void
vlm_text_record(vlm_model_t *m, const vlm_batch_t *b)
{
    if (b->T <= VLM_KEPT_ROWS && m->ops->basic->record(m->device)) {
        (void) vlm_text_forward(m, b, NULL, NULL);
        vlm_text_head(m, b);
        m->ops->basic->keep(m->device, number_of(m, b));
    }
}


int
vlm_text_step(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data)
{
    /* Steps that were kept have a row of each sequence. */

    if (m->ops->basic->replay != NULL && b->T == b->S && b->T <= VLM_KEPT_ROWS) {
        if (quit != NULL && quit(data)) {
            return -1;
        }

        if (m->ops->basic->replay(m->device, number_of(m, b))) {
            return 0;
        }
    }

    if (vlm_text_forward(m, b, quit, data) != 0) {
        return -1;
    }

    vlm_text_head(m, b);

    return 0;
}
