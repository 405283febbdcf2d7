/*
 * Products that are balanced (model/balance.c): a model in which rows of `up` and of v are so many
 * times larger, a power of two, and the columns of `down` and `o` that read them so many times
 * smaller, has the same logits to the bit, in each quantised form, from its cache file and with an
 * adapter whose A and B are changed likewise.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <string.h>
#include <unistd.h>

#include "load/safetensors.h"
#include "run/fixture.h"

#define ADAPTER  "t/fidelity/lora/lora-a-list"     /* of CHECKPOINT: all of a layer's matrices */
#define TIMES    64
#define MAX      128                   /* tensors */

static char  dir[] = "/tmp/vlm-balance-XXXXXX";

typedef struct {                       /* a file in memory */
    uint8_t       *bytes;
    uint64_t       n_bytes;
    vlm_tensor_t   tensor[MAX];
    char           name[MAX][160];
    uint32_t       n;
} weights_t;


static int
collect(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    weights_t  *w = data;

    (void) err;

    assert_true(w->n < MAX && strlen(t->name) < sizeof(w->name[0]));
    strcpy(w->name[w->n], t->name);
    w->tensor[w->n++] = *t;

    return 0;
}


/* The number of a tensor's channel that is changed; -1: it has none. */
static int
channel_of(const char *name, uint32_t F)
{
    int          layer;
    const char  *at;

    at = strstr(name, "layers.");
    at = at == NULL ? strstr(name, "blocks.") : at;

    if (at == NULL || sscanf(at + 7, "%d", &layer) != 1) {
        return -1;
    }

    return (11 * layer + 5) % (int) F;
}


/* Row i, or column i, so many times. */
static void
scale(const vlm_tensor_t *t, int column, uint32_t i, float times)
{
    float     *v = (float *) (uintptr_t) t->data;
    uint64_t   k, n, K;

    K = t->n_dims == 1 ? 1 : t->dims[1];
    n = column ? t->dims[0] : K;

    for (k = 0; k < n; k++) {
        v[column ? k * K + i : i * K + k] *= times;
    }
}


/* 1: a tensor of the matrix whose rows are its own, or an adapter's B. */
static int
has_rows(const char *name, const char *matrix)
{
    return strstr(name, matrix) != NULL && strstr(name, "lora_A") == NULL;
}


/* The same of its columns, or an adapter's A. */
static int
has_columns(const vlm_tensor_t *t, const char *name, const char *matrix)
{
    return strstr(name, matrix) != NULL && strstr(name, "lora_B") == NULL && t->n_dims == 2;
}


/* Puts outliers into a tensor.  Returns 1 if it has one. */
static int
put_outlier(const vlm_tensor_t *t, const char *name, const vlm_text_config_t *c)
{
    uint32_t  i, g, group = c->heads / c->kv_heads, K = (uint32_t) t->dims[1];

    if (has_rows(name, "mlp.up_proj.") || has_rows(name, "self_attn.v_proj.")) {
        scale(t, 0, (uint32_t) channel_of(name, (uint32_t) t->dims[0]), TIMES);

    } else if (has_rows(name, "attn.qkv.")) {
        i = (uint32_t) t->dims[0] / 3;
        scale(t, 0, 2 * i + (uint32_t) channel_of(name, i), TIMES);

    } else if (has_columns(t, name, "mlp.down_proj.") || has_columns(t, name, "attn.proj.")) {
        scale(t, 1, (uint32_t) channel_of(name, K), 1.0f / TIMES);

    } else if (has_columns(t, name, "self_attn.o_proj.")) {
        i = (uint32_t) channel_of(name, K / group);

        for (g = 0; g < group; g++) {
            scale(t, 1, (i / c->head_dim * group + g) * c->head_dim + i % c->head_dim,
                  1.0f / TIMES);
        }

    } else {
        return 0;
    }

    return 1;
}


/* Puts the outliers into a file, which is written below dir.  Returns how many tensors changed. */
static uint32_t
change(const char *from, const char *to)
{
    char                 path[256];
    FILE                *out;
    uint32_t             i, n;
    vlm_config_t         config;
    vlm_err_t            err = { VLM_OK, "" };
    vlm_file_t           f;
    static weights_t     w;

    assert_int_equal(vlm_config_read(&config, CHECKPOINT, &err), 0);
    assert_true(config.text.heads > config.text.kv_heads && config.text.kv_heads > 1);
    memset(&w, 0, sizeof(w));
    assert_int_equal(vlm_file_open(&f, from, 0, &err), 0);
    w.n_bytes = f.bytes;
    w.bytes = malloc(f.bytes);
    assert_non_null(w.bytes);
    memcpy(w.bytes, f.data, f.bytes);
    vlm_file_close(&f);
    assert_int_equal(vlm_safetensors_parse(w.bytes, w.n_bytes, from, collect, &w, &err), 0);

    for (n = 0, i = 0; i < w.n; i++) {
        assert_string_equal(w.tensor[i].dtype, "F32");
        n += (uint32_t) put_outlier(&w.tensor[i], w.name[i], &config.text);
    }

    (void) snprintf(path, sizeof(path), "%s/%s", dir, to);
    out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(w.bytes, 1, w.n_bytes, out), w.n_bytes);
    assert_int_equal(fclose(out), 0);
    free(w.bytes);

    return n;
}


static int
set_up(void **state)
{
    char  command[512];

    (void) state;

    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    (void) snprintf(command, sizeof(command), "cd %s && mkdir -p plain/one outliers/one model cache"
                    " && cd - >/dev/null && cp " CHECKPOINT "/*.json " CHECKPOINT "/*.txt %s/model"
                    " && cp " ADAPTER "/* %s/plain/one && cp " ADAPTER "/* %s/outliers/one", dir,
                    dir, dir, dir);

    return system(command);
}


static int
tear_down(void **state)
{
    char  command[64];

    (void) state;
    (void) snprintf(command, sizeof(command), "rm -r %s", dir);

    return system(command);
}


/* The number of files of the cache's directory. */
static uint32_t
count_cached(void)
{
    DIR            *d;
    char            path[64];
    uint32_t        n;
    struct dirent  *e;

    (void) snprintf(path, sizeof(path), "%s/cache", dir);
    d = opendir(path);
    assert_non_null(d);

    for (n = 0; (e = readdir(d)) != NULL; /* void */) {
        n += e->d_name[0] != '.';
    }

    (void) closedir(d);

    return n;
}


typedef struct {
    vlm_type_t  weights;
    int         outliers, cached, adapted;
} form_t;


static float *
logits_of(const form_t *x, uint64_t *n)
{
    char           model[64], cache[64], lora[64];
    float         *logits;
    vlm_t         *v;
    uint32_t       V;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_conf_t     conf;
    vlm_prompt_t  *p;

    (void) snprintf(model, sizeof(model), "%s/model", dir);
    (void) snprintf(cache, sizeof(cache), "%s/cache", dir);
    (void) snprintf(lora, sizeof(lora), "%s/%s", dir, x->outliers ? "outliers" : "plain");

    vlm_tiny_conf(&conf);
    conf.weights = x->weights;
    conf.threads = 2;
    conf.model = x->outliers ? model : CHECKPOINT;
    conf.cache = x->cached ? cache : NULL;
    conf.lora = x->adapted ? lora : NULL;
    conf.lora_max = 1;
    conf.lora_rank = 4;

    v = vlm_tiny_open(&conf);
    p = vlm_tiny_prompt(v, "How many cups are there?", 1);

    if (x->adapted && vlm_prompt_adapter(v, p, "one", 1, &err) != 0) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(vlm_logits(v, p, &logits, &V, &err), 0);
    *n = (uint64_t) p->n * V;
    vlm_prompt_free(p);
    vlm_close(v);

    return logits;
}


/* Compares the forms' logits: 1, they have the same bits. */
static int
are_equal(const form_t *a, const form_t *b)
{
    int        equal;
    float     *x, *y;
    uint64_t   n, m;

    x = logits_of(a, &n);
    y = logits_of(b, &m);
    assert_int_equal(n, m);
    equal = memcmp(x, y, n * sizeof(float)) == 0;
    free(x);
    free(y);

    return equal;
}


static void
outliers_of_products_change_no_bit(void **state)
{
    int               adapted;
    size_t            i;
    static const vlm_type_t  types[] = { VLM_INT8, VLM_INT4 };

    (void) state;

    /* blocks have biases of `up` and v, layers of v alone; the adapter has the layers alone */

    assert_true(change(CHECKPOINT "/model.safetensors", "model/model.safetensors") >= 2 * 6 + 5);
    assert_true(change(ADAPTER "/adapter_model.safetensors",
                       "outliers/one/adapter_model.safetensors") >= 4);

    for (i = 0; i < 2; i++) {
        for (adapted = 0; adapted < 2; adapted++) {
            form_t  want = { types[i], 0, 0, adapted }, got = { types[i], 1, 0, adapted };

            assert_true(are_equal(&want, &got));

            /* made for the cache file, and then read from it */

            got.cached = 1;
            assert_true(are_equal(&want, &got));
            assert_true(are_equal(&want, &got));
            assert_int_equal(count_cached(), i + 1);
        }
    }
}


/* So the adapter of the test above counts, and with it what is changed in it. */
static void
an_adapter_that_is_not_changed_gives_other_logits(void **state)
{
    char    command[256];
    form_t  want = { VLM_INT8, 0, 0, 1 }, got = { VLM_INT8, 1, 0, 1 };

    (void) state;
    (void) snprintf(command, sizeof(command), "cp " ADAPTER "/* %s/outliers/one", dir);
    assert_int_equal(system(command), 0);
    assert_false(are_equal(&want, &got));
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(outliers_of_products_change_no_bit),
        cmocka_unit_test(an_adapter_that_is_not_changed_gives_other_logits)
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
