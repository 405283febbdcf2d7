/*
 * Lists between the loop and the engine: submitted jobs one way, news of jobs the other.
 *
 * One mutex, held for a few assignments, protects both lists.  A job is in the list of news at most
 * once; the loop reads the news itself from the job.
 */

#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "run/adapters.h"


/* Under the mutex. */
static void
add_news(vlm_t *v, vlm_job_t *j)
{
    uint64_t  one = 1;

    if (j->news) {
        return;
    }

    j->news = 1;
    j->next = NULL;
    *v->news_last = j;
    v->news_last = &j->next;

    /* If the counter is full, the loop has a wake-up already. */

    if (write(v->fd, &one, sizeof(one)) != sizeof(one)) {
        return;
    }
}


void
vlm_tell_started(vlm_t *v, vlm_job_t *j)
{
    pthread_mutex_lock(&v->mutex);
    j->started = 1;
    add_news(v, j);
    pthread_mutex_unlock(&v->mutex);
}


void
vlm_tell_text(vlm_t *v, vlm_job_t *j, size_t visible, uint32_t visible_tokens)
{
    pthread_mutex_lock(&v->mutex);

    if (visible > j->visible || visible_tokens > j->visible_tokens) {
        j->visible = visible;
        j->visible_tokens = visible_tokens;
        add_news(v, j);
    }

    pthread_mutex_unlock(&v->mutex);
}


void
vlm_tell_end(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err)
{
    pthread_mutex_lock(&v->mutex);

    j->ended = 1;
    j->finish = finish;

    if (err != NULL) {
        j->err = *err;
    }

    if (j->started) {
        v->stat.prompt_tokens += j->usage.prompt_tokens;
        v->stat.cached_tokens += j->usage.cached_tokens;
        v->stat.pictures += j->usage.pictures;
        v->stat.cached_pictures += j->usage.cached_pictures;
    }

    v->stat.completion_tokens += j->usage.completion_tokens;

    add_news(v, j);
    pthread_mutex_unlock(&v->mutex);
}


void
vlm_count_guesses(vlm_t *v, uint32_t n, uint32_t right)
{
    pthread_mutex_lock(&v->mutex);
    v->stat.guessed_tokens += n;
    v->stat.taken_tokens += right;
    pthread_mutex_unlock(&v->mutex);
}


void
vlm_count_forced(vlm_t *v, uint32_t n)
{
    pthread_mutex_lock(&v->mutex);
    v->stat.forced_tokens += n;
    pthread_mutex_unlock(&v->mutex);
}


vlm_job_t *
vlm_take_submitted(vlm_t *v, int last)
{
    vlm_job_t  *j;

    pthread_mutex_lock(&v->mutex);

    j = v->submitted;

    if (j != NULL) {
        v->submitted = j->next;
        j->next = NULL;

        if (v->submitted == NULL) {
            v->submitted_last = &v->submitted;
        }

    } else if (last && !vlm_adapters_wait(v)) {
        v->running = 0;
    }

    pthread_mutex_unlock(&v->mutex);

    return j;
}


vlm_job_t *
vlm_take_cancelled(vlm_t *v)
{
    vlm_job_t  *j, **at;

    pthread_mutex_lock(&v->mutex);

    for (at = &v->submitted; (j = *at) != NULL; at = &j->next) {
        if (atomic_load(&j->cancelled)) {
            break;
        }
    }

    if (j != NULL) {
        *at = j->next;
        j->next = NULL;

        if (*at == NULL) {
            v->submitted_last = at;
        }
    }

    pthread_mutex_unlock(&v->mutex);

    return j;
}


static int
check_grammar(const vlm_sampling_t *s, vlm_err_t *err)
{
    if (s->max_tokens < vlm_grammar_least(s->grammar)) {
        return vlm_fail(err, VLM_ELIMIT, "the shortest answer takes %u tokens, there is room for "
                        "%u", vlm_grammar_least(s->grammar), s->max_tokens);
    }

    return 0;
}


vlm_job_t *
vlm_submit(vlm_t *v, vlm_prompt_t *p, const vlm_sampling_t *s, void *user, int *idle,
           vlm_err_t *err)
{
    uint32_t         room;
    vlm_job_t       *j;
    vlm_sampling_t   sampling;

    if (p->n >= v->conf.context) {
        (void) vlm_fail(err, VLM_ELIMIT, "a prompt of %u tokens, made for another context than %u",
                        p->n, v->conf.context);
        return NULL;
    }

    sampling = *s;
    room = v->conf.context - p->n;

    if (s->vector != 0) {
        sampling = (vlm_sampling_t) { .top_p = 1, .repetition_penalty = 1, .max_tokens = 1,
                                      .vector = v->config.text.hidden };
    }

    if (sampling.stop == NULL) {
        sampling.n_stop = 0;
    }

    if (sampling.max_tokens == 0 || sampling.max_tokens > v->conf.max_tokens) {
        sampling.max_tokens = v->conf.max_tokens;
    }

    if (sampling.max_tokens > room) {
        sampling.max_tokens = room;
    }

    if (sampling.bias == NULL) {
        sampling.n_bias = 0;
    }

    if (sampling.grammar != NULL && sampling.trigger == NULL
        && check_grammar(&sampling, err) != 0) {
        return NULL;
    }

    j = vlm_job_make(p, &sampling, vlm_token_max_bytes(v->tokenizer), vlm_n_ids(v), user, err);
    if (j == NULL) {
        return NULL;
    }

    pthread_mutex_lock(&v->mutex);
    *v->submitted_last = j;
    v->submitted_last = &j->next;
    *idle = !v->running;
    pthread_mutex_unlock(&v->mutex);

    return j;
}


void
vlm_cancel(vlm_t *v, vlm_job_t *job)
{
    pthread_mutex_lock(&v->mutex);
    job->user = NULL;
    pthread_mutex_unlock(&v->mutex);

    atomic_store(&job->cancelled, 1);
}


void
vlm_fail_jobs(vlm_t *v, const vlm_err_t *err)
{
    vlm_job_t  *j;

    while ((j = vlm_take_submitted(v, 0)) != NULL) {
        vlm_tell_end(v, j, VLM_FINISH_NONE, err);
    }
}


/*
 * Called under the mutex: takes the first event of a job, in the order of its life; 0: there is
 * none.
 */
static int
next_of_job(vlm_job_t *j, vlm_event_t *e)
{
    memset(e, 0, sizeof(*e));
    e->user = j->user;

    if (j->started && !j->said_started) {
        j->said_started = 1;
        e->kind = VLM_STARTED;
        return 1;
    }

    if (j->visible > j->delivered || j->visible_tokens > j->delivered_tokens) {
        e->kind = VLM_TEXT;
        e->text = j->text + j->delivered;
        e->bytes = j->visible - j->delivered;
        e->n_tokens = j->visible_tokens - j->delivered_tokens;
        e->tokens = e->n_tokens == 0 ? NULL : j->tokens + j->delivered_tokens;
        j->delivered = j->visible;
        j->delivered_tokens = j->visible_tokens;
        return 1;
    }

    if (j->ended) {
        e->kind = j->err.code == VLM_OK ? VLM_DONE : VLM_FAILED;
        e->started = j->started;
        e->finish = j->finish;
        e->usage = j->usage;
        e->err = j->err;
        return 1;
    }

    return 0;
}


int
vlm_next_event(vlm_t *v, vlm_event_t *e)
{
    int         found;
    vlm_job_t  *j;

    vlm_job_free(v->ended);
    v->ended = NULL;
    found = 0;

    pthread_mutex_lock(&v->mutex);

    while (v->news != NULL && !found) {
        j = v->news;
        found = next_of_job(j, e);

        if (!found || e->kind == VLM_DONE || e->kind == VLM_FAILED) {
            v->news = j->next;
            j->next = NULL;
            j->news = 0;

            if (v->news == NULL) {
                v->news_last = &v->news;
            }

            if (found) {
                v->ended = j;
            }
        }
    }

    pthread_mutex_unlock(&v->mutex);

    return found;
}


int
vlm_fd(const vlm_t *v)
{
    return v->fd;
}
