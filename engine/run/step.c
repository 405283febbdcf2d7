/*
 * A step of the decoding jobs: one token each, and more where a grammar leaves no choice about
 * them (feed.h) or where they were guessed (guess.h).
 */

#include "run/sched.h"

#include "run/feed.h"


typedef struct {                       /* a decoding job's part of a step */
    vlm_job_t  *job;
    uint32_t    slot;                  /* the job's, which may end in the step */
    uint32_t    n;                     /* guessed tokens that follow them */
    uint32_t    guess[VLM_GUESSES];
} vlm_step_t;


/* Rows beside one for each of n jobs that cost next to nothing, and have room for their logits. */
static uint32_t
free_rows(const vlm_t *v, uint32_t n)
{
    uint32_t            most;
    const vlm_basic_t  *basic = v->ops->basic;

    if (basic->together == NULL) {
        return 0;
    }

    most = basic->together(v->device, v->sched.model.type);
    most = most < v->conf.slots ? most : v->conf.slots;

    return most > n ? most - n : 0;
}


/* Options that need the logits of each token, one after the other, have no guesses. */
static void
guess_tokens(vlm_t *v, vlm_step_t *t, uint32_t most)
{
    uint32_t           left;
    vlm_job_t         *j = t->job;
    const vlm_kept_t  *kept = &v->sched.prefix.slot[j->slot];

    t->n = 0;
    left = j->sampling.max_tokens - j->usage.completion_tokens;

    if (most == 0 || left < 2 || vlm_adjust_wanted(j) || !vlm_guess_pays(&j->guess)) {
        return;
    }

    most = most < left - 1 ? most : left - 1;
    most = most < v->conf.context - j->n_ctx - 1 ? most : v->conf.context - j->n_ctx - 1;
    t->n = vlm_guess_tokens(kept->token, kept->n, j->token, most, t->guess);
}


/* The job's tokens and its guesses, with a pick for the last token and each guess. */
static void
add_rows(vlm_t *v, const vlm_step_t *t)
{
    int32_t      pos[3];
    uint32_t     i, token;
    vlm_job_t   *j = t->job;
    vlm_pick_t   pick;
    vlm_rows_t  *rows = &v->sched.rows;

    vlm_set_pick(j, &pick);
    vlm_rows_sequence(rows, j->slot, j->n_ctx);
    vlm_adapt_rows(rows, j->prompt);

    for (i = 0; i < j->n_fed + t->n; i++) {
        pos[0] = pos[1] = pos[2] = j->pos + (int32_t) i;
        token = i < j->n_fed ? j->fed[i] : t->guess[i - j->n_fed];
        vlm_rows_add(rows, token, VLM_NONE, pos);

        if (i + 1 >= j->n_fed) {
            vlm_rows_pick(rows, &pick);
            pick.step++;
        }
    }
}


/* The tokens that a slot has seen: to the host, or back. */
static void
copy_seen(vlm_t *v, uint32_t slot, int back)
{
    uint32_t     *at;
    uint64_t      bytes;
    vlm_sched_t  *s = &v->sched;

    at = s->model.work.seen + (size_t) slot * s->model.seen_words;
    bytes = s->model.seen_words * sizeof(uint32_t);

    if (back) {
        v->ops->basic->put(v->device, at, s->seen, bytes);
    } else {
        v->ops->basic->get(v->device, s->seen, at, bytes);
    }
}


/* The pick has marked tokens of all rows as seen: those behind a wrong guess were not picked. */
static void
mark_again(vlm_t *v, const vlm_step_t *t, uint32_t r, uint32_t right)
{
    uint32_t      i, token;
    vlm_sched_t  *s = &v->sched;

    for (i = 0; i <= right; i++) {
        token = s->token[r + i];
        s->seen[token / 32] |= 1u << (token % 32);
    }

    copy_seen(v, t->slot, 1);
}


/* Forced tokens count for the repetition penalty, as picked ones do.  -1: the device failed. */
static int
mark_fed(vlm_t *v, const vlm_job_t *j)
{
    uint32_t      i;
    vlm_sched_t  *s = &v->sched;

    if (j->n_fed == 1 || j->sampling.repetition_penalty == 1) {
        return 0;
    }

    copy_seen(v, j->slot, 0);

    if (v->ops->basic->sync(v->device, NULL) != 0) {
        return -1;
    }

    for (i = 1; i < j->n_fed; i++) {
        s->seen[j->fed[i] / 32] |= 1u << (j->fed[i] % 32);
    }

    copy_seen(v, j->slot, 1);

    return 0;
}


/*
 * Takes the tokens that have to come, most of them at most, as if they had been picked.  0: the
 * answer has ended, or the device failed.
 */
static int
feed_tokens(vlm_t *v, vlm_step_t *t, uint32_t most)
{
    int         whole;
    uint32_t    i, n;
    vlm_job_t  *j = t->job;

    j->fed[0] = j->token;
    j->n_fed = 1;

    if (j->sampling.logprobs) {
        return 1;                      /* each has a row of logits to tell of */
    }

    n = vlm_feed(&v->sched.adjust, j, most, j->fed + 1, &whole);

    for (i = 0; i < n && v->sched.slot[t->slot] == j; i++) {
        vlm_take_token(v, j, j->fed[1 + i], 0);
    }

    vlm_count_forced(v, i);

    if (v->sched.slot[t->slot] != j) {
        return 0;
    }

    j->n_fed = 1 + n;

    return mark_fed(v, j) == 0;
}


/* The job's tokens are in the cache. */
static void
count_rows(vlm_t *v, const vlm_step_t *t, uint32_t first, uint32_t end)
{
    uint32_t    i;
    vlm_job_t  *j = t->job;

    for (i = first; i < end; i++) {
        vlm_prefix_add(&v->sched.prefix, t->slot, i < j->n_fed ? j->fed[i]
                                                               : t->guess[i - j->n_fed]);
        j->n_ctx++;
        j->pos++;
    }
}


/* Takes the tokens of the job's rows, from pick r on, until one is not the next row's guess. */
static void
take_tokens(vlm_t *v, const vlm_step_t *t, uint32_t r)
{
    uint32_t      i, right;
    vlm_job_t    *j = t->job;
    vlm_sched_t  *s = &v->sched;

    for (right = 0; right < t->n && s->token[r + right] == t->guess[right]; right++) { /* void */ }

    if (t->n > 0) {
        mark_again(v, t, r, right);
        vlm_guess_count(&j->guess, t->n, right);
        vlm_count_guesses(v, t->n, right);
    }

    for (i = 0; i <= right && s->slot[t->slot] == j; i++) {
        count_rows(v, t, i == 0 ? 0 : j->n_fed + i - 1, j->n_fed + i);
        vlm_take_token(v, j, s->token[r + i], s->logprob[r + i]);
    }

    if (s->slot[t->slot] == j) {
        j->n_fed = 0;
    }
}


/*
 * The decoding jobs, with what has to come in their answers; some may have ended with it, and some
 * sit this step out because their masks are not there yet.
 */
static uint32_t
list_jobs(vlm_t *v, vlm_step_t *step)
{
    uint32_t    i, n, rows;
    vlm_job_t  *j;

    rows = v->conf.slots + VLM_GUESSES;
    rows = rows < VLM_SLICE ? VLM_SLICE - rows : 0;

    for (n = 0, i = 0; i < v->conf.slots; i++) {
        j = v->sched.slot[i];

        if (j == NULL || j->state != VLM_DECODING) {
            continue;
        }

        step[n].job = j;
        step[n].slot = i;

        /* one that sat out a step has its rows from then, for which there may be no room now */

        if ((j->n_fed > 0 || feed_tokens(v, &step[n], rows)) && j->n_fed - 1 <= rows
            && vlm_has_mask(v, j))
        {
            rows -= j->n_fed - 1;
            n++;
        }
    }

    return n;
}


int
vlm_sched_step(vlm_t *v)
{
    uint32_t     i, k, n, r, room;
    vlm_job_t   *jobs[VLM_SLICE];
    vlm_step_t   step[VLM_SLICE];
    vlm_rows_t  *rows = &v->sched.rows;

    n = list_jobs(v, step);
    vlm_rows_clear(rows);
    room = free_rows(v, n);

    for (r = 0, i = 0; i < n; i++) {
        guess_tokens(v, &step[i], room);

        if (step[i].n > 0) {
            room = 0;                  /* one job in a step has guesses: there is one s->seen */
            copy_seen(v, step[i].slot, 0);
        }

        add_rows(v, &step[i]);

        for (k = 0; k <= step[i].n; k++) {
            jobs[r++] = step[i].job;
        }
    }

    if (n == 0 || vlm_pass(v, NULL, jobs) != 0) {
        return n > 0;
    }

    for (r = 0, i = 0; i < n; r += 1 + step[i].n, i++) {
        take_tokens(v, &step[i], r);
    }

    return 1;
}
