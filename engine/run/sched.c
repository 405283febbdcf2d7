/*
 * The state machine, which chooses each job's next piece of work.
 *
 *   WAITING -> ENCODING -> PREFILLING -> (ENCODING -> PREFILLING ...) -> DECODING -> ended
 *
 * A turn of the loop admits jobs, does one slice of one job's prefill (up to VLM_SLICE rows of a
 * prompt, or blocks of the vision encoder that are as much work), then steps all decoding jobs
 * together.  So a long picture delays the next token of other jobs by one slice, and slices are
 * long enough that their steps do not starve a picture.  A job's answer depends neither on the jobs
 * that share its turns nor on the rows that it takes from other jobs.
 */

#include "run/sched.h"

#include "model/turn.h"
#include "run/adapters.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>


int
vlm_sched_open(vlm_t *v, vlm_err_t *err)
{
    vlm_sched_t  *s = &v->sched;

    s->slot = calloc(v->conf.slots, sizeof(*s->slot));
    s->token = calloc(v->conf.slots, sizeof(*s->token));
    s->logprob = calloc(v->conf.slots, sizeof(*s->logprob));
    s->seen = calloc(s->model.seen_words, sizeof(*s->seen));
    s->room = malloc(vlm_kv_room(&s->model.kv));
    s->work = calloc(s->model.config.text.hidden, sizeof(*s->work));

    if (s->slot == NULL || s->token == NULL || s->logprob == NULL || s->seen == NULL
        || s->room == NULL || s->work == NULL)
    {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u slots", v->conf.slots);
    }

    s->encoder = VLM_NONE;

    if (s->model.turned
        && vlm_turn_open(&s->stream, s->model.config.text.hidden,
                         vlm_turn_has_means(&s->model.config.family->text), err) != 0)
    {
        return -1;
    }

    if (vlm_features_open(&s->features, v->conf.features, err) != 0
        || vlm_prefix_open(&s->prefix, v->conf.slots, v->conf.context, err) != 0
        || vlm_adjust_open(&s->adjust, vlm_n_ids(v), v->tokenizer, v->pieces, err) != 0)
    {
        return -1;
    }

    s->masks = vlm_masks_open(v->pieces, v->conf.slots, err);

    if (s->masks == NULL) {
        return -1;
    }

    s->adjust.eos = v->config.generation.eos;
    s->adjust.n_eos = v->config.generation.n_eos;
    s->adjust.mark[0] = v->template.mark[VLM_MARK_CALL];
    s->adjust.mark[1] = v->template.mark[VLM_MARK_CALL_END];
    s->adjust.n_marks = v->config.words->mark[VLM_MARK_CALL] == NULL ? 0 : 2;

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
    free(s->work);
    vlm_turn_close(&s->stream);
    vlm_features_close(&s->features);
    vlm_prefix_close(&s->prefix);
    vlm_adjust_close(&s->adjust);
    vlm_masks_close(s->masks);
    s->masks = NULL;
    vlm_rows_close(&s->rows);
    s->slot = NULL;
    s->room = NULL;
    s->work = NULL;
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


/* The device refused a call and goes on: the results of its calls are undefined. */
static void
begin_again(vlm_t *v, vlm_err_t *err)
{
    uint32_t      i;
    vlm_sched_t  *s = &v->sched;

    for (i = 0; i < v->conf.slots; i++) {
        if (s->slot[i] != NULL) {
            vlm_end_job(v, s->slot[i], VLM_FINISH_NONE, err);
        }

        vlm_prefix_forget(&s->prefix, i);
    }

    for (i = 0; i < s->features.n; i++) {
        vlm_features_forget(&s->features, i);
    }

    s->encoder = VLM_NONE;
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
            vlm_end_job(v, j, VLM_FINISH_CANCELLED, NULL);
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

    v->ops->basic->put(v->device, m->work.seen + (size_t) j->slot * m->seen_words, s->seen,
                m->seen_words * sizeof(uint32_t));
}


/* WAITING -> PREFILLING, while a slot is free. */
static void
admit(vlm_t *v)
{
    uint32_t      n;
    vlm_err_t     why;
    vlm_job_t    *j;
    vlm_sched_t  *s = &v->sched;

    while ((n = count_jobs(v)) < v->conf.slots) {
        j = vlm_take_submitted(v, n == 0);
        if (j == NULL) {
            break;
        }

        memset(&why, 0, sizeof(why));

        if (vlm_adapter_failed(v, j->prompt, &why) != 0) {
            vlm_tell_end(v, j, VLM_FINISH_NONE, &why);
            continue;
        }

        vlm_adapter_settle(v, j->prompt);
        j->slot = vlm_prefix_choose(&s->prefix, j->prompt, s->slot);
        j->order = ++s->n_admitted;
        s->slot[j->slot] = j;
        vlm_enter(j, VLM_PREFILLING);
        vlm_skip_rows(j, vlm_prefix_begin(&s->prefix, j->slot, j->prompt));

        mark_seen(v, j);
        vlm_tell_started(v, j);
    }

    pthread_mutex_lock(&v->mutex);
    v->stat.running = count_jobs(v);
    pthread_mutex_unlock(&v->mutex);
}


/* 1: this run takes no more jobs.  Else an adapter has to be put. */
static int
is_over(vlm_t *v)
{
    int  over;

    pthread_mutex_lock(&v->mutex);
    over = !v->running;
    pthread_mutex_unlock(&v->mutex);

    return over;
}


int
vlm_sched_run(vlm_t *v, vlm_err_t *err)
{
    int        refused, worked;
    uint32_t   i;
    vlm_err_t  stopped = { VLM_ECANCELLED, "the server is stopping" };

    for ( ;; ) {
        drop_cancelled(v);
        refused = vlm_adapters_put(v, err) != 0;

        if (refused) {
            if (err->code != VLM_EMEMORY) {
                break;
            }

            memset(err, 0, sizeof(*err));          /* the slice is put again */
        }

        admit(v);

        if (count_jobs(v) == 0 && is_over(v)) {
            return 0;
        }

        if (vlm_host_stopped(v)) {
            break;
        }

        if (count_jobs(v) == 0) {      /* an adapter alone; a device without memory gets time */
            if (refused) {
                (void) nanosleep(&(struct timespec) { .tv_nsec = 10000000 }, NULL);
            }

            continue;
        }

        worked = vlm_sched_read(v);
        worked |= vlm_sched_step(v);

        if (!worked) {
            vlm_masks_wait(v->sched.masks);
            vlm_tick(v);
        }

        if (v->ops->basic->sync(v->device, err) != 0) {
            if (err->code != VLM_EMEMORY) {
                break;
            }

            begin_again(v, err);
        }
    }

    /* After a stop, or when the device is lost: every job gets its last event. */

    if (err->code != VLM_OK) {
        stopped = *err;
    }

    for (i = 0; i < v->conf.slots; i++) {
        if (v->sched.slot[i] != NULL) {
            vlm_end_job(v, v->sched.slot[i], VLM_FINISH_NONE, &stopped);
        }
    }

    pthread_mutex_lock(&v->mutex);
    v->running = 0;
    v->stat.running = 0;
    pthread_mutex_unlock(&v->mutex);

    vlm_fail_jobs(v, &stopped);

    return err->code == VLM_OK ? 0 : -1;
}
