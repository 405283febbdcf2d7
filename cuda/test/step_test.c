/*
 * The cost of a token in launches and in waits, counted by the emulated driver: the kernels of a
 * layer, and those around them; and how work is cut so that a cancellation takes effect.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "library.h"

#define SLOTS     9                    /* one more than there are rows in a captured step */
#define PIXELS    16384                /* 80 patches: windows, and two tiles of attention */
#define SHORT     3                    /* tokens of one answer, and of another one */
#define LONG      4
#define ALONE     2                    /* answers of a cut device: without a picture, with one */
#define TOGETHER  3                    /* and so many in one step */
#define SLOW      UINT64_C(1000000)
#define VERY_SLOW UINT64_C(1000000000)
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

typedef struct {
    const char  *model;
    vlm_type_t   weights;
} case_t;

static const case_t  cases[] = {
    { "build/fidelity/tiny-a", VLM_INT8 },
    { "build/fidelity/tiny-e", VLM_INT8 },         /* a tied head */
    { "build/fidelity/tiny-f", VLM_INT8 },
    { "build/fidelity/tiny-m", VLM_BF16 }          /* Qwen3-VL: norms of heads of two units */
};

static const uint32_t  row_counts[] = { 1, 2, SLOTS };


/* Without captures, the driver refuses to. */
static vlm_t *
open_model(const case_t *c, int captures)
{
    vlm_t       *v;
    vlm_conf_t   conf;

    vlm_tiny_conf(&conf);
    conf.model = c->model;
    conf.weights = c->weights;
    conf.device = "cuda";
    conf.context = 200;
    conf.slots = SLOTS;
    conf.max_pixels = PIXELS;

    set(VLM_EMU_CAPTURES, (uint64_t) captures);

    v = vlm_tiny_open(&conf);

    return v;
}


/* On a device that is as many times slower. */
static vlm_t *
open_slow(const case_t *c, int captures, uint64_t slow)
{
    vlm_t  *v;

    set(VLM_EMU_SLOW, slow);
    v = open_model(c, captures);
    set(VLM_EMU_SLOW, 1);

    return v;
}


/* Runs answers of so many tokens each, given together, and adds their cost to took. */
static void
answer(vlm_t *v, uint32_t n, uint32_t tokens, vlm_answer_t *a, vlm_emu_counts_t *took)
{
    uint32_t           i;
    vlm_bias_t         bias[16];
    vlm_sampling_t     s;
    vlm_emu_counts_t   before, after;

    s = vlm_tiny_sampling(1);
    s.temperature = 0;
    s.max_tokens = tokens;
    s.logprobs = 1;
    s.bias = bias;
    s.n_bias = v->config.generation.n_eos;

    for (i = 0; i < s.n_bias; i++) {
        bias[i].id = v->config.generation.eos[i];
        bias[i].bias = -100;           /* never the end */
    }

    for (i = 0; i < v->conf.slots; i++) {
        vlm_prefix_forget(&v->sched.prefix, i);
    }

    before = counts();

    for (i = 0; i < n; i++) {
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, i ? "a b c" : "x y z", 0), &s, &a[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    after = counts();

    for (i = 0; i < n; i++) {
        assert_int_equal(a[i].err.code, VLM_OK);
        assert_int_equal(a[i].usage.completion_tokens, tokens);
    }

    took->launches = after.launches - before.launches;
    took->kernels = after.kernels - before.kernels;
    took->waits = after.waits - before.waits;
}


/* One that has to read a picture first, or a prompt. */
static void
answer_about(vlm_t *v, uint32_t n_pictures, vlm_answer_t *a)
{
    vlm_sampling_t  s;

    s = vlm_tiny_sampling(1);
    s.temperature = 0;
    s.max_tokens = SHORT;
    s.logprobs = 1;
    vlm_tiny_alone(v, vlm_tiny_prompt(v, "What is on the table of wood?", n_pictures), &s, a);
    assert_int_equal(a->err.code, VLM_OK);
}


/* The cost of a step: the difference between two answers, one a step longer than the other. */
static vlm_emu_counts_t
step(vlm_t *v, uint32_t n)
{
    vlm_answer_t      a[SLOTS];
    vlm_emu_counts_t  one, two;

    answer(v, n, SHORT, a, &one);
    answer(v, n, SHORT + 1, a, &two);
    two.launches -= one.launches;
    two.kernels -= one.kernels;
    two.waits -= one.waits;

    return two;
}


/* The cost of a captured step of one row by cost.h, in microseconds. */
static double
us_of_step(const case_t *c)
{
    vlm_t             *v;
    vlm_answer_t       a[1];
    vlm_emu_counts_t   took;

    v = open_model(c, 1);
    answer(v, 1, SHORT, a, &took);
    set(VLM_EMU_IDLE, 0);              /* the longest launch from here on, which is a step */
    answer(v, 1, SHORT, a, &took);
    vlm_close(v);

    return counts().longest;
}


/*
 * A layer is qkv, attend, o, gate_up and down; around them are embed, head and sample.  Heads that
 * are no multiple of 32 values turn in a launch of their own, and so does the row of a tied head.
 */
static void
a_step_is_5_kernels_a_layer_and_3_and_2_launches_in_all(void **state)
{
    vlm_t             *v;
    uint32_t           i, n, layer;
    vlm_emu_counts_t   took;

    (void) state;

    for (i = 0; i < COUNT(cases); i++) {
        v = open_model(&cases[i], 1);
        layer = v->config.text.head_dim % 32 == 0 ? 5 : 6;

        for (n = 1; n <= 2; n++) {
            took = step(v, n);
            assert_int_equal(took.kernels, layer * v->config.text.layers + 3
                                           + (v->sched.model.head.turn != NULL));
            assert_int_equal(took.launches, 2);
        }

        vlm_close(v);
    }
}


/* Rows of a captured step, one and two, and more than are captured. */
static void
answer_all(vlm_t *v, uint32_t n_counts, vlm_answer_t (*a)[SLOTS], int kept)
{
    uint32_t           i;
    vlm_emu_counts_t   took;

    for (i = 0; i < n_counts; i++) {
        answer(v, row_counts[i], LONG, a[i], &took);
        assert_int_equal(took.launches < took.kernels, kept);
    }
}


/* In one piece, and in several. */
static void
kept_steps_have_the_bits_of_steps_that_are_launched_kernel_by_kernel(void **state)
{
    vlm_t             *v;
    double             us;
    uint32_t           i, j, n, n_counts, pieces;
    vlm_answer_t       want[COUNT(row_counts)][SLOTS], got[COUNT(row_counts)][SLOTS];

    (void) state;

    for (i = 0; i < COUNT(cases); i++) {
        n_counts = COUNT(row_counts) - (i > 0);    /* not kept is not kept, whatever the model */
        v = open_model(&cases[i], 0);
        assert_non_null(strstr(v->stat.device, ", no graphs"));
        answer_all(v, n_counts, want, 0);
        vlm_close(v);
        us = us_of_step(&cases[i]);

        for (pieces = 1; pieces <= 3; pieces += 2) {
            v = open_slow(&cases[i], 1, pieces == 1 ? 1 : (uint64_t) (120000 / us));
            assert_null(strstr(v->stat.device, "graphs"));
            assert_true(pieces == 1 ? counts().graphs == 8 : counts().graphs > 2 * 8);

            answer_all(v, n_counts, got, 1);

            for (n = 0; n < n_counts; n++) {
                for (j = 0; j < row_counts[n]; j++) {
                    check_same(&got[n][j], &want[n][j]);
                }
            }

            vlm_close(v);
        }
    }
}


/* Repeated requests allocate no memory after the first, and leak none. */
static void
nothing_is_reserved_or_captured_once_a_model_is_loaded(void **state)
{
    vlm_t             *v;
    vlm_answer_t       a[SLOTS];
    vlm_emu_counts_t   loaded, after, took;

    (void) state;

    v = open_model(&cases[1], 1);
    loaded = counts();
    assert_int_equal(loaded.graphs, 8);
    assert_int_equal(loaded.blocks, 1);
    answer(v, 2, LONG, a, &took);
    answer(v, SLOTS, SHORT, a, &took);
    after = counts();
    assert_int_equal(after.graphs, loaded.graphs);
    assert_int_equal(after.blocks, loaded.blocks);
    assert_int_equal(after.bytes, loaded.bytes);
    vlm_close(v);

    after = counts();
    assert_int_equal(after.graphs, 0);
    assert_int_equal(after.blocks, 0);
}


/* The number of times that the host waits in a step of one row. */
static uint64_t
waits_of(const case_t *c, double slow, int captures)
{
    vlm_t     *v;
    uint64_t   n;

    v = open_slow(c, captures, (uint64_t) slow);
    n = step(v, 1).waits;
    vlm_close(v);

    return n;
}


/* A step of 40 ms, and one of 80, which is two pieces or launched kernel by kernel. */
static void
the_host_waits_within_a_step_that_takes_too_long(void **state)
{
    double    us;
    uint64_t  least;

    (void) state;

    us = us_of_step(&cases[1]);
    least = waits_of(&cases[1], 1, 1);

    assert_int_equal(waits_of(&cases[1], 1, 0), least);
    assert_int_equal(waits_of(&cases[1], 40000 / us, 1), least);
    assert_int_equal(waits_of(&cases[1], 80000 / us, 1), least + 1);
    assert_int_equal(waits_of(&cases[1], 80000 / us, 0), least + 1);
}


/*
 * A launch has one row of a product on a very slow device, and a few on a slow one; on sm_75
 * patches have another kernel.
 */
static void
work_that_is_cut_into_more_launches_has_the_same_bits(void **state)
{
    vlm_t             *v;
    uint32_t           i, j, slow, arch;
    vlm_answer_t       a[2][ALONE + TOGETHER];
    vlm_emu_counts_t   before, after[2];

    (void) state;

    arch = VLM_EMU / 10;

    for (i = 0; i < COUNT(cases); i++) {
        for (slow = 0; slow <= 1; slow++) {
            set(VLM_EMU_ARCH, i == 0 ? 75 : arch);
            v = open_slow(&cases[i], 1, slow == 0 ? 1 : i == 0 ? VERY_SLOW : SLOW);
            before = counts();

            for (j = 0; j < ALONE; j++) {
                answer_about(v, j, &a[slow][j]);
            }

            answer(v, TOGETHER, SHORT, &a[slow][ALONE], &after[slow]);
            after[slow] = counts();
            after[slow].kernels -= before.kernels;
            vlm_close(v);
        }

        set(VLM_EMU_ARCH, arch);
        assert_true(after[1].kernels > 2 * after[0].kernels);

        for (j = 0; j < ALONE + TOGETHER; j++) {
            check_same(&a[1][j], &a[0][j]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_step_is_5_kernels_a_layer_and_3_and_2_launches_in_all),
        cmocka_unit_test(kept_steps_have_the_bits_of_steps_that_are_launched_kernel_by_kernel),
        cmocka_unit_test(nothing_is_reserved_or_captured_once_a_model_is_loaded),
        cmocka_unit_test(the_host_waits_within_a_step_that_takes_too_long),
        cmocka_unit_test(work_that_is_cut_into_more_launches_has_the_same_bits)
    };

    return cmocka_run_group_tests(tests, find_library, NULL);
}
