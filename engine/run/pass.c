/* Runs rows through all layers, and picks a token for those that want one. */

#include "run/sched.h"

#include "base/clock.h"
#include "run/adapters.h"



/* Asks between layers and, through the device, within them.  Once the answer is 1 it stays 1. */
int
vlm_should_quit(void *data)
{
    vlm_asker_t  *a = data;

    vlm_tick(a->v);

    if (vlm_host_stopped(a->v) || (a->j != NULL && atomic_load(&a->j->cancelled))) {
        a->quit = 1;
    }

    return a->quit;
}


void
vlm_tick(vlm_t *v)
{
    uint64_t  rows = vlm_prefix_rows(&v->sched.prefix);

    pthread_mutex_lock(&v->mutex);
    v->stat.ticks++;
    v->stat.kv_rows = rows;
    pthread_mutex_unlock(&v->mutex);
}


void
vlm_adapt_rows(vlm_rows_t *rows, const vlm_prompt_t *p)
{
    if (p->adapter != NULL) {
        vlm_rows_adapter(rows, p->adapter->place, p->scale);
    }
}


void
vlm_adapt_text(vlm_model_t *m, const vlm_rows_t *rows)
{
    const uint32_t  *there = m->work.ids;

    if (m->lora != NULL) {
        m->lora->rows = (vlm_low_rows_t) {
            .any = rows->adapted > 0, .place = rows->place, .scale = rows->scale, .all = VLM_NONE,
            .place_there = there + (rows->place - rows->ids),
            .scale_there = (const float *) there + ((uint32_t *) rows->scale - rows->ids)
        };
    }
}


void
vlm_adapt_vision(vlm_model_t *m, const vlm_prompt_t *p)
{
    if (m->lora != NULL) {
        m->lora->rows = (vlm_low_rows_t) {
            .any = p->tower, .all = p->tower ? p->adapter->place : VLM_NONE, .all_scale = p->scale
        };
    }
}


void
vlm_set_pick(const vlm_job_t *j, vlm_pick_t *pick)
{
    pick->temperature = j->sampling.temperature;
    pick->top_p = j->sampling.top_p;
    pick->top_k = j->sampling.top_k;
    pick->repetition_penalty = j->sampling.repetition_penalty;
    pick->seed = j->sampling.seed;
    pick->step = j->usage.completion_tokens;
    pick->seen = j->slot;
}


/* Adjusts the rows of jobs with parameters that the device does not handle. */
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
        v->ops->basic->get(v->device, vlm_adjust_raw(a, jobs[r]), row, bytes);

        if (v->ops->basic->sync(v->device, NULL) != 0) {
            return;                    /* vlm_pass() handles it, too */
        }

        switch (vlm_adjust(a, jobs[r])) {
        case VLM_ADJUST_PUT:
            v->ops->basic->put(v->device, row, a->row, bytes);
            break;
        case VLM_ADJUST_NOTHING_LEFT:
            jobs[r]->no_choice = 1;
            break;
        case VLM_ADJUST_KEEP:
            break;
        }
    }
}


static void
pick_tokens(vlm_t *v, const vlm_batch_t *b, vlm_job_t **jobs)
{
    vlm_sched_t      *s = &v->sched;
    vlm_model_t      *m = &s->model;
    vlm_text_work_t  *w = &m->work;

    adjust_rows(v, b->R, jobs);

    v->ops->sample(v->device, w->logits, m->config.text.vocab, m->n_vocab, b, w->seen,
                   m->seen_words, w->token, w->logprob);
    v->ops->basic->get(v->device, s->token, w->token, b->R * sizeof(uint32_t));
    v->ops->basic->get(v->device, s->logprob, w->logprob, b->R * sizeof(float));
}


int
vlm_pass(vlm_t *v, vlm_job_t *only, vlm_job_t **jobs)
{
    uint64_t       since;
    vlm_asker_t    asker = { v, only, 0 };
    vlm_batch_t    b;
    vlm_model_t   *m = &v->sched.model;

    vlm_rows_put(&v->sched.rows, v->ops, v->device, m->work.ids, m->work.pick, &b);

    vlm_adapt_text(m, &v->sched.rows);
    v->ops->basic->ask(v->device, vlm_should_quit, &asker);
    since = 0;

    if (only == NULL) {
        (void) vlm_text_step(m, &b, vlm_should_quit, &asker);

    } else if (vlm_text_forward(m, &b, vlm_should_quit, &asker) == 0 && b.R > 0) {
        if (v->ops->basic->sync(v->device, NULL) == 0) {
            since = vlm_now_us();
        }

        vlm_text_head(m, &b);
    }

    v->ops->basic->ask(v->device, NULL, NULL);

    if (asker.quit) {
        return -1;                     /* nothing is picked from results that are undefined */
    }

    if (b.R > 0) {
        pick_tokens(v, &b, jobs);
    }

    vlm_tick(v);

    if (v->ops->basic->sync(v->device, NULL) != 0) {
        return -1;
    }

    if (only != NULL && since != 0) {
        only->pick_us = vlm_now_us() - since;
    }

    return 0;
}


/* Keeps steps of few rows, with the shapes that the loop uses. */
int
vlm_sched_record(vlm_t *v, vlm_err_t *err)
{
    uint32_t        i, n;
    vlm_rows_t     *rows = &v->sched.rows;
    vlm_batch_t     b;
    vlm_model_t    *m = &v->sched.model;
    const int32_t   pos[3] = { 0, 0, 0 };

    for (n = 1; v->ops->basic->record != NULL && n <= v->conf.slots && n <= VLM_KEPT_ROWS; n++) {
        vlm_rows_clear(rows);

        for (i = 0; i < n; i++) {
            vlm_rows_sequence(rows, i, v->conf.context - 1);
            vlm_rows_add(rows, 0, VLM_NONE, pos);
            vlm_rows_pick(rows, NULL);
        }

        vlm_rows_put(rows, v->ops, v->device, m->work.ids, m->work.pick, &b);
        vlm_adapt_text(m, rows);
        vlm_text_record(m, &b);

        if (m->lora != NULL) {
            m->lora->rows.any = 1;     /* any rows later, and any adapters */
            vlm_text_record(m, &b);
        }
    }

    return v->ops->basic->sync(v->device, err);
}
