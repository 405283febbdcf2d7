/* Log-probabilities of tokens, sent with the text that the tokens became. */

#include "run/logprobs.h"


void
vlm_logprobs_add(vlm_job_t *j, uint32_t id)
{
    vlm_token_t  *t = &j->tokens[j->n_tokens++];

    t->picked.id = id;
    t->picked.logprob = (float) ((double) j->raw[id] - j->log_sum);
}


void
vlm_logprobs_place(vlm_job_t *j, size_t held, size_t fed)
{
    uint32_t  whole;

    /* Held bytes begin in the last token, or where they began before it. */

    whole = held == 0 ? j->n_tokens : held <= fed ? j->n_tokens - 1 : j->n_placed;

    while (j->n_placed < whole) {
        j->token_end[j->n_placed++] = j->bytes;
    }
}


uint32_t
vlm_logprobs_clear(vlm_job_t *j)
{
    while (j->n_clear < j->n_placed && j->token_end[j->n_clear] <= j->clear) {
        j->n_clear++;
    }

    return j->n_clear;
}
