/*
 * Fuzz target: a schema or, as a JSON string, an expression, a zero, and bytes of an answer,
 * without those that are refused.  A compiled one comes to its end within the promised number of
 * tokens, and the answer to a schema is JSON.
 */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "grammar/mask.h"
#include "text/sample.h"

#define MOST  4096                     /* tokens that an end may take here */
#define ROOM  8192

static vlm_tokenizer_t  *tokenizer;
static vlm_tokens_t     *pieces;
static vlm_walk_t       *walker;
static vlm_match_t       match;

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


static void
open_once(void)
{
    char       *text;
    vlm_err_t   err = { VLM_OK, "" };

    if (walker != NULL) {
        return;
    }

    text = vlm_sample(", \"ab\": 256, \"\\\":\": 257, \"tr\": 258, \"true\": 259", "",
                      VLM_SAMPLE_REST);
    tokenizer = vlm_sample_read(text, &err);
    free(text);
    check(tokenizer != NULL);
    pieces = vlm_tokens_open(tokenizer, vlm_vocab_size(tokenizer), NULL, 0, &err);
    walker = vlm_walk_open();
    check(pieces != NULL && walker != NULL);
}


/* The first token that leaves no more to come than there is room for. */
static const char *
shorter(uint32_t left, size_t *bytes)
{
    uint32_t  id, allowed[64];

    vlm_mask(pieces, &match, walker, left - 1, allowed);

    for (id = 0; id < vlm_vocab_size(tokenizer); id++) {
        if (allowed[id / 32] >> (id % 32) & 1) {
            return vlm_token_bytes(tokenizer, id, bytes);
        }
    }

    check(0);

    return NULL;
}


static void
answer(const uint8_t *data, size_t n_data, int json)
{
    char         text[ROOM];
    size_t       i, n, bytes;
    uint32_t     left;
    vlm_err_t    err = { VLM_OK, "" };
    const char  *p;
    vlm_json_t  *j;

    for (i = 0, n = 0; i < n_data && n < ROOM / 4; i++) {
        text[n] = (char) data[i];
        n += (size_t) (vlm_match_read(&match, walker, text + n, 1) == 0);
    }

    /* Tokens that complete it, each of 4 bytes at most. */

    for (left = vlm_match_left(&match); left > 0; ) {
        if (left > ROOM / 8) {
            return;
        }

        p = shorter(left, &bytes);
        check(n + bytes <= ROOM);
        memcpy(text + n, p, bytes);
        check(vlm_match_read(&match, walker, p, bytes) == 0);
        n += bytes;

        check(vlm_match_left(&match) < left);
        left = vlm_match_left(&match);
    }

    check(vlm_match_may_end(&match));
    check(vlm_utf8_whole(text, n) == n);

    if (json) {
        j = vlm_json_named(text, n, "answer", &err);
        check(j != NULL);
        vlm_json_free(j);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t          n;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;
    const uint8_t  *zero;

    open_once();

    zero = bytes == 0 ? NULL : memchr(data, 0, bytes);
    n = zero == NULL ? bytes : (size_t) (zero - data);
    j = vlm_json_parse(data, n, &err);

    if (j == NULL) {
        return 0;
    }

    memset(&err, 0, sizeof(err));
    g = vlm_schema_make(pieces, j, &err);
    check((g == NULL) == (err.code != VLM_OK));

    if (g != NULL && vlm_grammar_least(g) <= MOST) {
        vlm_match_start(&match, g);
        answer(data + n + (zero != NULL), bytes - n - (zero != NULL), 1);
    }

    vlm_grammar_free(g);
    memset(&err, 0, sizeof(err));
    g = vlm_json_is_string(j) ? vlm_regex_make(pieces, vlm_json_text(j), &err) : NULL;
    check(!vlm_json_is_string(j) || (g == NULL) == (err.code != VLM_OK));

    if (g != NULL && vlm_grammar_least(g) <= MOST) {
        vlm_match_start(&match, g);
        answer(data + n + (zero != NULL), bytes - n - (zero != NULL), 0);
    }

    vlm_grammar_free(g);

    g = vlm_choice_make(pieces, j, NULL);
    vlm_grammar_free(g);
    vlm_json_free(j);

    return 0;
}
