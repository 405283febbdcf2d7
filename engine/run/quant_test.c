/*
 * Models with quantised matrices answer as the model with the values that these stand for: in f32
 * and bf16 to the last bit, and in int8 as close as int8 is.
 *
 * A model is tiny-a with the matrices of its first layer in the form of a fixture; beside it the
 * test writes the same model with those matrices as f32.  With --table it prints how far int8 is
 * from f32 in place of the tests' results.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "load/files.h"
#include "load/quant.h"
#include "run/fixture.h"

#define QUANT  "t/fixtures/quant"
#define LAYER  "model.layers.0."
#define PLAIN  "plain.safetensors"
#define OTHER  "other.safetensors"
#define MAX_TENSORS  200

static const char *const  matrices[] = {
    "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
    "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"
};

static const char *const  forms[] = {
    "int8-rows", "w8a16", "bnb",       /* the engine's own form */
    "int8-groups", "int4-groups", "int4-zeros", "fp8-blocks", "fp8-rows", "fp8-tensor", "awq",
    "gptq", "gptq-v2", "gptq-8"
};

#define N_OWN       3
#define INT8_KL     0.02               /* of one prompt: measured 0.0097 at most */

#define N_MATRICES  (sizeof(matrices) / sizeof(matrices[0]))
#define N_FORMS     (sizeof(forms) / sizeof(forms[0]))

static char  base[] = "/tmp/vlm-quant-XXXXXX";     /* with a directory for each model */
static char  notices[4][512];          /* lines of the log about quantised files */
static int   n_notices;
static FILE *table;


/* ---- files --------------------------------------------------------------- */

typedef struct {                       /* a .safetensors file that is written */
    vlm_tensor_t  t[MAX_TENSORS];
    char          name[MAX_TENSORS][96];
    uint32_t      n;
} tensors_t;


static void
add(tensors_t *list, const vlm_tensor_t *t)
{
    assert_true(list->n < MAX_TENSORS);
    snprintf(list->name[list->n], sizeof(list->name[0]), "%s", t->name);
    list->t[list->n++] = *t;
}


static void
write_tensors(const char *path, const tensors_t *list)
{
    FILE       *f;
    char        head[32768];
    uint32_t    i, k;
    uint64_t    at, n;

    n = (uint64_t) sprintf(head, "{");

    for (at = 0, i = 0; i < list->n; i++) {
        n += (uint64_t) sprintf(head + n, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                                i == 0 ? "" : ",", list->name[i], list->t[i].dtype);

        for (k = 0; k < list->t[i].n_dims; k++) {
            n += (uint64_t) sprintf(head + n, "%s%llu", k == 0 ? "" : ",",
                                    (unsigned long long) list->t[i].dims[k]);
        }

        n += (uint64_t) sprintf(head + n, "],\"data_offsets\":[%llu,%llu]}",
                                (unsigned long long) at,
                                (unsigned long long) (at + list->t[i].bytes));
        at += list->t[i].bytes;
        assert_true(n < sizeof(head) - 512);
    }

    n += (uint64_t) sprintf(head + n, "}");

    f = fopen(path, "wb");
    assert_non_null(f);
    fwrite(&n, 8, 1, f);
    fwrite(head, 1, n, f);

    for (i = 0; i < list->n; i++) {
        fwrite(list->t[i].data, 1, list->t[i].bytes, f);
    }

    assert_int_equal(fclose(f), 0);
}


/* A vlm_tensor_fn: adds the tensors of tiny-a that the fixtures do not have. */
static int
take_plain(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    char    name[96];
    size_t  i;

    (void) err;

    for (i = 0; i < N_MATRICES; i++) {
        snprintf(name, sizeof(name), LAYER "%s.weight", matrices[i]);

        if (strcmp(name, t->name) == 0) {
            return 0;
        }
    }

    add(data, t);

    return 0;
}


static int
take_name(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    (void) err;

    fprintf(data, ",\"%s\":\"" OTHER "\"", t->name);

    return 0;
}


/* config.json of tiny-a, with a quantization_config in front. */
static void
write_config(const char *dir, const char *quant)
{
    FILE        *f;
    char         path[256];
    vlm_err_t    err = { 0 };
    vlm_file_t   config, q = { 0 };

    assert_int_equal(vlm_file_open(&config, CHECKPOINT "/config.json", 0, &err), 0);
    snprintf(path, sizeof(path), "%s/config.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputc('{', f);

    if (quant != NULL) {
        snprintf(path, sizeof(path), QUANT "/%s.json", quant);
        assert_int_equal(vlm_file_open(&q, path, 0, &err), 0);
        fputs("\"quantization_config\":", f);
        fwrite(q.data, 1, q.bytes, f);
        fputc(',', f);
        vlm_file_close(&q);
    }

    fwrite(config.data + 1, 1, config.bytes - 1, f);
    fclose(f);
    vlm_file_close(&config);
}


/* Makes a model's directory, without OTHER. */
static void
make_dir(const char *dir, const char *quant)
{
    char      from[300], to[300], here[200];
    size_t    i;

    static const char *const  shared[] = {
        "tokenizer.json", "tokenizer_config.json", "generation_config.json",
        "preprocessor_config.json"
    };

    assert_int_equal(mkdir(dir, 0777), 0);
    assert_non_null(getcwd(here, sizeof(here)));

    for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
        snprintf(from, sizeof(from), "%s/" CHECKPOINT "/%s", here, shared[i]);
        snprintf(to, sizeof(to), "%s/%s", dir, shared[i]);
        assert_int_equal(symlink(from, to), 0);
    }

    snprintf(to, sizeof(to), "%s/" PLAIN, dir);
    assert_int_equal(symlink("../" PLAIN, to), 0);
    write_config(dir, quant);
}


/* The index of PLAIN and OTHER. */
static void
write_index(const char *dir)
{
    FILE        *f;
    char         path[256];
    uint32_t     i;
    vlm_err_t    err = { 0 };
    vlm_file_t   shard;
    tensors_t   *list;

    list = calloc(1, sizeof(*list));
    assert_non_null(list);
    snprintf(path, sizeof(path), "%s/model.safetensors.index.json", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("{\"weight_map\":{\"model.norm.weight\":\"" PLAIN "\"", f);

    assert_int_equal(vlm_file_open(&shard, CHECKPOINT "/model.safetensors", 0, &err), 0);
    assert_int_equal(vlm_safetensors_parse(shard.data, shard.bytes, "x", take_plain, list, &err),
                     0);

    for (i = 0; i < list->n; i++) {
        if (strcmp(list->name[i], "model.norm.weight") != 0) {
            fprintf(f, ",\"%s\":\"" PLAIN "\"", list->name[i]);
        }
    }

    vlm_file_close(&shard);
    free(list);

    snprintf(path, sizeof(path), "%s/" OTHER, dir);
    assert_int_equal(vlm_file_open(&shard, path, 0, &err), 0);
    assert_int_equal(vlm_safetensors_parse(shard.data, shard.bytes, "x", take_name, f, &err), 0);
    vlm_file_close(&shard);
    fputs("}}", f);
    fclose(f);
}


/* The weights of a model in a form, as it is opened by the engine. */
static vlm_checkpoint_t *
open_weights(const char *dir, vlm_config_t *config)
{
    int                assumed;
    vlm_err_t          err = { 0 };
    vlm_conf_t         conf;
    vlm_checkpoint_t  *c;

    vlm_conf_default(&conf);
    conf.model = dir;
    assert_int_equal(vlm_config_read(config, dir, &err), 0);
    c = vlm_files_weights(&conf, config, &assumed, &err);

    if (c == NULL) {
        fail_msg("%s", err.text);
    }

    return c;
}


static void
write_values(const char *to, const char *from)
{
    char                 path[256], name[96];
    float               *all[N_MATRICES];
    size_t               i;
    uint64_t             n;
    tensors_t           *list;
    vlm_config_t        *config;
    vlm_tensor_t         plain;
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    list = calloc(1, sizeof(*list));
    config = calloc(1, sizeof(*config));
    assert_true(list != NULL && config != NULL);
    c = open_weights(from, config);

    for (i = 0; i < N_MATRICES; i++) {
        snprintf(name, sizeof(name), LAYER "%s.weight", matrices[i]);
        t = vlm_checkpoint_look(c, name);
        assert_non_null(t);
        n = t->dims[0] * t->dims[1];
        all[i] = malloc(n * sizeof(float));
        assert_non_null(all[i]);
        vlm_tensor_f32(t, 0, n, all[i]);

        plain = *t;
        plain.name = name;
        strcpy(plain.dtype, "F32");
        plain.data = (const uint8_t *) all[i];
        plain.bytes = n * sizeof(float);
        add(list, &plain);
    }

    snprintf(path, sizeof(path), "%s/" OTHER, to);
    write_tensors(path, list);
    vlm_checkpoint_close(c);

    for (i = 0; i < N_MATRICES; i++) {
        free(all[i]);
    }

    free(list);
    free(config);
}


/* base/FORM, quantised, and base/FORM-f32 with the same values. */
static void
make_models(const char *form, char dir[128], char reference[128])
{
    char  from[300], to[300], here[200];

    snprintf(dir, 128, "%s/%s", base, form);
    snprintf(reference, 128, "%s/%s-f32", base, form);

    if (access(dir, F_OK) == 0) {
        return;
    }

    assert_non_null(getcwd(here, sizeof(here)));
    make_dir(dir, form);
    snprintf(from, sizeof(from), "%s/" QUANT "/%s.safetensors", here, form);
    snprintf(to, sizeof(to), "%s/" OTHER, dir);
    assert_int_equal(symlink(from, to), 0);
    write_index(dir);

    make_dir(reference, NULL);
    write_values(reference, dir);
    write_index(reference);
}


static int
set_up(void **state)
{
    char        path[128];
    vlm_err_t   err = { 0 };
    vlm_file_t  f;
    tensors_t  *list;

    (void) state;

    list = calloc(1, sizeof(*list));

    if (list == NULL || mkdtemp(base) == NULL
        || vlm_file_open(&f, CHECKPOINT "/model.safetensors", 0, &err) != 0
        || vlm_safetensors_parse(f.data, f.bytes, "x", take_plain, list, &err) != 0)
    {
        return -1;
    }

    snprintf(path, sizeof(path), "%s/" PLAIN, base);
    write_tensors(path, list);
    vlm_file_close(&f);
    free(list);

    return 0;
}


static int
tear_down(void **state)
{
    char  command[128];

    (void) state;
    snprintf(command, sizeof(command), "rm -r %s", base);

    return system(command);
}


/* ---- answers ------------------------------------------------------------- */

static void
take_notice(void *data, vlm_log_level_t level, const char *text)
{
    (void) data;

    if (level == VLM_LOG_NOTICE && strstr(text, "quantised matrices") != NULL && n_notices < 4) {
        snprintf(notices[n_notices++], sizeof(notices[0]), "%s", text);
    }
}


/* NULL: this processor does not run that set of operations. */
static vlm_t *
open_engine(const char *dir, vlm_type_t weights, const char *ops, const char *cache)
{
    vlm_t       *v;
    vlm_err_t    err = { 0 };
    vlm_conf_t   conf;

    n_notices = 0;
    vlm_tiny_conf(&conf);
    conf.model = dir;
    conf.weights = weights;
    conf.ops = ops;
    conf.cache = cache;
    conf.log = take_notice;

    v = vlm_open(&conf, &err);

    if (v != NULL && vlm_load(v, &err) == 0) {
        return v;
    }

    if (err.code != VLM_EINPUT) {
        fail_msg("%s: %s", dir, err.text);
    }

    vlm_close(v);

    return NULL;
}


static float *
logits_of(vlm_t *v, uint32_t *n, uint32_t *V)
{
    float         *logits;
    vlm_err_t      err = { 0 };
    vlm_prompt_t  *p;

    p = vlm_tiny_prompt(v, "Where is the cup?", 1);
    *n = vlm_prompt_tokens(p);
    assert_int_equal(vlm_logits(v, p, &logits, V, &err), 0);
    vlm_prompt_free(p);

    return logits;
}


static float *
answer(const char *dir, vlm_type_t weights, const char *ops, const char *cache, uint32_t *n,
       uint32_t *V)
{
    vlm_t  *v;
    float  *logits;

    v = open_engine(dir, weights, ops, cache);
    logits = v == NULL ? NULL : logits_of(v, n, V);
    vlm_close(v);

    return logits;
}


/* The mean divergence of rows of logits from those of the reference; worst: of one logit. */
static double
divergence(const float *got, const float *want, uint32_t n, uint32_t V, double *worst)
{
    double    a, b, kl, sum;
    uint32_t  t, i;

    for (sum = 0, *worst = 0, t = 0; t < n; t++, got += V, want += V) {
        for (a = b = 0, i = 0; i < V; i++) {
            a += exp((double) want[i] - want[0]);
            b += exp((double) got[i] - got[0]);
            *worst = fmax(*worst, fabs((double) got[i] - want[i]));
        }

        for (kl = 0, i = 0; i < V; i++) {
            kl += exp((double) want[i] - want[0]) / a
                  * (((double) want[i] - want[0] - log(a)) - ((double) got[i] - got[0] - log(b)));
        }

        sum += kl;
    }

    return sum / n;
}


static void
every_form_answers_as_the_values_that_it_stands_for(void **state)
{
    char        dir[128], reference[128];
    float      *got, *want, *exact;
    double      kl, worst;
    size_t      i, k;
    uint32_t    n, V;

    static const vlm_type_t  types[] = { VLM_F32, VLM_BF16 };

    (void) state;

    for (i = 0; i < N_FORMS; i++) {
        make_models(forms[i], dir, reference);

        for (k = 0; k < 2; k++) {
            got = answer(dir, types[k], NULL, NULL, &n, &V);
            want = answer(reference, types[k], NULL, NULL, &n, &V);
            assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
            free(got);
            free(want);
        }

        /* int8 of the plain values is turned, int8 of rounded ones is not. */

        exact = answer(reference, VLM_F32, NULL, NULL, &n, &V);
        want = answer(reference, VLM_INT8, NULL, NULL, &n, &V);
        got = answer(dir, VLM_INT8, NULL, NULL, &n, &V);

        kl = divergence(got, exact, n, V, &worst);
        assert_true(kl < INT8_KL);

        if (table != NULL) {
            fprintf(table, "%-12s int8 KL %.6f, worst logit %.4f;", forms[i], kl, worst);
            kl = divergence(want, exact, n, V, &worst);
            fprintf(table, " int8 of the plain values KL %.6f, %.4f\n", kl, worst);
        }

        free(got);
        free(want);
        free(exact);
    }
}


/* The two forms are the engine's own, with values down to -128. */
static void
every_set_of_operations_has_the_same_bits(void **state)
{
    char        dir[128], reference[128];
    float      *got, *want;
    size_t      i, k;
    uint32_t    n, V;

    static const char *const  own[] = { "int8-rows", "w8a16" };
    static const char *const  sets[] = { "avx2", "avxvnni", "avx512", "amx", "neon", "i8mm" };

    (void) state;

    for (i = 0; i < 2; i++) {
        make_models(own[i], dir, reference);
        want = answer(dir, VLM_INT8, "plain", NULL, &n, &V);
        assert_non_null(want);

        for (k = 0; k < sizeof(sets) / sizeof(sets[0]); k++) {
            got = answer(dir, VLM_INT8, sets[k], NULL, &n, &V);

            if (got != NULL) {
                assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
            }

            free(got);
        }

        free(want);
    }
}


static void
the_cache_of_a_quantised_model_has_its_bits_and_follows_its_settings(void **state)
{
    char         dir[128], reference[128], command[512];
    float       *got, *want;
    uint8_t      id[2][32];
    uint32_t     n, V, i;
    vlm_err_t    err = { 0 };
    vlm_config_t *config;
    vlm_checkpoint_t *c;

    (void) state;

    make_models("w8a16", dir, reference);
    want = answer(dir, VLM_INT8, NULL, NULL, &n, &V);

    for (i = 0; i < 2; i++) {          /* written, then read */
        got = answer(dir, VLM_INT8, NULL, base, &n, &V);
        assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
        free(got);
    }

    free(want);

    /* zero points of another version, in the same bytes */

    make_models("gptq", dir, reference);
    config = calloc(1, sizeof(*config));
    assert_non_null(config);

    for (i = 0; i < 2; i++) {
        c = open_weights(dir, config);
        assert_int_equal(vlm_checkpoint_id(c, id[i], &err), 0);
        vlm_checkpoint_close(c);
        snprintf(command, sizeof(command), "sed -i 's/\"desc_act\"/\"checkpoint_format\": "
                 "\"gptq_v2\", &/' %s/config.json", dir);
        assert_int_equal(system(command), 0);
    }

    assert_memory_not_equal(id[0], id[1], 32);
    snprintf(command, sizeof(command), "rm -r %s %s", dir, reference);
    assert_int_equal(system(command), 0);
    free(config);
}


static void
one_line_of_the_log_says_how_the_files_were_quantised(void **state)
{
    char    dir[128], reference[128];
    size_t  i;

    static const struct {
        const char  *form;
        vlm_type_t   weights;
        const char  *says;
    } lines[] = {
        { "awq", VLM_INT8, "the files of the model have 7 quantised matrices (AWQ, 4 bits in "
          "groups of 32): answers are those of the rounded values, of which weights int8 rounds 7 "
          "again" },
        { "awq", VLM_BF16, "the files of the model have 7 quantised matrices (AWQ, 4 bits in "
          "groups of 32): answers are those of the rounded values" },
        { "int8-rows", VLM_INT8, "the files of the model have 7 quantised matrices "
          "(compressed-tensors, 8 bits with a scale a row): answers are those of the rounded "
          "values, which weights int8 takes as they are" }
    };

    (void) state;

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        make_models(lines[i].form, dir, reference);
        vlm_close(open_engine(dir, lines[i].weights, NULL, NULL));
        assert_int_equal(n_notices, 1);
        assert_string_equal(notices[0], lines[i].says);
    }

    vlm_close(open_engine(reference, VLM_INT8, NULL, NULL));
    assert_int_equal(n_notices, 0);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_form_answers_as_the_values_that_it_stands_for),
        cmocka_unit_test(every_set_of_operations_has_the_same_bits),
        cmocka_unit_test(the_cache_of_a_quantised_model_has_its_bits_and_follows_its_settings),
        cmocka_unit_test(one_line_of_the_log_says_how_the_files_were_quantised)
    };

    table = argc > 1 && strcmp(argv[1], "--table") == 0 ? stdout : NULL;

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
