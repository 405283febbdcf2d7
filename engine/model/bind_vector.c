/* Norms, biases, and what a matrix is turned by: see bind.h. */

#include "model/bind.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "format/turn.h"


int
vlm_bind_vector(vlm_bind_t *b, float **to, const vlm_weight_t *w, const char *of, uint32_t parts,
            const vlm_dim_t *sizes)
{
    float               *part;
    uint32_t             i, j, n, at;
    uint64_t             dims[1];
    const vlm_tensor_t  *t;
    const vlm_text_config_t  *c = &b->m->config.text;

    n = 0;

    for (i = 0; i < parts; i++) {
        n += b->dim[sizes[i]];
    }

    *to = b->what == VLM_BIND_PLACE ? NULL : malloc((size_t) n * 2 * sizeof(float));

    if (b->what != VLM_BIND_PLACE && *to == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %u floats", n);
    }

    part = *to == NULL ? NULL : *to + n;

    for (at = 0, i = 0; i < parts; i++) {
        dims[0] = b->dim[sizes[i]];
        t = vlm_bind_find(b, w->name[i], of, dims, 1);
        if (t == NULL) {
            free(*to);
            *to = NULL;
            return -1;
        }

        if (b->what == VLM_BIND_PLACE) {
            continue;
        }

        vlm_tensor_f32(t, 0, dims[0], part);

        for (j = 0; j < dims[0]; j++) {
            (*to)[vlm_row_place(w->order, parts, i, at, j, c->heads, c->head_dim)] = part[j];
        }

        at += (uint32_t) dims[0];
    }

    return 0;
}


/* One of a norm's vectors; `same`: every value is that instead, since matrices have its own. */
static int
bind_vector(vlm_bind_t *b, float **to, const vlm_weight_t *w, const char *of, const float *same)
{
    float     *all;
    uint32_t   i, n;

    n = b->dim[w->columns];
    *to = vlm_place(b->arena, n, sizeof(float));

    if (vlm_bind_vector(b, &all, w, of, 1, &w->columns) != 0) {
        return -1;
    }

    for (i = 0; all != NULL && same != NULL && i < n; i++) {
        all[i] = *same;
    }

    if (b->what == VLM_BIND_LOAD) {
        b->m->ops->basic->put(b->m->device, *to, all, n * sizeof(float));
    }

    free(all);

    return 0;
}


int
vlm_bind_folds(const vlm_bind_t *b, const vlm_weight_t *w)
{
    const vlm_config_t  *c = &b->m->config;

    if (!b->m->turned || c->family->pieces != NULL || !vlm_turn_folds(b->scope, w->at)) {
        return 0;
    }

    return b->scope != VLM_IN_MODEL || w->at != offsetof(vlm_model_t, norm)
           || (!c->text.tied && w->kind == VLM_WEIGHT_RMS);
}


/* The model's last norm as the file has it, which vectors of prompts need. */
static int
keep_last(vlm_bind_t *b, const vlm_weight_t *w)
{
    float       *all;
    uint32_t     i, n;
    const char  *of[] = { "weight", "bias" };

    n = b->dim[w->columns];

    for (i = 0; i < (w->kind == VLM_WEIGHT_LAYER ? 2 : 1); i++) {
        if (vlm_bind_vector(b, &all, w, of[i], 1, &w->columns) != 0) {
            return -1;
        }

        memcpy(b->m->last + (size_t) i * n, all, n * sizeof(float));
        free(all);
    }

    return 0;
}


int
vlm_bind_norm(vlm_bind_t *b, vlm_norm_t *to, const vlm_weight_t *w)
{
    int                 folds;
    static const float  one = 1, zero = 0;

    folds = vlm_bind_folds(b, w);
    to->kind = w->kind == VLM_WEIGHT_LAYER ? VLM_NORM_LAYER : VLM_NORM_RMS;
    to->eps = b->eps;
    to->shift = NULL;

    if (to == &b->m->norm && b->what == VLM_BIND_LOAD && keep_last(b, w) != 0) {
        return -1;
    }

    if (bind_vector(b, &to->gain, w, "weight", folds ? &one : NULL) != 0) {
        return -1;
    }

    return w->kind == VLM_WEIGHT_RMS ? 0
                                     : bind_vector(b, &to->shift, w, "bias", folds ? &zero : NULL);
}


const vlm_turn_t *
vlm_bind_turn(const vlm_bind_t *b, vlm_turn_by_t by)
{
    if (by == VLM_TURN_TEXT || (by == VLM_TURN_STREAM && b->stack == &b->m->config.family->text)) {
        return &b->text_turn;
    }

    return by == VLM_TURN_STREAM ? &b->encoder_turn : NULL;
}


const vlm_weight_t *
vlm_bind_find_norm(const vlm_bind_t *b, size_t at)
{
    uint32_t             i;
    const vlm_weight_t  *w, *lists[] = { b->stack->layer, b->stack->before, b->stack->after };

    for (i = b->scope == VLM_IN_MODEL; i < (b->scope == VLM_IN_MODEL ? 3 : 1); i++) {
        for (w = lists[i]; w != NULL && w->kind != VLM_WEIGHT_END; w++) {
            if (w->at == at && (w->kind == VLM_WEIGHT_RMS || w->kind == VLM_WEIGHT_LAYER)) {
                return w;
            }
        }
    }

    return NULL;
}


int
vlm_bind_turned(vlm_bind_t *b, vlm_turned_t *t, const vlm_weight_t *w, float *vector[2])
{
    const vlm_weight_t     *norm;
    const vlm_turn_rule_t  *rule;

    memset(t, 0, sizeof(*t));
    rule = b->m->turned ? vlm_turn_rule(b->scope, w->at) : NULL;

    if (rule == NULL) {
        return 0;
    }

    t->reads = vlm_bind_turn(b, rule->reads);
    t->blocks = rule->reads == VLM_TURN_BLOCKS;
    t->writes = vlm_bind_turn(b, rule->writes);
    norm = rule->norm == VLM_NO_NORM ? NULL : vlm_bind_find_norm(b, rule->norm);

    if (norm == NULL || !vlm_bind_folds(b, norm)) {
        return 0;
    }

    t->period = b->dim[norm->columns];
    t->shifts = norm->kind == VLM_WEIGHT_LAYER;

    if (vlm_bind_vector(b, &vector[0], norm, "weight", 1, &norm->columns) != 0
        || (t->shifts
            && vlm_bind_vector(b, &vector[1], norm, "bias", 1, &norm->columns) != 0))
    {
        return -1;
    }

    t->gain = vector[0];
    t->shift = vector[1];

    return 0;
}


int
vlm_bind_bias(vlm_bind_t *b, vlm_linear_t *w, const vlm_turned_t *t, const float *bias)
{
    float     *all;
    uint32_t   i;

    if (w->bias == NULL || b->what != VLM_BIND_LOAD) {
        return 0;
    }

    all = calloc((size_t) w->N * 2, sizeof(float));
    if (all == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %u floats", w->N);
    }

    if (bias != NULL) {
        memcpy(all, bias, w->N * sizeof(float));
    }

    for (i = 0; i < w->N; i++) {
        all[i] *= b->loader.factor[i];
    }

    if (t->writes != NULL) {
        vlm_turn_row(t->writes, all, all + w->N);
    }

    for (i = 0; t->shifts && i < w->N; i++) {
        all[i] += b->loader.offset[i];
    }

    b->m->ops->basic->put(b->m->device, w->bias, all, w->N * sizeof(float));
    free(all);

    return 0;
}
