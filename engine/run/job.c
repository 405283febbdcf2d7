/* The state of one request: made and freed by the loop, worked on by the engine. */

#include "run/job.h"
#include "run/hold.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/size.h"
#include "ops/ops.h"

#define MAX_STOPS       16
#define MAX_STOP_BYTES  1024
#define MAX_NGRAM       64

static int check(const vlm_sampling_t *s, vlm_err_t *err);
static int check_rare(const vlm_sampling_t *s, uint32_t n_ids, vlm_err_t *err);
static int make_rare(vlm_job_t *j, const vlm_sampling_t *s, uint32_t n_ids);


vlm_job_t *
vlm_job_make(vlm_prompt_t *p, const vlm_sampling_t *s, size_t token_bytes, uint32_t n_ids,
             void *user, vlm_err_t *err)
{
    size_t      i;
    uint64_t    room;
    vlm_job_t  *j;

    if (check(s, err) != 0 || check_rare(s, n_ids, err) != 0) {
        return NULL;
    }

    j = calloc(1, sizeof(*j));
    if (j == NULL) {
        goto no_memory;
    }

    /* A byte that is no character becomes U+FFFD, three bytes. */

    room = vlm_add(vlm_mul(s->max_tokens, vlm_mul(3, token_bytes)), 2 * VLM_DETOK_ROOM);
    room = vlm_add(room, vlm_mul(s->vector, sizeof(float)));

    j->sampling = *s;
    j->sampling.stop = NULL;
    j->sampling.grammar = j->sampling.between = NULL;
    j->user = user;
    j->room = (size_t) room;
    j->text = malloc(j->room);         /* pages that are never written take no memory */
    j->stop = calloc(s->n_stop + 1, sizeof(*j->stop));

    if (j->text == NULL || j->stop == NULL || make_rare(j, s, n_ids) != 0) {
        goto no_memory;
    }

    for (i = 0; i < s->n_stop; i++) {
        j->stop[i] = strdup(s->stop[i]);
        if (j->stop[i] == NULL) {
            goto no_memory;
        }
    }

    if (s->seed == 0 && getrandom(&j->sampling.seed, sizeof(j->sampling.seed), 0) < 0) {
        j->sampling.seed = vlm_now_us();
    }

    j->prompt = p;
    j->features = VLM_NONE;
    j->usage.prompt_tokens = p->n;
    j->usage.pictures = p->n_pictures;
    j->submitted_us = j->state_us = vlm_now_us();

    return j;

no_memory:

    (void) vlm_fail(err, VLM_EMEMORY, "no memory for a job of %u tokens", s->max_tokens);
    vlm_job_free(j);

    return NULL;
}


static int
check(const vlm_sampling_t *s, vlm_err_t *err)
{
    size_t  i;

    if (!(s->temperature >= 0 && s->temperature <= 100)) {
        return vlm_fail(err, VLM_EINPUT, "temperature is %g, expected 0 to 100", s->temperature);
    }

    if (!(s->top_p > 0 && s->top_p <= 1)) {
        return vlm_fail(err, VLM_EINPUT, "top_p is %g, expected above 0 and at most 1", s->top_p);
    }

    if (!(s->repetition_penalty >= 0.01f && s->repetition_penalty <= 10)) {
        return vlm_fail(err, VLM_EINPUT, "repetition_penalty is %g, expected 0.01 to 10",
                        s->repetition_penalty);
    }

    if (s->n_stop > MAX_STOPS) {
        return vlm_fail(err, VLM_EINPUT, "%zu stop strings, at most %d", s->n_stop, MAX_STOPS);
    }

    for (i = 0; i < s->n_stop; i++) {
        if (strlen(s->stop[i]) > MAX_STOP_BYTES) {
            return vlm_fail(err, VLM_EINPUT, "a stop string of %zu bytes, at most %d",
                            strlen(s->stop[i]), MAX_STOP_BYTES);
        }
    }

    return 0;
}


/* Checks the rarely used parameters. */
static int
check_rare(const vlm_sampling_t *s, uint32_t n_ids, vlm_err_t *err)
{
    size_t  i;

    if (!(fabsf(s->frequency_penalty) <= 2)) {
        return vlm_fail(err, VLM_EINPUT, "frequency_penalty is %g, expected -2 to 2",
                        s->frequency_penalty);
    }

    if (!(fabsf(s->presence_penalty) <= 2)) {
        return vlm_fail(err, VLM_EINPUT, "presence_penalty is %g, expected -2 to 2",
                        s->presence_penalty);
    }

    if (s->top_logprobs > VLM_TOP_LOGPROBS) {
        return vlm_fail(err, VLM_EINPUT, "top_logprobs is %u, expected 0 to %d", s->top_logprobs,
                        VLM_TOP_LOGPROBS);
    }

    if (s->n_bias > VLM_MAX_BIAS) {
        return vlm_fail(err, VLM_EINPUT, "a bias for %zu tokens, at most %d", s->n_bias,
                        VLM_MAX_BIAS);
    }

    if (s->min_tokens > s->max_tokens) {
        return vlm_fail(err, VLM_EINPUT, "min_tokens is %u, more than max_tokens, %u",
                        s->min_tokens, s->max_tokens);
    }

    if (s->no_repeat_ngram_size > MAX_NGRAM) {
        return vlm_fail(err, VLM_EINPUT, "no_repeat_ngram_size is %u, expected 0 to %d",
                        s->no_repeat_ngram_size, MAX_NGRAM);
    }

    for (i = 0; i < s->n_bias; i++) {
        if (s->bias[i].id >= n_ids) {
            return vlm_fail(err, VLM_EINPUT, "a bias for token %u, the model's are 0 to %u",
                            s->bias[i].id, n_ids - 1);
        }

        if (!(fabsf(s->bias[i].bias) <= 100)) {
            return vlm_fail(err, VLM_EINPUT, "the bias of token %u is %g, expected -100 to 100",
                            s->bias[i].id, s->bias[i].bias);
        }
    }

    return 0;
}


/* Allocates the buffers of rarely used parameters. */
static int
make_rare(vlm_job_t *j, const vlm_sampling_t *s, uint32_t n_ids)
{
    j->sampling.bias = NULL;

    if (vlm_hold_open(j, s, n_ids) != 0) {
        return -1;
    }

    if (s->n_bias > 0) {
        j->bias = malloc(s->n_bias * sizeof(*j->bias));
        if (j->bias == NULL) {
            return -1;
        }

        memcpy(j->bias, s->bias, s->n_bias * sizeof(*j->bias));
        j->sampling.bias = j->bias;
    }

    if (s->frequency_penalty != 0 || s->presence_penalty != 0) {
        j->counts = malloc(vlm_mul(s->max_tokens, sizeof(*j->counts)));
        if (j->counts == NULL) {
            return -1;
        }
    }

    if (s->no_repeat_ngram_size > 0) {
        j->picked = malloc(vlm_mul(s->max_tokens, sizeof(*j->picked)));
        if (j->picked == NULL) {
            return -1;
        }
    }

    if (s->logprobs) {
        j->raw = malloc(vlm_mul(n_ids, sizeof(*j->raw)));
        j->tokens = malloc(vlm_mul(s->max_tokens, sizeof(*j->tokens)));
        j->token_end = malloc(vlm_mul(s->max_tokens, sizeof(*j->token_end)));

        if (j->raw == NULL || j->tokens == NULL || j->token_end == NULL) {
            return -1;
        }
    }

    return 0;
}


void
vlm_job_free(vlm_job_t *j)
{
    size_t  i;

    if (j == NULL) {
        return;
    }

    for (i = 0; j->stop != NULL && j->stop[i] != NULL; i++) {
        free(j->stop[i]);
    }

    vlm_prompt_free(j->prompt);
    free(j->stop);
    vlm_hold_close(j);
    free(j->bias);
    free(j->counts);
    free(j->picked);
    free(j->raw);
    free(j->tokens);
    free(j->token_end);
    free(j->text);
    free(j);
}
