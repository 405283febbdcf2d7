/*
 * The prefill of a prompt: its rows a slice at a time, its pictures a few blocks of the vision
 * encoder at a time, and the rows that need not be computed because another slot has them, or an
 * earlier job (the leader) is computing them.
 */

#include "run/sched.h"

#include "run/adapters.h"

#define LEAST_COPY  32                 /* rows that are worth copying, or waiting for */


void
vlm_skip_rows(vlm_job_t *j, uint32_t n)
{
    const vlm_prompt_t  *p = j->prompt;

    j->usage.cached_tokens += n - j->n_ctx;
    j->n_ctx = n;

    while (j->picture < p->n_pictures && p->picture_at[j->picture] < n) {
        j->picture++;
        j->usage.cached_pictures++;
    }
}


/* Rows of the job's prompt that another slot has; n_ctx if none has more than the job itself. */
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
 * Finds a leader: a job that reads the rows that this job would read next, so that they can be
 * copied afterwards.  rows: the number of rows that can be copied already.  A cycle of waiting jobs
 * is impossible: the job with more rows leads, or the one that came first.
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


/* 1 if the leader still reads the rows that this job waits for. */
static int
is_led(const vlm_t *v, const vlm_job_t *j)
{
    const vlm_job_t  *leader;

    leader = j->led_by == 0 ? NULL : v->sched.slot[j->led_slot];

    return leader != NULL && leader->order == j->led_by && leader->state != VLM_DECODING
           && leader->n_ctx < j->led_to;
}


/* Copies rows up to n of the job's prompt from another slot; the picture in work is then done. */
static void
take_rows(vlm_t *v, vlm_job_t *j, uint32_t from, uint32_t n)
{
    vlm_sched_t  *s = &v->sched;

    if (vlm_kv_copy(&s->model, from, j->slot, j->n_ctx, n, s->room) != 0) {
        return;                        /* the device is lost, which the end of the turn handles */
    }

    if (j->state == VLM_ENCODING) {
        j->usage.cached_pictures -= (uint32_t) j->hit;
        vlm_enter(j, VLM_PREFILLING);
    }

    vlm_release_picture(v, j);
    vlm_skip_rows(j, n);
    vlm_prefix_read(&s->prefix, j->slot, n);
}


/* 1 if the next rows belong to a picture without features. */
static int
at_picture(const vlm_job_t *j)
{
    const vlm_prompt_t  *p = j->prompt;

    return j->picture < p->n_pictures && p->picture_at[j->picture] == j->n_ctx;
}


/* PREFILLING -> ENCODING, even if the features are computed already. */
static void
want_picture(vlm_t *v, vlm_job_t *j)
{
    vlm_picture_key_t  key;

    vlm_release_picture(v, j);

    vlm_picture_key(j->prompt, j->picture, &key);
    j->features = vlm_features_hold(&v->sched.features, &key, &j->hit);
    j->usage.cached_pictures += (uint32_t) j->hit;
    vlm_enter(j, VLM_ENCODING);
}


void
vlm_release_picture(vlm_t *v, vlm_job_t *j)
{
    vlm_sched_t  *s = &v->sched;

    if (j->features == VLM_NONE) {
        return;
    }

    vlm_features_release(&s->features, j->features);

    if (s->encoder == j->features && s->features.entry[j->features].holders == 0) {
        s->encoder = VLM_NONE;
    }

    j->features = VLM_NONE;
}


/* The row behind the next slice, which ends before the next picture that has no features yet. */
static uint32_t
slice_end(const vlm_job_t *j)
{
    const vlm_prompt_t  *p = j->prompt;
    const uint32_t       end = j->picture < p->n_pictures ? p->picture_at[j->picture] : p->n;

    return end - j->n_ctx > VLM_SLICE ? j->n_ctx + VLM_SLICE : end;
}


/*
 * Does the work that needs no device: rows and features that exist already, and the mask of the
 * first token.  1: the next work needs the device; 0: it is not this job's turn, or it has ended.
 */
static int
catch_up(vlm_t *v, vlm_job_t *j)
{
    int             has_mask;
    uint32_t        n, from;
    vlm_sched_t    *s = &v->sched;
    const uint32_t  slot = j->slot;

    has_mask = vlm_has_mask(v, j);     /* it is made while the prompt is read */

    if (v->sched.slot[slot] != j || !vlm_adapter_ready(v, j->prompt)) {
        return 0;
    }

    /* The job whose picture is in the vision encoder goes on: others may wait for the encoder. */

    if (j->state != VLM_ENCODING || s->encoder != j->features) {
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
        vlm_enter(j, VLM_PREFILLING);
    }

    if (j->state == VLM_PREFILLING) {
        return has_mask || slice_end(j) < j->prompt->n;
    }

    return s->encoder == VLM_NONE || s->encoder == j->features;
}


/* Runs some blocks of the vision encoder, for all jobs that wait for this picture. */
static void
encode_slice(vlm_t *v, vlm_job_t *j)
{
    int                    done;
    vlm_sched_t           *s = &v->sched;
    vlm_model_t           *m = &s->model;
    vlm_asker_t            asker = { v, j, 0 };
    vlm_features_entry_t  *e = &s->features.entry[j->features];

    if (e->holders > 1) {
        asker.j = NULL;                /* other jobs need this picture, so that the cancellation
                                          of this one does not end the work */
    }

    vlm_adapt_vision(m, j->prompt);
    v->ops->basic->ask(v->device, vlm_should_quit, &asker);

    if (s->encoder == VLM_NONE) {
        s->encoder = j->features;
        vlm_vision_begin(m, j->prompt->picture[j->picture], s->encoder);
    }

    done = vlm_vision_blocks(m, vlm_vision_slice(m));

    if (done) {
        vlm_vision_end(m);
    }

    v->ops->basic->ask(v->device, NULL, NULL);
    vlm_tick(v);

    if (asker.quit) {
        s->encoder = VLM_NONE;           /* left undone */

    } else if (done) {
        s->encoder = VLM_NONE;
        e->ready = 1;
    }
}


/* PREFILLING -> DECODING with the prompt's last rows, or the end if a vector is wanted. */
static void
prefill_slice(vlm_t *v, vlm_job_t *j)
{
    uint32_t             i, end, source;
    vlm_pick_t           pick;
    vlm_rows_t          *rows = &v->sched.rows;
    const vlm_prompt_t  *p = j->prompt;

    end = slice_end(j);
    vlm_rows_clear(rows);
    vlm_rows_sequence(rows, j->slot, j->n_ctx);
    vlm_adapt_rows(rows, p);

    for (i = j->n_ctx; i < end; i++) {
        source = p->source[i];

        if (source != VLM_NONE) {
            source += j->features * v->sched.model.vision.cells;
        }

        vlm_rows_add(rows, p->token[i], source, p->pos + 3 * (size_t) i);
    }

    if (end == p->n && j->sampling.vector == 0) {
        vlm_set_pick(j, &pick);
        vlm_rows_pick(rows, &pick);
    }

    if (vlm_pass(v, j, &j) != 0) {
        return;                        /* cancelled or stopped: handled at the loop's top */
    }

    j->n_ctx = end;
    vlm_prefix_read(&v->sched.prefix, j->slot, end);

    if (end == p->n) {
        vlm_release_picture(v, j);
        j->pos = p->next_pos;
        vlm_enter(j, VLM_DECODING);
        j->first_us = j->state_us;

        if (j->sampling.vector != 0) {
            vlm_take_vector(v, j, rows->T - 1);
        } else {
            vlm_take_token(v, j, v->sched.token[0], v->sched.logprob[0]);
        }
    }
}


int
vlm_sched_read(vlm_t *v)
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

        return 1;
    }

    return 0;
}
