/* Turns picked tokens into an answer: its text, its end, and the events for the loop. */

#include "run/sched.h"

#include <math.h>

#include "base/clock.h"
#include "chat/stop.h"
#include "run/hold.h"
#include "run/logprobs.h"


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


/* Shows the text in which no stop string can begin; 1 if a stop string was found. */
static int
show_text(vlm_t *v, vlm_job_t *j, int last)
{
    int  hit;

    j->clear = vlm_stop_scan(j->text, j->bytes, j->clear, j->stop, j->sampling.n_stop, last, &hit);
    vlm_tell_text(v, j, j->clear, vlm_logprobs_clear(j));

    return hit;
}


/* Adds a token to the answer; returns whether it is the last. */
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

        vlm_logprobs_add(j, token);
        vlm_logprobs_place(j, j->detok.n_held, bytes);
    }

    if (vlm_held(j) && vlm_match_done(j->match)) {
        return VLM_FINISH_STOP;        /* no other token may follow: the end need not be picked */
    }

    /* max_tokens was bounded by the context when the job was submitted. */

    if (j->usage.completion_tokens < j->sampling.max_tokens) {
        return VLM_FINISH_NONE;
    }

    return vlm_held(j) && vlm_match_may_end(j->match) ? VLM_FINISH_STOP : VLM_FINISH_LENGTH;
}


/* The reason why there is no token: 0, or -1. */
static int
check_token(const vlm_t *v, vlm_job_t *j, uint32_t token, float logprob, vlm_err_t *err)
{
    if (j->no_choice) {
        return vlm_fail(err, VLM_EINPUT, "logit_bias or no_repeat_ngram_size forbids every "
                        "token, after %u tokens", j->n_ctx);
    }

    if (isnan(logprob)) {
        return vlm_fail(err, VLM_EMODEL, "the model's logits are not numbers after %u tokens",
                        j->n_ctx);
    }

    return vlm_adjust_picked(&v->sched.adjust, j, v->tokenizer, token, err);
}


int
vlm_has_mask(vlm_t *v, vlm_job_t *j)
{
    int        rc;
    vlm_err_t  err = { VLM_OK, "" };

    rc = vlm_hold_mask(&v->sched.adjust, v->sched.masks, j, &err);

    if (rc < 0) {
        vlm_end_job(v, j, VLM_FINISH_NONE, &err);
    }

    return rc == 1;
}


void
vlm_take_token(vlm_t *v, vlm_job_t *j, uint32_t token, float logprob)
{
    vlm_err_t     err = { VLM_OK, "" };
    vlm_finish_t  finish;

    if (check_token(v, j, token, logprob, &err) != 0) {
        vlm_end_job(v, j, VLM_FINISH_NONE, &err);
        return;
    }

    finish = is_eos(v, token) ? VLM_FINISH_STOP : append_token(v, j, token);

    if (finish != VLM_FINISH_NONE) {
        j->bytes += vlm_detok_end(&j->detok, j->text + j->bytes);
        vlm_logprobs_place(j, 0, 0);
    }

    if (show_text(v, j, finish != VLM_FINISH_NONE)) {
        finish = VLM_FINISH_STOP;
    }

    if (finish != VLM_FINISH_NONE) {
        vlm_end_job(v, j, finish, NULL);
    }
}


void
vlm_end_job(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err)
{
    vlm_sched_t  *s = &v->sched;

    vlm_release_picture(v, j);
    vlm_masks_drop(s->masks, j->slot);
    vlm_prefix_end(&s->prefix, j->slot);
    s->slot[j->slot] = NULL;

    if (err != NULL && err->code == VLM_EMODEL) {
        vlm_prefix_forget(&s->prefix, j->slot);    /* its rows may hold NaNs */
    }

    vlm_enter(j, j->state);
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


void
vlm_enter(vlm_job_t *j, vlm_job_state_t state)
{
    uint64_t  now;

    now = vlm_now_us();
    j->spent_us[j->state] += now - j->state_us;
    j->state_us = now;
    j->state = state;
}
