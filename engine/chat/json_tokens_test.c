/*
 * Tokens that JSON allows: the walk over shared beginnings gives the same set as a check of each
 * token, and any choice of allowed tokens ends with an object within the budget.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "chat/json_tokens.h"
#include "text/sample.h"

#define QWEN    "build/qwen-tokenizer/json"
#define DEMO    "demo/model"
#define WORDS   5000
#define BUDGET  200                    /* tokens */

static uint64_t  seed = 1;
static uint32_t  allowed[WORDS];


static uint32_t
random_below(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((seed >> 33) % n);
}


static vlm_tokenizer_t *
open_tokenizer(const char *dir)
{
    vlm_err_t         err = { VLM_OK, "" };
    vlm_tokenizer_t  *t;

    t = vlm_tokenizer_open(dir, vlm_qwen_split, &err);
    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    return t;
}


static vlm_json_tokens_t *
open_tokens(const vlm_tokenizer_t *tokenizer, uint32_t n_ids)
{
    vlm_err_t           err = { VLM_OK, "" };
    vlm_json_tokens_t  *t;

    t = vlm_json_tokens_open(tokenizer, n_ids, NULL, 0, &err);
    assert_non_null(t);

    return t;
}


static int
is_allowed(uint32_t id)
{
    return (int) (allowed[id / 32] >> (id % 32) & 1);
}


/* The definition. */
static int
may_come(const vlm_tokenizer_t *t, uint32_t id, vlm_json_mode_t m, uint32_t n_after)
{
    size_t       i, bytes;
    const char  *p;

    p = vlm_token_bytes(t, id, &bytes);

    if (p == NULL || !vlm_token_is_text(t, id)) {
        return 0;
    }

    for (i = 0; i < bytes; i++) {
        if (!vlm_json_mode_next(&m, (uint8_t) p[i])) {
            return 0;
        }
    }

    return vlm_json_mode_left(&m) <= n_after;
}


/* Any of those that are allowed, each as likely.  By words: Qwen's vocabulary has 151,000 ids. */
static uint32_t
pick_any(uint32_t n_ids)
{
    uint32_t  w, n, words = (n_ids + 31) / 32;

    for (n = 0, w = 0; w < words; w++) {
        n += (uint32_t) __builtin_popcount(allowed[w]);
    }

    assert_true(n > 0);

    n = random_below(n);

    for (w = 0; n >= (uint32_t) __builtin_popcount(allowed[w]); w++) {
        n -= (uint32_t) __builtin_popcount(allowed[w]);
    }

    for (w *= 32; n > 0 || !is_allowed(w); w++) {
        n -= (uint32_t) is_allowed(w);
    }

    return w;
}


/* Tokens to the end; returns how many bytes they are.  each: every state is compared. */
static size_t
walk(const vlm_tokenizer_t *t, const vlm_json_tokens_t *tokens, uint32_t budget, char *text,
     int each)
{
    size_t           i, n, bytes;
    uint32_t         id, n_ids;
    const char      *p;
    vlm_json_mode_t  m = { 0 };

    n_ids = vlm_vocab_size(t);

    for (n = 0; !vlm_json_mode_done(&m); budget--) {
        assert_true(budget > 0);
        vlm_json_tokens_allow(tokens, &m, budget - 1, allowed);

        for (id = 0; each && id < n_ids; id++) {
            if (is_allowed(id) != may_come(t, id, m, budget - 1)) {
                fail_msg("token %u after %.*s, %u to come", id, (int) n, text, budget - 1);
            }
        }

        p = vlm_token_bytes(t, pick_any(n_ids), &bytes);

        for (i = 0; i < bytes; i++) {
            assert_true(vlm_json_mode_next(&m, (uint8_t) p[i]));
        }

        memcpy(text + n, p, bytes);
        n += bytes;
    }

    return n;
}


static void
assert_object(const char *text, size_t bytes)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    j = vlm_json_named(text, bytes, "answer", &err);

    if (j == NULL || !vlm_json_is_object(j)) {
        fail_msg("%s: %.*s", err.text, (int) bytes, text);
    }

    vlm_json_free(j);
}


static void
walk_often(const char *dir, uint32_t n, int each)
{
    char                text[BUDGET * 256];
    size_t              bytes;
    uint32_t            i;
    vlm_err_t           err = { VLM_OK, "" };
    vlm_tokenizer_t    *t;
    vlm_json_tokens_t  *tokens;

    t = open_tokenizer(dir);
    tokens = open_tokens(t, vlm_vocab_size(t));
    assert_int_equal(vlm_json_tokens_check(tokens, &err), 0);

    for (i = 0; i < n; i++) {
        bytes = walk(t, tokens, 2 + i % (BUDGET - 1), text, each);
        assert_object(text, bytes);
    }

    vlm_json_tokens_close(tokens);
    vlm_tokenizer_close(t);
}


static void
two_thousand_random_walks_within_2_to_200_tokens_all_parse(void **state)
{
    (void) state;
    walk_often(DEMO, 2000, 0);
}


static void
a_hundred_over_qwens_vocabulary_parse(void **state)
{
    (void) state;
    walk_often(QWEN, 100, 0);
}


static void
looking_at_what_tokens_share_says_what_looking_at_each_says(void **state)
{
    (void) state;
    walk_often(DEMO, 300, 1);
    walk_often(QWEN, 7, 1);
}


/* From states that a walk seldom reaches: within escapes, characters, numbers, literals. */
static void
it_says_the_same_within_a_character_an_escape_a_number(void **state)
{
    size_t              i;
    uint32_t            k, id, n_after;
    const char         *p;
    vlm_json_mode_t     m;
    vlm_tokenizer_t    *t;
    vlm_json_tokens_t  *tokens;
    static const char  *const texts[] = {
        "", "{", "{\"", "{\"\\", "{\"\\u", "{\"\\ud", "{\"\\u00", "{\"\xc3", "{\"\xe0",
        "{\"\xe4\xb8", "{\"\xf0", "{\"\xf4\x8f", "{\"a\"", "{\"a\":", "{\"a\":t", "{\"a\":nul",
        "{\"a\":-", "{\"a\":1.", "{\"a\":1e", "{\"a\":1.5e+9", "{\"a\":[[[", "{\"a\":[1,",
        "{\"a\":{}", "{}"
    };

    (void) state;

    t = open_tokenizer(QWEN);
    tokens = open_tokens(t, vlm_vocab_size(t));

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        memset(&m, 0, sizeof(m));

        for (p = texts[i]; *p != '\0'; p++) {
            assert_true(vlm_json_mode_next(&m, (uint8_t) *p));
        }

        for (k = 0; k < 6; k++) {
            n_after = k < 5 ? vlm_json_mode_left(&m) + k - 2 : 100000;
            n_after = n_after > 100000 ? 0 : n_after;

            vlm_json_tokens_allow(tokens, &m, n_after, allowed);

            for (id = 0; id < vlm_vocab_size(t); id++) {
                assert_int_equal(is_allowed(id), may_come(t, id, m, n_after));
            }
        }
    }

    vlm_json_tokens_close(tokens);
    vlm_tokenizer_close(t);
}


static vlm_tokenizer_t *
read_sample(const char *vocab)
{
    char             *text;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_tokenizer_t  *t;

    text = vlm_sample(vocab, "", VLM_SAMPLE_REST);
    t = vlm_sample_read(text, &err);

    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    free(text);

    return t;
}


static void
control_tokens_and_ends_of_answers_are_never_allowed(void **state)
{
    vlm_err_t           err = { VLM_OK, "" };
    const uint32_t      eos[] = { 256, 300 };
    vlm_json_mode_t     m = { 0 };
    vlm_tokenizer_t    *t;
    vlm_json_tokens_t  *tokens;

    (void) state;

    /* 300 and 301 are added tokens whose names a string may spell; 256 and 257 are texts. */

    t = read_sample(", \"ab\": 256, \"abc\": 257");
    tokens = vlm_json_tokens_open(t, vlm_vocab_size(t), eos, 2, &err);
    assert_int_equal(vlm_json_tokens_check(tokens, &err), 0);

    (void) vlm_json_mode_next(&m, '{');
    (void) vlm_json_mode_next(&m, '"');
    vlm_json_tokens_allow(tokens, &m, 100, allowed);

    assert_true(is_allowed(257));
    assert_false(is_allowed(256));
    assert_false(is_allowed(300));
    assert_false(is_allowed(301));

    vlm_json_tokens_close(tokens);
    vlm_tokenizer_close(t);
}


static void
a_vocabulary_without_every_byte_is_refused_with_the_byte(void **state)
{
    vlm_err_t           err = { VLM_OK, "" };
    const uint32_t      eos[] = { '}' };
    vlm_tokenizer_t    *t;
    vlm_json_tokens_t  *tokens;

    (void) state;

    t = read_sample("");

    tokens = vlm_json_tokens_open(t, vlm_vocab_size(t), eos, 1, &err);
    assert_int_equal(vlm_json_tokens_check(tokens, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_non_null(strstr(err.text, "no token for the byte 0x7d alone"));
    vlm_json_tokens_close(tokens);

    err.code = VLM_OK;
    tokens = vlm_json_tokens_open(t, 200, NULL, 0, &err);          /* fewer logits than ids */
    assert_int_equal(vlm_json_tokens_check(tokens, &err), -1);
    assert_non_null(strstr(err.text, "0xc8"));
    vlm_json_tokens_close(tokens);

    vlm_tokenizer_close(t);
}


static void
without_room_for_the_end_nothing_is_allowed(void **state)
{
    uint32_t            id;
    vlm_json_mode_t     m = { 0 };
    vlm_tokenizer_t    *t;
    vlm_json_tokens_t  *tokens;

    (void) state;

    t = open_tokenizer(DEMO);
    tokens = open_tokens(t, vlm_vocab_size(t));

    vlm_json_tokens_allow(tokens, &m, 0, allowed);

    for (id = 0; id < vlm_vocab_size(t); id++) {
        assert_false(is_allowed(id));
    }

    vlm_json_tokens_allow(tokens, &m, 1, allowed);
    (void) pick_any(vlm_vocab_size(t));

    vlm_json_tokens_close(tokens);
    vlm_tokenizer_close(t);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(two_thousand_random_walks_within_2_to_200_tokens_all_parse),
        cmocka_unit_test(a_hundred_over_qwens_vocabulary_parse),
        cmocka_unit_test(looking_at_what_tokens_share_says_what_looking_at_each_says),
        cmocka_unit_test(it_says_the_same_within_a_character_an_escape_a_number),
        cmocka_unit_test(control_tokens_and_ends_of_answers_are_never_allowed),
        cmocka_unit_test(a_vocabulary_without_every_byte_is_refused_with_the_byte),
        cmocka_unit_test(without_room_for_the_end_nothing_is_allowed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
