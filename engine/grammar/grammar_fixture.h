/* For tests of grammars: two vocabularies, the mask's definition, and random answers. */

#ifndef VLM_GRAMMAR_FIXTURE_H
#define VLM_GRAMMAR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/utf8.h"
#include "grammar/mask.h"
#include "text/sample.h"

#define QWEN    "build/qwen-tokenizer/json"
#define DEMO    "demo/model"
#define WORDS   5000
#define BUDGET  200                    /* tokens */

typedef struct {                       /* a vocabulary */
    vlm_tokenizer_t  *tokenizer;
    vlm_tokens_t     *pieces;
    uint32_t          n_ids;
} vocab_t;

static uint64_t      seed = 1;
static uint32_t      allowed[WORDS];
static vocab_t       qwen, demo;
static vlm_walk_t   *walker;
static vlm_match_t   match, other;


static inline uint32_t
random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((seed >> 33) % n);
}


/* Seconds of the processor, which other work on the machine does not lengthen. */
static inline double
processor_time(void)
{
    return (double) clock() / CLOCKS_PER_SEC;
}


static inline void
open_vocab(vocab_t *v, const char *dir)
{
    vlm_err_t  err = { VLM_OK, "" };

    v->tokenizer = vlm_tokenizer_open(dir, vlm_qwen_split, &err);

    if (v->tokenizer == NULL) {
        fail_msg("%s", err.text);
    }

    v->n_ids = vlm_vocab_size(v->tokenizer);
    v->pieces = vlm_tokens_open(v->tokenizer, v->n_ids, NULL, 0, &err);
    assert_non_null(v->pieces);
}


static inline int
open_all(void **state)
{
    (void) state;

    open_vocab(&qwen, QWEN);
    open_vocab(&demo, DEMO);
    walker = vlm_walk_open(qwen.pieces);

    return walker == NULL;
}


static inline int
close_all(void **state)
{
    (void) state;

    vlm_walk_close(walker);
    vlm_tokens_close(qwen.pieces);
    vlm_tokens_close(demo.pieces);
    vlm_tokenizer_close(qwen.tokenizer);
    vlm_tokenizer_close(demo.tokenizer);

    return 0;
}


static inline vlm_grammar_t *
compile(const vocab_t *v, const char *text, vlm_err_t *err)
{
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    memset(err, 0, sizeof(*err));
    j = vlm_json_parse(text, strlen(text), err);

    if (j == NULL) {
        fail_msg("%s: %s", err->text, text);
    }

    g = vlm_schema_make(v->pieces, j, err);
    vlm_json_free(j);

    return g;
}


static inline vlm_grammar_t *
must_compile(const vocab_t *v, const char *text)
{
    vlm_err_t       err;
    vlm_grammar_t  *g;

    g = compile(v, text, &err);

    if (g == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    return g;
}


static inline int
is_allowed(uint32_t id)
{
    return (int) (allowed[id / 32] >> (id % 32) & 1);
}


/* The definition. */
static inline int
may_come(const vocab_t *v, uint32_t id, uint32_t n_after)
{
    size_t       bytes;
    const char  *p;

    p = vlm_token_bytes(v->tokenizer, id, &bytes);

    if (p == NULL || !vlm_token_is_text(v->tokenizer, id)) {
        return 0;
    }

    vlm_match_copy(&other, &match);

    return vlm_match_read(&other, walker, p, bytes) == 0 && vlm_match_left(&other) <= n_after;
}


static inline void
compare(const vocab_t *v, uint32_t n_after, const char *text, size_t n)
{
    uint32_t  id;

    for (id = 0; id < v->n_ids; id++) {
        if (is_allowed(id) != may_come(v, id, n_after)) {
            fail_msg("token %u after %.*s, %u to come: mask %d", id, (int) n, text, n_after,
                     is_allowed(id));
        }
    }
}


/* Any of those that are allowed, each as likely. */
static inline uint32_t
pick_any(const vocab_t *v, const char *text, size_t bytes)
{
    uint32_t  w, n, words = (v->n_ids + 31) / 32;

    for (n = 0, w = 0; w < words; w++) {
        n += (uint32_t) __builtin_popcount(allowed[w]);
    }

    if (n == 0) {
        fail_msg("nothing may follow %.*s", (int) bytes, text);
    }

    n = random_below(n);

    for (w = 0; n >= (uint32_t) __builtin_popcount(allowed[w]); w++) {
        n -= (uint32_t) __builtin_popcount(allowed[w]);
    }

    for (w *= 32; n > 0 || !is_allowed(w); w++) {
        n -= (uint32_t) is_allowed(w);
    }

    return w;
}


/* Tokens to the end; returns how many bytes they are.  each: every so many states are compared. */
static inline size_t
walk(const vocab_t *v, const vlm_grammar_t *g, uint32_t budget, char *text, uint32_t each)
{
    size_t       n, bytes;
    uint32_t     id, k;
    const char  *p;

    vlm_match_start(&match, g);

    for (n = 0, k = 0; !vlm_match_done(&match); budget--, k++) {
        if (budget == 0 && vlm_match_may_end(&match)) {
            break;
        }

        if (budget == 0) {
            fail_msg("no end: %.*s", (int) n, text);
        }

        vlm_mask(v->pieces, &match, walker, budget - 1, allowed);

        if (each > 0 && k % each == 0) {
            compare(v, budget - 1, text, n);
        }

        if (vlm_match_may_end(&match) && random_below(2) == 0) {
            break;
        }

        for (id = 0; id < (v->n_ids + 31) / 32 && allowed[id] == 0; id++) { /* void */ }

        if (id == (v->n_ids + 31) / 32 && vlm_match_may_end(&match)) {
            break;
        }

        id = pick_any(v, text, n);
        p = vlm_token_bytes(v->tokenizer, id, &bytes);
        assert_int_equal(vlm_match_read(&match, walker, p, bytes), 0);
        memcpy(text + n, p, bytes);
        n += bytes;
    }

    return n;
}


/* 1: the grammar accepts all of a text, and it may end there. */
static inline int
accepts(const vlm_grammar_t *g, const char *text)
{
    vlm_match_start(&match, g);

    return vlm_match_read(&match, walker, text, strlen(text)) == 0 && vlm_match_may_end(&match);
}


#endif
