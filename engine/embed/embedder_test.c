/*
 * A tiny random encoder against transformers (t/fidelity/encoder.py fixture): ids and vectors; and
 * directories that are wrong in one place.
 */

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "embed/embed.h"
#include "load/fixture.h"

#define TINY      "t/fixtures/embed/tiny"
#define EXPECTED  "t/fixtures/embed/expected.json"
#define MOST      64                   /* texts */
#define DIM       24

typedef struct {
    size_t               n;
    vlm_embedder_text_t  text[MOST];
    char                 bytes[MOST][2048];
    const vlm_json_t    *ids[MOST];
    float                vector[MOST][DIM];
    vlm_json_t          *j;
} expected_t;

static expected_t  expected;


static int
from_hex(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}


static int
open_expected(void **state)
{
    size_t             i, k;
    vlm_err_t          err = { 0 };
    const char        *hex;
    const vlm_json_t  *row, *v;

    (void) state;

    expected.j = vlm_json_read("t/fixtures/embed", "expected.json", 1u << 20, &err);

    for (row = vlm_json_first(expected.j), i = 0; row != NULL; row = vlm_json_next(row), i++) {
        hex = vlm_json_text(vlm_json_get(row, "text"));

        for (k = 0; hex[2 * k] != '\0'; k++) {
            expected.bytes[i][k] = (char) (from_hex(hex[2 * k]) << 4 | from_hex(hex[2 * k + 1]));
        }

        expected.text[i] = (vlm_embedder_text_t) { expected.bytes[i], k };
        expected.ids[i] = vlm_json_get(row, "ids");
        v = vlm_json_first(vlm_json_get(row, "vector"));

        for (k = 0; k < DIM; k++, v = vlm_json_next(v)) {
            expected.vector[i][k] = (float) vlm_json_number(v, NAN);
        }
    }

    expected.n = i;

    return expected.j == NULL || i < 30 ? -1 : 0;
}


static int
close_expected(void **state)
{
    (void) state;
    vlm_json_free(expected.j);

    return 0;
}


static vlm_embedder_t *
opened(const char *dir, const char *weights, uint32_t threads)
{
    vlm_err_t        err = { 0 };
    vlm_type_t       type;
    vlm_embedder_t  *e;

    assert_int_equal(vlm_weights_find(weights, &type, &err), 0);
    e = vlm_embedder_open(dir, type, threads, &err);

    if (e == NULL) {
        fail_msg("%s", err.text);
    }

    return e;
}


static double
product(const float *a, const float *b)
{
    double    sum;
    uint32_t  k;

    for (sum = 0, k = 0; k < DIM; k++) {
        sum += (double) a[k] * b[k];
    }

    return sum;
}


static void
ids_are_those_of_transformers(void **state)
{
    size_t             i;
    uint32_t           k, n, ids[32];
    vlm_err_t          err = { 0 };
    vlm_embedder_t    *e = opened(TINY, "f32", 1);
    const vlm_json_t  *id;

    (void) state;

    for (i = 0; i < expected.n; i++) {
        assert_int_equal(vlm_wordpiece_ids(e->pieces, expected.text[i].text,
                                           expected.text[i].bytes, ids, 32, &n, &err), 0);
        assert_int_equal(n, vlm_json_count(expected.ids[i]));

        for (k = 0, id = vlm_json_first(expected.ids[i]); k < n; k++, id = vlm_json_next(id)) {
            if (ids[k] != (uint32_t) vlm_json_number(id, -1)) {
                fail_msg("text %zu, id %u is %u", i, k, ids[k]);
            }
        }
    }

    vlm_embedder_close(e);
}


/* The least product with transformers' vectors. */
static double
least(const char *weights, uint32_t threads, float out[MOST][DIM])
{
    size_t           i;
    double           x, least = 1;
    vlm_err_t        err = { 0 };
    vlm_embedder_t  *e = opened(TINY, weights, threads);

    assert_int_equal(vlm_embedder_facts(e)->dim, DIM);
    assert_int_equal(vlm_embedder_facts(e)->tokens, 32);
    assert_int_equal(vlm_embedder_run(e, expected.text, expected.n, out[0], &err), 0);

    for (i = 0; i < expected.n; i++) {
        assert_true(fabs(product(out[i], out[i]) - 1) < 1e-5);
        x = product(out[i], expected.vector[i]);
        least = x < least ? x : least;
    }

    vlm_embedder_close(e);

    return least;
}


static void
vectors_are_those_of_transformers(void **state)
{
    double        f32, int8;
    static float  a[MOST][DIM], b[MOST][DIM];

    (void) state;

    f32 = least("f32", 1, a);
    int8 = least("int8", 1, b);
    print_message("f32 %.8f, int8 %.6f\n", f32, int8);
    assert_true(f32 > 0.99999 && int8 > 0.999);

    (void) least("f32", 3, b);
    assert_memory_equal(a, b, sizeof(a));
}


static void
a_vector_does_not_depend_on_other_texts(void **state)
{
    int              w;
    float            one[DIM];
    size_t           i;
    vlm_err_t        err = { 0 };
    static float     all[MOST][DIM];
    vlm_embedder_t  *e;

    static const char *const  weights[] = { "f32", "int8" };

    (void) state;

    for (w = 0; w < 2; w++) {
        e = opened(TINY, weights[w], 1);
        assert_int_equal(vlm_embedder_run(e, expected.text, expected.n, all[0], &err), 0);

        for (i = 0; i < expected.n; i++) {
            assert_int_equal(vlm_embedder_run(e, &expected.text[i], 1, one, &err), 0);
            assert_memory_equal(one, all[i], sizeof(one));
        }

        vlm_embedder_close(e);
    }
}


typedef struct {
    vlm_embedder_t  *e;
    const float     *want;             /* [n][DIM] */
    int              wrong;
} caller_t;


static void *
call(void *arg)
{
    int        i;
    size_t     at;
    float      out[3][DIM];
    vlm_err_t  err = { 0 };
    caller_t  *c = arg;

    for (i = 0; i < 20; i++) {
        at = (size_t) i % (expected.n - 3);
        c->wrong |= vlm_embedder_run(c->e, &expected.text[at], 3, out[0], &err) != 0
                    || memcmp(out, c->want + at * DIM, sizeof(out)) != 0;
    }

    return NULL;
}


static void
threads_take_turns(void **state)
{
    int           i;
    caller_t      c[4];
    vlm_err_t     err = { 0 };
    pthread_t     thread[4];
    static float  all[MOST][DIM];

    (void) state;

    c[0] = (caller_t) { opened(TINY, "int8", 1), all[0], 0 };
    assert_int_equal(vlm_embedder_run(c[0].e, expected.text, expected.n, all[0], &err), 0);

    for (i = 0; i < 4; i++) {
        c[i] = c[0];
    }

    for (i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, call, &c[i]), 0);
    }

    for (i = 0; i < 4; i++) {
        (void) pthread_join(thread[i], NULL);
        assert_false(c[i].wrong);
    }

    vlm_embedder_close(c[0].e);
}


static void
the_plan_is_what_is_taken(void **state)
{
    vlm_err_t            err = { 0 };
    vlm_type_t           type;
    vlm_embedder_t      *e;
    vlm_embedder_plan_t  plan;

    (void) state;

    assert_int_equal(vlm_weights_find("int8", &type, &err), 0);
    assert_int_equal(vlm_embedder_plan(TINY, type, 2, &plan, &err), 0);
    e = opened(TINY, "int8", 2);
    assert_memory_equal(&plan, vlm_embedder_facts(e), sizeof(plan));
    assert_true(plan.weights > 0 && plan.workspace > 0);
    vlm_embedder_close(e);
}


static void
a_text_must_be_utf8_as_far_as_it_is_read(void **state)
{
    char                 text[4096];
    float                out[DIM];
    vlm_err_t            err = { 0 };
    vlm_embedder_t      *e = opened(TINY, "f32", 1);
    vlm_embedder_text_t  t = { "pump \xff", 6 };

    (void) state;

    assert_int_equal(vlm_embedder_run(e, &t, 1, out, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);
    assert_string_equal(err.text, "a text is not UTF-8 at byte 5");

    memset(text, '?', sizeof(text));
    text[sizeof(text) - 1] = '\xff';
    t = (vlm_embedder_text_t) { text, sizeof(text) };
    assert_int_equal(vlm_embedder_run(e, &t, 1, out, &err), 0);

    vlm_embedder_close(e);
}


/* A copy of the directory, with the first `from` of a file replaced; it must be refused. */
static void
refused(const char *file, const char *from, const char *to, const char *says)
{
    char         dir[64], path[128], text[8192], *at;
    size_t       i, n;
    FILE        *f;
    vlm_err_t    err = { 0 };
    vlm_type_t   type;

    static const char *const  files[] = {
        "config.json", "tokenizer.json", "sentence_bert_config.json", "model.safetensors",
        "1_Pooling/config.json"
    };

    assert_int_equal(fixture_dir(dir), 0);
    snprintf(path, sizeof(path), "%s/1_Pooling", dir);
    assert_int_equal(mkdir(path, 0700), 0);

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), TINY "/%s", files[i]);

        if (strcmp(files[i], file) != 0) {
            fixture_copy(dir, files[i], path);
            continue;
        }

        f = fopen(path, "rb");
        assert_non_null(f);
        n = fread(text, 1, sizeof(text) / 2, f);
        fclose(f);
        text[n] = '\0';
        at = strstr(text, from);
        assert_non_null(at);
        memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
        memcpy(at, to, strlen(to));
        fixture_text(dir, file, text);
    }

    assert_int_equal(vlm_weights_find("f32", &type, &err), 0);
    if (vlm_embedder_open(dir, type, 1, &err) != NULL) {
        fail_msg("%s with %s was taken", file, to);
    }

    if (strstr(err.text, says) == NULL || err.code != VLM_EMODEL) {
        fail_msg("\"%s\" lacks \"%s\"", err.text, says);
    }

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        (void) unlink(path);
    }

    snprintf(path, sizeof(path), "%s/1_Pooling", dir);
    (void) rmdir(path);
    (void) rmdir(dir);
}


static void
a_file_that_is_not_understood_is_refused(void **state)
{
    (void) state;

    refused("config.json", "\"bert\"", "\"gpt2\"", "an encoder of texts is");
    refused("config.json", "\"gelu\"", "\"relu\"", "only \"gelu\" is understood");
    refused("config.json", "\"absolute\"", "\"relative_key\"", "only \"absolute\"");
    refused("config.json", "hidden_size\": 24", "hidden_size\": 2400000", "hidden_size");
    refused("config.json", "hidden_size\": 24", "hidden_size\": 28", "multiple of 4");
    refused("config.json", "hidden_size\": 24", "hidden_size\": 32", "embeddings");
    refused("config.json", "layers\": 2", "layers\": 3", "encoder.layer.2");
    refused("config.json", "layers\": 2", "layers\": 1", "no place");
    refused("config.json", "vocab_size\": 17", "vocab_size\": 16", "word_embeddings");
    refused("tokenizer.json", "\"[UNK]\":1,", "\"[UNK]\":175,", "whole number below 175");
    refused("sentence_bert_config.json", "32", "41", "max_seq_length");
    refused("1_Pooling/config.json", "cls_token\": false", "cls_token\": true", "cls_token");
    refused("1_Pooling/config.json", "mean_tokens\": true", "mean_tokens\": false", "mean_tokens");
    refused("tokenizer.json", "\"model\":{\"type\":\"WordPiece", "\"model\":{\"type\":\"BPE",
            "only \"WordPiece\"");
    refused("tokenizer.json", "BertNormalizer", "NFC", "normalizer is of type \"NFC\"");
    refused("tokenizer.json", "BertPreTokenizer", "Whitespace", "pre_tokenizer is of type");
    refused("tokenizer.json", "\"[CLS]\",\"single", "\"[KLS]\",\"single", "no token \"[KLS]\"");
    refused("tokenizer.json", "\"lstrip\":false", "\"lstrip\":true", "lstrip of the added token");
    refused("tokenizer.json", "per_word\":100", "per_word\":1000", "max_input_chars_per_word");
    refused("tokenizer.json", "word_prefix\":\"##", "word_prefix\":\"#################",
            "continuing_subword_prefix");
    refused("tokenizer.json", "{\"version", "[\"version", "tokenizer.json");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ids_are_those_of_transformers),
        cmocka_unit_test(vectors_are_those_of_transformers),
        cmocka_unit_test(a_vector_does_not_depend_on_other_texts),
        cmocka_unit_test(threads_take_turns),
        cmocka_unit_test(the_plan_is_what_is_taken),
        cmocka_unit_test(a_text_must_be_utf8_as_far_as_it_is_read),
        cmocka_unit_test(a_file_that_is_not_understood_is_refused)
    };

    return cmocka_run_group_tests(tests, open_expected, close_expected);
}
