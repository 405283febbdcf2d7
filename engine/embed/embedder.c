/*
 * The public functions of the text encoder: plan, open, run, close.
 *
 * The memory of weights and of a pass is counted and then placed in one block by the same code.
 */

#include "embed/embed.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "base/threads.h"
#include "format/format.h"
#include "load/checkpoint.h"


static uint32_t
larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}


/* Sets the largest shape of each kind, which sizes the operations' own memory. */
static void
set_need(vlm_model_t *m, uint32_t rows)
{
    const vlm_text_config_t  *t = &m->config.text;

    m->need.type = vlm_format_of(m->type)->finer;
    m->need.K = larger(t->hidden, t->mlp);
    m->need.qkv = 3 * t->hidden;
    m->need.heads = t->heads;
    m->need.head_dim = t->head_dim;
    m->need.keys = rows;
}


static void
place_work(vlm_embedder_t *e, vlm_arena_t *a)
{
    uint64_t                  R, act;
    vlm_model_t              *m = &e->m;
    vlm_embed_work_t         *w = &e->work;
    const vlm_basic_t        *basic = m->ops->basic;
    const vlm_text_config_t  *t = &m->config.text;

    w->rows = larger(VLM_EMBED_ROWS, e->facts.tokens);
    set_need(m, w->rows);

    R = w->rows;
    act = basic->act_bytes(vlm_mul(R, t->hidden));

    w->ids = vlm_place(a, R, sizeof(uint32_t));
    w->none = vlm_place(a, R, sizeof(uint32_t));
    w->zero = vlm_place(a, R, sizeof(uint32_t));
    w->border = vlm_place(a, vlm_add(R, 1), sizeof(uint32_t));
    w->inv_freq = vlm_place(a, t->head_dim / 4, sizeof(float));
    w->x = vlm_place(a, vlm_mul(R, t->hidden), sizeof(float));
    w->q = vlm_place(a, act, 1);
    w->k = vlm_place(a, act, 1);
    w->v = vlm_place(a, act, 1);
    w->o = vlm_place(a, act, 1);
    w->h = vlm_place(a, basic->act_bytes(vlm_mul(R, t->mlp)), 1);
    w->row = vlm_place(a, t->hidden, sizeof(float));
    w->scratch = vlm_place(a, basic->scratch_bytes(m->device, &m->need), 1);
}


/* Counts, or with a base in the arenas reads the weights, too. */
static int
place(vlm_embedder_t *e, vlm_checkpoint_t *c, vlm_arena_t *weights, vlm_arena_t *work,
      vlm_err_t *err)
{
    vlm_arena_t  none = { NULL, 0, 0 };

    if (vlm_model_bind(&e->m, c, weights, &none, NULL, err) != 0) {
        return -1;
    }

    place_work(e, work);

    weights->used = vlm_round(weights->used, VLM_ALIGN);
    work->used = vlm_round(work->used, VLM_ALIGN);

    return 0;
}


/* Opens what a plan needs: settings, device and weights, which are counted. */
static vlm_checkpoint_t *
open_counted(vlm_embedder_t *e, const char *dir, vlm_type_t type, uint32_t threads,
             vlm_arena_t *weights, vlm_arena_t *work, vlm_err_t *err)
{
    vlm_device_t      *d;
    vlm_settings_t     s;
    const vlm_ops_t   *ops;
    vlm_checkpoint_t  *c;

    if (threads < 1 || threads > VLM_MAX_THREADS) {
        (void) vlm_fail(err, VLM_EINPUT, "threads is %u, expected 1 to %u", threads,
                        VLM_MAX_THREADS);
        return NULL;
    }

    if (vlm_weights_find(vlm_weights_name(type), &type, err) != 0
        || vlm_settings_read(&s, dir, err) != 0
        || (d = vlm_cpu_open(NULL, threads, &ops, err)) == NULL)
    {
        return NULL;
    }

    if (vlm_model_init(&e->m, &s.config, ops, d, type, err) != 0) {
        ops->basic->close(d);
        return NULL;
    }

    e->facts.dim = s.config.text.hidden;
    e->facts.tokens = s.tokens;

    c = vlm_checkpoint_open(dir, s.config.family->aliases, err);

    if (c == NULL || place(e, c, weights, work, err) != 0) {
        vlm_checkpoint_close(c);
        return NULL;
    }

    e->facts.weights = weights->used;
    e->facts.workspace = work->used;

    return c;
}


static void
close_model(vlm_embedder_t *e)
{
    if (e->m.device != NULL) {
        e->m.ops->basic->close(e->m.device);
    }

    vlm_model_free(&e->m);
}


int
vlm_embedder_plan(const char *dir, vlm_type_t weights, uint32_t threads, vlm_embedder_plan_t *plan,
                  vlm_err_t *err)
{
    vlm_arena_t        a = { NULL, 0, 0 }, b = { NULL, 0, 0 };
    vlm_embedder_t     e = { .facts = { 0 } };
    vlm_checkpoint_t  *c;

    c = open_counted(&e, dir, weights, threads, &a, &b, err);
    *plan = e.facts;
    close_model(&e);
    vlm_checkpoint_close(c);

    return c == NULL ? -1 : 0;
}


/* Takes the memory that was counted, and fills it. */
static int
load(vlm_embedder_t *e, vlm_checkpoint_t *c, vlm_arena_t *weights, vlm_arena_t *work,
     vlm_err_t *err)
{
    uint8_t            *block;
    const uint64_t      bytes = vlm_add(weights->used, work->used);
    const vlm_basic_t  *basic = e->m.ops->basic;

    block = basic->reserve(e->m.device, bytes, err);

    if (block == NULL) {
        return -1;
    }

    *work = (vlm_arena_t) { block + weights->used, work->used, 0 };
    *weights = (vlm_arena_t) { block, weights->used, 0 };

    if (place(e, c, weights, work, err) != 0) {
        return -1;
    }

    basic->set_scratch(e->m.device, &e->m.need, e->work.scratch);
    memset(e->work.none, 0xff, e->work.rows * sizeof(uint32_t));

    return 0;
}


static int
fill(vlm_embedder_t *e, const char *dir, vlm_type_t type, uint32_t threads, vlm_err_t *err)
{
    int                rc;
    vlm_arena_t        weights = { NULL, 0, 0 }, work = { NULL, 0, 0 };
    vlm_checkpoint_t  *c;

    c = open_counted(e, dir, type, threads, &weights, &work, err);

    if (c == NULL) {
        return -1;
    }

    rc = load(e, c, &weights, &work, err) != 0 || vlm_checkpoint_whole(c, err) != 0
         || vlm_checkpoint_id(c, e->id, err) != 0 ? -1 : 0;
    vlm_checkpoint_close(c);

    if (rc != 0) {
        return -1;
    }

    e->pieces = vlm_wordpiece_open(dir, e->m.config.family->pieces, e->m.config.text.vocab, err);

    return e->pieces == NULL ? -1 : 0;
}


vlm_embedder_t *
vlm_embedder_open(const char *dir, vlm_type_t weights, uint32_t threads, vlm_err_t *err)
{
    vlm_embedder_t  *e;

    e = calloc(1, sizeof(*e));

    if (e == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for a text encoder");
        return NULL;
    }

    (void) pthread_mutex_init(&e->lock, NULL);
    (void) pthread_cond_init(&e->turn, NULL);

    if (fill(e, dir, weights, threads, err) != 0) {
        vlm_embedder_close(e);
        return NULL;
    }

    return e;
}


void
vlm_embedder_close(vlm_embedder_t *e)
{
    if (e == NULL) {
        return;
    }

    vlm_wordpiece_close(e->pieces);
    close_model(e);
    (void) pthread_cond_destroy(&e->turn);
    (void) pthread_mutex_destroy(&e->lock);
    free(e);
}


const vlm_embedder_plan_t *
vlm_embedder_facts(const vlm_embedder_t *e)
{
    return &e->facts;
}


void
vlm_embedder_id(const vlm_embedder_t *e, uint8_t id[32])
{
    memcpy(id, e->id, sizeof(e->id));
}


/* Waits for the caller's turn, so that a short call waits for one batch of a long one. */
static void
begin_turn(vlm_embedder_t *e)
{
    uint64_t  ticket;

    (void) pthread_mutex_lock(&e->lock);

    for (ticket = e->next++; ticket != e->now; ) {
        (void) pthread_cond_wait(&e->turn, &e->lock);
    }

    (void) pthread_mutex_unlock(&e->lock);
}


static void
end_turn(vlm_embedder_t *e)
{
    (void) pthread_mutex_lock(&e->lock);
    e->now++;
    (void) pthread_cond_broadcast(&e->turn);
    (void) pthread_mutex_unlock(&e->lock);
}


/* As many of n texts as fit one pass, at least one; returns how many, or 0 and an error. */
static size_t
run_batch(vlm_embedder_t *e, const vlm_embedder_text_t *texts, size_t n, float *out,
          vlm_err_t *err)
{
    uint32_t           i, used, most = e->facts.tokens;
    vlm_embed_work_t  *w = &e->work;

    w->border[0] = 0;

    for (i = 0; i < n && w->rows - w->border[i] >= most; i++) {
        if (vlm_wordpiece_ids(e->pieces, texts[i].text, texts[i].bytes, w->ids + w->border[i], most,
                              &used, err) != 0)
        {
            return 0;
        }

        w->border[i + 1] = w->border[i] + used;
    }

    n = i;
    vlm_embed_forward(e, (uint32_t) n);

    for (i = 0; i < n; i++) {
        if (vlm_embed_mean(e, i, out + (size_t) i * e->facts.dim) != 0) {
            (void) vlm_fail(err, VLM_EMODEL, "the vector of a text is not finite");
            return 0;
        }
    }

    return n;
}


int
vlm_embedder_run(vlm_embedder_t *e, const vlm_embedder_text_t *texts, size_t n, float *out,
                 vlm_err_t *err)
{
    size_t  i, done;

    for (i = 0; i < n; i += done) {
        begin_turn(e);
        done = run_batch(e, texts + i, n - i, out + i * e->facts.dim, err);
        end_turn(e);

        if (done == 0) {
            return -1;
        }
    }

    return 0;
}
