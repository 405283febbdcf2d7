/*
 * A model's host structures, and the memory of its steps.
 *
 * The same code runs twice: without a base it only counts, and the result is the plan; with a base
 * it hands out addresses.  So the plan and the use of memory cannot differ.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"
#include "model/lora.h"
#include "model/model.h"
#include "run/batch.h"


int
vlm_model_init(vlm_model_t *m, const vlm_config_t *config, const vlm_ops_t *ops,
               vlm_device_t *device, vlm_type_t type, vlm_err_t *err)
{
    uint32_t                    s;
    const vlm_text_config_t    *t = &config->text;
    const vlm_vision_config_t  *v = &config->vision;

    memset(m, 0, sizeof(*m));
    m->config = *config;
    m->ops = ops;
    m->device = device;
    m->type = type;
    m->seen_words = (t->vocab + 31) / 32;

    m->layer = calloc(t->layers, sizeof(*m->layer));
    m->block = calloc(v->depth + 1, sizeof(*m->block));    /* there may be no encoder */
    m->inv_freq = calloc(t->head_dim / 2, sizeof(float));
    m->axis = calloc(t->head_dim / 2, 1);
    m->inv_freq_2d = calloc(v->head_dim / 4 + 1, sizeof(float));
    m->last = calloc(2 * (size_t) t->hidden, sizeof(float));

    if (m->layer == NULL || m->block == NULL || m->inv_freq == NULL || m->axis == NULL
        || m->inv_freq_2d == NULL || m->last == NULL)
    {
        vlm_model_free(m);
        return vlm_fail(err, VLM_EMEMORY, "no memory for the model's tables");
    }

    if (!t->alibi) {                   /* else no pair turns, which changes no bit */
        vlm_rope_rates(t, m->inv_freq);
    }

    memcpy(m->axis, t->axis, t->head_dim / 2);

    for (s = 0; s < v->head_dim / 4; s++) {
        m->inv_freq_2d[s] = 1 / powf(v->rope_theta, (float) (4 * s) / (float) v->head_dim);
    }

    return 0;
}


/*
 * c heads, the largest power of two that is not more, have base^1, base^2, ..., base^c with
 * base = 2^(-8 / c); the others have base'^1, base'^3, ... of twice as many heads.
 */
void
vlm_alibi_slopes(uint32_t heads, float *slope)
{
    double    exponent;
    uint32_t  c, h;

    for (c = 1; 2 * c <= heads; c *= 2) { /* void */ }

    for (h = 0; h < heads; h++) {
        exponent = h < c ? 8.0 * (h + 1) / c : 4.0 * (2 * (h - c) + 1) / c;
        slope[h] = (float) pow(2, -exponent);
    }
}


void
vlm_model_free(vlm_model_t *m)
{
    free(m->layer);
    free(m->block);
    free(m->inv_freq);
    free(m->axis);
    free(m->inv_freq_2d);
    free(m->last);
    vlm_lora_close(m->lora);
    memset(m, 0, sizeof(*m));
}


void
vlm_model_place_kv(vlm_model_t *m, vlm_arena_t *a, const vlm_conf_t *conf)
{
    uint64_t             rows, bytes, scales;
    vlm_kv_t            *kv = &m->kv;
    const vlm_format_t  *f;

    kv->type = vlm_format_kv(vlm_format_of(m->type), conf->kv_int8, m->ops->basic->kv_int16);
    kv->layers = m->config.text.layers;
    kv->slots = conf->slots;
    kv->heads = m->config.text.kv_heads;
    kv->context = conf->context;
    kv->head_dim = m->config.text.head_dim;

    f = vlm_format_of(kv->type);
    rows = vlm_mul(vlm_mul(kv->layers, kv->slots), vlm_mul(kv->heads, kv->context));
    bytes = vlm_format_row(f, kv->head_dim);
    scales = vlm_format_scales(f, rows);

    kv->k = vlm_place(a, rows, bytes);
    kv->v = vlm_place(a, rows, bytes);
    kv->k_scale = scales == 0 ? NULL : vlm_place(a, scales, sizeof(float));
    kv->v_scale = scales == 0 ? NULL : vlm_place(a, scales, sizeof(float));
}


static uint32_t
larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}


/* Bytes of a patch with all of its time slices. */
static uint32_t
slices_of(const vlm_vision_config_t *v)
{
    return v->temporal * v->channels * v->patch * v->patch;
}


/* Sets the largest shape of each kind, which sizes the operations' own memory. */
static void
set_need(vlm_model_t *m, uint32_t slots, uint32_t patches)
{
    uint32_t                    cell;
    const vlm_text_config_t    *t = &m->config.text;
    const vlm_vision_config_t  *v = &m->config.vision;

    cell = v->merge * v->merge * v->hidden;

    m->need.type = vlm_format_of(m->type)->finer;
    m->need.heads = t->heads;
    m->need.head_dim = larger(t->head_dim, v->head_dim);
    m->need.K = larger(larger(t->hidden, t->mlp), larger(t->heads * t->head_dim, cell));
    m->need.K = larger(m->need.K, larger(v->mlp, slices_of(v)));
    m->need.qkv = larger((t->heads + 2 * t->kv_heads) * t->head_dim, 3 * v->hidden);
    m->need.keys = larger(m->kv.context, patches);
    m->need.vocab = t->vocab;
    m->need.rows = slots;
    m->need.rank = m->lora == NULL ? 0 : m->lora->rank;
}


static void
place_text(vlm_model_t *m, vlm_arena_t *a, uint32_t slots)
{
    uint64_t                  heads;
    const vlm_basic_t        *basic = m->ops->basic;
    vlm_text_work_t          *w = &m->work;
    const vlm_text_config_t  *t = &m->config.text;

    heads = vlm_mul(t->heads, t->head_dim);

    w->x = vlm_place(a, vlm_mul(VLM_SLICE, t->hidden), sizeof(float));
    w->q = vlm_place(a, basic->act_bytes(vlm_mul(VLM_SLICE, heads)), 1);
    w->o = vlm_place(a, basic->act_bytes(vlm_mul(VLM_SLICE, heads)), 1);
    w->h = vlm_place(a, basic->act_bytes(vlm_mul(VLM_SLICE, t->mlp)), 1);
    w->logits = vlm_place(a, vlm_mul(slots, t->vocab), sizeof(float));
    w->token = vlm_place(a, slots, sizeof(uint32_t));
    w->logprob = vlm_place(a, slots, sizeof(float));
    w->seen = vlm_place(a, vlm_mul(slots, m->seen_words), sizeof(uint32_t));
    w->ids = vlm_place(a, vlm_batch_words(VLM_SLICE, slots), sizeof(uint32_t));
    w->pick = vlm_place(a, slots, sizeof(vlm_pick_t));
    w->inv_freq = vlm_place(a, t->head_dim / 2, sizeof(float));
    w->axis = vlm_place(a, t->head_dim / 2, 1);
    w->inv_freq_2d = vlm_place(a, m->config.vision.head_dim / 4, sizeof(float));
    w->slope = t->alibi ? vlm_place(a, t->heads, sizeof(float)) : NULL;
    w->scratch = vlm_place(a, basic->scratch_bytes(m->device, &m->need), 1);
}


void
vlm_model_place_work(vlm_model_t *m, vlm_arena_t *text, vlm_arena_t *vision, uint32_t slots,
                     uint64_t max_pixels, uint32_t places)
{
    uint64_t                    P, E, tokens;
    const vlm_basic_t          *basic = m->ops->basic;
    vlm_vision_work_t          *w = &m->vision;
    const vlm_vision_config_t  *c = &m->config.vision;

    if (c->depth == 0) {
        set_need(m, slots, 0);
        place_text(m, text, slots);
        return;
    }

    P = max_pixels / ((uint64_t) c->patch * c->patch);
    E = c->hidden;
    tokens = P / (c->merge * c->merge);
    w->places = places;
    w->cells = (uint32_t) tokens;

    w->pixels = vlm_place(vision, vlm_mul(P, slices_of(c)), 1);
    w->row = vlm_place(vision, P, sizeof(uint32_t));
    w->column = vlm_place(vision, P, sizeof(uint32_t));
    w->border = vlm_place(vision, vlm_add(tokens, 1), sizeof(uint32_t));
    w->whole = vlm_place(vision, 2, sizeof(uint32_t));
    w->x = vlm_place(vision, vlm_mul(P, E), sizeof(float));
    w->q = vlm_place(vision, basic->act_bytes(vlm_mul(P, E)), 1);
    w->k = vlm_place(vision, basic->act_bytes(vlm_mul(P, E)), 1);
    w->v = vlm_place(vision, basic->act_bytes(vlm_mul(P, E)), 1);
    w->o = vlm_place(vision, basic->act_bytes(vlm_mul(P, E)), 1);
    w->h = vlm_place(vision, basic->act_bytes(vlm_mul(VLM_VISION_ROWS, c->mlp)), 1);
    w->features = vlm_place(vision, basic->act_bytes(vlm_mul(vlm_mul(1 + c->deep, places),
                                                             vlm_mul(tokens, c->out))), 1);

    set_need(m, slots, (uint32_t) P);
    place_text(m, text, slots);
}


void
vlm_model_ready(vlm_model_t *m)
{
    float               slope[VLM_MAX_HEADS];
    uint32_t            half, quarter;
    vlm_text_work_t    *w = &m->work;
    const vlm_basic_t  *basic = m->ops->basic;

    half = m->config.text.head_dim / 2;
    quarter = m->config.vision.head_dim / 4;

    basic->set_scratch(m->device, &m->need, w->scratch);
    basic->put(m->device, w->inv_freq, m->inv_freq, half * sizeof(float));
    basic->put(m->device, w->axis, m->axis, half);
    basic->put(m->device, w->inv_freq_2d, m->inv_freq_2d, quarter * sizeof(float));

    if (w->slope != NULL) {
        vlm_alibi_slopes(m->config.text.heads, slope);
        basic->put(m->device, w->slope, slope, m->config.text.heads * sizeof(float));
    }
}
