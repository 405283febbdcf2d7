/*
 * Adapters against Hugging Face peft: the cases of t/fidelity/lora, which lora.py makes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/fidelity_run.h"

#define CASES     "t/fidelity/lora/cases.txt"
#define ADAPTERS  "t/fidelity/lora"
#define LINKS     "build/lora-test"    /* a directory for each case, in which it is alone */


/* The directory that has the adapter alone. */
static void
lora_of(const case_t *c, char *dir, size_t bytes)
{
    char  command[1024];

    (void) snprintf(dir, bytes, LINKS "/%s", c->name);
    (void) snprintf(command, sizeof(command), "mkdir -p %s && ln -sfn \"$PWD\"/" ADAPTERS
                    "/%s %s/%s", dir, c->name, dir, c->name);
    assert_int_equal(system(command), 0);
}


static vlm_t *
open_lora(const case_t *c, vlm_type_t weights, const char *ops, uint32_t slots)
{
    char  dir[256], lora[256];

    (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", c->checkpoint);
    lora_of(c, lora, sizeof(lora));

    /* The engine keeps the string. */

    return open_adapted(dir, weights, ops, slots, strdup(lora), 2, 64);
}


static void
close_lora(vlm_t *v)
{
    char  *lora = (char *) v->conf.lora;

    vlm_close(v);
    free(lora);
}


static vlm_prompt_t *
adapted_prompt(vlm_t *v, const case_t *c, double scale)
{
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p = make_prompt(v, c);

    if (vlm_prompt_adapter(v, p, c->name, scale, &err) != 0) {
        fail_msg("%s", err.text);
    }

    return p;
}


static float *
adapted_logits(vlm_t *v, const case_t *c, const ref_t *r, double scale, uint32_t *n, uint32_t *V)
{
    float         *logits;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    p = scale == 0 ? make_prompt(v, c) : adapted_prompt(v, c, scale);
    append_answer(p, &r->answer);
    *n = p->n;

    if (vlm_logits(v, p, &logits, V, &err) != 0) {
        fail_msg("%s: %s", c->name, err.text);
    }

    vlm_prompt_free(p);

    return logits;
}


/* Collects the greedy answers of some prompts, which are asked at once. */
static void
ask(vlm_t *v, vlm_prompt_t **prompt, uint32_t n, uint32_t steps, char (*text)[4096])
{
    int             idle;
    size_t          used[8] = { 0 };
    uint32_t        i;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_event_t     e;
    vlm_sampling_t  s;

    vlm_sampling_default(v, &s);
    s.temperature = 0;
    s.repetition_penalty = 1;
    s.max_tokens = steps;

    for (i = 0; i < n; i++) {
        assert_non_null(vlm_submit(v, prompt[i], &s, &used[i], &idle, &err));
    }

    assert_int_equal(vlm_run(v, &err), 0);

    while (vlm_next_event(v, &e)) {
        i = (uint32_t) ((size_t *) e.user - used);
        assert_int_not_equal(e.kind, VLM_FAILED);

        if (e.kind == VLM_TEXT) {
            assert_true(used[i] + e.bytes < sizeof(*text));
            memcpy(text[i] + used[i], e.text, e.bytes);
            used[i] += e.bytes;
        }
    }

    for (i = 0; i < n; i++) {
        text[i][used[i]] = '\0';
    }
}


static void
f32_equals_peft_with(const char *ops)
{
    char           text[1][4096], want[4096];
    float         *logits;
    double         worst;
    ref_t          r;
    vlm_t         *v;
    uint32_t       i, n, V;
    vlm_prompt_t  *p;

    for (i = 0; i < n_cases; i++) {
        v = open_lora(&cases[i], VLM_F32, ops, 1);
        open_ref(&r, cases[i].name);

        logits = adapted_logits(v, &cases[i], &r, 1, &n, &V);
        worst = compare_top(&r, logits, V);
        free(logits);

        if (!(worst <= TOLERANCE)) {
            fail_msg("%s, ops=%s: a logit is off by %g", cases[i].name, ops, worst);
        }

        p = adapted_prompt(v, &cases[i], 1);
        ask(v, &p, 1, cases[i].steps, text);
        expected_answer(v, &r, want);
        assert_string_equal(text[0], want);

        vlm_file_close(&r.file);
        close_lora(v);
    }
}


static void
every_logit_and_greedy_text_equals_pefts_in_plain_c(void **state)
{
    (void) state;
    f32_equals_peft_with("plain");
}


static void
every_logit_and_greedy_text_equals_pefts_with_the_best_set(void **state)
{
    (void) state;
    f32_equals_peft_with(NULL);
}


/* Rows without an adapter have the bits of an engine without places. */
static void
rows_without_an_adapter_keep_their_bits(void **state)
{
    float       *with, *without;
    ref_t        r;
    vlm_t       *v;
    uint32_t     i, form, n, V;
    vlm_type_t   forms[] = { VLM_F32, VLM_BF16, VLM_INT8 };

    (void) state;

    for (i = 0; i < 3 * n_cases; i += 5) {
        form = i % 3;
        open_ref(&r, cases[i / 3].name);

        v = open_lora(&cases[i / 3], forms[form], NULL, 1);
        with = adapted_logits(v, &cases[i / 3], &r, 0, &n, &V);
        close_lora(v);

        v = open_case(&cases[i / 3], forms[form], NULL, 1);
        without = adapted_logits(v, &cases[i / 3], &r, 0, &n, &V);
        vlm_close(v);

        assert_memory_equal(with, without, (size_t) n * V * sizeof(float));
        free(with);
        free(without);
        vlm_file_close(&r.file);
    }
}


/* Mean of the divergence of two distributions over positions. */
static double
divergence(const float *a, const float *b, uint32_t n, uint32_t V)
{
    double    sum, la, lb;
    uint32_t  t, k;

    for (sum = 0, t = 0; t < n; t++, a += V, b += V) {
        for (la = lb = 0, k = 0; k < V; k++) {
            la += exp((double) a[k] - a[0]);
            lb += exp((double) b[k] - b[0]);
        }

        la = log(la) + a[0];
        lb = log(lb) + b[0];

        for (k = 0; k < V; k++) {
            sum += exp(a[k] - la) * ((a[k] - la) - (b[k] - lb));
        }
    }

    return sum / n;
}


/* int8 loses as much with an adapter as without one, and all sets give the same bits. */
static void
int8_loses_with_an_adapter_what_it_loses_without(void **state)
{
    float       *exact, *got, *again;
    double       base, adapted, d;
    ref_t        r;
    vlm_t       *f, *v;
    uint32_t     i, k, n, V;
    const char  *ops[] = { "plain", "avx2", "avxvnni", "avx512", "neon", "i8mm" };

    (void) state;

    for (base = adapted = 0, i = 0; i < n_cases; i++) {
        open_ref(&r, cases[i].name);
        f = open_lora(&cases[i], VLM_F32, NULL, 1);
        v = open_lora(&cases[i], VLM_INT8, "plain", 1);

        exact = adapted_logits(f, &cases[i], &r, 0, &n, &V);
        got = adapted_logits(v, &cases[i], &r, 0, &n, &V);
        base += divergence(exact, got, n, V);
        free(exact);
        free(got);

        exact = adapted_logits(f, &cases[i], &r, 1, &n, &V);
        got = adapted_logits(v, &cases[i], &r, 1, &n, &V);
        d = divergence(exact, got, n, V);
        adapted += d;
        print_message("%s: %g\n", cases[i].name, d);
        free(exact);
        close_lora(f);
        close_lora(v);

        for (k = 1; k < sizeof(ops) / sizeof(ops[0]); k++) {
            if (!processor_runs(ops[k])) {
                continue;
            }

            v = open_lora(&cases[i], VLM_INT8, ops[k], 1);
            again = adapted_logits(v, &cases[i], &r, 1, &n, &V);
            assert_memory_equal(got, again, (size_t) n * V * sizeof(float));
            free(again);
            close_lora(v);
        }

        free(got);
        vlm_file_close(&r.file);
    }

    print_message("int8: mean divergence %.3g with adapters, %.3g without, ratio %.3f\n",
                  adapted / n_cases, base / n_cases, adapted / base);
    assert_true(adapted <= 1.3 * base);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_logit_and_greedy_text_equals_pefts_in_plain_c),
        cmocka_unit_test(every_logit_and_greedy_text_equals_pefts_with_the_best_set),
        cmocka_unit_test(rows_without_an_adapter_keep_their_bits),
        cmocka_unit_test(int8_loses_with_an_adapter_what_it_loses_without)
    };

    read_family(CASES, 0);
    assert_true(n_cases >= 16);

    return cmocka_run_group_tests(tests, NULL, NULL);
}
