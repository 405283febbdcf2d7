/*
 * The engine against Hugging Face transformers: see t/fidelity/README.md.
 *
 * Every case, every form of the weights, every set of operations that this processor runs.  With
 * --table it prints the table of docs/dev/fidelity.md in place of the tests' results.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "run/fidelity_run.h"

/*
 * The families, with the bounds of the forms that round their weights, over all cases: measured
 * (docs/dev/fidelity.md), then kept with some room.  The models are random and far from smooth, a
 * hard case for int8; and their weights are uniform, which turned ones are not.  outlier_test.c has
 * a trained model.
 */
static const struct {
    const char  *title, *cases;
    double       bf16_top1, bf16_kl, int8_top1, int8_kl, int4_top1, int4_kl;
} families[] = {
    { "Qwen2.5-VL", "t/fidelity/cases.txt", 0.985, 0.001, 0.93, 0.012, 0.64, 0.4 },
    { "Qwen3-VL", "t/fidelity/cases-qwen3.txt", 0.985, 0.001, 0.93, 0.012, 0.63, 0.45 },
    { "BLOOM", "t/fidelity/cases-bloom.txt", 0.985, 0.0002, 0.95, 0.003, 0.79, 0.09 }
};

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED    1
#else
#define SANITIZED    0
#endif

#define N_FAMILIES   (sizeof(families) / sizeof(families[0]))

typedef struct {                       /* results of one form of the weights, over positions */
    uint64_t  positions, agreed;
    double    kl, worst_kl, worst;     /* worst: |difference| / (1 + |reference|) */
} score_t;

static void
read_cases(void)
{
    uint32_t  i, before;

    for (i = 0; i < N_FAMILIES; i++) {
        before = n_cases;
        read_family(families[i].cases, i);
        assert_true(n_cases >= before + 6);
    }
}


/* Bytes more under a CRC-32, as zlib computes it. */
static uint32_t
checksum(uint32_t crc, const uint8_t *data, size_t bytes)
{
    size_t    i;
    uint32_t  bit;

    for (crc = ~crc, i = 0; i < bytes; i++) {
        for (crc ^= data[i], bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }

    return ~crc;
}


/* In the order of the reference: cells row by row, each channel's slices, a still picture twice. */
static uint32_t
pixels_sum(const vlm_picture_t *p, const vlm_vision_config_t *vc)
{
    size_t          area, slice;
    uint32_t        sum, cell, k, n, ch, t;
    const uint8_t  *patch;

    sum = 0;
    n = vc->merge * vc->merge;
    area = (size_t) vc->patch * vc->patch;
    slice = vc->channels * area;

    for (cell = 0; cell < p->n_cells; cell++) {
        for (k = 0; k < n; k++) {
            patch = p->pixels + ((size_t) p->cell[cell] * n + k) * p->slices * slice;

            for (ch = 0; ch < vc->channels; ch++) {
                for (t = 0; t < vc->temporal; t++) {
                    sum = checksum(sum, patch + (p->slices > 1 ? t * slice : 0) + ch * area, area);
                }
            }
        }
    }

    return sum;
}


static void
check_prompt(const vlm_t *v, const case_t *c, const ref_t *r)
{
    uint32_t       t, i, axis;
    vlm_prompt_t  *p;

    p = make_prompt(v, c);
    assert_int_equal(p->n, r->ids.dims[0]);
    assert_memory_equal(p->token, r->ids.u, p->n * sizeof(uint32_t));

    for (t = 0; r->pos.i != NULL && t < p->n; t++) {
        for (axis = 0; axis < 3; axis++) {
            assert_int_equal(p->pos[3 * t + axis], r->pos.i[axis * p->n + t]);
        }
    }

    if (r->patches.u != NULL) {
        assert_int_equal(p->n_pictures, r->patches.dims[0]);
    }

    for (i = 0; r->patches.u != NULL && i < p->n_pictures; i++) {
        assert_int_equal(pixels_sum(p->picture[i], &v->config.vision), r->patches.u[i]);
    }

    vlm_prompt_free(p);
}


/* One list of a picture's features: the first, or one of those for the layers. */
static void
check_list(const vlm_model_t *m, const vlm_picture_t *picture, uint32_t list, const float *want,
           const char *name)
{
    double        d;
    uint32_t      k, cell, D;
    const float  *got;

    D = m->config.text.hidden;

    for (cell = 0; cell < picture->n_cells; cell++) {
        got = (const float *) vlm_vision_part(m, list) + (size_t) picture->cell[cell] * D;

        for (k = 0; k < D; k++, want++) {
            d = off(got[k], *want);

            if (!(d <= TOLERANCE)) {
                fail_msg("%s: a picture's cell %u, list %u, feature %u is %g, not %g", name, cell,
                         list, k, (double) got[k], (double) *want);
            }
        }
    }
}


static void
check_features(vlm_t *v, const case_t *c, const ref_t *r)
{
    size_t          at, size;
    uint32_t        i, list;
    vlm_model_t    *m = &v->sched.model;
    vlm_prompt_t   *p;

    p = make_prompt(v, c);
    size = (size_t) r->features.dims[0] * r->features.dims[1];
    assert_int_equal(m->config.vision.deep, r->deepstack.f == NULL ? 0 : r->deepstack.dims[0]);

    for (at = 0, i = 0; i < p->n_pictures; i++) {
        vlm_vision_begin(m, p->picture[i], 0);
        assert_int_equal(vlm_vision_blocks(m, VLM_MAX_LAYERS), 1);
        vlm_vision_end(m);
        check_list(m, p->picture[i], 0, r->features.f + at, c->name);

        for (list = 0; list < m->config.vision.deep; list++) {
            check_list(m, p->picture[i], 1 + list, r->deepstack.f + list * size + at, c->name);
        }

        at += (size_t) p->picture[i]->n_cells * m->config.text.hidden;
    }

    assert_int_equal(at, size);
    vlm_prompt_free(p);
}


/* The answers of cases [first, first + n), all of one checkpoint, asked at once. */
static void
answers(vlm_t *v, const case_t *c, uint32_t n, char (*text)[4096])
{
    int             idle;
    size_t          used[MAX_CASES] = { 0 };
    uint32_t        i;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_event_t     e;
    vlm_sampling_t  s;

    vlm_sampling_default(v, &s);
    s.temperature = 0;
    s.repetition_penalty = 1;
    for (i = 0; i < n; i++) {
        s.max_tokens = c[i].steps;
        assert_non_null(vlm_submit(v, make_prompt(v, &c[i]), &s, &used[i], &idle, &err));
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


static uint32_t
cases_of_checkpoint(uint32_t first)
{
    uint32_t  n;

    for (n = 1; first + n < n_cases; n++) {
        if (strcmp(cases[first + n].checkpoint, cases[first].checkpoint) != 0) {
            break;
        }
    }

    return n;
}


/* ---- tests --------------------------------------------------------------- */

/*
 * The tests of ops/ compare the sets of operations by bits, so one set runs every case; two cases
 * of each checkpoint, a text and a picture, are enough for the others.
 */
static uint32_t
enough(const char *ops, uint32_t n)
{
    const char  *first = processor_runs("avx2")   ? "avx2"
                         : processor_runs("neon") ? "neon"
                                                  : "plain";

    return strcmp(ops, first) == 0 || n < 2 ? n : 2;
}


static void
f32_equals_the_reference_with(const char *ops)
{
    char       text[MAX_CASES][4096], want[4096];
    float     *logits;
    double     worst;
    ref_t      r;
    vlm_t     *v;
    uint32_t   i, j, n, V, rows;

    for (i = 0; i < n_cases; i += n) {
        n = cases_of_checkpoint(i);
        v = open_case(&cases[i], VLM_F32, ops, 1);

        for (j = i; j < i + enough(ops, n); j++) {
            open_ref(&r, cases[j].name);
            check_prompt(v, &cases[j], &r);

            if (r.features.f != NULL) {
                check_features(v, &cases[j], &r);
            }

            logits = all_logits(v, &cases[j], &r, &rows, &V);
            worst = compare_top(&r, logits, V);
            free(logits);

            if (!(worst <= TOLERANCE)) {
                fail_msg("%s, ops=%s: a logit is off by %g", cases[j].name, ops, worst);
            }

            answers(v, &cases[j], 1, text);
            expected_answer(v, &r, want);
            assert_string_equal(text[0], want);
            vlm_file_close(&r.file);
        }

        vlm_close(v);
    }
}


static void
every_logit_feature_and_greedy_text_equals_the_reference_in_plain_c(void **state)
{
    (void) state;
    f32_equals_the_reference_with("plain");
}


static void
every_logit_feature_and_greedy_text_equals_the_reference_with_avx2(void **state)
{
    (void) state;

    if (!processor_runs("avx2")) {
        print_message("# this processor has no avx2\n");
        skip();
    }

    f32_equals_the_reference_with("avx2");
}


static void
every_logit_feature_and_greedy_text_equals_the_reference_with_avx512(void **state)
{
    (void) state;

    if (!processor_runs("avx512")) {
        print_message("# this processor has no avx512 vnni\n");
        skip();
    }

    f32_equals_the_reference_with("avx512");
}


static void
every_logit_feature_and_greedy_text_equals_the_reference_with_neon(void **state)
{
    (void) state;

    if (!processor_runs("neon")) {
        print_message("# this processor has no sdot\n");
        skip();
    }

    f32_equals_the_reference_with("neon");
}


/* More jobs than slots, pictures of one encoded while others decode: the same text as alone. */
static void
together_each_gives_the_text_that_it_gives_alone(void **state)
{
    char        alone[MAX_CASES][4096], together[MAX_CASES][4096];
    vlm_t      *v;
    uint32_t    i, j, n, form;
    vlm_type_t  forms[] = { VLM_F32, VLM_BF16, VLM_INT8 };

    (void) state;

    for (form = 0; form < 3; form++) {
        for (i = 0; i < n_cases; i += n) {
            n = cases_of_checkpoint(i);
            v = open_case(&cases[i], forms[form], NULL, 3);

            for (j = 0; j < n; j++) {
                answers(v, &cases[i + j], 1, &alone[j]);
            }

            answers(v, &cases[i], n, together);

            for (j = 0; j < n; j++) {
                assert_string_equal(together[j], alone[j]);
            }

            vlm_close(v);
        }
    }
}


/*
 * int8 sums are exact and blocks are added in one order: no set of operations may differ.  Every
 * other checkpoint has keys and values in int8.
 */
static void
int8_gives_the_same_text_with_every_set_of_operations(void **state)
{
    char         dir[256], text[7][MAX_CASES][4096];
    vlm_t       *v;
    uint32_t     i, j, n, k, first, checkpoint;
    const char  *ops[] = { "avx2", "avx512", "avxvnni", "amx", "neon", "i8mm", "plain" };

    (void) state;

    for (checkpoint = i = 0; i < n_cases; i += n, checkpoint++) {
        n = cases_of_checkpoint(i);
        (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", cases[i].checkpoint);

        for (first = k = 0; k < 7; k++) {
            if (!processor_runs(ops[k])) {
                first += first == k;
                continue;
            }

            v = (checkpoint % 2 == 0 ? open_engine : open_kv_int8)(dir, VLM_INT8, ops[k], 4);
            answers(v, &cases[i], enough(ops[k], n), text[k]);
            vlm_close(v);

            for (j = 0; j < enough(ops[k], n); j++) {
                assert_string_equal(text[k][j], text[first][j]);
            }
        }
    }
}


static uint32_t
best(const float *row, uint32_t V)
{
    uint32_t  i, k;

    for (k = 0, i = 1; i < V; i++) {
        k = row[i] > row[k] ? i : k;
    }

    return k;
}


/* KL(want || got) of the two softmaxes. */
static double
divergence(const float *want, const float *got, uint32_t V)
{
    double    max_w, max_g, sum_w, sum_g, kl, log_w, log_g;
    uint32_t  i;

    max_w = want[best(want, V)];
    max_g = got[best(got, V)];
    sum_w = sum_g = kl = 0;

    for (i = 0; i < V; i++) {
        sum_w += exp(want[i] - max_w);
        sum_g += exp(got[i] - max_g);
    }

    for (i = 0; i < V; i++) {
        log_w = want[i] - max_w - log(sum_w);
        log_g = got[i] - max_g - log(sum_g);
        kl += exp(log_w) * (log_w - log_g);
    }

    return kl;
}


/*
 * A form of the weights, and of keys and values, against f32, which equals the reference: see the
 * tests above.
 */
static void
score_form(uint32_t family, vlm_type_t weights, int kv_int8, score_t *s)
{
    char       dir[256];
    float     *want, *got;
    double     kl, d;
    ref_t      r;
    vlm_t     *exact, *v;
    uint32_t   i, j, n, t, V, rows;

    memset(s, 0, sizeof(*s));

    for (i = 0; i < n_cases; i += n) {
        n = cases_of_checkpoint(i);
        if (cases[i].family != family) {
            continue;
        }

        exact = open_case(&cases[i], VLM_F32, NULL, 1);
        (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", cases[i].checkpoint);
        v = (kv_int8 ? open_kv_int8 : open_engine)(dir, weights, NULL, 1);

        for (j = i; j < i + n; j++) {
            open_ref(&r, cases[j].name);
            want = all_logits(exact, &cases[j], &r, &rows, &V);
            got = all_logits(v, &cases[j], &r, &rows, &V);
            d = compare_top(&r, got, V);
            s->worst = d > s->worst ? d : s->worst;

            for (t = 0; t < rows; t++) {
                kl = divergence(want + (size_t) t * V, got + (size_t) t * V, V);
                s->kl += kl;
                s->worst_kl = kl > s->worst_kl ? kl : s->worst_kl;
                s->agreed += best(want + (size_t) t * V, V) == best(got + (size_t) t * V, V);
                s->positions++;
            }

            free(want);
            free(got);
            vlm_file_close(&r.file);
        }

        vlm_close(exact);
        vlm_close(v);
    }

    s->kl /= (double) s->positions;
}


static void
check_form(uint32_t family, vlm_type_t weights, int kv_int8, double top1, double kl)
{
    score_t  s;

    score_form(family, weights, kv_int8, &s);

    if ((double) s.agreed / (double) s.positions < top1 || s.kl > kl) {
        fail_msg("%s: top-1 agreement %.4f (bound %.3f), KL %.5f (bound %.3f)",
                 families[family].title, (double) s.agreed / (double) s.positions, top1, s.kl, kl);
    }
}


static void
bf16_stays_within_its_bounds(void **state)
{
    uint32_t  i;

    (void) state;

    for (i = 0; i < N_FAMILIES; i++) {
        check_form(i, VLM_BF16, 0, families[i].bf16_top1, families[i].bf16_kl);
    }
}


static void
int8_stays_within_its_bounds(void **state)
{
    uint32_t  i;

    (void) state;

    for (i = 0; i < N_FAMILIES; i++) {
        check_form(i, VLM_INT8, 0, families[i].int8_top1, families[i].int8_kl);
    }
}


/* Keys and values in int8, beside int8 weights: at most 15 % more than in int16. */
static void
kv_int8_stays_within_its_bounds(void **state)
{
    score_t   without, s;
    uint32_t  i;

    (void) state;

    for (i = 0; i < N_FAMILIES; i++) {
        score_form(i, VLM_INT8, 0, &without);
        score_form(i, VLM_INT8, 1, &s);

        if (!(s.kl < 1.15 * without.kl) || s.agreed + s.positions / 100 < without.agreed) {
            fail_msg("%s: KL %.5f, without %.5f; top-1 of %llu positions: %llu, without %llu",
                     families[i].title, s.kl, without.kl, (unsigned long long) s.positions,
                     (unsigned long long) s.agreed, (unsigned long long) without.agreed);
        }
    }
}


/*
 * Under sanitizers the whole list takes some ten minutes of processor time: the first two cases of
 * each checkpoint, a text and a picture, and its last one reach all of the code.
 */
static void
keep_few(void)
{
    uint32_t  i, j, n, kept;

    for (kept = i = 0; i < n_cases; i += n) {
        n = cases_of_checkpoint(i);

        for (j = 0; j < n; j++) {
            if (j < 2 || j == n - 1) {
                cases[kept++] = cases[i + j];
            }
        }
    }

    n_cases = kept;
}


/* The same sums as int8's, so that the short list is enough. */
static void
int4_stays_within_its_bounds(void **state)
{
    uint32_t  i;

    (void) state;
    keep_few();

    for (i = 0; i < N_FAMILIES; i++) {
        check_form(i, VLM_INT4, 0, families[i].int4_top1, families[i].int4_kl);
    }

    n_cases = 0;
    read_cases();
}


/* A checkpoint with one small mistake must show, or the comparison above proves nothing. */
static void
mutations_show(const char *name, const char *const *mutations)
{
    char           command[1024];
    float         *logits;
    double         worst;
    ref_t          r;
    vlm_t         *v;
    const case_t  *c;
    uint32_t       i, V, rows;

    for (c = NULL, i = 0; i < n_cases && c == NULL; i++) {
        c = strcmp(cases[i].name, name) == 0 ? &cases[i] : NULL;
    }

    assert_non_null(c);
    open_ref(&r, c->name);

    for ( /* void */ ; *mutations != NULL; mutations++) {
        (void) snprintf(command, sizeof(command),
                        "build/random-checkpoint %s " CHECKPOINTS "/mutated --tokenizer "
                        "t/fidelity/tokenizer %s --mutate %s", c->shape, c->flags, *mutations);
        assert_int_equal(system("rm -rf " CHECKPOINTS "/mutated"), 0);
        assert_int_equal(system(command), 0);

        v = open_engine(CHECKPOINTS "/mutated", VLM_F32, NULL, 1);
        logits = all_logits(v, c, &r, &rows, &V);
        worst = compare_top(&r, logits, V);
        free(logits);
        vlm_close(v);

        if (worst < 100 * (double) TOLERANCE) {
            fail_msg("%s moves no logit by more than %g", *mutations, worst);
        }
    }

    vlm_file_close(&r.file);
}


static void
a_permuted_head_a_dropped_bias_a_swapped_section_fail(void **state)
{
    static const char *const  mutations[] = {
        "q-heads", "k-bias", "vision-heads", "vision-bias", "gate-up", "merger-gain", "mrope",
        "window", NULL
    };

    (void) state;
    mutations_show("tiny-a-picture", mutations);
}


static void
a_gain_of_heads_a_shift_a_list_of_another_block_fail(void **state)
{
    static const char *const  mutations[] = {
        "q-heads", "q-gain", "k-gain", "vision-heads", "vision-bias", "patch-bias", "shift",
        "gate-up", "merger-gain", "mrope", "lists", "block", NULL
    };

    (void) state;
    mutations_show("tiny-l-picture", mutations);
}


static void
heads_of_another_order_a_norm_or_a_bias_of_bloom_fail(void **state)
{
    static const char *const  mutations[] = {
        "k-heads", "qkv-bias", "dense-bias", "up-bias", "down-bias", "embed-gain", "embed-shift",
        "last-shift", NULL
    };

    (void) state;
    mutations_show("tiny-p-short", mutations);
}


/* ---- the table ----------------------------------------------------------- */

static void
print_table(void)
{
    score_t     s;
    uint32_t    i, k;
    const char  *names[] = { "f32", "bf16", "int8", "int8, kv int8", "int4" };
    vlm_type_t   forms[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT8, VLM_INT4 };

    printf("| family | weights | positions | top-1 agreement | mean KL | worst KL "
           "| largest difference |\n");
    printf("|---|---|---:|---:|---:|---:|---:|\n");

    for (k = 0; k < N_FAMILIES; k++) {
        for (i = 0; i < 5; i++) {
            score_form(k, forms[i], i == 3, &s);
            printf("| %s | %s | %llu | %.4f | %.2e | %.2e | %.2e |\n", families[k].title, names[i],
                   (unsigned long long) s.positions, (double) s.agreed / (double) s.positions,
                   s.kl, s.worst_kl, s.worst);
        }
    }
}


static int
set_up(void **state)
{
    (void) state;
    read_cases();

    if (SANITIZED) {
        keep_few();
    }

    return 0;
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_logit_feature_and_greedy_text_equals_the_reference_in_plain_c),
        cmocka_unit_test(every_logit_feature_and_greedy_text_equals_the_reference_with_avx2),
        cmocka_unit_test(every_logit_feature_and_greedy_text_equals_the_reference_with_avx512),
        cmocka_unit_test(every_logit_feature_and_greedy_text_equals_the_reference_with_neon),
        cmocka_unit_test(together_each_gives_the_text_that_it_gives_alone),
        cmocka_unit_test(int8_gives_the_same_text_with_every_set_of_operations),
        cmocka_unit_test(bf16_stays_within_its_bounds),
        cmocka_unit_test(int8_stays_within_its_bounds),
        cmocka_unit_test(kv_int8_stays_within_its_bounds),
        cmocka_unit_test(int4_stays_within_its_bounds),
        cmocka_unit_test(a_permuted_head_a_dropped_bias_a_swapped_section_fail),
        cmocka_unit_test(a_gain_of_heads_a_shift_a_list_of_another_block_fail),
        cmocka_unit_test(heads_of_another_order_a_norm_or_a_bias_of_bloom_fail)
    };

    if (argc > 1 && strcmp(argv[1], "--table") == 0) {
        read_cases();
        print_table();
        return 0;
    }

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);           /* t/arm64 has no time for all */
    }

    return cmocka_run_group_tests(tests, set_up, NULL);
}
