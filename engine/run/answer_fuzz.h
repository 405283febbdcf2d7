/*
 * For fuzz targets of grammars: an answer that is to follow one.
 *
 * Bytes that the grammar refuses are left out.  The answer comes to its end within the promised
 * number of tokens, and those that are fed as forced are among the allowed ones.
 */

#ifndef VLM_ANSWER_FUZZ_H
#define VLM_ANSWER_FUZZ_H

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "run/feed.h"
#include "text/sample.h"

#define MOST   4096                    /* tokens that an end may take here */
#define ROOM   8192

static vlm_tokenizer_t  *tokenizer;
static vlm_tokens_t     *pieces;
static vlm_adjust_t      adjust;
static vlm_match_t       match;
static vlm_job_t         job;
static uint32_t          allowed[16];  /* the vocabulary has fewer than 512 ids */
static char              text[ROOM];   /* [n] the answer so far */
static size_t            n;


static inline void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


static inline void
open_once(void)
{
    char       *sample;
    uint32_t    n_ids;
    vlm_err_t   err = { VLM_OK, "" };

    if (tokenizer != NULL) {
        return;
    }

    sample = vlm_sample(", \"ab\": 256, \"\\\":\": 257, \"tr\": 258, \"ue\": 259, \"true\": 260",
                        "\"a b\", \"\\\" :\", \"t r\", \"u e\", \"tr ue\"",
                        VLM_SAMPLE_REST);
    tokenizer = vlm_sample_read(sample, &err);
    free(sample);
    check(tokenizer != NULL);
    n_ids = vlm_vocab_size(tokenizer);
    pieces = vlm_tokens_open(tokenizer, n_ids, NULL, 0, &err);
    check(pieces != NULL && vlm_adjust_open(&adjust, n_ids, tokenizer, pieces, &err) == 0);
}


/* The work may take as much as it likes: vlm_feed() has bounded it. */
static inline void
allow(void)
{
    vlm_walk_allow(adjust.walk, UINT64_MAX - 1, NULL);
}


/* The bytes are text that may come: those of a forced text without blanks are the only ones. */
static inline void
check_forced(void)
{
    uint32_t      i, c, others;
    vlm_forced_t  f;

    allow();
    vlm_forced_text(&f, &match, adjust.walk, &job.blanks);
    vlm_walk_begin(adjust.walk, &match);

    for (i = 0; i < f.n; i++) {
        for (others = 0, c = 0; c < 256 && !match.g->blanks; c++) {
            others += c != (uint8_t) f.text[i] && vlm_walk_byte(adjust.walk, i, (uint8_t) c);
        }

        check(others == 0);
        check(vlm_walk_byte(adjust.walk, i, (uint8_t) f.text[i]));
    }

    check(!f.whole || vlm_walk_may_end(adjust.walk, f.n));
}


/* A token of the answer.  0: it cannot come. */
static inline int
take(uint32_t id)
{
    size_t       bytes;
    const char  *p = vlm_token_bytes(tokenizer, id, &bytes);

    check(p != NULL && n + bytes <= ROOM);
    allow();

    if (vlm_match_read(&match, adjust.walk, p, bytes) != 0) {
        return 0;
    }

    memcpy(text + n, p, bytes);
    n += bytes;
    vlm_feed_read(&job, id, p, bytes);
    job.usage.completion_tokens++;

    return 1;
}


/* Takes the first token that leaves no more to come than there is room for. */
static inline void
take_shorter(uint32_t left)
{
    uint32_t  id;

    allow();
    check(vlm_mask(pieces, &match, adjust.walk, left - 1, allowed) == 0);

    for (id = 0; id < adjust.n_ids && !(allowed[id / 32] >> (id % 32) & 1); id++) {
        /* void */
    }

    check(id < adjust.n_ids && take(id) && vlm_match_left(&match) < left);
}


/* Takes the tokens that are fed; returns how many, and sets *whole. */
static inline uint32_t
take_forced(int *whole)
{
    uint32_t  i, n_fed, id[VLM_FED];

    n_fed = vlm_feed(&adjust, &job, VLM_FED, id, whole);

    for (i = 0; i < n_fed; i++) {
        check(take(id[i]));
        check(vlm_match_left(&match)
              <= job.sampling.max_tokens - job.usage.completion_tokens);
    }

    check(!*whole || vlm_match_may_end(&match));

    return n_fed;
}


static inline void
answer(const vlm_grammar_t *g, const uint8_t *data, size_t n_data, int json)
{
    int          whole;
    size_t       i;
    uint32_t     left;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    if (vlm_grammar_least(g) > MOST) {
        return;
    }

    memset(&job, 0, sizeof(job));
    job.match = &match;
    job.hold = VLM_HOLD_VALUE;
    n = 0;
    vlm_match_start(&match, g);
    vlm_feed_start(&job);
    check_forced();

    for (i = 0; i < n_data && n < ROOM / 4; i++) {
        (void) take(data[i]);          /* a byte is the token of its number */
    }

    /* Tokens that complete it, each of 4 bytes at most; some more than that takes. */

    check_forced();
    left = vlm_match_left(&match);

    if (left > ROOM / 8) {
        return;
    }

    job.sampling.max_tokens = job.usage.completion_tokens + left + (uint32_t) (n_data % 8);

    for (whole = 0; left > 0 && !whole; left = vlm_match_left(&match)) {
        if (take_forced(&whole) == 0) {
            take_shorter(left);
        }
    }

    check(vlm_match_may_end(&match));
    check(vlm_utf8_whole(text, n) == n);

    if (json) {
        j = vlm_json_named(text, n, "answer", &err);
        check(j != NULL);
        vlm_json_free(j);
    }
}

#endif
