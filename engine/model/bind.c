/*
 * Binds the tensors of a checkpoint to the weights of a model, by the lists of its family.
 *
 * The code places each weight, asks the checkpoint for its tensors by name and shape, and, when the
 * arenas have bases, has them loaded (matrix.c).
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"
#include "format/panel.h"
#include "model/matrix.h"

#define MAX_NAME   160

typedef enum { PLACE, LOAD, KEEP } vlm_bind_what_t;        /* each checks names and shapes */

typedef struct {
    vlm_model_t           *m;
    vlm_checkpoint_t      *c;
    vlm_arena_t           *arena;      /* where the next weight goes */
    const vlm_progress_t  *progress;
    vlm_bind_what_t        what;
    vlm_loader_t           loader;
    uint32_t               dim[VLM_DIMS];
    char                   layer[48];  /* what names of the layer begin with, or "" */
    float                  eps;        /* of the norms */
    uint32_t               n_done, n_all;          /* matrices */
    vlm_err_t             *err;
} vlm_bind_t;

static int bind_stack(vlm_bind_t *b, const vlm_stack_t *s, void *layers, size_t bytes, uint32_t n);
static int bind_patch(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *as);


static uint32_t
count(const vlm_weight_t *list)
{
    uint32_t  n;

    for (n = 0; list != NULL && list->kind != VLM_WEIGHT_END; list++) {
        n += list->kind == VLM_WEIGHT_MATRIX || list->kind == VLM_WEIGHT_HEAD
             || list->kind == VLM_WEIGHT_PATCH;
    }

    return n;
}


static uint32_t
count_stack(const vlm_stack_t *s, uint32_t layers)
{
    return count(s->before) + layers * count(s->layer) + count(s->after);
}


uint32_t
vlm_model_matrices(const vlm_config_t *config)
{
    return count_stack(&config->family->text, config->text.layers)
           + count_stack(&config->family->encoder, config->vision.depth)
           + count_stack(&config->family->deep, config->vision.deep);
}


static void
set_dims(uint32_t dim[VLM_DIMS], const vlm_config_t *c)
{
    const vlm_text_config_t    *t = &c->text;
    const vlm_vision_config_t  *v = &c->vision;

    dim[VLM_DIM_NONE] = 0;
    dim[VLM_DIM_D] = t->hidden;
    dim[VLM_DIM_V] = t->vocab;
    dim[VLM_DIM_F] = t->mlp;
    dim[VLM_DIM_Q] = t->heads * t->head_dim;
    dim[VLM_DIM_KV] = t->kv_heads * t->head_dim;
    dim[VLM_DIM_HEAD] = t->head_dim;
    dim[VLM_DIM_QKV] = (t->heads + 2 * t->kv_heads) * t->head_dim;
    dim[VLM_DIM_E] = v->hidden;
    dim[VLM_DIM_3E] = 3 * v->hidden;
    dim[VLM_DIM_ENCODER_F] = v->mlp;
    dim[VLM_DIM_CELL] = v->merge * v->merge * v->hidden;
    dim[VLM_DIM_PLACES] = v->places * v->places;
}


static int
bind_all(vlm_bind_t *b, vlm_arena_t *text, vlm_arena_t *vision)
{
    int                  rc;
    char                 head[MAX_NAME];
    vlm_model_t         *m = b->m;
    const vlm_config_t  *c = &m->config;

    set_dims(b->dim, c);
    b->n_all = vlm_model_matrices(c);
    b->loader.ops = m->ops;
    b->loader.device = m->device;

    if (b->progress != NULL && vlm_format_of(m->type)->cached) {
        b->loader.packed = b->progress->packed;
    }

    if (b->what != PLACE) {
        b->loader.threads = vlm_threads_open(b->progress == NULL ? 1 : b->progress->threads,
                                             b->err);
        if (b->loader.threads == NULL) {
            return -1;
        }
    }

    b->arena = text;
    b->eps = c->text.norm_eps;
    rc = bind_stack(b, &c->family->text, m->layer, sizeof(vlm_layer_t), c->text.layers);

    if (rc == 0) {
        b->arena = vision;
        b->eps = c->vision.norm_eps;
        rc = bind_stack(b, &c->family->encoder, m->block, sizeof(vlm_layer_t), c->vision.depth);
    }

    if (rc == 0) {
        rc = bind_stack(b, &c->family->deep, m->deep, sizeof(vlm_merger_t), c->vision.deep);
    }

    if (rc == 0) {
        vlm_model_head_name(c->family, head, sizeof(head));
        rc = vlm_checkpoint_unused(b->c, head, b->err);
    }

    vlm_threads_close(b->loader.threads);
    vlm_loader_free(&b->loader);

    return rc;
}


int
vlm_model_bind(vlm_model_t *m, vlm_checkpoint_t *c, vlm_arena_t *text, vlm_arena_t *vision,
               const vlm_progress_t *progress, vlm_err_t *err)
{
    vlm_bind_t  b = { .m = m, .c = c, .progress = progress, .err = err };

    b.what = text->base != NULL ? LOAD : PLACE;

    return bind_all(&b, text, vision);
}


int
vlm_model_keep(vlm_model_t *m, vlm_checkpoint_t *c, const vlm_progress_t *progress, vlm_err_t *err)
{
    vlm_bind_t   b = { .m = m, .c = c, .progress = progress, .err = err };
    vlm_arena_t  nowhere = { NULL, 0, 0 };

    b.what = KEEP;

    return bind_all(&b, &nowhere, &nowhere);
}


static int
load_linear(vlm_bind_t *b, const vlm_source_t *s)
{
    int       rc;
    uint32_t  i;

    rc = b->what == KEEP ? vlm_matrix_keep(&b->loader, s, b->err)
                         : vlm_matrix_load(&b->loader, s, b->err);
    if (rc != 0) {
        return -1;
    }

    for (i = 0; i < s->n_parts; i++) {
        vlm_tensor_done(b->c, s->part[i]);
    }

    b->n_done++;

    if (b->progress != NULL && b->progress->step != NULL
        && b->progress->step(b->progress->data, b->n_done * 100 / b->n_all) != 0)
    {
        return vlm_fail(b->err, VLM_ECANCELLED, "stopped while loading");
    }

    return 0;
}


static uint32_t
n_parts(const vlm_weight_t *w)
{
    uint32_t  n;

    for (n = 1; n < VLM_PARTS && w->rows[n] != VLM_DIM_NONE; n++) { /* void */ }

    return n;
}


/* A tensor of a weight, with the shape that config.json says. */
static const vlm_tensor_t *
find(vlm_bind_t *b, const char *name, const char *of, const uint64_t *dims, uint32_t n_dims)
{
    char  whole[MAX_NAME];

    (void) snprintf(whole, sizeof(whole), "%s%s.%s", b->layer, name, of);

    return vlm_checkpoint_find(b->c, whole, dims, n_dims, b->err);
}


/* Where value j of part i goes, `at` values being before the part. */
static uint32_t
place_in_vector(const vlm_bind_t *b, const vlm_weight_t *w, uint32_t parts, uint32_t i, uint32_t at,
                uint32_t j)
{
    uint32_t  hd, which, heads = b->m->config.text.heads;

    if (w->order == VLM_BY_HEAD) {
        hd = b->m->config.text.head_dim;
        which = j / hd % 3;

        return (which * heads + j / (3 * hd)) * hd + j % hd;
    }

    return w->order == VLM_IN_TURN ? j * parts + i : at + j;
}


/* A vector [n] as f32; parts in the order of its matrix. */
static int
bind_vector(vlm_bind_t *b, float **to, const vlm_weight_t *w, const char *of, uint32_t parts,
            const vlm_dim_t *sizes)
{
    float               *part, *all;
    uint32_t             i, j, n, at;
    uint64_t             dims[1];
    const vlm_tensor_t  *t;

    n = 0;

    for (i = 0; i < parts; i++) {
        n += b->dim[sizes[i]];
    }

    *to = vlm_place(b->arena, n, sizeof(float));
    all = b->what != LOAD ? NULL : malloc((size_t) n * 2 * sizeof(float));

    if (b->what == LOAD && all == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %u floats", n);
    }

    part = all == NULL ? NULL : all + n;

    for (at = 0, i = 0; i < parts; i++) {
        dims[0] = b->dim[sizes[i]];
        t = find(b, w->name[i], of, dims, 1);
        if (t == NULL) {
            free(all);
            return -1;
        }

        if (b->what != LOAD) {
            continue;
        }

        vlm_tensor_f32(t, 0, dims[0], part);

        for (j = 0; j < dims[0]; j++) {
            all[place_in_vector(b, w, parts, i, at, j)] = part[j];
        }

        at += (uint32_t) dims[0];
    }

    if (b->what == LOAD) {
        b->m->ops->basic->put(b->m->device, *to, all, n * sizeof(float));
    }

    free(all);

    return 0;
}


static int
bind_norm(vlm_bind_t *b, vlm_norm_t *to, const vlm_weight_t *w)
{
    to->kind = w->kind == VLM_WEIGHT_LAYER ? VLM_NORM_LAYER : VLM_NORM_RMS;
    to->eps = b->eps;
    to->shift = NULL;

    if (bind_vector(b, &to->gain, w, "weight", 1, &w->columns) != 0) {
        return -1;
    }

    return w->kind == VLM_WEIGHT_RMS ? 0
                                     : bind_vector(b, &to->shift, w, "bias", 1, &w->columns);
}


static int
bind_places(vlm_bind_t *b, vlm_places_t *to, const vlm_weight_t *w)
{
    float               *row;
    uint64_t             i, dims[2];
    const vlm_tensor_t  *t;

    dims[0] = b->dim[w->rows[0]];
    dims[1] = b->dim[w->columns];
    to->side = b->m->config.vision.places;
    to->at = vlm_place(b->arena, vlm_mul(dims[0], dims[1]), sizeof(float));

    t = find(b, w->name[0], "weight", dims, 2);
    if (t == NULL || b->what != LOAD) {
        return t == NULL ? -1 : 0;
    }

    row = malloc(dims[1] * sizeof(float));
    if (row == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %" PRIu64 " floats", dims[1]);
    }

    for (i = 0; i < dims[0]; i++) {
        vlm_tensor_f32(t, i * dims[1], dims[1], row);
        b->m->ops->basic->put(b->m->device, to->at + i * dims[1], row, dims[1] * sizeof(float));
    }

    free(row);

    return 0;
}


static int
bind_matrix(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *from)
{
    uint32_t       i;
    uint64_t       dims[2], scales;
    vlm_source_t   s;
    vlm_model_t   *m = b->m;

    s.w = w;
    s.order = from->order;
    s.n_parts = n_parts(from);
    s.heads = m->config.text.heads;

    memset(w, 0, sizeof(*w));
    w->type = m->type;
    w->epilogue = from->epilogue;
    w->K = b->dim[from->columns];

    for (i = 0; i < s.n_parts; i++) {
        dims[0] = b->dim[from->rows[i]];
        dims[1] = w->K;
        w->N += (uint32_t) dims[0];

        s.part[i] = find(b, from->name[i], "weight", dims, 2);
        if (s.part[i] == NULL) {
            return -1;
        }
    }

    if (b->loader.packed == NULL || !b->loader.packed->stays) {
        w->w = vlm_place(b->arena, m->ops->basic->packed_bytes(m->device, w->type, w->N, w->K), 1);
        scales = vlm_format_scales(vlm_format_of(w->type), w->N);
        w->scale = scales == 0 ? NULL : vlm_place(b->arena, scales, sizeof(float));
    }

    if (from->bias && bind_vector(b, &w->bias, from, "bias", s.n_parts, from->rows) != 0) {
        return -1;
    }

    return b->what == PLACE ? 0 : load_linear(b, &s);
}


/*
 * The file of a tied model may have a tensor for the head all the same.  If its values differ from
 * the table's, some versions of transformers use it and others tie the head.
 */
static int
check_tied(vlm_bind_t *b, const vlm_weight_t *w)
{
    char                 name[MAX_NAME];
    uint64_t             dims[2];
    const vlm_tensor_t  *head, *table;

    (void) snprintf(name, sizeof(name), "%s.weight", w->name[0]);

    if (!vlm_checkpoint_has(b->c, name)) {
        return 0;
    }

    dims[0] = b->dim[w->rows[0]];
    dims[1] = b->dim[w->columns];
    head = find(b, w->name[0], "weight", dims, 2);
    table = find(b, w->name[1], "weight", dims, 2);

    if (head == NULL || table == NULL) {
        return -1;
    }

    if (!vlm_tensor_same(head, table)) {
        return vlm_fail(b->err, VLM_EMODEL, "config.json says tie_word_embeddings, but "
                        "%s is not %s.weight: say \"tie_word_embeddings\": false there if the "
                        "head was trained, or remove the tensor", name, w->name[1]);
    }

    return 0;
}


static int
bind_head(vlm_bind_t *b, vlm_linear_t *head, const vlm_weight_t *w)
{
    if (!b->m->config.text.tied) {
        return bind_matrix(b, head, w);
    }

    if (b->what == PLACE && check_tied(b, w) != 0) {
        return -1;
    }

    *head = b->m->embed;

    return 0;
}


void
vlm_model_settle(vlm_config_t *config, const vlm_checkpoint_t *c)
{
    char                 name[MAX_NAME];
    uint64_t             rows;
    const vlm_weight_t  *w;

    for (w = config->family->text.before; w->kind != VLM_WEIGHT_HEAD; w++) { /* void */ }

    (void) snprintf(name, sizeof(name), "%s.weight", w->name[1]);
    rows = vlm_checkpoint_rows(c, name);

    if (config->family->vocab_of_table && rows >= config->text.vocab && rows <= VLM_MAX_VOCAB) {
        config->text.vocab = (uint32_t) rows;
    }
}


void
vlm_model_head_name(const vlm_family_t *f, char *name, size_t bytes)
{
    const vlm_weight_t  *w;

    for (w = f->text.before; w->kind != VLM_WEIGHT_HEAD; w++) { /* void */ }

    (void) snprintf(name, bytes, "%s.weight", w->name[0]);
}


/* A list of weights, whose places are offsets from `to`. */
static int
bind_list(vlm_bind_t *b, const vlm_weight_t *w, void *to)
{
    int    rc;
    void  *at;

    for (rc = 0; rc == 0 && w != NULL && w->kind != VLM_WEIGHT_END; w++) {
        at = (char *) to + w->at;

        switch (w->kind) {
        case VLM_WEIGHT_RMS:
        case VLM_WEIGHT_LAYER:
            rc = bind_norm(b, at, w);
            break;
        case VLM_WEIGHT_PLACES:
            rc = bind_places(b, at, w);
            break;
        case VLM_WEIGHT_HEAD:
            rc = bind_head(b, at, w);
            break;
        case VLM_WEIGHT_PATCH:
            rc = bind_patch(b, at, w);
            break;
        default:
            rc = bind_matrix(b, at, w);
        }
    }

    return rc;
}


static int
bind_stack(vlm_bind_t *b, const vlm_stack_t *s, void *layers, size_t bytes, uint32_t n)
{
    int       rc;
    uint32_t  i;

    b->layer[0] = '\0';
    rc = bind_list(b, s->before, b->m);

    for (i = 0; rc == 0 && i < n; i++) {
        (void) snprintf(b->layer, sizeof(b->layer), "%s%u.", s->layers, i);
        rc = bind_list(b, s->layer, (char *) layers + i * bytes);
    }

    b->layer[0] = '\0';

    return rc != 0 ? -1 : bind_list(b, s->after, b->m);
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


/* w has two matrices: for still pictures and for frames. */
static int
bind_patch(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *as)
{
    float                       bias[VLM_PANEL], own[VLM_PANEL] = { 0 }, *from, *rows[2];
    uint32_t                    e, first, n, K, i;
    uint64_t                    dims[5], row;
    const vlm_basic_t          *basic = b->m->ops->basic;
    const vlm_tensor_t         *t, *t_bias;
    const vlm_vision_config_t  *v = &b->m->config.vision;

    dims[0] = v->hidden;
    dims[1] = v->channels;
    dims[2] = v->temporal;
    dims[3] = dims[4] = v->patch;
    K = v->channels * v->patch * v->patch;
    row = vlm_mul(K, v->temporal);

    place_patch(b, &w[0], K);
    place_patch(b, &w[1], (uint32_t) row);

    t = find(b, as->name[0], "weight", dims, 5);
    t_bias = as->bias ? find(b, as->name[0], "bias", dims, 1) : NULL;

    if (t == NULL || (as->bias && t_bias == NULL) || b->what != LOAD) {
        return t == NULL || (as->bias && t_bias == NULL) ? -1 : 0;
    }

    from = malloc((1 + 2 * (size_t) VLM_PANEL) * row * sizeof(float));

    if (from == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for the patch embedding");
    }

    rows[0] = from + row;
    rows[1] = rows[0] + VLM_PANEL * (size_t) K;

    for (first = 0; first < w->N; first += VLM_PANEL) {
        n = w->N - first < VLM_PANEL ? w->N - first : VLM_PANEL;

        if (t_bias != NULL) {
            vlm_tensor_f32(t_bias, first, n, own);
        }

        for (e = 0; e < n; e++) {
            vlm_tensor_f32(t, (first + e) * row, row, from);
            fold_patch_row(&b->m->config, from, own[e], rows[0] + (size_t) e * K,
                           rows[1] + (size_t) e * row, &bias[e]);
        }

        for (i = 0; i < 2; i++) {
            basic->put(b->m->device, w[i].bias + first, bias, n * sizeof(float));
            basic->pack(b->m->device, &w[i], first, n, rows[i]);
        }
    }

    free(from);

    return 0;
}
