/*
 * Quantised checkpoints: every form against the values that numpy computed when it made the
 * fixture, and what is refused.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "load/checkpoint.h"
#include "load/fixture.h"
#include "load/quant.h"

#define QUANT   "t/fixtures/quant"
#define LAYER   "model.layers.0."
#define MAX_K   128

typedef struct {
    const char  *name;
    uint64_t     dims[2];
} matrix_t;

static const matrix_t  matrices[] = {
    { "self_attn.q_proj", { 64, 64 } }, { "self_attn.k_proj", { 32, 64 } },
    { "self_attn.v_proj", { 32, 64 } }, { "self_attn.o_proj", { 64, 64 } },
    { "mlp.gate_proj", { 96, 64 } }, { "mlp.up_proj", { 96, 64 } }, { "mlp.down_proj", { 64, 96 } }
};

#define N_MATRICES  (sizeof(matrices) / sizeof(matrices[0]))

static const struct {
    const char  *name, *text;
    int          own;                  /* 1: rows of int8, as the engine has them */
} forms[] = {
    { "int8-rows", "compressed-tensors, 8 bits with a scale a row", 1 },
    { "w8a16", "compressed-tensors, 8 bits with a scale a row", 1 },
    { "int8-groups", "compressed-tensors, 8 bits in groups of 32", 0 },
    { "int4-groups", "compressed-tensors, 4 bits in groups of 32", 0 },
    { "int4-zeros", "compressed-tensors, 4 bits in groups of 32", 0 },
    { "fp8-blocks", "FP8, 8 bits in blocks of 40x48", 0 },
    { "fp8-rows", "compressed-tensors, 8 bits with a scale a row", 0 },
    { "fp8-tensor", "compressed-tensors, 8 bits with a scale a matrix", 0 },
    { "awq", "AWQ, 4 bits in groups of 32", 0 },
    { "gptq", "GPTQ, 4 bits in groups of 32", 0 },
    { "gptq-v2", "GPTQ, 4 bits in groups of 32", 0 },
    { "gptq-8", "GPTQ, 8 bits with a scale a row", 0 },
    { "bnb", "bitsandbytes, 8 bits with a scale a row", 1 }
};

#define N_FORMS  (sizeof(forms) / sizeof(forms[0]))


/* Reads a quantization_config. */
static int
read_quant(const char *json, vlm_quant_t *q, vlm_err_t *err)
{
    int           rc;
    char          whole[4096];
    vlm_json_t   *j;
    vlm_reader_t  r = { .file = "config.json", .prefix = "", .err = err };

    memset(err, 0, sizeof(*err));
    snprintf(whole, sizeof(whole), "{\"quantization_config\":%s}", json);
    j = vlm_json_named(whole, strlen(whole), "config.json", err);
    assert_non_null(j);

    r.top = j;
    rc = vlm_quant_read(&r, q);
    assert_int_equal(rc != 0, err->code != VLM_OK);
    vlm_json_free(j);

    return rc;
}


static void
quant_of(const char *form, vlm_quant_t *q)
{
    char        path[256], text[4096];
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    snprintf(path, sizeof(path), QUANT "/%s.json", form);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    assert_true(f.bytes < sizeof(text));
    memcpy(text, f.data, f.bytes);
    text[f.bytes] = '\0';
    vlm_file_close(&f);

    if (read_quant(text, q, &err) != 0) {
        fail_msg("%s", err.text);
    }
}


static vlm_checkpoint_t *
open_file(const char *dir, const char *file, const vlm_quant_t *q, vlm_err_t *err)
{
    vlm_checkpoint_t  *c;

    memset(err, 0, sizeof(*err));
    fixture_copy(dir, "model.safetensors", file);
    c = vlm_checkpoint_open(dir, NULL, err);
    assert_non_null(c);

    if (q != NULL && vlm_quant_fold(c, q, err) != 0) {
        vlm_checkpoint_close(c);
        return NULL;
    }

    return c;
}


static vlm_checkpoint_t *
open_form(const char *dir, const char *form, const vlm_quant_t *q, vlm_err_t *err)
{
    char  path[256];

    snprintf(path, sizeof(path), QUANT "/%s.safetensors", form);

    return open_file(dir, path, q, err);
}


static const vlm_tensor_t *
find(vlm_checkpoint_t *c, const matrix_t *m)
{
    char                 name[128];
    vlm_err_t            err = { 0 };
    const vlm_tensor_t  *t;

    snprintf(name, sizeof(name), LAYER "%s.weight", m->name);
    t = vlm_checkpoint_find(c, name, m->dims, 2, &err);

    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    return t;
}


/* ---- values -------------------------------------------------------------- */

static void
check_matrix(const vlm_tensor_t *t, const matrix_t *m, vlm_checkpoint_t *rows)
{
    char                 name[128];
    float                want[4][MAX_K], *all, wide[3 * 2 * MAX_K];
    uint64_t             i, n, N, K, at[4], dims[2];
    vlm_err_t            err = { 0 };
    const vlm_tensor_t  *four;

    N = m->dims[0];
    K = m->dims[1];
    at[0] = 0, at[1] = 1, at[2] = N / 2 + 1, at[3] = N - 1;

    snprintf(name, sizeof(name), LAYER "%s.rows", m->name);
    dims[0] = 4, dims[1] = K;
    four = vlm_checkpoint_find(rows, name, dims, 2, &err);
    assert_non_null(four);
    vlm_tensor_rows(four, 0, 4, &want[0][0], MAX_K);

    all = malloc(N * K * sizeof(float));
    assert_non_null(all);
    vlm_tensor_f32(t, 0, N * K, all);

    for (i = 0; i < 4; i++) {
        assert_memory_equal(all + at[i] * K, want[i], K * sizeof(float));
    }

    /* the same wherever rows begin and end, with room between them */

    for (i = 0; i < N; i += n) {
        n = N - i < 3 ? N - i : 3;
        memset(wide, 0x7F, sizeof(wide));
        vlm_tensor_rows(t, i, (uint32_t) n, wide, 2 * K);
        assert_memory_equal(wide, all + i * K, K * sizeof(float));
        assert_memory_equal(wide + 2 * (n - 1) * K, all + (i + n - 1) * K, K * sizeof(float));
        assert_int_equal(((uint8_t *) wide)[K * sizeof(float)], 0x7F);
    }

    free(all);
}


static void
every_form_has_the_values_that_numpy_has(void **state)
{
    char               dir[64], reference[64], path[256];
    size_t             i, k;
    uint32_t           own;
    uint64_t           elements;
    vlm_err_t          err;
    vlm_quant_t        q;
    vlm_checkpoint_t  *c, *rows;

    (void) state;

    for (i = 0; i < N_FORMS; i++) {
        assert_int_equal(fixture_dir(dir), 0);
        assert_int_equal(fixture_dir(reference), 0);
        quant_of(forms[i].name, &q);
        assert_string_equal(q.text, forms[i].text);

        snprintf(path, sizeof(path), QUANT "/%s.rows.safetensors", forms[i].name);
        rows = open_file(reference, path, NULL, &err);
        c = open_form(dir, forms[i].name, &q, &err);

        if (c == NULL) {
            fail_msg("%s: %s", forms[i].name, err.text);
        }

        for (elements = 0, k = 0; k < N_MATRICES; k++) {
            check_matrix(find(c, &matrices[k]), &matrices[k], rows);
            elements += matrices[k].dims[0] * matrices[k].dims[1];
        }

        /* a bias of zeros is spare, and no tensor is left over */

        assert_int_equal(vlm_checkpoint_unused(c, "", &err), 0);
        assert_int_equal(vlm_checkpoint_lossy(c, vlm_format_of(VLM_INT8), &own), N_MATRICES);
        assert_int_equal(own, forms[i].own ? N_MATRICES : 0);
        assert_true(vlm_checkpoint_elements(c, NULL) >= elements);
        assert_true(vlm_checkpoint_elements(c, NULL) <= elements + 4 * 96);

        vlm_tensor_done(c, find(c, &matrices[0]));
        vlm_checkpoint_close(c);
        vlm_checkpoint_close(rows);
        fixture_remove(dir);
        fixture_remove(reference);
    }
}


static void
rows_in_the_engines_own_form_keep_their_bits(void **state)
{
    char                 dir[64];
    float                scale, x[MAX_K];
    int8_t               row[MAX_K];
    size_t               i, k;
    uint64_t             n, at;
    uint32_t             low;
    vlm_err_t            err;
    vlm_quant_t          q;
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    (void) state;

    for (i = 0; i < N_FORMS; i++) {
        if (!forms[i].own) {
            continue;
        }

        assert_int_equal(fixture_dir(dir), 0);
        quant_of(forms[i].name, &q);
        c = open_form(dir, forms[i].name, &q, &err);
        assert_non_null(c);

        for (low = 0, k = 0; k < N_MATRICES; k++) {
            t = find(c, &matrices[k]);
            assert_ptr_equal(vlm_tensor_own(t), vlm_format_of(VLM_INT8));

            for (n = 0; n < matrices[k].dims[0]; n++) {
                vlm_tensor_take(t, n, row, &scale);
                vlm_tensor_rows(t, n, 1, x, MAX_K);

                for (at = 0; at < matrices[k].dims[1]; at++) {
                    assert_true((float) row[at] * scale == x[at]);
                    low += row[at] == -128;
                }
            }
        }

        assert_true(low > 0 || strcmp(forms[i].name, "bnb") == 0);     /* -128 among them */
        vlm_checkpoint_close(c);
        fixture_remove(dir);
    }
}


static void
fp8_has_all_its_values_and_two_that_are_none(void **state)
{
    int                  e;
    float                x[256], want;
    uint8_t              code[256];
    uint32_t             i;
    const vlm_format_t  *f = vlm_format_scaled("F8_E4M3");

    (void) state;

    for (i = 0; i < 256; i++) {
        code[i] = (uint8_t) i;
    }

    f->read(code, 0, 256, x);

    for (i = 0; i < 256; i++) {
        e = (int) (i >> 3 & 15);
        want = e == 0 ? ldexpf((float) (i & 7), -9) : ldexpf((float) (8 + (i & 7)), e - 10);
        want = i & 128 ? -want : want;

        assert_true((i & 127) == 127 ? isnan(x[i]) : x[i] == want);
        assert_int_equal(signbit(x[i]) != 0, i >= 128);
    }

    assert_true(x[0x7E] == 448);
    assert_null(vlm_format_scaled("F8_E5M2"));
    assert_null(vlm_format_spelt("I8"));
}


/* ---- refusals ------------------------------------------------------------ */

#define WEIGHTS(w)  "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\"," \
                    "\"config_groups\":{\"group_0\":{\"weights\":{" w "}}}}"

static void
unsupported_settings_are_refused_and_named(void **state)
{
    size_t       i;
    vlm_err_t    err;
    vlm_quant_t  q;

    static const struct {
        const char  *json, *says;
    } wrong[] = {
        { "{}", "quantised (?), which is not supported; int8, int4 and FP8 of compressed-tensors" },
        { "7", "quantised (?), which is not supported" },
        { "{\"quant_method\":\"hqq\"}", "quantised (hqq), which is not supported" },
        { "{\"quant_method\":\"a\\nb\"}", "quantised (a\\x0ab), which is not supported" },
        { "{\"quant_method\":\"awq\",\"bits\":3,\"group_size\":32}", "(awq) with 3 bits" },
        { "{\"quant_method\":\"awq\",\"bits\":\"4\",\"group_size\":32}", "bits is not a number" },
        { "{\"quant_method\":\"awq\",\"version\":\"gemv\",\"group_size\":32}",
          "(awq) with version gemv" },
        { "{\"quant_method\":\"awq\",\"zero_point\":false,\"group_size\":32}",
          "(awq) with zero_point false" },
        { "{\"quant_method\":\"awq\"}", "group_size is missing" },
        { "{\"quant_method\":\"awq\",\"group_size\":0}", "group_size is 0" },
        { "{\"quant_method\":\"awq\",\"group_size\":65537}", "group_size is 65537" },
        { "{\"quant_method\":\"gptq\",\"group_size\":32,\"desc_act\":true}",
          "(gptq) with act-order (desc_act)" },
        { "{\"quant_method\":\"gptq\",\"group_size\":32,\"bits\":2}", "(gptq) with 2 bits" },
        { "{\"quant_method\":\"gptq\",\"group_size\":32,\"checkpoint_format\":\"marlin\"}",
          "(gptq) with checkpoint_format marlin" },
        { "{\"quant_method\":\"gptq\",\"group_size\":32,\"is_marlin_format\":true}",
          "(gptq) with is_marlin_format" },
        { "{\"quant_method\":\"fp8\",\"fmt\":\"e5m2\"}", "(fp8) with fmt e5m2" },
        { "{\"quant_method\":\"fp8\",\"weight_block_size\":128}", "is no list of 2 numbers" },
        { "{\"quant_method\":\"fp8\",\"weight_block_size\":[128,0]}", "weight_block_size[1] is 0" },
        { "{\"quant_method\":\"bitsandbytes\",\"load_in_4bit\":true}",
          "(bitsandbytes) with load_in_4bit" },
        { WEIGHTS("\"num_bits\":3,\"strategy\":\"channel\""),
          "with format pack-quantized of integers, 3 bits" },
        { WEIGHTS("\"num_bits\":4,\"strategy\":\"group\",\"group_size\":32,"
                  "\"actorder\":\"group\""), "with act-order (actorder)" },
        { WEIGHTS("\"num_bits\":4,\"strategy\":\"tensor\""), "with strategy tensor" },
        { WEIGHTS("\"num_bits\":4,\"strategy\":\"group\""), "group_size is missing" },
        { WEIGHTS("\"num_bits\":4,\"strategy\":\"token\""), "with strategy token" },
        { "{\"quant_method\":\"compressed-tensors\",\"format\":\"int-quantized\",\"config_groups\":"
          "{\"a\":{\"weights\":{\"num_bits\":8,\"strategy\":\"channel\",\"symmetric\":false}}}}",
          "with symmetric false" },
        { "{\"quant_method\":\"compressed-tensors\",\"format\":\"nvfp4-pack-quantized\","
          "\"config_groups\":{\"a\":{\"weights\":{\"num_bits\":4,\"type\":\"float\"}}}}",
          "with format nvfp4-pack-quantized of floats, 4 bits" },
        { "{\"quant_method\":\"compressed-tensors\"}", "with no config_groups" },
        { "{\"quant_method\":\"compressed-tensors\",\"config_groups\":{\"a\":{}}}",
          "with a config_group without weights" },
        { "{\"quant_method\":\"compressed-tensors\",\"kv_cache_scheme\":{\"num_bits\":8}}",
          "with kv_cache_scheme" },
        { "{\"quant_method\":\"compressed-tensors\",\"sparsity_config\":{\"format\":"
          "\"sparse-24-bitmask\"}}", "with sparsity_config" },
        { "{\"quant_method\":\"compressed-tensors\",\"transform_config\":{\"config_groups\":"
          "{\"R1\":{\"type\":\"hadamard\"}}}}", "with transform_config" },
        { "{\"quant_method\":\"gptq\",\"group_size\":32,\"rotation\":\"hadamard\"}",
          "(gptq) with rotation" },
        { "{\"quant_method\":\"compressed-tensors\",\"format\":\"pack-quantized\","
          "\"config_groups\":{\"a\":{\"weights\":{\"num_bits\":4,\"strategy\":\"channel\"}},"
          "\"b\":{\"weights\":{\"num_bits\":8,\"strategy\":\"channel\"}}}}",
          "with config_groups of several forms" }
    };

    (void) state;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (read_quant(wrong[i].json, &q, &err) != -1 || err.code != VLM_EMODEL
            || strstr(err.text, wrong[i].says) == NULL
            || strncmp(err.text, "config.json: ", 13) != 0)
        {
            fail_msg("%s: \"%s\", should say \"%s\"", wrong[i].json, err.text, wrong[i].says);
        }
    }

    assert_int_equal(read_quant("null", &q, &err), 0);
    assert_null(q.form);

    assert_int_equal(read_quant("{\"quant_method\":\"compressed-tensors\",\"transform_config\":{},"
                                "\"config_groups\":{\"a\":{\"format\":\"pack-quantized\","
                                "\"weights\":{\"num_bits\":4,\"strategy\":\"channel\"}}}}",
                                &q, &err), 0);
}


/* The files of one form under the settings of another. */
static void
tensors_of_another_shape_than_the_settings_say_are_refused(void **state)
{
    char         dir[64];
    size_t       i;
    vlm_err_t    err;
    vlm_quant_t  q;

    static const struct {
        const char  *form, *json, *says;
    } wrong[] = {
        { "awq", "{\"quant_method\":\"awq\",\"group_size\":16}", "zero points are I32" },
        { "awq", "{\"quant_method\":\"awq\",\"group_size\":-1}", "zero points are I32" },
        { "awq", "{\"quant_method\":\"gptq\",\"group_size\":32}", "zero points are I32" },
        { "gptq", "{\"quant_method\":\"gptq\",\"group_size\":32,\"bits\":8}", "zero points are" },
        { "gptq", "{\"quant_method\":\"awq\",\"group_size\":32}", "zero points are I32" },
        { "gptq", "{\"quant_method\":\"gptq\",\"group_size\":64}", "zero points are I32" },
        { "fp8-blocks", "{\"quant_method\":\"fp8\",\"weight_block_size\":[64,48]}",
          "its scales are BF16 in 2 dimensions" },
        { "fp8-blocks", "{\"quant_method\":\"fp8\"}", "its scales are BF16" },
        { "fp8-blocks", "{\"quant_method\":\"bitsandbytes\",\"load_in_8bit\":true}",
          "its scales are missing" },
        { "int8-groups", WEIGHTS("\"num_bits\":8,\"strategy\":\"channel\""), "its scales are F16" },
        { "int8-groups", WEIGHTS("\"num_bits\":4,\"strategy\":\"group\",\"group_size\":32"),
          "its values are I32 in 2 dimensions, 4096 bytes; its form has I32 [64, 8]" }
    };

    (void) state;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(fixture_dir(dir), 0);
        assert_int_equal(read_quant(wrong[i].json, &q, &err), 0);
        assert_null(open_form(dir, wrong[i].form, &q, &err));

        if (err.code != VLM_EMODEL || strstr(err.text, wrong[i].says) == NULL
            || strstr(err.text, LAYER) == NULL)
        {
            fail_msg("%s, %s: \"%s\", should say \"%s\"", wrong[i].form, wrong[i].json, err.text,
                     wrong[i].says);
        }

        fixture_remove(dir);
    }
}


/* Writes a form's file with some bytes changed: of the header, or of a tensor's data. */
static void
write_changed(const char *dir, const char *form, const char *from, const char *to,
              const char *tensor)
{
    char        path[256];
    uint8_t    *copy, *p;
    uint64_t    at, head;
    vlm_err_t   err = { 0 };
    vlm_file_t  f;

    snprintf(path, sizeof(path), QUANT "/%s.safetensors", form);
    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    copy = malloc(f.bytes + 1);
    assert_non_null(copy);
    memcpy(copy, f.data, f.bytes);
    copy[f.bytes] = '\0';

    if (tensor != NULL) {
        head = 8 + copy[0] + ((uint64_t) copy[1] << 8);
        p = (uint8_t *) strstr(strstr((char *) copy + 8, tensor), "data_offsets\":[");
        at = strtoull((char *) p + 15, NULL, 10);
        copy[head + at] ^= 1;
    } else {
        p = (uint8_t *) strstr((char *) copy + 8, from);
        assert_non_null(p);
        memcpy(p, to, strlen(from));
    }

    fixture_write(dir, "model.safetensors", copy, f.bytes);
    free(copy);
    vlm_file_close(&f);
}


static vlm_checkpoint_t *
open_changed(const char *form, const char *from, const char *to, const char *tensor,
             vlm_err_t *err)
{
    char               dir[64];
    vlm_quant_t        q;
    vlm_checkpoint_t  *c;

    memset(err, 0, sizeof(*err));
    assert_int_equal(fixture_dir(dir), 0);
    quant_of(form, &q);
    write_changed(dir, form, from, to, tensor);
    c = vlm_checkpoint_open(dir, NULL, err);
    assert_non_null(c);

    if (vlm_quant_fold(c, &q, err) != 0) {
        vlm_checkpoint_close(c);
        c = NULL;
    }

    fixture_remove(dir);

    return c;
}


static void
files_that_do_not_fit_their_form_are_refused(void **state)
{
    vlm_err_t          err;
    vlm_checkpoint_t  *c;

    (void) state;

    assert_null(open_changed("gptq", NULL, NULL, LAYER "mlp.down_proj.g_idx", &err));
    assert_non_null(strstr(err.text, LAYER "mlp.down_proj.weight has its columns in another order "
                           "(g_idx), by GPTQ's act-order, which is not supported"));

    assert_null(open_changed("bnb", NULL, NULL, LAYER "mlp.up_proj.weight_format", &err));
    assert_non_null(strstr(err.text, "a weight_format other than rows"));

    assert_null(open_changed("w8a16", NULL, NULL, LAYER "mlp.up_proj.weight_shape", &err));
    assert_non_null(strstr(err.text, "the size does not fit weight_shape"));

    assert_null(open_changed("int8-rows", "q_proj.weight_scale", "q_proj.weight_scalf", NULL,
                             &err));
    assert_non_null(strstr(err.text, LAYER "self_attn.q_proj.weight: its scales are missing"));

    /* a bias that is not zero stays to be complained of */

    c = open_changed("gptq", NULL, NULL, LAYER "mlp.down_proj.bias", &err);
    assert_non_null(c);
    assert_int_equal(vlm_checkpoint_unused(c, "", &err), -1);
    vlm_checkpoint_close(c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_form_has_the_values_that_numpy_has),
        cmocka_unit_test(rows_in_the_engines_own_form_keep_their_bits),
        cmocka_unit_test(fp8_has_all_its_values_and_two_that_are_none),
        cmocka_unit_test(unsupported_settings_are_refused_and_named),
        cmocka_unit_test(tensors_of_another_shape_than_the_settings_say_are_refused),
        cmocka_unit_test(files_that_do_not_fit_their_form_are_refused)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
