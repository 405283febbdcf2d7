/*
 * One row of logits on the host: log-probabilities are noted, then the logits are changed, in the
 * order that vlm_sampling_t documents.
 */

#include "run/hold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define BANNED  (-100)                 /* a bias of this or less forbids the token */

static int largest(const float *row, uint32_t n, float *max);
static void tell_logprobs(const float *raw, uint32_t n, float max, vlm_job_t *j);
static void penalize(float *row, const vlm_job_t *j);
static void add_bias(float *row, const vlm_job_t *j);
static void forbid_repeated(float *row, uint32_t n_ids, const vlm_job_t *j);
static void forbid_end(const vlm_adjust_t *a, const vlm_job_t *j);
static void hold_to_grammar(const vlm_adjust_t *a, const vlm_job_t *j);


int
vlm_adjust_open(vlm_adjust_t *a, uint32_t n_ids, const vlm_tokenizer_t *t,
                const vlm_tokens_t *pieces, vlm_err_t *err)
{
    a->n_ids = n_ids;
    a->tokenizer = t;
    a->pieces = pieces;
    a->walk = vlm_walk_open(pieces);
    a->row = malloc(vlm_mul(n_ids, sizeof(float)));

    if (a->row == NULL || a->walk == NULL) {
        vlm_adjust_close(a);
        return vlm_fail(err, VLM_EMEMORY, "no memory for a row of %u logits", n_ids);
    }

    a->encoder = vlm_encoder_open(t, VLM_FEED_TEXT, err);

    if (a->encoder == NULL) {
        vlm_adjust_close(a);
        return -1;
    }

    return 0;
}


void
vlm_adjust_close(vlm_adjust_t *a)
{
    free(a->row);
    vlm_walk_close(a->walk);
    vlm_encoder_close(a->encoder);
    memset(a, 0, sizeof(*a));
}


static int
changes_logits(const vlm_job_t *j)
{
    const vlm_sampling_t  *s = &j->sampling;

    return s->frequency_penalty != 0 || s->presence_penalty != 0 || s->n_bias != 0
           || s->grammar != NULL || s->no_repeat_ngram_size > 0
           || j->usage.completion_tokens < s->min_tokens;
}


int
vlm_adjust_wanted(const vlm_job_t *j)
{
    return j->sampling.logprobs || changes_logits(j);
}


float *
vlm_adjust_raw(const vlm_adjust_t *a, const vlm_job_t *j)
{
    return j->raw != NULL ? j->raw : a->row;
}


vlm_adjusted_t
vlm_adjust(const vlm_adjust_t *a, vlm_job_t *j)
{
    float   max, *raw;

    raw = vlm_adjust_raw(a, j);

    if (largest(raw, a->n_ids, &max) != 0) {
        return VLM_ADJUST_KEEP;
    }

    if (j->sampling.logprobs) {
        tell_logprobs(raw, a->n_ids, max, j);
    }

    if (!changes_logits(j)) {
        return VLM_ADJUST_KEEP;
    }

    if (raw != a->row) {
        memcpy(a->row, raw, a->n_ids * sizeof(float));
    }

    penalize(a->row, j);
    add_bias(a->row, j);
    forbid_repeated(a->row, a->n_ids, j);
    forbid_end(a, j);

    if (vlm_held(j)) {
        hold_to_grammar(a, j);
    }

    return largest(a->row, a->n_ids, &max) == 0 ? VLM_ADJUST_PUT : VLM_ADJUST_NOTHING_LEFT;
}


/* -1: a logit is not a number, or the largest is not finite. */
static int
largest(const float *row, uint32_t n, float *max)
{
    int       bad;
    float     m;
    uint32_t  i;

    m = -INFINITY;

    for (bad = 0, i = 0; i < n; i++) {
        bad |= isnan(row[i]) != 0;
        m = row[i] > m ? row[i] : m;
    }

    *max = m;

    return bad || !isfinite(m) ? -1 : 0;
}


/* Of equal logits the first counts as likelier. */
static void
insert(vlm_token_t *t, uint32_t room, uint32_t id, float logit)
{
    uint32_t  i;

    i = t->n_top < room ? t->n_top++ : room - 1;

    for ( /* void */ ; i > 0 && t->top[i - 1].logprob < logit; i--) {
        t->top[i] = t->top[i - 1];
    }

    t->top[i].id = id;
    t->top[i].logprob = logit;
}


static void
tell_logprobs(const float *raw, uint32_t n, float max, vlm_job_t *j)
{
    double        sum;
    uint32_t      i, room;
    vlm_token_t  *t;

    for (sum = 0, i = 0; i < n; i++) {
        sum += expf(raw[i] - max);
    }

    j->log_sum = max + log(sum);

    room = j->sampling.top_logprobs;
    t = &j->tokens[j->n_tokens];
    t->n_top = 0;

    for (i = 0; i < n && room > 0; i++) {
        if (raw[i] != -INFINITY && (t->n_top < room || raw[i] > t->top[room - 1].logprob)) {
            insert(t, room, i, raw[i]);
        }
    }

    for (i = 0; i < t->n_top; i++) {
        t->top[i].logprob = (float) ((double) t->top[i].logprob - j->log_sum);
    }
}


static void
penalize(float *row, const vlm_job_t *j)
{
    uint32_t              i;
    const vlm_count_t    *c;
    const vlm_sampling_t  *s = &j->sampling;

    for (i = 0; i < j->n_counts; i++) {
        c = &j->counts[i];
        row[c->id] -= (float) c->n * s->frequency_penalty + s->presence_penalty;
    }
}


/* An answer can always be ended by its grammar, so no bias may forbid an id there. */
static void
add_bias(float *row, const vlm_job_t *j)
{
    size_t             i;
    const vlm_bias_t  *b;

    for (i = 0; i < j->sampling.n_bias; i++) {
        b = &j->sampling.bias[i];
        row[b->id] = b->bias <= BANNED && !vlm_held(j) ? -INFINITY : row[b->id] + b->bias;
    }
}


/* Token i of the prompt and of the answer behind it. */
static uint32_t
token_at(const vlm_job_t *j, uint32_t i)
{
    return i < j->prompt->n ? j->prompt->token[i] : j->picked[i - j->prompt->n];
}


/* A token that would end an n-gram that stands earlier is never picked, except with a grammar. */
static void
forbid_repeated(float *row, uint32_t n_ids, const vlm_job_t *j)
{
    uint32_t        i, k, id, all;
    const uint32_t  n = j->sampling.no_repeat_ngram_size;

    if (n == 0 || vlm_held(j)) {
        return;
    }

    all = j->prompt->n + j->n_picked;

    for (i = n - 1; i < all; i++) {    /* the end of an n-gram, whose beginning is compared */
        for (k = 1; k < n && token_at(j, i - k) == token_at(j, all - k); k++) { /* void */ }

        id = token_at(j, i);

        if (k == n && id < n_ids) {
            row[id] = -INFINITY;
        }
    }
}


static void
forbid_end(const vlm_adjust_t *a, const vlm_job_t *j)
{
    uint32_t  i;

    if (vlm_held(j)) {
        return;                        /* the grammar says where an end may be */
    }

    for (i = 0; j->usage.completion_tokens < j->sampling.min_tokens && i < a->n_eos; i++) {
        if (a->eos[i] < a->n_ids) {
            a->row[a->eos[i]] = -INFINITY;
        }
    }
}


static void
hold_to_grammar(const vlm_adjust_t *a, const vlm_job_t *j)
{
    uint32_t  i, bits;

    for (i = 0, bits = 0; i < a->n_ids; i++, bits >>= 1) {
        if (i % 32 == 0) {
            bits = j->allowed[i / 32];
        }

        if ((bits & 1) == 0) {
            a->row[i] = -INFINITY;
        }
    }
}


static void
count(vlm_job_t *j, uint32_t id)
{
    uint32_t  i;

    for (i = 0; i < j->n_counts && j->counts[i].id != id; i++) { /* void */ }

    if (i == j->n_counts) {
        j->counts[i].id = id;
        j->counts[i].n = 0;
        j->n_counts++;
    }

    j->counts[i].n++;
}


int
vlm_adjust_picked(const vlm_adjust_t *a, vlm_job_t *j, const vlm_tokenizer_t *t, uint32_t id,
                  vlm_err_t *err)
{
    if (j->counts != NULL) {
        count(j, id);
    }

    if (j->picked != NULL) {
        j->picked[j->n_picked++] = id;
    }

    return vlm_hold_read(a, j, t, id, err);
}
