/*
 * What a token costs in launches, counted by the emulated driver: the kernels of a layer, and what
 * is around them.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>

#include "emu/control.h"
#include "run/fixture.h"

#define SHORT   3                      /* tokens of one answer, and of another one */
#define LONG    7

static const struct {
    const char  *model;
    vlm_type_t   weights;
} cases[] = {
    { "build/fidelity/tiny-a", VLM_INT8 },
    { "build/fidelity/tiny-f", VLM_INT8 },
    { "build/fidelity/tiny-f", VLM_BF16 }
};

static vlm_emu_count_fn  *count;


static vlm_t *
open_model(const char *model, vlm_type_t weights)
{
    char          path[4096];
    void         *library;
    vlm_t        *v;
    vlm_conf_t    conf;

    vlm_tiny_conf(&conf);
    conf.model = model;
    conf.weights = weights;
    conf.device = "cuda";
    conf.context = 200;
    conf.max_pixels = 3136;
    v = vlm_tiny_open(&conf);

    assert_non_null(realpath("/proc/self/exe", path));
    (void) snprintf(strrchr(path, '/'), 32, "/libvlm_cuda.so");
    library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    count = (vlm_emu_count_fn *) (uintptr_t) dlsym(library, "vlm_emu_count");
    assert_non_null(count);

    return v;
}


/* Launches of `n` answers of so many tokens, given together. */
static uint64_t
launches(vlm_t *v, uint32_t n, uint32_t tokens)
{
    uint32_t           i;
    vlm_bias_t         bias[16];
    vlm_answer_t       a[2];
    vlm_sampling_t     s;
    vlm_emu_counts_t   before, after;

    s = vlm_tiny_sampling(1);
    s.temperature = 0;
    s.max_tokens = tokens;
    s.bias = bias;
    s.n_bias = v->config.generation.n_eos;

    for (i = 0; i < s.n_bias; i++) {
        bias[i].id = v->config.generation.eos[i];
        bias[i].bias = -100;           /* never the end */
    }

    vlm_prefix_forget(&v->sched.prefix, 0);
    vlm_prefix_forget(&v->sched.prefix, 1);
    count(&before);

    for (i = 0; i < n; i++) {
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, i ? "a b c" : "x y z", 0), &s, &a[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    count(&after);

    for (i = 0; i < n; i++) {
        assert_int_equal(a[i].err.code, VLM_OK);
        assert_int_equal(a[i].usage.completion_tokens, tokens);
    }

    return after.launches - before.launches;
}


/*
 * A layer is qkv, attend, o, gate_up and down; around them are embed, head and sample.  Heads that
 * are no multiple of 32 values turn in a launch of their own.
 */
static void
a_step_is_5_launches_a_layer_and_3(void **state)
{
    vlm_t     *v;
    uint32_t   i, n;
    uint64_t   all, layer;

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        v = open_model(cases[i].model, cases[i].weights);
        layer = v->config.text.head_dim % 32 == 0 ? 5 : 6;

        for (n = 1; n <= 2; n++) {
            all = launches(v, n, LONG) - launches(v, n, SHORT);
            assert_int_equal(all, (LONG - SHORT) * (layer * v->config.text.layers + 3));
        }

        vlm_close(v);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_step_is_5_launches_a_layer_and_3)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
