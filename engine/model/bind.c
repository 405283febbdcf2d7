/*
 * Binds the tensors of a checkpoint to the weights of a model, by the lists of its family.
 *
 * The code places each weight, asks the checkpoint for its tensors by name and shape, and, when the
 * arenas have bases, has them loaded (matrix.c).
 */

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"
#include "model/bind.h"

#define MAX_NAME   160
#define EDGE       2                   /* layers at each end that keep the finer form, */
#define EDGE_OF    8                   /* or an eighth of a small model's */

static int bind_stack(vlm_bind_t *b, const vlm_stack_t *s, void *layers, vlm_scope_t scope,
                      uint32_t n);


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
    dim[VLM_DIM_POSITIONS] = t->max_positions;
    dim[VLM_DIM_KINDS] = t->kinds;
    dim[VLM_DIM_E] = v->hidden;
    dim[VLM_DIM_3E] = 3 * v->hidden;
    dim[VLM_DIM_ENCODER_F] = v->mlp;
    dim[VLM_DIM_CELL] = v->merge * v->merge * v->hidden;
    dim[VLM_DIM_PLACES] = v->places * v->places;
}


/*
 * The turns of the streams, on the host; and that of the language model's on the device.  A plan
 * has room for it whatever the files, which it may not know yet.
 */
static int
open_turns(vlm_bind_t *b, vlm_arena_t *text)
{
    uint32_t             small;
    vlm_turn_t          *to = &b->m->turn;
    const vlm_turn_t    *t = &b->text_turn;
    const vlm_basic_t   *basic = b->m->ops->basic;
    const vlm_config_t  *c = &b->m->config;

    memset(to, 0, sizeof(*to));
    b->m->turned = vlm_turn_pays(c, b->m->type, b->c);

    if (!vlm_turn_fits(c, b->m->type)) {
        return 0;
    }

    if (vlm_turn_open(&b->text_turn, c->text.hidden, vlm_turn_has_means(&c->family->text),
                      b->err) != 0
        || (c->vision.depth > 0
            && vlm_turn_open(&b->encoder_turn, c->vision.hidden,
                             vlm_turn_has_means(&c->family->encoder), b->err) != 0))
    {
        return -1;
    }

    *to = *t;
    small = t->odd * t->odd;
    to->sign = vlm_place(text, t->n, sizeof(float));
    to->small = vlm_place(text, small, sizeof(float));
    to->mirror = t->mirror == NULL ? NULL : vlm_place(text, t->n, sizeof(float));

    if (b->what == VLM_BIND_LOAD) {
        basic->put(b->m->device, to->sign, t->sign, t->n * sizeof(float));
        basic->put(b->m->device, to->small, t->small, small * sizeof(float));
    }

    if (b->what == VLM_BIND_LOAD && t->mirror != NULL) {
        basic->put(b->m->device, to->mirror, t->mirror, t->n * sizeof(float));
    }

    return 0;
}


static int
bind_stacks(vlm_bind_t *b, vlm_arena_t *text, vlm_arena_t *vision)
{
    char                 head[MAX_NAME];
    vlm_model_t         *m = b->m;
    const vlm_config_t  *c = &m->config;
    const char *const   *spare;

    for (spare = c->family->spare; spare != NULL && *spare != NULL; spare++) {
        vlm_checkpoint_spare(b->c, *spare);
    }

    b->arena = text;
    b->eps = c->text.norm_eps;

    if (bind_stack(b, &c->family->text, m->layer, VLM_IN_LAYER, c->text.layers) != 0) {
        return -1;
    }

    b->arena = vision;
    b->eps = c->vision.norm_eps;

    if (bind_stack(b, &c->family->encoder, m->block, VLM_IN_LAYER, c->vision.depth) != 0
        || bind_stack(b, &c->family->deep, m->deep, VLM_IN_MERGER, c->vision.deep) != 0)
    {
        return -1;
    }

    vlm_model_head_name(c->family, head, sizeof(head));

    return vlm_checkpoint_unused(b->c, head, b->err);
}


static int
bind_all(vlm_bind_t *b, vlm_arena_t *text, vlm_arena_t *vision)
{
    int                  rc;
    vlm_model_t         *m = b->m;
    const vlm_config_t  *c = &m->config;

    set_dims(b->dim, c);

    if (m->lora != NULL) {
        vlm_lora_clear(m->lora);
    }

    b->n_all = vlm_model_matrices(c);
    b->loader.ops = m->ops;
    b->loader.device = m->device;

    if (b->progress != NULL && vlm_format_of(m->type)->cached) {
        b->loader.packed = b->progress->packed;
    }

    if (b->what != VLM_BIND_PLACE) {
        b->loader.threads = vlm_threads_open(b->progress == NULL ? 1 : b->progress->threads,
                                             b->err);
        if (b->loader.threads == NULL) {
            return -1;
        }
    }

    rc = open_turns(b, text) != 0 ? -1 : bind_stacks(b, text, vision);

    vlm_threads_close(b->loader.threads);
    vlm_loader_free(&b->loader);
    vlm_turn_close(&b->text_turn);
    vlm_turn_close(&b->encoder_turn);
    free(b->balance);

    return rc;
}


int
vlm_model_bind(vlm_model_t *m, vlm_checkpoint_t *c, vlm_arena_t *text, vlm_arena_t *vision,
               const vlm_progress_t *progress, vlm_err_t *err)
{
    vlm_bind_t  b = { .m = m, .c = c, .progress = progress, .err = err };

    b.what = text->base != NULL ? VLM_BIND_LOAD : VLM_BIND_PLACE;

    return bind_all(&b, text, vision);
}


int
vlm_model_keep(vlm_model_t *m, vlm_checkpoint_t *c, const vlm_progress_t *progress, vlm_err_t *err)
{
    vlm_bind_t   b = { .m = m, .c = c, .progress = progress, .err = err };
    vlm_arena_t  nowhere = { NULL, 0, 0 };

    b.what = VLM_BIND_KEEP;

    return bind_all(&b, &nowhere, &nowhere);
}


static int
load_linear(vlm_bind_t *b, const vlm_source_t *s)
{
    int       rc;
    uint32_t  i;

    rc = b->what == VLM_BIND_KEEP ? vlm_matrix_keep(&b->loader, s, b->err)
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


const vlm_tensor_t *
vlm_bind_find(vlm_bind_t *b, const char *name, const char *of, const uint64_t *dims,
              uint32_t n_dims)
{
    char  whole[MAX_NAME];

    (void) snprintf(whole, sizeof(whole), "%s%s.%s", b->layer, name, of);

    return vlm_checkpoint_find(b->c, whole, dims, n_dims, b->err);
}


static int
find_parts(vlm_bind_t *b, vlm_source_t *s, const vlm_weight_t *from)
{
    uint32_t  i;
    uint64_t  dims[2];

    for (i = 0; i < s->n_parts; i++) {
        dims[0] = b->dim[from->rows[i]];
        dims[1] = s->w->K;
        s->w->N += (uint32_t) dims[0];

        s->part[i] = vlm_bind_find(b, from->name[i], "weight", dims, 2);
        if (s->part[i] == NULL) {
            return -1;
        }
    }

    return 0;
}


static vlm_lora_turn_t
side_of(const vlm_bind_t *b, const vlm_turn_t *t)
{
    return t == NULL ? VLM_LORA_NONE : t == &b->text_turn ? VLM_LORA_TEXT : VLM_LORA_ENCODER;
}


/* Adds a matrix to the list of those that adapters may add to. */
static int
list_matrix(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *from, const vlm_turned_t *t)
{
    uint32_t           i;
    vlm_lora_matrix_t  x = { .w = w, .order = from->order };

    if (b->m->lora == NULL) {
        return 0;
    }

    for (i = 0; i < n_parts(from); i++) {
        (void) snprintf(x.name[i], sizeof(x.name[i]), "%s%s", b->layer, from->name[i]);
        x.rows[i] = b->dim[from->rows[i]];
    }

    x.table = w == &b->m->embed;
    x.tower = b->stack != &b->m->config.family->text;
    x.reads = side_of(b, t->reads);
    x.writes = side_of(b, t->writes);
    x.blocks = t->blocks;
    x.period = t->period;

    if (x.table) {
        x.writes = x.reads;            /* additions to a table's row join the stream, too */
        x.reads = VLM_LORA_NONE;
    }

    return vlm_lora_add(b->m->lora, &x, t, b->err);
}


/*
 * The form of a matrix: a coarse one is for the language model's o, up and down alone, and not in
 * its first layers nor in its last ones.
 *
 * Of an encoder of texts, whose layers have no norm before them, what reads the stream has the
 * form of adapters: two thirds of what rounding costs its vectors come from there.
 */
static vlm_type_t
form_of(const vlm_bind_t *b, const vlm_weight_t *from)
{
    uint32_t             edge, layers = b->m->config.text.layers;
    const vlm_format_t  *f = vlm_format_of(b->m->type);
    const int            qkv = b->scope == VLM_IN_LAYER && from->at == offsetof(vlm_layer_t, qkv);
    const int            up = b->scope == VLM_IN_LAYER && from->at == offsetof(vlm_layer_t, up);

    if ((qkv || up) && b->m->config.family->pieces != NULL) {
        return f->kv;
    }

    edge = layers / EDGE_OF < EDGE ? layers / EDGE_OF : EDGE;

    return b->stack == &b->m->config.family->text && b->scope == VLM_IN_LAYER && !qkv
           && b->dim[from->columns] >= VLM_BLOCK
           && b->index >= edge && b->index < layers - edge ? f->type : f->finer;
}


static int
bind_matrix(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *from)
{
    int            rc;
    float         *vector[3] = { NULL, NULL, NULL };       /* gain and shift of a norm; bias */
    uint64_t       scales;
    vlm_source_t   s;
    vlm_model_t   *m = b->m;

    s.w = w;
    s.order = from->order;
    s.n_parts = n_parts(from);
    s.heads = m->config.text.heads;

    memset(w, 0, sizeof(*w));
    w->type = form_of(b, from);
    w->epilogue = from->epilogue;
    w->K = b->dim[from->columns];

    rc = find_parts(b, &s, from) != 0 || vlm_bind_turned(b, &s.turned, from, vector) != 0 ? -1 : 0;
    w->blocks = s.turned.blocks;

    if (rc == 0 && (b->loader.packed == NULL || !b->loader.packed->stays)) {
        w->w = vlm_place(b->arena, m->ops->basic->packed_bytes(m->device, w->type, w->N, w->K), 1);
        scales = vlm_format_scales(vlm_format_of(w->type), w->N);
        w->scale = scales == 0 ? NULL : vlm_place(b->arena, scales, sizeof(float));
    }

    if (rc == 0 && (from->bias || s.turned.shifts)) {
        w->bias = vlm_place(b->arena, w->N, sizeof(float));
    }

    if (rc == 0 && from->bias) {
        rc = vlm_bind_vector(b, &vector[2], from, "bias", s.n_parts, from->rows);
    }

    if (rc == 0 && b->what != VLM_BIND_PLACE) {
        rc = vlm_bind_balance(b, &s, from, vector[2]) != 0 || load_linear(b, &s) != 0
             || vlm_bind_bias(b, w, &s.turned, vector[2]) != 0 ? -1 : 0;
    }

    if (rc == 0) {
        vlm_bind_balanced(b, &s);
        rc = list_matrix(b, w, from, &s.turned);
    }

    free(vector[0]);
    free(vector[1]);
    free(vector[2]);

    return rc;
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
    head = vlm_bind_find(b, w->name[0], "weight", dims, 2);
    table = vlm_bind_find(b, w->name[1], "weight", dims, 2);

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


/* An adapter of a tied head leaves the embedding as it is, and the other way round. */
static int
list_tied(vlm_bind_t *b, vlm_linear_t *head, const vlm_weight_t *w)
{
    int            rc;
    float         *vector[2] = { NULL, NULL };
    vlm_turned_t   turned;

    head->low = NULL;

    rc = vlm_bind_turned(b, &turned, w, vector) != 0
         || list_matrix(b, head, w, &turned) != 0 ? -1 : 0;
    free(vector[0]);
    free(vector[1]);

    return rc;
}


static int
bind_head(vlm_bind_t *b, vlm_linear_t *head, const vlm_weight_t *w)
{
    if (!b->m->config.text.tied) {
        if (bind_matrix(b, head, w) != 0) {
            return -1;
        }

    } else {
        if (b->what == VLM_BIND_PLACE && check_tied(b, w) != 0) {
            return -1;
        }

        *head = b->m->embed;

        if (list_tied(b, head, w) != 0) {
            return -1;
        }
    }

    if (b->m->turned && !vlm_bind_folds(b, vlm_bind_find_norm(b, offsetof(vlm_model_t, norm)))) {
        head->turn = &b->m->turn;
    }

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

    name[0] = '\0';

    for (w = f->text.before; w->kind != VLM_WEIGHT_END; w++) {
        if (w->kind == VLM_WEIGHT_HEAD) {
            (void) snprintf(name, bytes, "%s.weight", w->name[0]);
        }
    }
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
            rc = vlm_bind_norm(b, at, w);
            break;
        case VLM_WEIGHT_PLACES:
            rc = vlm_bind_places(b, at, w);
            break;
        case VLM_WEIGHT_TABLE:
            rc = vlm_bind_table(b, at, w);
            break;
        case VLM_WEIGHT_HEAD:
            rc = bind_head(b, at, w);
            break;
        case VLM_WEIGHT_PATCH:
            rc = vlm_bind_patch(b, at, w);
            break;
        default:
            rc = bind_matrix(b, at, w);
        }
    }

    return rc;
}


/* layers has the structures of that scope. */
static int
bind_stack(vlm_bind_t *b, const vlm_stack_t *s, void *layers, vlm_scope_t scope, uint32_t n)
{
    int       rc;
    size_t    bytes;
    uint32_t  i;

    b->stack = s;
    b->scope = VLM_IN_MODEL;
    b->layer[0] = '\0';
    rc = bind_list(b, s->before, b->m);

    b->scope = scope;
    bytes = scope == VLM_IN_LAYER ? sizeof(vlm_layer_t) : sizeof(vlm_merger_t);

    for (i = 0; rc == 0 && i < n; i++) {
        (void) snprintf(b->layer, sizeof(b->layer), "%s%u.", s->layers, i);
        b->index = i;
        rc = bind_list(b, s->layer, (char *) layers + i * bytes);
    }

    b->scope = VLM_IN_MODEL;
    b->layer[0] = '\0';

    return rc != 0 ? -1 : bind_list(b, s->after, b->m);
}
