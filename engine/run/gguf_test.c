/*
 * A model of two GGUF files against the checkpoint that they were made from: the same tokens, the
 * same settings, and, where the files round nothing, the same logits to the last bit.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <unistd.h>

#include "load/files.h"
#include "run/fixture.h"

#define GGUF    "t/fixtures/gguf/"
#define Q8_KL   0.004                  /* measured, in f32: 0.0021 */

static char  notice[512];
static int   n_notices;


static void
take_notice(void *data, vlm_log_level_t level, const char *text)
{
    (void) data;

    if (level == VLM_LOG_NOTICE && strstr(text, "quantised matrices") != NULL) {
        snprintf(notice, sizeof(notice), "%s", text);
        n_notices++;
    }
}


static void
set_files(vlm_conf_t *conf, const char *model, const char *mmproj)
{
    vlm_tiny_conf(conf);
    conf->log = take_notice;
    conf->model = model;
    conf->mmproj = mmproj;
    n_notices = 0;
}


static float *
logits_of(const vlm_conf_t *conf, uint32_t *n, uint32_t *V)
{
    float         *logits;
    vlm_t         *v;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    v = vlm_tiny_open(conf);
    p = vlm_tiny_prompt(v, "Where is the cup?", 1);
    *n = vlm_prompt_tokens(p);
    assert_int_equal(vlm_logits(v, p, &logits, V, &err), 0);
    vlm_prompt_free(p);
    vlm_close(v);

    return logits;
}


static void
bf16_files_have_the_logits_of_the_checkpoint(void **state)
{
    float            *got, *want;
    size_t            i;
    uint32_t          n, V;
    vlm_conf_t        conf;
    vlm_type_t        type = VLM_BF16;

    (void) state;

    for (i = 0; i < 2; i++) {          /* with the best set of operations, then with plain C */
        set_files(&conf, CHECKPOINT, NULL);
        conf.weights = type;
        conf.ops = i == 0 ? NULL : "plain";
        want = logits_of(&conf, &n, &V);

        set_files(&conf, GGUF "bf16.gguf", GGUF "mmproj-bf16.gguf");
        conf.weights = type;
        conf.ops = i == 0 ? NULL : "plain";
        got = logits_of(&conf, &n, &V);

        assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
        assert_int_equal(n_notices, 0);
        free(got);
        free(want);
    }
}


static void
f16_files_of_qwen3_vl_have_the_logits_of_the_checkpoint(void **state)
{
    float       *got, *want;
    uint32_t     n, V;
    vlm_conf_t   conf;

    (void) state;

    set_files(&conf, "build/fidelity/gguf-3", NULL);
    conf.weights = VLM_F32;
    want = logits_of(&conf, &n, &V);

    set_files(&conf, GGUF "qwen3.gguf", GGUF "mmproj-qwen3.gguf");
    conf.weights = VLM_F32;
    got = logits_of(&conf, &n, &V);

    assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
    assert_int_equal(n_notices, 0);
    free(got);
    free(want);
}


static void
q8_0_files_differ_by_their_rounding_and_say_so(void **state)
{
    float       *got, *want, *a, *b;
    double       sum[2], kl;
    uint32_t     t, i, n, V;
    vlm_conf_t   conf;

    (void) state;

    set_files(&conf, CHECKPOINT, NULL);
    conf.weights = VLM_F32;
    want = logits_of(&conf, &n, &V);

    set_files(&conf, GGUF "q8_0.gguf", GGUF "mmproj-q8_0.gguf");
    conf.weights = VLM_F32;
    got = logits_of(&conf, &n, &V);

    for (kl = 0, t = 0; t < n; t++) {
        a = want + (size_t) t * V;
        b = got + (size_t) t * V;

        for (sum[0] = sum[1] = 0, i = 0; i < V; i++) {
            sum[0] += exp((double) a[i] - a[0]);
            sum[1] += exp((double) b[i] - b[0]);
        }

        for (i = 0; i < V; i++) {
            kl += exp((double) a[i] - a[0]) / sum[0]
                  * (((double) a[i] - a[0] - log(sum[0])) - ((double) b[i] - b[0] - log(sum[1])));
        }
    }

    print_message("mean KL of Q8_0 in f32: %.6f\n", kl / n);
    assert_true(kl / n < Q8_KL);
    assert_int_equal(n_notices, 1);
    assert_non_null(strstr(notice, " quantised matrices (GGUF Q8_0)"));

    free(got);
    free(want);
}


static vlm_t *
open_host(const char *model, const char *mmproj)
{
    vlm_t       *v;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;

    set_files(&conf, model, mmproj);
    v = vlm_open(&conf, &err);

    if (v == NULL) {
        fail_msg("%s", err.text);
    }

    return v;
}


static void
the_tokenizer_gives_the_ids_of_the_checkpoints(void **state)
{
    int          same;
    vlm_t       *a, *b;
    size_t       i, n[2];
    uint32_t    *ids[2], id;
    vlm_err_t    err = { VLM_OK, "" };
    const char  *piece[2];

    static const char *const  texts[] = {
        "Where is the cup?", "", "  two  blanks\n\n\tand 12345 digits", "\xc3\xbc" "ber",
        "u\xcc\x88" "ber", "\xe6\x97\xa5\xe6\x9c\xac", "<|im_end|> is text", "don't you're I'LL",
        "\xf0\x9f\x98\x80\xf0\x9f\x98\x80", "<tool_call>"
    };

    (void) state;

    a = open_host(CHECKPOINT, NULL);
    b = open_host(GGUF "bf16.gguf", GGUF "mmproj-bf16.gguf");

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_int_equal(vlm_tokenize(a, texts[i], strlen(texts[i]), &ids[0], &n[0], &err), 0);
        assert_int_equal(vlm_tokenize(b, texts[i], strlen(texts[i]), &ids[1], &n[1], &err), 0);
        assert_int_equal(n[0], n[1]);
        assert_memory_equal(ids[0], ids[1], n[0] * sizeof(uint32_t));
        free(ids[0]);
        free(ids[1]);
    }

    assert_int_equal(vlm_n_ids(a), vlm_n_ids(b));

    for (id = 0; id < vlm_n_ids(a); id++) {
        piece[0] = vlm_piece(a, id, &n[0]);
        piece[1] = vlm_piece(b, id, &n[1]);
        same = n[0] == n[1] && (piece[0] == NULL) == (piece[1] == NULL);
        assert_true(same && (n[0] == 0 || memcmp(piece[0], piece[1], n[0]) == 0));
    }

    /* and the settings of both */

    assert_memory_equal(&a->config.text, &b->config.text, sizeof(a->config.text));
    assert_memory_equal(&a->config.vision, &b->config.vision, sizeof(a->config.vision));
    assert_memory_equal(&a->config.pixel, &b->config.pixel, sizeof(a->config.pixel));
    assert_int_equal(a->config.generation.image_token, b->config.generation.image_token);
    assert_int_equal(a->config.generation.n_eos, b->config.generation.n_eos);
    assert_ptr_equal(a->config.family, b->config.family);

    vlm_close(a);
    vlm_close(b);
}


static void
plan_and_facts_are_those_of_the_checkpoint(void **state)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_plan_t   plan[2];
    vlm_facts_t  facts[2];

    (void) state;

    set_files(&conf, CHECKPOINT, NULL);
    assert_int_equal(vlm_plan(&conf, &plan[0], &err), 0);
    assert_int_equal(vlm_facts(&conf, &facts[0], &err), 0);
    set_files(&conf, GGUF "q8_0.gguf", GGUF "mmproj-q8_0.gguf");
    assert_int_equal(vlm_plan(&conf, &plan[1], &err), 0);
    assert_int_equal(vlm_facts(&conf, &facts[1], &err), 0);

    assert_memory_equal(&plan[0], &plan[1], sizeof(plan[0]));
    assert_int_equal(facts[0].parameters, facts[1].parameters);
    assert_string_equal(facts[0].architecture, facts[1].architecture);
    assert_int_equal(facts[0].vocab, facts[1].vocab);
}


static void
the_int8_cache_of_gguf_files_has_their_bits(void **state)
{
    int          i;
    char         dir[] = "/tmp/vlm-gguf-XXXXXX", command[64];
    float       *got, *want;
    uint32_t     n, V;
    vlm_conf_t   conf;

    (void) state;

    assert_non_null(mkdtemp(dir));
    set_files(&conf, GGUF "q8_0.gguf", GGUF "mmproj-q8_0.gguf");
    want = logits_of(&conf, &n, &V);

    for (i = 0; i < 2; i++) {          /* written, then read */
        conf.cache = dir;
        got = logits_of(&conf, &n, &V);
        assert_memory_equal(got, want, (size_t) n * V * sizeof(float));
        free(got);
    }

    free(want);
    snprintf(command, sizeof(command), "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}


static void
files_that_make_no_model_are_refused_with_a_sentence(void **state)
{
    size_t       i;
    vlm_err_t    err;
    vlm_conf_t   conf;
    vlm_plan_t   plan;

    static const struct {
        const char  *model, *mmproj, *says;
    } wrong[] = {
        { GGUF "bf16.gguf", NULL, "bf16.gguf: a model of \"qwen2vl\" has its vision encoder in a "
          "second file: give it as mmproj=FILE.gguf" },
        { GGUF "mmproj-bf16.gguf", GGUF "bf16.gguf", "architecture \"clip\" with the projector "
          "\"\" of mmproj is not served, only \"qwen2vl\" with \"qwen2.5vl_merger\", " },
        { GGUF "blocks.gguf", NULL, "blocks.gguf: architecture \"blocks\" is not served, only " },
        { GGUF "blocks.gguf", GGUF "mmproj-bf16.gguf", "architecture \"blocks\" with" },
        { GGUF "bf16.gguf", GGUF "none.gguf", "none.gguf: No such file" },
        { GGUF "bf16.gguf", GGUF "make.py", "make.py: not a GGUF file" },
        { CHECKPOINT, GGUF "mmproj-bf16.gguf", "not a GGUF file, and mmproj is for one" }
    };

    (void) state;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        memset(&err, 0, sizeof(err));
        set_files(&conf, wrong[i].model, wrong[i].mmproj);
        assert_int_equal(vlm_plan(&conf, &plan, &err), -1);

        if (err.code != VLM_EMODEL || strstr(err.text, wrong[i].says) == NULL) {
            fail_msg("\"%s\" should say \"%s\"", err.text, wrong[i].says);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(bf16_files_have_the_logits_of_the_checkpoint),
        cmocka_unit_test(f16_files_of_qwen3_vl_have_the_logits_of_the_checkpoint),
        cmocka_unit_test(q8_0_files_differ_by_their_rounding_and_say_so),
        cmocka_unit_test(the_tokenizer_gives_the_ids_of_the_checkpoints),
        cmocka_unit_test(plan_and_facts_are_those_of_the_checkpoint),
        cmocka_unit_test(the_int8_cache_of_gguf_files_has_their_bits),
        cmocka_unit_test(files_that_make_no_model_are_refused_with_a_sentence)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
