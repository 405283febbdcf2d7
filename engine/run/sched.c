/*
 * The state machine: which job does what next.
 *
 *   WAITING -> ENCODING -> PREFILLING -> (ENCODING -> PREFILLING ...) -> DECODING -> ended
 *
 * A turn of the loop admits, does one slice of one job's reading (up to VLM_SLICE rows of a prompt,
 * or as many blocks of the tower as are as much work), then steps all that decode together.  So a
 * long picture delays the others' next token by one slice; and slices are long enough that others'
 * steps between them do not keep a picture from being read.  What a job says does not depend on
 * who shares its turns, nor on what it need not read because another did.
 */

#include "run/engine.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "chat/stop.h"
#include "run/told.h"

#define RECORDED    8                  /* rows of a step that a device may keep, at most */
#define LEAST_COPY  32                 /* rows that are worth copying, or waiting for */

typedef struct {                       /* who is asked whether to leave, and what was said */
    vlm_t      *v;
    vlm_job_t  *j;                     /* whose slice it is, or NULL */
    int         quit;
} vlm_asker_t;

static void enter(vlm_job_t *j, vlm_job_state_t state);
static void want_picture(vlm_t *v, vlm_job_t *j);
static void let_go_picture(vlm_t *v, vlm_job_t *j);
static void skip_rows(vlm_job_t *j, uint32_t n);
static int is_led(const vlm_t *v, const vlm_job_t *j);
static void find_leader(const vlm_t *v, vlm_job_t *j, uint32_t rows);
static uint32_t find_rows(const vlm_t *v, const vlm_job_t *j, uint32_t *from);
static void take_rows(vlm_t *v, vlm_job_t *j, uint32_t from, uint32_t n);
static void drop_cancelled(vlm_t *v);
static void admit(vlm_t *v);
static void read_one(vlm_t *v);
static int catch_up(vlm_t *v, vlm_job_t *j);
static int at_picture(const vlm_job_t *j);
static void encode_slice(vlm_t *v, vlm_job_t *j);
static void prefill_slice(vlm_t *v, vlm_job_t *j);
static int should_quit(void *data);
static void step_all(vlm_t *v);
static int run_batch(vlm_t *v, vlm_job_t *only, vlm_job_t **jobs);
static void adjust_rows(vlm_t *v, uint32_t R, vlm_job_t **jobs);
static void take_token(vlm_t *v, vlm_job_t *j, uint32_t token, float logprob);
static void end_job(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err);
static void begin_again(vlm_t *v, vlm_err_t *err);
static void tick(vlm_t *v);


int
vlm_sched_open(vlm_t *v, vlm_err_t *err)
{
    vlm_sched_t  *s = &v->sched;

    s->slot = calloc(v->conf.slots, sizeof(*s->slot));
    s->token = calloc(v->conf.slots, sizeof(*s->token));
    s->logprob = calloc(v->conf.slots, sizeof(*s->logprob));
    s->seen = calloc(s->model.seen_words, sizeof(*s->seen));
    s->room = malloc(vlm_kv_room(&s->model.kv));

    if (s->slot == NULL || s->token == NULL || s->logprob == NULL || s->seen == NULL
        || s->room == NULL)
    {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u slots", v->conf.slots);
    }

    s->tower = VLM_NONE;

    if (vlm_features_open(&s->features, v->conf.features, err) != 0
        || vlm_prefix_open(&s->prefix, v->conf.slots, v->conf.context, err) != 0
        || vlm_adjust_open(&s->adjust, vlm_n_ids(v), v->json, err) != 0)
    {
        return -1;
    }

    return vlm_rows_open(&s->rows, VLM_SLICE, v->conf.slots, err);
}


void
vlm_sched_close(vlm_t *v)
{
    vlm_sched_t  *s = &v->sched;

    free(s->slot);
    free(s->token);
    free(s->logprob);
    free(s->seen);
    free(s->room);
    vlm_features_close(&s->features);
    vlm_prefix_close(&s->prefix);
    vlm_adjust_close(&s->adjust);
    vlm_rows_close(&s->rows);
    s->slot = NULL;
    s->room = NULL;
    s->token = s->seen = NULL;
    s->logprob = NULL;
}


static uint32_t
count_jobs(const vlm_t *v)
{
    uint32_t  i, n;

    for (n = 0, i = 0; i < v->conf.slots; i++) {
        n += v->sched.slot[i] != NULL;
    }

    return n;
}


int
vlm_sched_run(vlm_t *v, vlm_err_t *err)
{
    uint32_t   i;
    vlm_err_t  stopped = { VLM_ECANCELLED, "the server is stopping" };

    for ( ;; ) {
        drop_cancelled(v);
        admit(v);

        if (count_jobs(v) == 0) {
            return 0;
        }

        if (vlm_stopped(v)) {
            break;
        }

        read_one(v);
        step_all(v);

        if (v->ops->sync(v->device, err) != 0) {
            if (err->code != VLM_EMEMORY) {
                break;
            }

            begin_again(v, err);
        }
    }

    /* Stopped, or the device is lost: nobody is left without an answer. */

    if (err->code != VLM_OK) {
        stopped = *err;
    }

    for (i = 0; i < v->conf.slots; i++) {
        if (v->sched.slot[i] != NULL) {
            end_job(v, v->sched.slot[i], VLM_FINISH_NONE, &stopped);
        }
    }

    pthread_mutex_lock(&v->mutex);
    v->running = 0;
    v->stat.running = 0;
    pthread_mutex_unlock(&v->mutex);

    vlm_fail_jobs(v, &stopped);

    return err->code == VLM_OK ? 0 : -1;
}


/* The device refused something and goes on: what it was to write is worth nothing. */
static void
begin_again(vlm_t *v, vlm_err_t *err)
{
    uint32_t      i;
    vlm_sched_t  *s = &v->sched;

    for (i = 0; i < v->conf.slots; i++) {
        if (s->slot[i] != NULL) {
            end_job(v, s->slot[i], VLM_FINISH_NONE, err);
        }

        vlm_prefix_forget(&s->prefix, i);
    }

    for (i = 0; i < s->features.n; i++) {
        vlm_features_forget(&s->features, i);
    }

    s->tower = VLM_NONE;
    memset(err, 0, sizeof(*err));
}


static void
drop_cancelled(vlm_t *v)
{
    uint32_t    i;
    vlm_job_t  *j;

    while ((j = vlm_take_cancelled(v)) != NULL) {
        vlm_tell_end(v, j, VLM_FINISH_CANCELLED, NULL);
    }

    for (i = 0; i < v->conf.slots; i++) {
        j = v->sched.slot[i];

        if (j != NULL && atomic_load(&j->cancelled)) {
            end_job(v, j, VLM_FINISH_CANCELLED, NULL);
        }
    }
}


/* Tokens of the prompt count for the repetition penalty, a picture's rows among them. */
static void
mark_seen(vlm_t *v, const vlm_job_t *j)
{
    uint32_t      i, id;
    vlm_sched_t  *s = &v->sched;
    vlm_model_t  *m = &s->model;

    memset(s->seen, 0, m->seen_words * sizeof(uint32_t));

    for (i = 0; i < j->prompt->n; i++) {
        id = j->prompt->token[i];
        s->seen[id / 32] |= 1u << (id % 32);
    }

    v->ops->put(v->device, m->work.seen + (size_t) j->slot * m->seen_words, s->seen,
                m->seen_words * sizeof(uint32_t));
}


static void
enter(vlm_job_t *j, vlm_job_state_t state)
{
    uint64_t  now;

    now = vlm_now_us();
    j->spent_us[j->state] += now - j->state_us;
    j->state_us = now;
    j->state = state;
}


/* WAITING -> PREFILLING, while a slot is free. */
static void
admit(vlm_t *v)
{
    uint32_t      n;
    vlm_job_t    *j;
    vlm_sched_t  *s = &v->sched;

    while ((n = count_jobs(v)) < v->conf.slots) {
        j = vlm_take_submitted(v, n == 0);
        if (j == NULL) {
            break;
        }

        j->slot = vlm_prefix_choose(&s->prefix, j->prompt, s->slot);
        j->order = ++s->n_admitted;
        s->slot[j->slot] = j;
        enter(j, VLM_PREFILLING);
        skip_rows(j, vlm_prefix_begin(&s->prefix, j->slot, j->prompt));

        mark_seen(v, j);
        vlm_tell_started(v, j);
    }

    pthread_mutex_lock(&v->mutex);
    v->stat.running = count_jobs(v);
    pthread_mutex_unlock(&v->mutex);
}


/* These rows, whole pictures among them, need not be read. */
static void
skip_rows(vlm_job_t *j, uint32_t n)
{
    const vlm_prompt_t  *p = j->prompt;

    j->usage.cached_tokens += n - j->n_ctx;
    j->n_ctx = n;

    while (j->picture < p->n_pictures && p->picture_at[j->picture] < n) {
        j->picture++;
        j->usage.cached_pictures++;
    }
}


/* Rows that some other slot has of the job's prompt; n_ctx if none has more than the job itself. */
static uint32_t
find_rows(const vlm_t *v, const vlm_job_t *j, uint32_t *from)
{
    uint32_t  i, n, most;

    most = j->n_ctx;
    *from = j->slot;

    for (i = 0; i < v->conf.slots; i++) {
        n = i == j->slot ? 0 : vlm_prefix_match(&v->sched.prefix, i, j->prompt);

        if (n > most) {
            most = n;
            *from = i;
        }
    }

    return most;
}


/*
 * Somebody ahead who reads what this job would read next, so that it can be had for a copy then.
 * rows: what there is to be had already.  Nobody waits in a circle: the one with more rows is
 * ahead, or the one that came first.
 */
static void
find_leader(const vlm_t *v, vlm_job_t *j, uint32_t rows)
{
    uint32_t          i, common;
    const vlm_job_t  *other;

    for (i = 0; i < v->conf.slots; i++) {
        other = v->sched.slot[i];

        if (other == NULL || other == j || other->state == VLM_DECODING || other->n_ctx < j->n_ctx
            || (other->n_ctx == j->n_ctx && other->order > j->order))
        {
            continue;
        }

        common = vlm_prefix_common(&v->sched.prefix, i, j->prompt);

        if (common > other->n_ctx && common >= rows + LEAST_COPY) {
            j->led_by = other->order;
            j->led_slot = i;
            j->led_to = common;
            return;
        }
    }

    j->led_by = 0;
}


/* Does the leader that was found still read what this job waits for? */
static int
is_led(const vlm_t *v, const vlm_job_t *j)
{
    const vlm_job_t  *leader;

    leader = j->led_by == 0 ? NULL : v->sched.slot[j->led_slot];

    return leader != NULL && leader->order == j->led_by && leader->state != VLM_DECODING
           && leader->n_ctx < j->led_to;
}


/* Rows up to n of the job's prompt out of another slot, and the picture that it was at is past. */
static void
take_rows(vlm_t *v, vlm_job_t *j, uint32_t from, uint32_t n)
{
    vlm_sched_t  *s = &v->sched;

    if (vlm_kv_copy(&s->model, from, j->slot, j->n_ctx, n, s->room) != 0) {
        return;                        /* the device is lost: seen at the end of the turn */
    }

    if (j->state == VLM_ENCODING) {
        j->usage.cached_pictures -= (uint32_t) j->known;
        enter(j, VLM_PREFILLING);
    }

    let_go_picture(v, j);
    skip_rows(j, n);
    vlm_prefix_read(&s->prefix, j->slot, n);
}


/*
 * What needs no work of the device: rows and features that are there already.  1: what comes next
 * does; 0: it is not this job's turn.
 */
static int
catch_up(vlm_t *v, vlm_job_t *j)
{
    uint32_t      n, from;
    vlm_sched_t  *s = &v->sched;

    /* Whose picture is in the tower goes on: others may wait for it to be empty. */

    if (j->state != VLM_ENCODING || s->tower != j->features) {
        if (is_led(v, j)) {
            return 0;
        }

        n = find_rows(v, j, &from);
        find_leader(v, j, n);

        if (is_led(v, j)) {
            return 0;
        }

        if (n >= j->n_ctx + LEAST_COPY) {
            take_rows(v, j, from, n);
        }
    }

    if (j->state == VLM_PREFILLING && at_picture(j)) {
        want_picture(v, j);
    }

    if (j->state == VLM_ENCODING && s->features.entry[j->features].ready) {
        j->picture++;
        enter(j, VLM_PREFILLING);
    }

    return j->state == VLM_PREFILLING || s->tower == VLM_NONE || s->tower == j->features;
}


/* One slice for one of those that still read; they take turns, but one picture is in the tower. */
static void
read_one(vlm_t *v)
{
    uint32_t      i;
    vlm_job_t    *j;
    vlm_sched_t  *s = &v->sched;

    for (i = 0; i < v->conf.slots; i++) {
        s->turn = (s->turn + 1) % v->conf.slots;
        j = s->slot[s->turn];

        if (j == NULL || j->state == VLM_DECODING || !catch_up(v, j)) {
            continue;
        }

        if (j->state == VLM_ENCODING) {
            encode_slice(v, j);
        } else {
            prefill_slice(v, j);
        }

        return;
    }
}


/* Are the rows that come next those of a picture without features? */
static int
at_picture(const vlm_job_t *j)
{
    const vlm_prompt_t  *p = j->prompt;

    return j->picture < p->n_pictures && p->picture_at[j->picture] == j->n_ctx;
}


/* PREFILLING -> ENCODING, even if that is done already. */
static void
want_picture(vlm_t *v, vlm_job_t *j)
{
    vlm_picture_key_t  key;

    let_go_picture(v, j);

    vlm_picture_key(j->prompt, j->picture, &key);
    j->features = vlm_features_hold(&v->sched.features, &key, &j->known);
    j->usage.cached_pictures += (uint32_t) j->known;
    enter(j, VLM_ENCODING);
}


/* The tower is free if nobody else waits for what is in it. */
static void
let_go_picture(vlm_t *v, vlm_job_t *j)
{
    vlm_sched_t  *s = &v->sched;

    if (j->features == VLM_NONE) {
        return;
    }

    vlm_features_let_go(&s->features, j->features);

    if (s->tower == j->features && s->features.entry[j->features].holders == 0) {
        s->tower = VLM_NONE;
    }

    j->features = VLM_NONE;
}


/* Some blocks of the tower, for all who wait for this picture. */
static void
encode_slice(vlm_t *v, vlm_job_t *j)
{
    int                    done;
    vlm_sched_t           *s = &v->sched;
    vlm_model_t           *m = &s->model;
    vlm_asker_t            asker = { v, j, 0 };
    vlm_features_entry_t  *e = &s->features.entry[j->features];

    if (e->holders > 1) {
        asker.j = NULL;                /* others go on with what this one leaves */
    }

    v->ops->ask(v->device, should_quit, &asker);

    if (s->tower == VLM_NONE) {
        s->tower = j->features;
        vlm_vision_begin(m, j->prompt->picture[j->picture]);
    }

    done = vlm_vision_blocks(m, vlm_vision_slice(m));

    if (done) {
        vlm_vision_end(m, s->tower);
    }

    v->ops->ask(v->device, NULL, NULL);
    tick(v);

    if (asker.quit) {
        s->tower = VLM_NONE;           /* left undone */

    } else if (done) {
        s->tower = VLM_NONE;
        e->ready = 1;
    }
}


/* Between layers and, by the device, within them.  The answer stays what it was. */
static int
should_quit(void *data)
{
    vlm_asker_t  *a = data;

    tick(a->v);

    if (vlm_stopped(a->v) || (a->j != NULL && atomic_load(&a->j->cancelled))) {
        a->quit = 1;
    }

    return a->quit;
}


static void
set_pick(const vlm_job_t *j, vlm_pick_t *pick)
{
    pick->temperature = j->sampling.temperature;
    pick->top_p = j->sampling.top_p;
    pick->top_k = j->sampling.top_k;
    pick->repetition_penalty = j->sampling.repetition_penalty;
    pick->seed = j->sampling.seed;
    pick->step = j->usage.completion_tokens;
    pick->seen = j->slot;
}


/* PREFILLING -> DECODING with the prompt's last rows. */
static void
prefill_slice(vlm_t *v, vlm_job_t *j)
{
    uint32_t             i, end, source;
    vlm_pick_t           pick;
    vlm_rows_t          *rows = &v->sched.rows;
    const vlm_prompt_t  *p = j->prompt;

    /* Rows up to the next picture that has no features yet. */

    end = j->picture < p->n_pictures ? p->picture_at[j->picture] : p->n;

    if (end - j->n_ctx > VLM_SLICE) {
        end = j->n_ctx + VLM_SLICE;
    }

    vlm_rows_clear(rows);
    vlm_rows_sequence(rows, j->slot, j->n_ctx);

    for (i = j->n_ctx; i < end; i++) {
        source = p->source[i];

        if (source != VLM_NONE) {
            source += j->features * v->sched.model.vision.cells;
        }

        vlm_rows_add(rows, p->token[i], source, p->pos + 3 * (size_t) i);
    }

    if (end == p->n) {
        set_pick(j, &pick);
        vlm_rows_pick(rows, &pick);
    }

    if (run_batch(v, j, &j) != 0) {
        return;                        /* cancelled or stopped: seen at the loop's top */
    }

    j->n_ctx = end;
    vlm_prefix_read(&v->sched.prefix, j->slot, end);

    if (end == p->n) {
        let_go_picture(v, j);
        j->pos = p->next_pos;
        enter(j, VLM_DECODING);
        j->first_us = j->state_us;

        take_token(v, j, v->sched.token[0], v->sched.logprob[0]);
    }
}


/* Steps of few rows, as step_all() asks for them. */
int
vlm_sched_record(vlm_t *v, vlm_err_t *err)
{
    uint32_t        i, n;
    vlm_rows_t     *rows = &v->sched.rows;
    vlm_batch_t     b;
    vlm_model_t    *m = &v->sched.model;
    const int32_t   pos[3] = { 0, 0, 0 };

    for (n = 1; v->ops->record != NULL && n <= v->conf.slots && n <= RECORDED; n++) {
        vlm_rows_clear(rows);

        for (i = 0; i < n; i++) {
            vlm_rows_sequence(rows, i, v->conf.context - 1);
            vlm_rows_add(rows, 0, VLM_NONE, pos);
            vlm_rows_pick(rows, NULL);
        }

        vlm_rows_put(rows, v->ops, v->device, m->work.ids, m->work.pick, &b);
        vlm_text_record(m, &b);
    }

    return v->ops->sync(v->device, err);
}


/* One token for everybody who decodes. */
static void
step_all(vlm_t *v)
{
    int32_t      pos[3];
    uint32_t     i, n;
    vlm_job_t   *j, *jobs[VLM_SLICE];
    vlm_pick_t   pick;
    vlm_rows_t  *rows = &v->sched.rows;

    vlm_rows_clear(rows);

    for (n = 0, i = 0; i < v->conf.slots; i++) {
        j = v->sched.slot[i];

        if (j == NULL || j->state != VLM_DECODING) {
            continue;
        }

        pos[0] = pos[1] = pos[2] = j->pos;
        set_pick(j, &pick);

        vlm_rows_sequence(rows, j->slot, j->n_ctx);
        vlm_rows_add(rows, j->token, VLM_NONE, pos);
        vlm_rows_pick(rows, &pick);
        jobs[n++] = j;
    }

    if (n == 0 || run_batch(v, NULL, jobs) != 0) {
        return;
    }

    for (i = 0; i < n; i++) {
        vlm_prefix_add(&v->sched.prefix, jobs[i]->slot, jobs[i]->token);
        jobs[i]->n_ctx++;
        jobs[i]->pos++;
        take_token(v, jobs[i], v->sched.token[i], v->sched.logprob[i]);
    }
}


/*
 * The rows through all layers, and tokens for those that asked.  only: whose slice it is; jobs:
 * whose rows want logits.
 */
static int
run_batch(vlm_t *v, vlm_job_t *only, vlm_job_t **jobs)
{
    vlm_asker_t       asker = { v, only, 0 };
    vlm_batch_t       b;
    vlm_sched_t      *s = &v->sched;
    vlm_model_t      *m = &s->model;
    vlm_text_work_t  *w = &m->work;

    uint64_t          since;

    vlm_rows_put(&s->rows, v->ops, v->device, w->ids, w->pick, &b);

    v->ops->ask(v->device, should_quit, &asker);
    since = 0;

    if (only == NULL) {
        (void) vlm_text_step(m, &b, should_quit, &asker);

    } else if (vlm_text_forward(m, &b, should_quit, &asker) == 0 && b.R > 0) {
        if (v->ops->sync(v->device, NULL) == 0) {
            since = vlm_now_us();
        }

        vlm_text_head(m, &b);
    }

    v->ops->ask(v->device, NULL, NULL);

    if (asker.quit) {
        return -1;                     /* nothing is picked from what was left undone */
    }

    if (b.R > 0) {
        adjust_rows(v, b.R, jobs);

        v->ops->sample(v->device, w->logits, m->config.text.vocab, m->n_vocab, &b, w->seen,
                       m->seen_words, w->token, w->logprob);
        v->ops->get(v->device, s->token, w->token, b.R * sizeof(uint32_t));
        v->ops->get(v->device, s->logprob, w->logprob, b.R * sizeof(float));
    }

    tick(v);

    if (v->ops->sync(v->device, NULL) != 0) {
        return -1;
    }

    if (only != NULL && since != 0) {
        only->pick_us = vlm_now_us() - since;
    }

    return 0;
}


/* Rows of those who asked for something that the device does not do. */
static void
adjust_rows(vlm_t *v, uint32_t R, vlm_job_t **jobs)
{
    float         *row;
    uint32_t       r;
    uint64_t       bytes;
    vlm_adjust_t  *a = &v->sched.adjust;
    vlm_model_t   *m = &v->sched.model;

    bytes = (uint64_t) a->n_ids * sizeof(float);

    for (r = 0; r < R; r++) {
        if (!vlm_adjust_wanted(jobs[r])) {
            continue;
        }

        row = m->work.logits + (size_t) r * m->config.text.vocab;
        v->ops->get(v->device, vlm_adjust_raw(a, jobs[r]), row, bytes);

        if (v->ops->sync(v->device, NULL) != 0) {
            return;                    /* run_batch() finds it, too */
        }

        switch (vlm_adjust(a, jobs[r])) {
        case VLM_ADJUST_PUT:
            v->ops->put(v->device, row, a->row, bytes);
            break;
        case VLM_ADJUST_NOTHING_LEFT:
            jobs[r]->no_choice = 1;
            break;
        case VLM_ADJUST_KEEP:
            break;
        }
    }
}


static int
is_eos(const vlm_t *v, uint32_t token)
{
    uint32_t  i;

    for (i = 0; i < v->config.generation.n_eos; i++) {
        if (v->config.generation.eos[i] == token) {
            return 1;
        }
    }

    return 0;
}


/* Shows what no stop string can begin in; 1 if one was met. */
static int
show_text(vlm_t *v, vlm_job_t *j, int last)
{
    int  hit;

    j->clear = vlm_stop_scan(j->text, j->bytes, j->clear, j->stop, j->sampling.n_stop, last, &hit);
    vlm_tell_text(v, j, j->clear, vlm_told_clear(j));

    return hit;
}


/* A token more of the answer, and whether it is the last. */
static vlm_finish_t
append_token(vlm_t *v, vlm_job_t *j, uint32_t token)
{
    size_t  bytes;

    j->token = token;
    j->usage.completion_tokens++;
    j->bytes += vlm_detok_next(&j->detok, v->tokenizer, token, j->text + j->bytes);

    if (j->sampling.logprobs) {
        bytes = 0;

        if (!vlm_token_is_special(v->tokenizer, token)) {
            (void) vlm_token_bytes(v->tokenizer, token, &bytes);
        }

        vlm_told_add(j, token);
        vlm_told_place(j, j->detok.n_held, bytes);
    }

    if (vlm_json_mode_done(&j->json)) {
        return VLM_FINISH_STOP;        /* nothing else may follow: no need to ask for the end */
    }

    /* max_tokens was bounded by the context when the job was submitted. */

    return j->usage.completion_tokens >= j->sampling.max_tokens ? VLM_FINISH_LENGTH
                                                                : VLM_FINISH_NONE;
}


/* Why there is no token: 0, or -1. */
static int
check_token(const vlm_t *v, vlm_job_t *j, uint32_t token, float logprob, vlm_err_t *err)
{
    if (j->no_choice) {
        return vlm_fail(err, VLM_EINPUT, "the bias leaves no token to pick after %u tokens",
                        j->n_ctx);
    }

    if (isnan(logprob)) {
        return vlm_fail(err, VLM_EMODEL, "the model's logits are not numbers after %u tokens",
                        j->n_ctx);
    }

    if (vlm_adjust_picked(j, v->tokenizer, token) != 0) {
        return vlm_fail(err, VLM_EMODEL, "token %u was picked, JSON does not go on with it", token);
    }

    return 0;
}


static void
take_token(vlm_t *v, vlm_job_t *j, uint32_t token, float logprob)
{
    vlm_err_t     err = { VLM_OK, "" };
    vlm_finish_t  finish;

    if (check_token(v, j, token, logprob, &err) != 0) {
        end_job(v, j, VLM_FINISH_NONE, &err);
        return;
    }

    finish = is_eos(v, token) ? VLM_FINISH_STOP : append_token(v, j, token);

    if (finish != VLM_FINISH_NONE) {
        j->bytes += vlm_detok_end(&j->detok, j->text + j->bytes);
        vlm_told_place(j, 0, 0);
    }

    if (show_text(v, j, finish != VLM_FINISH_NONE)) {
        finish = VLM_FINISH_STOP;
    }

    if (finish != VLM_FINISH_NONE) {
        end_job(v, j, finish, NULL);
    }
}


/* After this the job is the loop's: not to be touched. */
static void
end_job(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err)
{
    vlm_sched_t  *s = &v->sched;

    let_go_picture(v, j);
    vlm_prefix_end(&s->prefix, j->slot);
    s->slot[j->slot] = NULL;

    if (err != NULL && err->code == VLM_EMODEL) {
        vlm_prefix_forget(&s->prefix, j->slot);    /* its rows may be no numbers */
    }

    enter(j, j->state);
    j->usage.wait_ms = (uint32_t) (j->spent_us[VLM_WAITING] / 1000);
    j->usage.encode_ms = (uint32_t) (j->spent_us[VLM_ENCODING] / 1000);
    j->usage.prefill_ms = (uint32_t) (j->spent_us[VLM_PREFILLING] / 1000);
    j->usage.decode_ms = (uint32_t) (j->spent_us[VLM_DECODING] / 1000);
    j->usage.pick_ms = (uint32_t) (j->pick_us / 1000);

    if (j->first_us != 0) {
        j->usage.first_ms = (uint32_t) ((j->first_us - j->submitted_us) / 1000);
    }

    vlm_tell_end(v, j, finish, err);
}


static void
tick(vlm_t *v)
{
    uint64_t  rows = vlm_prefix_rows(&v->sched.prefix);

    pthread_mutex_lock(&v->mutex);
    v->stat.ticks++;
    v->stat.kv_rows = rows;
    pthread_mutex_unlock(&v->mutex);
}
