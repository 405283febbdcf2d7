/*
 * GGUF files: those that PyPI's gguf wrote, with the values that it reads in them; heads with one
 * false field each; files that end early.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "load/fixture.h"
#include "base/size.h"
#include "load/gguf.h"

#define GGUF    "t/fixtures/gguf"
#define BLOCKS  GGUF "/blocks.gguf"

typedef struct {                       /* a file that a test writes */
    uint8_t  data[2048];
    size_t   n;
} file_t;


static void
put(file_t *f, uint64_t n, uint32_t bytes)
{
    for ( /* void */ ; bytes > 0; bytes--, n >>= 8) {
        f->data[f->n++] = (uint8_t) n;
    }
}


static void
put_text(file_t *f, const char *s)
{
    put(f, strlen(s), 8);
    memcpy(f->data + f->n, s, strlen(s));
    f->n += strlen(s);
}


static void
put_head(file_t *f, uint64_t tensors, uint64_t keys)
{
    memset(f, 0, sizeof(*f));
    memcpy(f->data, "GGUF", 4);
    f->n = 4;
    put(f, 3, 4);
    put(f, tensors, 8);
    put(f, keys, 8);
}


static void
put_tensor(file_t *f, const char *name, uint64_t a, uint64_t b, uint32_t type, uint64_t offset)
{
    put_text(f, name);
    put(f, 2, 4);
    put(f, a, 8);
    put(f, b, 8);
    put(f, type, 4);
    put(f, offset, 8);
}


/* Parses a copy of the exact size, so that a sanitizer sees one byte too many. */
static int
parse(const uint8_t *data, size_t n, vlm_gguf_t *g, uint8_t **copy, vlm_err_t *err)
{
    memset(g, 0, sizeof(*g));
    memset(err, 0, sizeof(*err));
    *copy = malloc(n + (n == 0));
    assert_non_null(*copy);
    memcpy(*copy, data, n);

    return vlm_gguf_parse(g, *copy, n, "x", err);
}


static void
refuses(const file_t *f, const char *says)
{
    uint8_t     *copy;
    vlm_err_t    err;
    vlm_gguf_t   g;

    if (parse(f->data, f->n, &g, &copy, &err) != -1 || err.code != VLM_EMODEL
        || strstr(err.text, says) == NULL)
    {
        fail_msg("\"%s\" should say \"%s\"", err.text, says);
    }

    vlm_gguf_close(&g);
    free(copy);
}


static const vlm_tensor_t *
find(const vlm_gguf_t *g, const char *name)
{
    uint32_t  i;

    for (i = 0; i < g->n_tensors; i++) {
        if (strcmp(g->tensor[i].name, name) == 0) {
            return &g->tensor[i];
        }
    }

    fail_msg("no %s", name);

    return NULL;
}


static void
every_form_of_blocks_has_the_values_that_gguf_reads(void **state)
{
    char                 name[32];
    float                got[1024], part[7];
    size_t               i, k;
    vlm_err_t            err = { 0 };
    vlm_gguf_t           g;
    const vlm_tensor_t  *t, *want;

    static const char *const  forms[] = {
        "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL",
        "IQ4_XS", "MXFP4"
    };

    (void) state;

    assert_int_equal(vlm_gguf_open(&g, BLOCKS, &err), 0);

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        t = find(&g, forms[i]);
        snprintf(name, sizeof(name), "%s.f32", forms[i]);
        want = find(&g, name);

        assert_string_equal(t->dtype, forms[i]);
        assert_int_equal(t->n_dims, 2);
        assert_int_equal(t->dims[0], 2);
        assert_int_equal(t->dims[1], 512);

        t->format->read(t->data, 0, 1024, got);
        assert_memory_equal(got, want->data, sizeof(got));

        for (k = 0; k + 7 <= 1024; k++) {      /* from any element to any other */
            t->format->read(t->data, k, 7, part);
            assert_memory_equal(part, got + k, sizeof(part));
        }
    }

    vlm_gguf_close(&g);
    vlm_gguf_close(&g);
}


static void
keys_of_every_kind_are_found(void **state)
{
    double                   x;
    vlm_err_t                err = { 0 };
    vlm_gguf_t               g;
    const uint8_t           *at;
    const vlm_gguf_value_t  *v;

    (void) state;

    assert_int_equal(vlm_gguf_open(&g, BLOCKS, &err), 0);
    assert_true(vlm_gguf_same(vlm_gguf_text(vlm_gguf_find(&g, "general.architecture")), "blocks"));

    v = vlm_gguf_find(&g, "numbers");
    assert_int_equal(vlm_gguf_number(v, 1, &x), 0);
    assert_true(x == -4);
    assert_int_equal(vlm_gguf_number(v, 3, &x), -1);
    assert_int_equal(vlm_gguf_text(v).n, 0);

    v = vlm_gguf_find(&g, "texts");
    assert_true(vlm_gguf_is_texts(v));
    assert_int_equal(v->n, 3);
    assert_int_equal(vlm_gguf_number(v, 0, &x), -1);
    at = v->data;
    assert_true(vlm_gguf_same(vlm_gguf_next(&at), "a"));
    assert_true(vlm_gguf_same(vlm_gguf_next(&at), ""));
    assert_true(vlm_gguf_same(vlm_gguf_next(&at), "\xc3\xbc" "ber"));

    assert_int_equal(vlm_gguf_number(vlm_gguf_find(&g, "real"), 0, &x), 0);
    assert_true(x == 0.5);
    assert_int_equal(vlm_gguf_number(vlm_gguf_find(&g, "low"), 0, &x), 0);
    assert_true(x == -128);
    assert_int_equal(vlm_gguf_number(vlm_gguf_find(&g, "flag"), 0, &x), 0);
    assert_true(x == 1);
    assert_null(vlm_gguf_find(&g, "flags"));
    assert_null(vlm_gguf_find(&g, ""));
    assert_int_equal(vlm_gguf_number(NULL, 0, &x), -1);

    vlm_gguf_close(&g);
}


static void
a_file_cut_at_any_byte_is_refused(void **state)
{
    size_t       n;
    uint8_t     *copy;
    vlm_err_t    err = { 0 };
    vlm_file_t   f;
    vlm_gguf_t   g;

    (void) state;

    assert_int_equal(vlm_file_map(&f, BLOCKS, 0, 0), 0);

    for (n = 0; n + 1024 < f.bytes; n += n < 1200 ? 1 : 97) {
        assert_int_equal(parse(f.data, n, &g, &copy, &err), -1);
        assert_int_equal(err.code, VLM_EMODEL);
        assert_true(n < 4 || strstr(err.text, "it was not downloaded to its end") != NULL);
        vlm_gguf_close(&g);
        free(copy);
    }

    vlm_file_close(&f);
}


static void
any_one_byte_changed_in_a_head_is_survived(void **state)
{
    int         v;
    file_t      f;
    size_t      i;
    uint8_t     was, *copy;
    vlm_err_t   err;
    vlm_gguf_t  g;

    (void) state;

    put_head(&f, 2, 2);
    put_text(&f, "k");
    put(&f, 9, 4), put(&f, 8, 4), put(&f, 2, 8), put_text(&f, "ab"), put_text(&f, "c");
    put_text(&f, "l");
    put(&f, 4, 4), put(&f, 7, 4);
    put_tensor(&f, "a", 32, 1, 8, 0);
    put_tensor(&f, "b", 2, 2, 0, 64);
    f.n = vlm_round(f.n, 32) + 64 + 16;

    assert_int_equal(parse(f.data, f.n, &g, &copy, &err), 0);
    vlm_gguf_close(&g);
    free(copy);

    for (i = 0; i < f.n; i++) {
        was = f.data[i];

        for (v = 0; v < 256; v++) {
            f.data[i] = (uint8_t) v;

            if (parse(f.data, f.n, &g, &copy, &err) != 0) {
                assert_int_equal(err.code, VLM_EMODEL);
            }

            vlm_gguf_close(&g);
            free(copy);
        }

        f.data[i] = was;
    }
}


static void
every_field_that_lies_is_refused_with_a_sentence(void **state)
{
    file_t  f;

    (void) state;

    put_head(&f, 0, 0);
    f.data[0] = 'g';
    refuses(&f, "x: not a GGUF file");
    put_head(&f, 0, 0);
    f.data[4] = 2;
    refuses(&f, "GGUF of version 2, only 3 is supported");
    put_head(&f, 65537, 0);
    refuses(&f, "65537 tensors and 0 keys, at most 65536 and 4096");
    put_head(&f, 0, UINT64_MAX);
    refuses(&f, "18446744073709551615 keys");

    put_head(&f, 0, 1);
    put_text(&f, "");
    put(&f, 0, 32);
    refuses(&f, "a key of 0 bytes");
    put_head(&f, 1, 0);
    put_tensor(&f, "a\001r0", 4, 1, 0, 0);
    refuses(&f, "a tensor's name of 4 bytes, expected 1 to");
    put_head(&f, 0, 1);
    put(&f, UINT64_MAX - 3, 8), put(&f, 0, 8);
    refuses(&f, "ends in its head");
    put_head(&f, 0, 1);
    put_text(&f, "k"), put(&f, 13, 4), put(&f, 0, 8);
    refuses(&f, "k has 1 values of type 13");
    put_head(&f, 0, 1);
    put_text(&f, "k"), put(&f, 9, 4), put(&f, 9, 4), put(&f, 1, 8);
    refuses(&f, "k has 1 values of type 9");
    put_head(&f, 0, 1);
    put_text(&f, "k"), put(&f, 9, 4), put(&f, 0, 4), put(&f, 1u << 25, 8);
    refuses(&f, "at most 16777216");
    put_head(&f, 0, 1);
    put_text(&f, "k"), put(&f, 9, 4), put(&f, 10, 4), put(&f, 1u << 24, 8);
    refuses(&f, "ends in its head");
    put_head(&f, 0, 2);
    put_text(&f, "k"), put(&f, 0, 4), put(&f, 1, 1);
    put_text(&f, "k"), put(&f, 0, 4), put(&f, 1, 1);
    refuses(&f, "k: twice");

    put_head(&f, 1, 0);
    put_text(&f, "a"), put(&f, 5, 4);
    refuses(&f, "a has 5 dimensions, expected 1 to 4");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", 256, 1, 21, 0);
    refuses(&f, "a has elements of type IQ3_S (21); F32, F16, BF16, Q8_0, Q4_0 to Q5_1, Q2_K to");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", 256, 1, 4000000000u, 0);
    refuses(&f, "type ? (4000000000)");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", 48, 1, 8, 0);
    refuses(&f, "rows of 48 elements, which is no multiple of 32");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", UINT64_C(1) << 40, UINT64_C(1) << 40, 0, 0);
    refuses(&f, "or too many");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", 4, 1, 0, 4);
    refuses(&f, "begins at 4, which is no multiple of 32");
    put_head(&f, 1, 0);
    put_tensor(&f, "a", 4, 1, 0, UINT64_MAX - 31);
    refuses(&f, "it was not downloaded to its end");
    put_head(&f, 2, 0);
    put_tensor(&f, "a", 16, 1, 0, 0), put_tensor(&f, "b", 4, 1, 0, 32);
    f.n = vlm_round(f.n, 32) + 64;
    refuses(&f, "b begins within another tensor");
    put_head(&f, 2, 0);
    put_tensor(&f, "a", 4, 1, 0, 0), put_tensor(&f, "a", 4, 1, 0, 32);
    f.n = vlm_round(f.n, 32) + 64;
    refuses(&f, "a: twice");

    put_head(&f, 0, 1);
    put_text(&f, "general.alignment"), put(&f, 4, 4), put(&f, 48, 4);
    refuses(&f, "general.alignment is 48");
    put_head(&f, 0, 1);
    put_text(&f, "general.alignment"), put(&f, 6, 4), put(&f, 0x3FC00000, 4);
    refuses(&f, "general.alignment is 1.5");
    put_head(&f, 0, 1);
    put_text(&f, "general.alignment"), put(&f, 6, 4), put(&f, 0x7FC00000, 4);
    refuses(&f, "general.alignment is nan");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_form_of_blocks_has_the_values_that_gguf_reads),
        cmocka_unit_test(keys_of_every_kind_are_found),
        cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
        cmocka_unit_test(any_one_byte_changed_in_a_head_is_survived),
        cmocka_unit_test(every_field_that_lies_is_refused_with_a_sentence)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
