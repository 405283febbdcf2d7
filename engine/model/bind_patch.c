/* The patch embedding, learned positions of patches and other tables of rows: see bind.h. */

#include "model/bind.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/panel.h"
#include "format/turn.h"


int
vlm_bind_places(vlm_bind_t *b, vlm_places_t *to, const vlm_weight_t *w)
{
    to->side = b->m->config.vision.places;

    return vlm_bind_table(b, &to->at, w);
}


int
vlm_bind_table(vlm_bind_t *b, float **to, const vlm_weight_t *w)
{
    float                  *row;
    uint64_t                i, dims[2];
    const vlm_tensor_t     *t;
    const vlm_turn_rule_t  *rule;

    dims[0] = b->dim[w->rows[0]];
    dims[1] = b->dim[w->columns];
    *to = vlm_place(b->arena, vlm_mul(dims[0], dims[1]), sizeof(float));

    t = vlm_bind_find(b, w->name[0], "weight", dims, 2);
    if (t == NULL || b->what != VLM_BIND_LOAD) {
        return t == NULL ? -1 : 0;
    }

    row = malloc(2 * dims[1] * sizeof(float));
    if (row == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %" PRIu64 " floats", dims[1]);
    }

    rule = b->m->turned ? vlm_turn_rule(b->scope, w->at) : NULL;

    for (i = 0; i < dims[0]; i++) {
        vlm_tensor_f32(t, i * dims[1], dims[1], row);

        if (rule != NULL) {
            vlm_turn_row(vlm_bind_turn(b, rule->reads), row, row + dims[1]);
        }

        b->m->ops->basic->put(b->m->device, *to + i * dims[1], row, dims[1] * sizeof(float));
    }

    free(row);

    return 0;
}


/*
 * The patch embedding takes bytes: y = W ((p / 255 - mean) / std) + b becomes y = W' p + b'.  A
 * still picture is the same in all time slices, so their weights are summed; frames of a video have
 * a row of each slice's.  b' is the same for both.
 */
static void
fold_patch_row(const vlm_config_t *c, const float *from, float own, float *still, float *frames,
               float *bias)
{
    double                      sum, offset, w, scale;
    uint32_t                    ch, t, i, area;
    const vlm_vision_config_t  *v = &c->vision;

    area = v->patch * v->patch;
    offset = own;

    for (ch = 0; ch < v->channels; ch++) {
        scale = 255 * (double) c->pixel.std[ch];

        for (i = 0; i < area; i++) {
            sum = 0;

            for (t = 0; t < v->temporal; t++) {
                w = from[((size_t) ch * v->temporal + t) * area + i];
                frames[((size_t) t * v->channels + ch) * area + i] = (float) (w / scale);
                sum += w;
            }

            still[(size_t) ch * area + i] = (float) (sum / scale);
            offset -= sum * c->pixel.mean[ch] / c->pixel.std[ch];
        }
    }

    *bias = (float) offset;
}


/* One of the two matrices, with K columns. */
static void
place_patch(vlm_bind_t *b, vlm_linear_t *w, uint32_t K)
{
    memset(w, 0, sizeof(*w));
    w->type = VLM_PATCH_TYPE;
    w->epilogue = VLM_STORE;
    w->N = b->m->config.vision.hidden;
    w->K = K;
    w->w = vlm_place(b->arena, b->m->ops->basic->packed_bytes(b->m->device, w->type, w->N, w->K),
                     1);
    w->bias = vlm_place(b->arena, w->N, sizeof(float));
}


/* Turns the rows of both matrices and the bias. */
static int
turn_patch(const vlm_turn_t *t, const vlm_linear_t w[2], float *rows[2], float *bias,
           vlm_err_t *err)
{
    float     *work;
    uint32_t   i, most;

    most = w[0].K > w[1].K ? w[0].K : w[1].K;
    work = malloc(((size_t) t->odd * most + t->n) * sizeof(float));

    if (work == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the patch embedding");
    }

    for (i = 0; i < 2; i++) {
        vlm_turn_columns(t, rows[i], w[i].K, work);
    }

    vlm_turn_row(t, bias, work);
    free(work);

    return 0;
}


/* Folds all rows; own has the file's bias, or NULL. */
static void
fold_patch(const vlm_config_t *c, const vlm_tensor_t *t, const float *own, const vlm_linear_t w[2],
           float *rows[2], float *bias, float *from)
{
    uint32_t  e;
    uint64_t  row;

    row = vlm_mul(w[0].K, c->vision.temporal);

    for (e = 0; e < w[0].N; e++) {
        vlm_tensor_f32(t, e * row, row, from);
        fold_patch_row(c, from, own == NULL ? 0 : own[e], rows[0] + (size_t) e * w[0].K,
                       rows[1] + (size_t) e * row, &bias[e]);
    }
}


/* Reads both matrices whole, as all rows of a column are turned together. */
static int
load_patch(vlm_bind_t *b, vlm_linear_t w[2], const vlm_tensor_t *t, const float *own,
           const vlm_turn_t *turn)
{
    int                 rc;
    float              *bias, *from, *rows[2];
    uint32_t            i, first, n, N;
    const vlm_basic_t  *basic = b->m->ops->basic;

    N = w[0].N;
    bias = malloc(((size_t) N * (1 + (size_t) w[0].K + w[1].K) + w[1].K) * sizeof(float));

    if (bias == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for the patch embedding");
    }

    rows[0] = bias + N;
    rows[1] = rows[0] + (size_t) N * w[0].K;
    from = rows[1] + (size_t) N * w[1].K;
    fold_patch(&b->m->config, t, own, w, rows, bias, from);

    rc = turn == NULL ? 0 : turn_patch(turn, w, rows, bias, b->err);

    for (i = 0; rc == 0 && i < 2; i++) {
        basic->put(b->m->device, w[i].bias, bias, N * sizeof(float));

        for (first = 0; first < N; first += VLM_PANEL) {
            n = N - first < VLM_PANEL ? N - first : VLM_PANEL;
            basic->pack(b->m->device, &w[i], first, n, rows[i] + (size_t) first * w[i].K);
        }
    }

    free(bias);

    return rc;
}


/* w has two matrices: for still pictures and for frames. */
int
vlm_bind_patch(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *as)
{
    int                         rc;
    float                      *own;
    uint32_t                    K;
    uint64_t                    dims[5];
    const vlm_dim_t             size = VLM_DIM_E;
    const vlm_tensor_t         *t;
    const vlm_turn_rule_t      *rule;
    const vlm_vision_config_t  *v = &b->m->config.vision;

    dims[0] = v->hidden;
    dims[1] = v->channels;
    dims[2] = v->temporal;
    dims[3] = dims[4] = v->patch;
    K = v->channels * v->patch * v->patch;

    place_patch(b, &w[0], K);
    place_patch(b, &w[1], (uint32_t) vlm_mul(K, v->temporal));

    own = NULL;
    t = vlm_bind_find(b, as->name[0], "weight", dims, 5);

    if (t == NULL || (as->bias && vlm_bind_vector(b, &own, as, "bias", 1, &size) != 0)) {
        return -1;
    }

    rule = b->m->turned ? vlm_turn_rule(b->scope, as->at) : NULL;
    rc = b->what != VLM_BIND_LOAD ? 0
         : load_patch(b, w, t, own, rule == NULL ? NULL : vlm_bind_turn(b, rule->writes));
    free(own);

    return rc;
}
