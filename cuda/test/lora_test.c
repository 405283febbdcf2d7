/*
 * Adapters on the emulated device: logits with them are about as near to f32 as the host's own of
 * the same weights, and requests with several adapters, and without one, share steps.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "library.h"
#include "run/fidelity_run.h"

#define CASES  "t/fidelity/lora/cases.txt"
#define FILES  "t/fidelity/lora"

/* The suite runs this program with and without the sanitizers at one time. */
#ifdef __SANITIZE_ADDRESS__
#define BUILD  "build/asan/"
#else
#define BUILD  "build/"
#endif

#define DIR    BUILD "lora-cuda-test"  /* "tower" changes the vision encoder, "text" does not */
#define ONE    BUILD "lora-cuda-one"   /* an adapter alone */
#define SLOTS  9                       /* one more than rows of a kept step */

/* Parts of matrices, the vision encoder, the table, a tied head, a bias of B, and BLOOM. */
static const struct {
    const char  *name;
    vlm_type_t   weights;
} logit_cases[] = {
    { "lora-a-list", VLM_INT8 }, { "lora-b-tied", VLM_BF16 }, { "lora-c-bias", VLM_INT8 },
    { "lora-f-64", VLM_INT8 }, { "lora-k-tower", VLM_BF16 }, { "lora-m-tied", VLM_INT8 },
    { "lora-q-patterns", VLM_INT8 }, { "lora-s-embed", VLM_BF16 }
};

/* Under sanitizers, which make the emulator slow, the first ones. */
#ifdef __SANITIZE_ADDRESS__
#define N_CASES  2
#define N_FORMS  1
#else
#define N_CASES  (sizeof(logit_cases) / sizeof(logit_cases[0]))
#define N_FORMS  2
#endif


static vlm_t *
open_one(const case_t *c, vlm_type_t weights, const char *device)
{
    char        dir[256], command[1024];
    vlm_conf_t  conf;

    (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", c->checkpoint);
    (void) snprintf(command, sizeof(command), "rm -rf " ONE " && mkdir -p " ONE " && cp -r " FILES
                    "/%s " ONE, c->name);
    assert_int_equal(system(command), 0);

    conf = conf_of(dir, weights, NULL, 1);
    conf.device = device;
    conf.context = 400;
    conf.max_pixels = 8192;
    conf.lora = ONE;
    conf.lora_max = 1;
    conf.lora_rank = 64;

    return open_conf(&conf);
}


static float *
logits_on(const case_t *c, vlm_type_t weights, const char *device, double scale, uint32_t *rows,
          uint32_t *V)
{
    float         *logits;
    vlm_t         *v = open_one(c, weights, device);
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p = make_prompt(v, c);

    assert_int_equal(vlm_prompt_adapter(v, p, c->name, scale, &err), 0);
    *rows = p->n;

    if (vlm_logits(v, p, &logits, V, &err) != 0) {
        fail_msg("%s: %s", c->name, err.text);
    }

    vlm_prompt_free(p);
    vlm_close(v);

    return logits;
}


/* Root mean square of the differences, in standard deviations of each row of a. */
static double
distance(const float *a, const float *b, uint32_t rows, uint32_t V)
{
    double    sum, squares, off, all;
    uint32_t  r, i;

    for (all = 0, r = 0; r < rows; r++, a += V, b += V) {
        for (sum = squares = off = 0, i = 0; i < V; i++) {
            sum += a[i];
            squares += (double) a[i] * a[i];
            off += (double) (a[i] - b[i]) * (a[i] - b[i]);
        }

        all += off / (squares / V - sum / V * (sum / V)) / V;
    }

    return sqrt(all / rows);
}


static const case_t *
case_named(const char *name)
{
    uint32_t  i;

    for (i = 0; i < n_cases && strcmp(cases[i].name, name) != 0; i++) { /* void */ }

    assert_true(i < n_cases);

    return &cases[i];
}


static void
logits_with_adapters_are_about_as_near_to_f32_as_the_hosts_own(void **state)
{
    float         *f32, *base, *host, *card;
    double         theirs, ours, changed;
    uint32_t       i, rows, V;
    vlm_type_t     weights;
    const case_t  *c;

    (void) state;

    for (i = 0; i < N_CASES; i++) {
        c = case_named(logit_cases[i].name);
        weights = logit_cases[i].weights;
        f32 = logits_on(c, VLM_F32, "cpu", 1, &rows, &V);
        base = logits_on(c, VLM_F32, "cpu", 0, &rows, &V);
        host = logits_on(c, weights, "cpu", 1, &rows, &V);
        card = logits_on(c, weights, "cuda", 1, &rows, &V);
        theirs = distance(f32, host, rows, V);
        ours = distance(f32, card, rows, V);
        changed = distance(f32, base, rows, V);

        print_message("# %s: %.4f deviations from f32, the host's %.4f; the adapter changes %.4f\n",
                      c->name, ours, theirs, changed);
        assert_true(ours < 1.15 * theirs + 0.01);
        assert_true(changed > 2 * ours);

        free(f32);
        free(base);
        free(host);
        free(card);
    }
}


static vlm_t *
open_both(const char *lora, vlm_type_t weights)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.device = "cuda";
    conf.weights = weights;
    conf.slots = SLOTS;
    conf.context = 200;
    conf.max_pixels = 3136;
    conf.lora = lora;
    conf.lora_max = 3;
    conf.lora_rank = 4;
    conf.lora_load = 1;

    return vlm_tiny_open(&conf);
}


static vlm_prompt_t *
adapted(vlm_t *v, uint32_t i, const char *name, double scale)
{
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p = vlm_tiny_prompt(v, "Where is the cup?", i % 2);

    if (name != NULL && vlm_prompt_adapter(v, p, name, scale, &err) != 0) {
        fail_msg("%s", err.text);
    }

    return p;
}


/*
 * Steps of few rows, and of more than few: each request has the bits of alone, and one without an
 * adapter those of an engine without places, whose steps are kept.
 */
static void
rows_of_several_adapters_share_steps(void **state)
{
    vlm_t           *v, *bare;
    uint32_t         i, n, form;
    vlm_answer_t     alone[SLOTS], together[SLOTS], without;
    vlm_sampling_t   s = vlm_tiny_sampling(7);
    const char      *name[SLOTS] = { NULL, NULL, "tower", "text", "tower", "text", NULL, "text",
                                     "tower" };
    const double     scale[SLOTS] = { 1, 1, 1, 1, 0.5, 1, 1, 2, 4 };

    (void) state;

    s.logprobs = 1;
    s.max_tokens = 6;

    for (form = 0; form < N_FORMS; form++) {
        bare = open_both(NULL, form ? VLM_BF16 : VLM_INT8);
        v = open_both(DIR, form ? VLM_BF16 : VLM_INT8);

        for (i = 0; i < SLOTS; i++) {
            vlm_tiny_alone(v, adapted(v, i, name[i], scale[i]), &s, &alone[i]);
        }

        for (n = 6; n <= SLOTS; n += 3) {
            for (i = 0; i < n; i++) {
                (void) vlm_tiny_submit(v, adapted(v, i, name[i], scale[i]), &s, &together[i]);
            }

            vlm_tiny_run(v);
            vlm_tiny_drain(v, NULL);

            for (i = 0; i < n; i++) {
                assert_int_equal(together[i].err.code, VLM_OK);
                check_same(&together[i], &alone[i]);
            }
        }

        for (i = 0; i < 2; i++) {
            vlm_tiny_alone(bare, adapted(bare, i, NULL, 1), &s, &without);
            check_same(&without, &alone[i]);
            assert_memory_not_equal(&alone[i + 2].tokens[0].picked.logprob,
                                    &without.tokens[0].picked.logprob, sizeof(float));
        }

        vlm_close(bare);
        vlm_close(v);
    }
}


/* One that is loaded while the model runs: the call with that number, of its copies, fails. */
static void
load_and_ask(vlm_t *v, int code, uint64_t call, vlm_answer_t *a, vlm_err_t *err)
{
    int             idle;
    vlm_sampling_t  s = vlm_tiny_sampling(7);

    s.logprobs = 1;
    s.max_tokens = 2;
    memset(err, 0, sizeof(*err));
    assert_int_equal(vlm_adapter_load(v, "later", "text", 0, &idle, err), 0);
    (void) vlm_tiny_submit(v, adapted(v, 0, "later", 1), &s, a);

    set(VLM_EMU_FAIL_CODE, (uint64_t) code);
    set(VLM_EMU_FAIL_AT, call);
    assert_int_equal(vlm_run(v, err), vlm_fault_of(code) == VLM_FAULT_REFUSED ? 0 : -1);
    set(VLM_EMU_FAIL_AT, 0);
    vlm_tiny_drain(v, NULL);
}


static void
a_slice_that_the_device_refuses_is_put_again(void **state)
{
    vlm_t         *v = open_both(DIR, VLM_INT8);
    uint64_t       call;
    vlm_err_t      err;
    vlm_answer_t   want, got;

    (void) state;

    load_and_ask(v, 2, 0, &want, &err);
    assert_int_equal(want.err.code, VLM_OK);

    for (call = 1; call < 12; call += 5) {
        assert_int_equal(vlm_adapter_unload(v, "later", &err), 0);
        load_and_ask(v, 2, call, &got, &err);
        assert_int_equal(got.err.code, VLM_OK);
        check_same(&got, &want);
    }

    assert_int_equal(vlm_adapter_unload(v, "later", &err), 0);
    load_and_ask(v, 700, 3, &got, &err);
    assert_int_equal(err.code, VLM_EDEVICE);
    assert_int_equal(got.err.code, VLM_EDEVICE);
    assert_int_equal(counts().calls_after_loss, 0);
    vlm_close(v);
    set(VLM_EMU_FORGET, 0);            /* as the end of the process does */
}


static int
make_files(void **state)
{
    read_family(CASES, 0);
    assert_int_equal(system("rm -rf " DIR " && mkdir -p " DIR " && cp -r " FILES "/lora-a-list " DIR
                            "/tower && cp -r " FILES "/lora-a-attention " DIR "/text"), 0);

    return find_library(state);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(logits_with_adapters_are_about_as_near_to_f32_as_the_hosts_own),
        cmocka_unit_test(rows_of_several_adapters_share_steps),
        cmocka_unit_test(a_slice_that_the_device_refuses_is_put_again)
    };

    return cmocka_run_group_tests(tests, make_files, NULL);
}
