/*
 * The state of one request in the engine.
 *
 * An answer is one buffer with room for the longest answer: the engine appends, and the loop reads
 * the part that is new to it.  So no token allocates memory, a slow loop loses no text, and an
 * event only says that there is more.  The engine thread owns the fields unless marked; those
 * marked "shared" are read and written under vlm_s.mutex.
 */

#ifndef VLM_JOB_H
#define VLM_JOB_H

#include <stdatomic.h>

#include "chat/prompt.h"
#include "grammar/forced.h"
#include "run/guess.h"
#include "vlm.h"

typedef struct {
    uint32_t  id, n;
} vlm_count_t;

typedef enum { VLM_WAITING, VLM_ENCODING, VLM_PREFILLING, VLM_DECODING } vlm_job_state_t;

#define VLM_LAST  4u                   /* tokens before a forced text that it is tokenised behind */

#define VLM_FED   32u                  /* the most forced tokens of one answer at once */

typedef enum { VLM_HOLD_FREE, VLM_HOLD_VALUE, VLM_HOLD_BETWEEN } vlm_hold_t;
typedef enum { VLM_UNMASKED, VLM_MASKING, VLM_MASKED } vlm_masked_t;

struct vlm_job_s {
    vlm_prompt_t     *prompt;
    vlm_sampling_t    sampling;
    char            **stop;            /* [sampling.n_stop] */
    vlm_bias_t       *bias;            /* [sampling.n_bias] */

    vlm_job_state_t   state;
    uint32_t          slot;
    uint64_t          order;           /* sequence number among the jobs that had a slot; from 1 */
    uint64_t          led_by;          /* number of the job that reads rows for this one, or 0 */
    uint32_t          led_slot, led_to;            /* that job's slot; the row where they differ */
    uint32_t          n_ctx;           /* rows in the slot's cache */
    uint32_t          picture;         /* the next to encode */
    uint32_t          features;        /* place of the one that is encoded or read, or VLM_NONE */
    int               hit;             /* 1: features encoded for another job */
    uint32_t          token;           /* picked last, not yet in the cache */
    int32_t           pos;             /* of that token */
    uint32_t          fed[1 + VLM_FED];            /* [n_fed] tokens of the next step's rows: the
                                          last one, and forced ones */
    uint32_t          n_fed;           /* 0: not yet known */
    vlm_guess_t       guess;
    vlm_detok_t       detok;

    char             *text;            /* [room] the answer so far */
    size_t            bytes, room;
    size_t            clear;           /* bytes of it in which no stop string can begin */

    vlm_match_t      *match;           /* the answer so far, by its grammar; or NULL */
    vlm_hold_t        hold;            /* of it, see hold.h */
    uint32_t         *allowed;         /* [(n_ids + 31) / 32] ids that may come next: the mask */
    vlm_masked_t      masked;
    int               slow;            /* the last mask took long */
    vlm_blanks_t      blanks;          /* of its value */
    uint32_t          last[VLM_LAST];  /* [n_last] tokens of its value, the newest last */
    uint32_t          n_last;
    uint32_t          n_trigger;       /* bytes of the trigger at the answer's end */
    int               no_choice;       /* every id is forbidden */
    vlm_count_t      *counts;          /* [n_counts] ids of the answer, with a penalty; or NULL */
    uint32_t          n_counts;
    uint32_t         *picked;          /* [n_picked] the answer's ids, if n-grams may not repeat; or
                                          NULL */
    uint32_t          n_picked;

    float            *raw;             /* [n_ids] logits as they were, with logprobs; or NULL */
    double            log_sum;         /* of their exponentials */
    vlm_token_t      *tokens;          /* [n_tokens] of the answer, with logprobs */
    size_t           *token_end;       /* [n_placed] in text */
    uint32_t          n_tokens, n_placed;
    uint32_t          n_clear;         /* of them text is clear */

    uint64_t          submitted_us, state_us, first_us;        /* state: its start */
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
void vlm_job_free(vlm_job_t *j);       /* and its prompt; takes NULL */

#endif
