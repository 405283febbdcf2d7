/*
 * One request's state, on its way through the engine.
 *
 * An answer is one buffer as long as the longest answer can be: the engine appends, the loop reads
 * what it has not seen yet.  So nothing is allocated per token, a slow loop loses nothing, and an
 * event is only the news that there is more.  Fields are the engine thread's unless marked; those
 * marked "shared" are read and written under vlm_s.mutex.
 */

#ifndef VLM_JOB_H
#define VLM_JOB_H

#include <stdatomic.h>

#include "chat/json_mode.h"
#include "chat/prompt.h"
#include "vlm.h"

typedef struct {
    uint32_t  id, n;
} vlm_count_t;

typedef enum { VLM_WAITING, VLM_ENCODING, VLM_PREFILLING, VLM_DECODING } vlm_job_state_t;

struct vlm_job_s {
    vlm_prompt_t     *prompt;
    vlm_sampling_t    sampling;
    char            **stop;            /* [sampling.n_stop] */
    vlm_bias_t       *bias;            /* [sampling.n_bias] */

    vlm_job_state_t   state;
    uint32_t          slot;
    uint64_t          order;           /* of those that were given a slot; from 1 */
    uint64_t          led_by;          /* order of the one ahead that reads rows for this one, */
    uint32_t          led_slot, led_to;            /* its slot, and where the two part; or 0 */
    uint32_t          n_ctx;           /* rows in the slot's cache */
    uint32_t          picture;         /* the next to encode */
    uint32_t          features;        /* place of the one that is encoded or read, or VLM_NONE */
    int               known;           /* somebody else had it encoded */
    uint32_t          token;           /* picked last, not yet in the cache */
    int32_t           pos;             /* of that token */
    vlm_detok_t       detok;

    char             *text;            /* [room] the answer so far */
    size_t            bytes, room;
    size_t            clear;           /* of them no stop string can begin in */

    vlm_json_mode_t   json;            /* after the answer so far, if it is JSON */
    int               no_choice;       /* the bias forbids every id */
    vlm_count_t      *counts;          /* [n_counts] ids of the answer, with a penalty; or NULL */
    uint32_t          n_counts;

    float            *raw;             /* [n_ids] logits as they were, with logprobs; or NULL */
    double            log_sum;         /* of their exponentials */
    vlm_token_t      *tokens;          /* [n_tokens] of the answer, with logprobs */
    size_t           *token_end;       /* [n_placed] in text */
    uint32_t          n_tokens, n_placed;
    uint32_t          n_clear;         /* of them text is clear */

    uint64_t          submitted_us, state_us, first_us;        /* state: since when */
    uint64_t          spent_us[VLM_DECODING + 1];  /* in each state */
    uint64_t          pick_us;
    vlm_usage_t       usage;

    atomic_int        cancelled;       /* set by the loop */

    vlm_job_t        *next;            /* shared: in the submitted list, or in the news */
    void             *user;            /* shared: NULL once cancelled */
    int               news;            /* shared: in the list of those with news */
    int               started, ended;  /* shared */
    size_t            visible;         /* shared: of text */
    uint32_t          visible_tokens;  /* shared */
    vlm_finish_t      finish;          /* shared, with ended */
    vlm_err_t         err;             /* shared, with ended: code is VLM_OK if it went well */
    int               said_started;    /* the loop's */
    size_t            delivered;       /* the loop's */
    uint32_t          delivered_tokens;            /* the loop's */
};

/* Ids are below n_ids, and a token has at most token_bytes. */
vlm_job_t *vlm_job_make(vlm_prompt_t *p, const vlm_sampling_t *s, size_t token_bytes,
                        uint32_t n_ids, void *user, vlm_err_t *err);
void vlm_job_free(vlm_job_t *j);       /* NULL is fine; the prompt too */

#endif
