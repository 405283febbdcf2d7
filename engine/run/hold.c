/* Answers that are held to a grammar, in part or as a whole. */

#include "run/hold.h"

#include "run/feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define READ  (4 * VLM_MASK_QUICK)     /* steps of one token */


/* The most tokens that a text of a choice takes: a byte is one. */
static uint32_t
longest(const vlm_grammar_t *choice)
{
    uint32_t           n;
    const vlm_text_t  *t;

    for (n = 0, t = choice->root->texts; t != NULL; t = t->next) {
        n = t->bytes > n ? t->bytes : n;
    }

    return n;
}


int
vlm_hold_open(vlm_job_t *j, const vlm_sampling_t *s, uint32_t n_ids)
{
    j->sampling.grammar = vlm_grammar_share(s->grammar);
    j->sampling.between = s->grammar == NULL ? NULL : vlm_grammar_share(s->between);

    if (s->grammar == NULL) {
        return 0;
    }

    j->match = malloc(sizeof(*j->match));
    j->allowed = malloc(vlm_mul(((uint64_t) n_ids + 31) / 32, sizeof(*j->allowed)));

    if (j->match == NULL || j->allowed == NULL) {
        return -1;
    }

    j->hold = s->trigger == NULL ? VLM_HOLD_VALUE : VLM_HOLD_FREE;
    vlm_match_start(j->match, s->grammar);

    return 0;
}


void
vlm_hold_close(vlm_job_t *j)
{
    vlm_grammar_free(j->sampling.grammar);
    vlm_grammar_free(j->sampling.between);
    free(j->match);
    free(j->allowed);
}


/* Tokens that may still come, behind the one at hand, which may not be counted yet. */
static uint32_t
room(const vlm_job_t *j)
{
    const uint32_t  used = j->usage.completion_tokens + 1;

    return j->sampling.max_tokens > used ? j->sampling.max_tokens - used : 0;
}


/* Between two values, the tokenizer may have the marks that stand there as tokens of their own. */
static void
allow_marks(const vlm_adjust_t *a, const vlm_job_t *j)
{
    size_t       bytes;
    uint32_t     i, id;
    const char  *p;

    for (i = 0; i < a->n_marks; i++) {
        id = a->mark[i];
        p = id < a->n_ids ? vlm_token_bytes(a->tokenizer, id, &bytes) : NULL;

        if (p != NULL && vlm_mask_one(j->match, a->walk, room(j), p, bytes)) {
            j->allowed[id / 32] |= 1u << (id % 32);
        }
    }
}


/* 1: one id alone, which the text that has to come begins with. */
static int
mask_forced(const vlm_adjust_t *a, vlm_job_t *j)
{
    int       whole;
    uint32_t  id[VLM_FED];

    if (vlm_feed(a, j, 1, id, &whole) == 0) {
        return 0;
    }

    memset(j->allowed, 0, ((size_t) a->n_ids + 31) / 32 * sizeof(uint32_t));
    j->allowed[id[0] / 32] |= 1u << (id[0] % 32);

    return 1;
}


static int
has_mask(const vlm_adjust_t *a, vlm_job_t *j)
{
    if (j->hold == VLM_HOLD_BETWEEN) {
        vlm_walk_allow(a->walk, VLM_MASK_QUICK, NULL);
        allow_marks(a, j);
    }

    j->masked = VLM_MASKED;

    return 1;
}


/* Here, if it is little work; else it is m's. */
static int
begin_mask(const vlm_adjust_t *a, vlm_masks_t *m, vlm_job_t *j)
{
    if (mask_forced(a, j)) {
        j->masked = VLM_MASKED;
        return 1;
    }

    vlm_walk_allow(a->walk, VLM_MASK_QUICK, NULL);

    if (!j->slow && vlm_mask(a->pieces, j->match, a->walk, room(j), j->allowed) == 0) {
        return has_mask(a, j);
    }

    j->slow = 1;
    j->masked = vlm_masks_ask(m, j->slot, j->match, room(j)) ? VLM_MASKING : VLM_UNMASKED;

    return 0;
}


int
vlm_hold_mask(const vlm_adjust_t *a, vlm_masks_t *m, vlm_job_t *j, vlm_err_t *err)
{
    uint64_t  work;

    if (!vlm_held(j) || j->masked == VLM_MASKED) {
        return 1;
    }

    if (j->masked == VLM_UNMASKED) {
        return begin_mask(a, m, j);
    }

    switch (vlm_masks_take(m, j->slot, j->allowed, &work)) {
    case VLM_MASK_READY:
        j->slow = work > VLM_MASK_QUICK;
        return has_mask(a, j);
    case VLM_MASK_TOO_MUCH:
        return vlm_mask_too_much(err);
    default:
        return 0;
    }
}


/* A value is whole, or the text between two of them. */
static void
go_on(vlm_job_t *j)
{
    if (!vlm_match_done(j->match)) {
        return;
    }

    if (j->hold == VLM_HOLD_BETWEEN) {
        j->hold = VLM_HOLD_VALUE;
        vlm_match_start(j->match, j->sampling.grammar);
        vlm_feed_start(j);

    } else if (j->sampling.between != NULL
               && room(j) > longest(j->sampling.between)
                            + vlm_grammar_least(j->sampling.grammar))
    {
        j->hold = VLM_HOLD_BETWEEN;
        vlm_match_start(j->match, j->sampling.between);
    }
}


/* Looks for the trigger, whose first byte stands in it once. */
static void
find_trigger(const vlm_adjust_t *a, vlm_job_t *j, const char *p, size_t bytes)
{
    size_t       i;
    const char  *trigger = j->sampling.trigger;

    for (i = 0; i < bytes && trigger[j->n_trigger] != '\0'; i++) {
        j->n_trigger = p[i] == trigger[j->n_trigger] ? j->n_trigger + 1 : p[i] == trigger[0];
    }

    if (trigger[j->n_trigger] != '\0') {
        return;
    }

    j->n_trigger = 0;

    /* Where the value does not fit, or the token goes on in another way, the answer stays free. */

    if (room(j) < vlm_grammar_least(j->sampling.grammar)
        || (i < bytes && vlm_match_read(j->match, a->walk, p + i, bytes - i) != 0))
    {
        return;
    }

    j->hold = VLM_HOLD_VALUE;
    vlm_blanks_read(&j->blanks, p + i, bytes - i);
}


int
vlm_hold_read(const vlm_adjust_t *a, vlm_job_t *j, const vlm_tokenizer_t *t, uint32_t id,
              vlm_err_t *err)
{
    size_t       bytes;
    const char  *p;

    if (j->match == NULL) {
        return 0;
    }

    j->masked = VLM_UNMASKED;
    vlm_walk_allow(a->walk, READ, NULL);
    p = vlm_token_bytes(t, id, &bytes);

    if (vlm_tokens_ends(a->pieces, id)) {
        if (!vlm_held(j) || vlm_match_may_end(j->match)) {
            return 0;
        }

        p = NULL;
    }

    if (p != NULL && !vlm_held(j)) {
        find_trigger(a, j, p, bytes);
        return 0;
    }

    if (p == NULL || vlm_match_read(j->match, a->walk, p, bytes) != 0) {
        return p != NULL && vlm_walk_spent(a->walk) ? vlm_mask_too_much(err)
               : vlm_fail(err, VLM_EMODEL, "token %u was picked, the grammar does not go on with "
                          "it", id);
    }

    if (j->hold == VLM_HOLD_VALUE) {
        vlm_feed_read(j, id, p, bytes);
    }

    go_on(j);

    return 0;
}
