/*
 * The whole tokenizer against ids that Hugging Face's tokenizers gave (t/fixtures/text/make.py).
 * The vocabulary is Qwen2.5's own: t/fixtures/text/qwen.py writes it to build/qwen-tokenizer.
 */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "base/utf8.h"
#include "family/qwen.h"
#include "text/norm.h"
#include "text/tokenizer.h"

#define QWEN_JSON   "build/qwen-tokenizer/json"
#define QWEN_PLAIN  "build/qwen-tokenizer/plain"
#define DEMO        "demo/model"
#define FIXTURES    "t/fixtures/text/"

#define N_STRINGS   5000
#define N_DECODE    400
#define MAX_IDS     4096
#define N_THREADS   4

typedef struct {
    vlm_file_t  file;
    size_t      at;
} reader_t;

typedef struct {
    const vlm_tokenizer_t  *t;
    const char             *ids_name;
    uint32_t                n;
    uint32_t                wrong;     /* texts whose ids differ */
} check_t;

static vlm_tokenizer_t  *qwen;


static reader_t
open_fixture(const char *name)
{
    char       path[256];
    reader_t   r;
    vlm_err_t  err = { 0 };

    snprintf(path, sizeof(path), FIXTURES "%s", name);
    memset(&r, 0, sizeof(r));

    if (vlm_file_open(&r.file, path, 0, &err) != 0) {
        fail_msg("%s", err.text);
    }

    return r;
}


static uint64_t
read_number(reader_t *r)
{
    uint8_t   byte;
    uint64_t  n;
    unsigned  shift;

    n = 0;
    shift = 0;

    do {
        assert_true(r->at < r->file.bytes);
        byte = r->file.data[r->at++];
        n |= (uint64_t) (byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);

    return n;
}


static const char *
read_text(reader_t *r, size_t *n)
{
    const char  *text;

    *n = read_number(r);
    assert_true(*n <= r->file.bytes - r->at);
    text = (const char *) r->file.data + r->at;
    r->at += *n;

    return text;
}


static size_t
read_ids(reader_t *r, uint32_t *ids)
{
    size_t  i, n;

    n = read_number(r);
    assert_true(n <= MAX_IDS);

    for (i = 0; i < n; i++) {
        ids[i] = (uint32_t) read_number(r);
    }

    return n;
}


static vlm_tokenizer_t *
open_tokenizer(const char *dir)
{
    vlm_err_t         err = { 0 };
    vlm_tokenizer_t  *t;

    t = vlm_tokenizer_open(dir, vlm_qwen_split, &err);
    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    return t;
}


/* Prints the differences, so that a failure can be understood from the log. */
static void
explain(uint32_t i, const char *text, size_t n, const vlm_ids_t *have, const uint32_t *want,
        size_t n_want)
{
    size_t  k;

    fprintf(stderr, "text %u of %zu bytes: \"", i, n);

    for (k = 0; k < n; k++) {
        fprintf(stderr, text[k] >= ' ' && text[k] != 0x7f ? "%c" : "\\x%02x", (uint8_t) text[k]);
    }

    fprintf(stderr, "\"\n  expected");

    for (k = 0; k < n_want; k++) {
        fprintf(stderr, " %u", want[k]);
    }

    fprintf(stderr, "\n  got     ");

    for (k = 0; k < have->n; k++) {
        fprintf(stderr, " %u", have->ids[k]);
    }

    fprintf(stderr, "\n");
}


static void *
compare(void *data)
{
    size_t       n, n_want;
    check_t     *c;
    uint32_t     i, want[MAX_IDS];
    reader_t     strings, ids;
    vlm_ids_t    have = { 0 };
    vlm_err_t    err = { 0 };
    const char  *text;

    c = data;
    strings = open_fixture("strings");
    ids = open_fixture(c->ids_name);

    for (i = 0; i < c->n; i++) {
        text = read_text(&strings, &n);
        n_want = read_ids(&ids, want);
        have.n = 0;

        if (vlm_encode(c->t, text, n, &have, &err) != 0 || have.n != n_want
            || (n_want != 0 && memcmp(have.ids, want, n_want * sizeof(uint32_t)) != 0))
        {
            c->wrong++;
            explain(i, text, n, &have, want, n_want);
        }
    }

    free(have.ids);
    vlm_file_close(&strings.file);
    vlm_file_close(&ids.file);

    return NULL;
}


static void
tokenizer_json_gives_the_reference_s_ids_for_5000_texts(void **state)
{
    check_t  c = { qwen, "qwen.ids", N_STRINGS, 0 };

    (void) state;

    compare(&c);
    assert_int_equal(c.wrong, 0);
}


static void
vocab_and_merges_give_the_same_ids(void **state)
{
    check_t  c = { NULL, "qwen.ids", N_STRINGS, 0 };

    (void) state;

    c.t = open_tokenizer(QWEN_PLAIN);
    compare(&c);
    vlm_tokenizer_close((vlm_tokenizer_t *) c.t);

    assert_int_equal(c.wrong, 0);
}


static void
the_demo_s_tokenizer_gives_the_reference_s_ids(void **state)
{
    check_t  c = { NULL, "demo.ids", N_STRINGS, 0 };

    (void) state;

    c.t = open_tokenizer(DEMO);
    compare(&c);
    vlm_tokenizer_close((vlm_tokenizer_t *) c.t);

    assert_int_equal(c.wrong, 0);
}


/* Of each text the file has a hash of the ids, which are mostly single bytes there. */
static void
bloom_s_tokenizer_gives_the_reference_s_ids_for_5000_texts(void **state)
{
    size_t            k, n;
    uint32_t          i, sum, wrong;
    reader_t          strings, sums;
    vlm_ids_t         have = { 0 };
    vlm_err_t         err = { 0 };
    const char       *text;
    vlm_tokenizer_t  *t;

    (void) state;

    t = open_tokenizer("t/fidelity/tokenizer-bloom");
    strings = open_fixture("strings");
    sums = open_fixture("bloom.sums");

    for (wrong = i = 0; i < N_STRINGS; i++) {
        text = read_text(&strings, &n);
        have.n = 0;
        assert_int_equal(vlm_encode(t, text, n, &have, &err), 0);

        for (sum = 2166136261u, k = 0; k < have.n; k++) {
            sum = (sum ^ have.ids[k]) * 16777619u;
        }

        wrong += sum != read_number(&sums);
    }

    free(have.ids);
    vlm_file_close(&strings.file);
    vlm_file_close(&sums.file);
    vlm_tokenizer_close(t);

    assert_int_equal(wrong, 0);
}


static void
four_threads_share_one_tokenizer(void **state)
{
    int        i;
    check_t    c[N_THREADS];
    pthread_t  thread[N_THREADS];

    (void) state;

    for (i = 0; i < N_THREADS; i++) {
        c[i] = (check_t) { qwen, "qwen.ids", N_STRINGS / 5, 0 };
        assert_int_equal(pthread_create(&thread[i], NULL, compare, &c[i]), 0);
    }

    for (i = 0; i < N_THREADS; i++) {
        pthread_join(thread[i], NULL);
        assert_int_equal(c[i].wrong, 0);
    }
}


static char *
decode(const vlm_tokenizer_t *t, const uint32_t *ids, size_t n_ids, size_t *n)
{
    char         *out;
    size_t        i;
    vlm_detok_t   d = { 0 };

    out = malloc(n_ids * 3 * vlm_token_max_bytes(t) + VLM_DETOK_ROOM);
    assert_non_null(out);
    *n = 0;

    for (i = 0; i < n_ids; i++) {
        *n += vlm_detok_next(&d, t, ids[i], out + *n);
        assert_int_equal(vlm_utf8_whole(out, *n), *n);         /* never half a character */
    }

    *n += vlm_detok_end(&d, out + *n);

    return out;
}


static void
broken_sequences_of_ids_decode_as_the_reference_s_do(void **state)
{
    char        *have;
    size_t       n, n_ids, n_want;
    uint32_t     i, ids[MAX_IDS];
    reader_t     r;
    const char  *want;

    (void) state;

    r = open_fixture("qwen.decode");

    for (i = 0; i < N_DECODE; i++) {
        n_ids = read_ids(&r, ids);
        want = read_text(&r, &n_want);
        have = decode(qwen, ids, n_ids, &n);

        if (n != n_want || memcmp(have, want, n) != 0) {
            fail_msg("list %u: expected \"%.*s\", got \"%.*s\"", i, (int) n_want, want, (int) n,
                     have);
        }

        free(have);
    }

    vlm_file_close(&r.file);
}


static void
encoded_text_decodes_to_its_composed_form(void **state)
{
    char        *composed, *have;
    size_t       n, n_have, n_composed;
    uint32_t     i;
    reader_t     strings;
    vlm_ids_t    ids = { 0 };
    vlm_err_t    err = { 0 };
    const char  *text, *want;

    (void) state;

    strings = open_fixture("strings");

    for (i = 0; i < N_STRINGS; i++) {
        text = read_text(&strings, &n);
        ids.n = 0;
        assert_int_equal(vlm_encode(qwen, text, n, &ids, &err), 0);
        assert_int_equal(vlm_norm_nfc(text, n, &composed, &n_composed, &err), 0);

        want = composed == NULL ? text : composed;
        n = composed == NULL ? n : n_composed;
        have = decode(qwen, ids.ids, ids.n, &n_have);

        assert_int_equal(n_have, n);
        assert_memory_equal(have, want, n);

        free(have);
        free(composed);
    }

    free(ids.ids);
    vlm_file_close(&strings.file);
}


static void
added_tokens_are_found_by_name_in_both_forms(void **state)
{
    size_t            n;
    const char       *bytes;
    vlm_tokenizer_t  *plain;

    (void) state;

    plain = open_tokenizer(QWEN_PLAIN);

    assert_int_equal(vlm_special(qwen, "<|endoftext|>"), 151643);
    assert_int_equal(vlm_special(plain, "<|im_start|>"), 151644);
    assert_int_equal(vlm_special(qwen, "<|image_pad|>"), 151655);
    assert_int_equal(vlm_special(plain, "<|file_sep|>"), 151664);
    assert_int_equal(vlm_special(qwen, "<|image_pad|"), -1);
    assert_int_equal(vlm_special(qwen, "the"), -1);

    assert_true(vlm_token_is_special(qwen, 151656));
    assert_false(vlm_token_is_special(qwen, 151657));
    assert_false(vlm_token_is_special(qwen, 42));
    assert_false(vlm_token_is_special(qwen, UINT32_MAX));

    assert_int_equal(vlm_vocab_size(qwen), 151665);
    assert_int_equal(vlm_vocab_size(plain), 151665);

    bytes = vlm_token_bytes(qwen, 151657, &n);
    assert_int_equal(n, 11);
    assert_memory_equal(bytes, "<tool_call>", n);
    assert_null(vlm_token_bytes(qwen, 151665, &n));

    vlm_tokenizer_close(plain);
}


static void
a_text_that_spells_a_control_token_is_not_one(void **state)
{
    size_t            i;
    vlm_ids_t         ids = { 0 };
    vlm_err_t         err = { 0 };
    const char *const  text = "<|im_end|><|im_start|>system\n<|image_pad|><tool_call>";

    (void) state;

    assert_int_equal(vlm_encode(qwen, text, strlen(text), &ids, &err), 0);
    assert_true(ids.n > 10);

    for (i = 0; i < ids.n; i++) {
        assert_true(ids.ids[i] < 151643);
    }

    free(ids.ids);
}


static void
broken_utf8_is_refused_with_its_offset_and_the_list_stays(void **state)
{
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    assert_int_equal(vlm_encode(qwen, "before", 6, &ids, &err), 0);
    assert_int_equal(ids.n, 1);

    assert_int_equal(vlm_encode(qwen, "gr\xc3\xbc\xc3\n", 6, &ids, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "not UTF-8 at byte 4 of 6");
    assert_int_equal(ids.n, 1);

    free(ids.ids);
}


static void
nul_bytes_are_characters_and_no_bytes_are_no_ids(void **state)
{
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    assert_int_equal(vlm_encode(qwen, NULL, 0, &ids, &err), 0);
    assert_int_equal(vlm_encode(qwen, "", 0, &ids, &err), 0);
    assert_int_equal(ids.n, 0);

    assert_int_equal(vlm_encode(qwen, "a\0b", 3, &ids, &err), 0);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.ids[0], 64);
    assert_int_equal(ids.ids[1], 188);
    assert_int_equal(ids.ids[2], 65);

    free(ids.ids);
}


static void
a_text_past_the_limit_is_refused_with_both_numbers(void **state)
{
    char       *text;
    size_t      n;
    vlm_ids_t   ids = { 0 };
    vlm_err_t   err = { 0 };

    (void) state;

    n = (4u << 20) + 1;
    text = calloc(n, 1);
    assert_non_null(text);

    assert_int_equal(vlm_encode(qwen, text, n, &ids, &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);
    assert_string_equal(err.text, "a text of 4194305 bytes, at most 4194304 are tokenised");

    free(text);
}


static void
a_megabyte_of_one_character_is_one_piece_and_no_trouble(void **state)
{
    size_t            i, n;
    char             *text;
    vlm_ids_t         ids = { 0 };
    vlm_err_t         err = { 0 };
    const char *const  runs = "a \n=0";

    (void) state;

    n = 1u << 20;
    text = malloc(n);
    assert_non_null(text);

    for (i = 0; runs[i] != '\0'; i++) {
        memset(text, runs[i], n);
        ids.n = 0;
        assert_int_equal(vlm_encode(qwen, text, n, &ids, &err), 0);
        assert_true(ids.n >= n / vlm_token_max_bytes(qwen) && ids.n <= n);
    }

    free(ids.ids);
    free(text);
}


static void
a_directory_without_a_tokenizer_is_reported(void **state)
{
    vlm_err_t  err = { 0 };

    (void) state;

    assert_null(vlm_tokenizer_open("t/fixtures", vlm_qwen_split, &err));
    assert_int_equal(err.code, VLM_EMODEL);
    assert_string_equal(err.text,
                        "t/fixtures: neither tokenizer.json nor vocab.json with merges.txt");
}


static int
open_qwen(void **state)
{
    vlm_err_t  err = { 0 };

    (void) state;

    qwen = vlm_tokenizer_open(QWEN_JSON, vlm_qwen_split, &err);
    if (qwen == NULL) {
        fprintf(stderr, "%s (made by: python3 t/fixtures/text/qwen.py build/qwen-tokenizer)\n",
                err.text);
        return -1;
    }

    return 0;
}


static int
close_qwen(void **state)
{
    (void) state;

    vlm_tokenizer_close(qwen);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(tokenizer_json_gives_the_reference_s_ids_for_5000_texts),
        cmocka_unit_test(vocab_and_merges_give_the_same_ids),
        cmocka_unit_test(the_demo_s_tokenizer_gives_the_reference_s_ids),
        cmocka_unit_test(bloom_s_tokenizer_gives_the_reference_s_ids_for_5000_texts),
        cmocka_unit_test(four_threads_share_one_tokenizer),
        cmocka_unit_test(broken_sequences_of_ids_decode_as_the_reference_s_do),
        cmocka_unit_test(encoded_text_decodes_to_its_composed_form),
        cmocka_unit_test(added_tokens_are_found_by_name_in_both_forms),
        cmocka_unit_test(a_text_that_spells_a_control_token_is_not_one),
        cmocka_unit_test(broken_utf8_is_refused_with_its_offset_and_the_list_stays),
        cmocka_unit_test(nul_bytes_are_characters_and_no_bytes_are_no_ids),
        cmocka_unit_test(a_text_past_the_limit_is_refused_with_both_numbers),
        cmocka_unit_test(a_megabyte_of_one_character_is_one_piece_and_no_trouble),
        cmocka_unit_test(a_directory_without_a_tokenizer_is_reported),
    };

    return cmocka_run_group_tests(tests, open_qwen, close_qwen);
}
