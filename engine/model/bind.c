/*
 * Binds published tensor names to the weights of a model.
 *
 * The code places each weight, asks the checkpoint for its tensors by name and shape, and, when the
 * arenas have bases, has them loaded (matrix.c).  q, k, v become one matrix; gate and up become one
 * with their rows in turn.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "model/matrix.h"
#include "ops/panel.h"

#define MAX_NAME   160

typedef enum { PLACE, LOAD, KEEP } vlm_bind_what_t;        /* each checks names and shapes */

typedef struct {
    vlm_model_t           *m;
    vlm_checkpoint_t      *c;
    vlm_arena_t           *arena;      /* where the next weight goes */
    const vlm_progress_t  *progress;
    vlm_bind_what_t        what;
    vlm_loader_t           loader;
    uint32_t               n_done, n_all;          /* matrices */
    vlm_err_t             *err;
} vlm_bind_t;

static int bind_text(vlm_bind_t *b);
static int bind_layer(vlm_bind_t *b, uint32_t i);
static int bind_vision(vlm_bind_t *b);
static int bind_block(vlm_bind_t *b, uint32_t i);
static int bind_patch(vlm_bind_t *b);


uint32_t
vlm_model_matrices(const vlm_config_t *config)
{
    return 2 + 4 * config->text.layers + 3 + 4 * config->vision.depth;
}


static int
bind_all(vlm_bind_t *b, vlm_arena_t *text, vlm_arena_t *vision)
{
    int           rc;
    vlm_model_t  *m = b->m;

    b->n_all = vlm_model_matrices(&m->config);
    b->loader.ops = m->ops;
    b->loader.device = m->device;

    if (b->progress != NULL && m->type == VLM_INT8) {
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
    rc = bind_text(b);

    if (rc == 0) {
        b->arena = vision;
        rc = bind_vision(b);
    }

    if (rc == 0) {
        rc = vlm_checkpoint_unused(b->c, b->err);
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


/* A vector [n] as f32; parts stacked or in turn, as its matrix. */
static int
bind_vector(vlm_bind_t *b, float **to, vlm_order_t order, uint32_t n_parts,
            const char (*names)[MAX_NAME], const uint32_t *sizes)
{
    float               *part, *all;
    uint32_t             i, j, n, at;
    uint64_t             dims[1];
    const vlm_tensor_t  *t;

    n = 0;

    for (i = 0; i < n_parts; i++) {
        n += sizes[i];
    }

    *to = vlm_place(b->arena, n, sizeof(float));
    all = b->what != LOAD ? NULL : malloc((size_t) n * 2 * sizeof(float));

    if (b->what == LOAD && all == NULL) {
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %u floats", n);
    }

    part = all == NULL ? NULL : all + n;

    for (at = 0, i = 0; i < n_parts; i++) {
        dims[0] = sizes[i];
        t = vlm_checkpoint_find(b->c, names[i], dims, 1, b->err);
        if (t == NULL) {
            free(all);
            return -1;
        }

        if (b->what != LOAD) {
            continue;
        }

        vlm_tensor_f32(t, 0, sizes[i], part);

        for (j = 0; j < sizes[i]; j++) {
            all[order == VLM_IN_TURN ? j * n_parts + i : at + j] = part[j];
        }

        at += sizes[i];
    }

    if (b->what == LOAD) {
        b->m->ops->put(b->m->device, *to, all, n * sizeof(float));
    }

    free(all);

    return 0;
}


static int
bind_norm(vlm_bind_t *b, float **to, uint32_t n, const char *name)
{
    char  names[1][MAX_NAME];

    (void) snprintf(names[0], MAX_NAME, "%s", name);

    return bind_vector(b, to, VLM_STACKED, 1, (const char (*)[MAX_NAME]) names, &n);
}


/* The tensors of a matrix: "<prefix>.<part>.weight" and, if it has one, ".bias". */
typedef struct {
    const char   *prefix;
    const char   *parts[VLM_MATRIX_PARTS];
    uint32_t      sizes[VLM_MATRIX_PARTS];    /* rows of each */
    uint32_t      n_parts;
    vlm_order_t   order;
    int           bias;
} vlm_names_t;


static int
bind_linear(vlm_bind_t *b, vlm_linear_t *w, vlm_epilogue_t epilogue, uint32_t K,
            const vlm_names_t *names)
{
    char           name[VLM_MATRIX_PARTS][MAX_NAME];
    uint32_t       i;
    uint64_t       dims[2];
    vlm_source_t   s;
    vlm_model_t   *m = b->m;

    s.w = w;
    s.order = names->order;
    s.n_parts = names->n_parts;

    memset(w, 0, sizeof(*w));
    w->type = m->type;
    w->epilogue = epilogue;
    w->K = K;

    for (i = 0; i < names->n_parts; i++) {
        w->N += names->sizes[i];
        dims[0] = names->sizes[i];
        dims[1] = K;

        (void) snprintf(name[i], MAX_NAME, "%s.%s%sweight", names->prefix, names->parts[i],
                        names->parts[i][0] == '\0' ? "" : ".");

        s.part[i] = vlm_checkpoint_find(b->c, name[i], dims, 2, b->err);
        if (s.part[i] == NULL) {
            return -1;
        }
    }

    if (b->loader.packed == NULL || !b->loader.packed->stays) {
        w->w = vlm_place(b->arena, m->ops->packed_bytes(m->device, w->type, w->N, K), 1);
        w->scale = w->type == VLM_INT8 ? vlm_place(b->arena, w->N, sizeof(float)) : NULL;
    }

    if (names->bias) {
        for (i = 0; i < names->n_parts; i++) {
            (void) snprintf(name[i], MAX_NAME, "%s.%s%sbias", names->prefix, names->parts[i],
                            names->parts[i][0] == '\0' ? "" : ".");
        }

        if (bind_vector(b, &w->bias, names->order, names->n_parts,
                        (const char (*)[MAX_NAME]) name, names->sizes) != 0)
        {
            return -1;
        }
    }

    return b->what == PLACE ? 0 : load_linear(b, &s);
}


/*
 * The file of a tied model may have a tensor for the head all the same.  If its values differ from
 * the embedding's, some versions of transformers use it and others tie the head.
 */
static int
check_tied(vlm_bind_t *b)
{
    uint64_t             dims[2];
    const vlm_tensor_t  *head, *embed;

    if (!vlm_checkpoint_has(b->c, "lm_head.weight")) {
        return 0;
    }

    dims[0] = b->m->config.text.vocab;
    dims[1] = b->m->config.text.hidden;

    head = vlm_checkpoint_find(b->c, "lm_head.weight", dims, 2, b->err);
    embed = vlm_checkpoint_find(b->c, "model.embed_tokens.weight", dims, 2, b->err);

    if (head == NULL || embed == NULL) {
        return -1;
    }

    if (!vlm_tensor_same(head, embed)) {
        return vlm_fail(b->err, VLM_EMODEL, "config.json says tie_word_embeddings, but "
                        "lm_head.weight is not model.embed_tokens.weight: say "
                        "\"tie_word_embeddings\": false there if the head was trained, or remove "
                        "the tensor");
    }

    return 0;
}


static int
bind_text(vlm_bind_t *b)
{
    uint32_t                  i;
    vlm_model_t              *m = b->m;
    const vlm_text_config_t  *t = &m->config.text;
    const vlm_names_t         embed = { "model.embed_tokens", { "" }, { t->vocab }, 1,
                                        VLM_STACKED, 0 };
    const vlm_names_t         head = { "lm_head", { "" }, { t->vocab }, 1, VLM_STACKED, 0 };

    if (bind_linear(b, &m->embed, VLM_STORE, t->hidden, &embed) != 0) {
        return -1;
    }

    if (t->tied) {
        if (b->what == PLACE && check_tied(b) != 0) {
            return -1;
        }

        m->head = m->embed;

    } else if (bind_linear(b, &m->head, VLM_STORE, t->hidden, &head) != 0) {
        return -1;
    }

    for (i = 0; i < t->layers; i++) {
        if (bind_layer(b, i) != 0) {
            return -1;
        }
    }

    return bind_norm(b, &m->norm, t->hidden, "model.norm.weight");
}


static int
bind_layer(vlm_bind_t *b, uint32_t i)
{
    char                      at[MAX_NAME], name[MAX_NAME];
    uint32_t                  q, kv;
    vlm_layer_t              *l = &b->m->layer[i];
    const vlm_text_config_t  *t = &b->m->config.text;

    q = t->heads * t->head_dim;
    kv = t->kv_heads * t->head_dim;

    const vlm_names_t  qkv = { at, { "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj" },
                               { q, kv, kv }, 3, VLM_STACKED, 1 };
    const vlm_names_t  o = { at, { "self_attn.o_proj" }, { t->hidden }, 1, VLM_STACKED, 0 };
    const vlm_names_t  gate_up = { at, { "mlp.gate_proj", "mlp.up_proj" }, { t->mlp, t->mlp }, 2,
                                   VLM_IN_TURN, 0 };
    const vlm_names_t  down = { at, { "mlp.down_proj" }, { t->hidden }, 1, VLM_STACKED, 0 };

    (void) snprintf(at, sizeof(at), "model.layers.%u", i);

    (void) snprintf(name, sizeof(name), "model.layers.%u.input_layernorm.weight", i);
    if (bind_norm(b, &l->norm1, t->hidden, name) != 0) {
        return -1;
    }

    (void) snprintf(name, sizeof(name), "model.layers.%u.post_attention_layernorm.weight", i);
    if (bind_norm(b, &l->norm2, t->hidden, name) != 0) {
        return -1;
    }

    if (bind_linear(b, &l->qkv, VLM_STORE, t->hidden, &qkv) != 0
        || bind_linear(b, &l->o, VLM_ADD, q, &o) != 0
        || bind_linear(b, &l->gate_up, VLM_SILU_MUL, t->hidden, &gate_up) != 0)
    {
        return -1;
    }

    return bind_linear(b, &l->down, VLM_ADD, t->mlp, &down);
}


static int
bind_vision(vlm_bind_t *b)
{
    uint32_t                    i, cell;
    vlm_model_t                *m = b->m;
    const vlm_vision_config_t  *v = &m->config.vision;

    cell = v->merge * v->merge * v->hidden;

    const vlm_names_t  merge1 = { "visual.merger.mlp.0", { "" }, { cell }, 1, VLM_STACKED, 1 };
    const vlm_names_t  merge2 = { "visual.merger.mlp.2", { "" }, { v->out }, 1, VLM_STACKED, 1 };

    if (bind_patch(b) != 0) {
        return -1;
    }

    for (i = 0; i < v->depth; i++) {
        if (bind_block(b, i) != 0) {
            return -1;
        }
    }

    if (bind_norm(b, &m->merge_norm, v->hidden, "visual.merger.ln_q.weight") != 0
        || bind_linear(b, &m->merge1, VLM_GELU, cell, &merge1) != 0)
    {
        return -1;
    }

    return bind_linear(b, &m->merge2, VLM_STORE, cell, &merge2);
}


static int
bind_block(vlm_bind_t *b, uint32_t i)
{
    char                        at[MAX_NAME], name[MAX_NAME];
    vlm_layer_t                *l = &b->m->block[i];
    const vlm_vision_config_t  *v = &b->m->config.vision;

    const vlm_names_t  qkv = { at, { "attn.qkv" }, { 3 * v->hidden }, 1, VLM_STACKED, 1 };
    const vlm_names_t  proj = { at, { "attn.proj" }, { v->hidden }, 1, VLM_STACKED, 1 };
    const vlm_names_t  gate_up = { at, { "mlp.gate_proj", "mlp.up_proj" }, { v->mlp, v->mlp }, 2,
                                   VLM_IN_TURN, 1 };
    const vlm_names_t  down = { at, { "mlp.down_proj" }, { v->hidden }, 1, VLM_STACKED, 1 };

    (void) snprintf(at, sizeof(at), "visual.blocks.%u", i);

    (void) snprintf(name, sizeof(name), "visual.blocks.%u.norm1.weight", i);
    if (bind_norm(b, &l->norm1, v->hidden, name) != 0) {
        return -1;
    }

    (void) snprintf(name, sizeof(name), "visual.blocks.%u.norm2.weight", i);
    if (bind_norm(b, &l->norm2, v->hidden, name) != 0) {
        return -1;
    }

    if (bind_linear(b, &l->qkv, VLM_STORE, v->hidden, &qkv) != 0
        || bind_linear(b, &l->o, VLM_ADD, v->hidden, &proj) != 0
        || bind_linear(b, &l->gate_up, VLM_SILU_MUL, v->hidden, &gate_up) != 0)
    {
        return -1;
    }

    return bind_linear(b, &l->down, VLM_ADD, v->mlp, &down);
}


/*
 * The patch embedding takes bytes: y = W ((p / 255 - mean) / std) + 0 becomes y = W' p + b'.  A
 * still picture is the same in all time slices, so their weights are summed.
 */
static void
fold_patch_row(const vlm_config_t *c, const float *from, float *row, float *bias)
{
    double                      sum, offset;
    uint32_t                    ch, t, i, area;
    const vlm_vision_config_t  *v = &c->vision;

    area = v->patch * v->patch;
    offset = 0;

    for (ch = 0; ch < v->channels; ch++) {
        for (i = 0; i < area; i++) {
            sum = 0;

            for (t = 0; t < v->temporal; t++) {
                sum += from[((size_t) ch * v->temporal + t) * area + i];
            }

            row[(size_t) ch * area + i] = (float) (sum / (255 * (double) c->pixel.std[ch]));
            offset -= sum * c->pixel.mean[ch] / c->pixel.std[ch];
        }
    }

    *bias = (float) offset;
}


static int
bind_patch(vlm_bind_t *b)
{
    float                       bias[VLM_PANEL], *from, *rows;
    uint32_t                    e, first, n;
    uint64_t                    dims[5], row;
    vlm_linear_t               *w = &b->m->patch;
    const vlm_tensor_t         *t;
    const vlm_vision_config_t  *v = &b->m->config.vision;

    dims[0] = v->hidden;
    dims[1] = v->channels;
    dims[2] = v->temporal;
    dims[3] = dims[4] = v->patch;
    row = vlm_mul(vlm_mul(dims[1], dims[2]), vlm_mul(dims[3], dims[4]));

    memset(w, 0, sizeof(*w));
    w->type = VLM_F32;
    w->epilogue = VLM_STORE;
    w->N = v->hidden;
    w->K = v->channels * v->patch * v->patch;
    w->w = vlm_place(b->arena, b->m->ops->packed_bytes(b->m->device, w->type, w->N, w->K), 1);
    w->bias = vlm_place(b->arena, w->N, sizeof(float));

    t = vlm_checkpoint_find(b->c, "visual.patch_embed.proj.weight", dims, 5, b->err);
    if (t == NULL || b->what != LOAD) {
        return t == NULL ? -1 : 0;
    }

    from = malloc(row * sizeof(float));
    rows = malloc((size_t) VLM_PANEL * w->K * sizeof(float));

    if (from == NULL || rows == NULL) {
        free(from);
        free(rows);
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for the patch embedding");
    }

    for (first = 0; first < w->N; first += VLM_PANEL) {
        n = w->N - first < VLM_PANEL ? w->N - first : VLM_PANEL;

        for (e = 0; e < n; e++) {
            vlm_tensor_f32(t, (first + e) * row, row, from);
            fold_patch_row(&b->m->config, from, rows + (size_t) e * w->K, &bias[e]);
        }

        b->m->ops->put(b->m->device, w->bias + first, bias, n * sizeof(float));
        b->m->ops->pack(b->m->device, w, first, n, rows);
    }

    free(from);
    free(rows);

    return 0;
}
