/*
 * Whole models on the emulated device, which is found, loaded and planned as by a server.
 *
 * Activations are bf16 there and f32 on the host, so logits differ by some hundredths of their
 * spread, and where two tokens are that close, either may be picked.  So the criterion is: along
 * the device's own answer, the host's logit of each token is within NEAR of the host's largest, in
 * units of the standard deviation of that row of logits; most tokens are the same.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "library.h"

#define ANSWER   32                    /* tokens */
#define NEAR     0.15
#define PIXELS   3136                  /* 16 patches of 14 by 14 */
#define DEEP_PIXELS  8192              /* 32 of 16 by 16 */
#define QUESTION "How many cups are on the table?"

typedef struct {
    const char  *model;
    vlm_type_t   weights;
    uint32_t     n_pictures, pixels;
    const char  *frames;               /* of a video, in place of pictures */
} case_t;

/* The last three are of Qwen3-VL: vision heads of 72, DeepStack's mergers in and out of order; the
   frames of the video are two pictures of two slices each. */
static const case_t  cases[] = {
    { "build/fidelity/tiny-a", VLM_INT8, 1, PIXELS, NULL },
    { "build/fidelity/tiny-a", VLM_BF16, 1, PIXELS, NULL },
    { "build/fidelity/tiny-a", VLM_INT4, 1, PIXELS, NULL },
    { "build/fidelity/tiny-b", VLM_INT8, 2, PIXELS, NULL },
    { "build/fidelity/tiny-g", VLM_INT8, 1, PIXELS, NULL },
    { "build/fidelity/tiny-m", VLM_BF16, 1, DEEP_PIXELS, NULL },
    { "build/fidelity/tiny-m", VLM_INT8, 0, DEEP_PIXELS, "123" },
    { "build/fidelity/tiny-i", VLM_INT8, 2, DEEP_PIXELS, NULL }
};

enum { TINY_A, TINY_A_BF16, TINY_A_INT4, TINY_B, TINY_G, TINY_M, TINY_M_VIDEO, TINY_I, ALL };

/* Under sanitizers, which make the emulator slow, the last one has a test of its own alone. */
#ifdef __SANITIZE_ADDRESS__
#define N_CASES  TINY_I
#else
#define N_CASES  ALL
#endif


static vlm_t *
open_on(const case_t *c, const char *device)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.model = c->model;
    conf.weights = c->weights;
    conf.device = device;
    conf.max_pixels = c->pixels;
    conf.context = 400;

    return vlm_tiny_open(&conf);
}


static vlm_prompt_t *
question(const vlm_t *v, const case_t *c)
{
    vlm_err_t      err = { VLM_OK, "" };
    vlm_part_t     parts[2] = { { 0 }, { .text = QUESTION, .bytes = sizeof(QUESTION) - 1 } };
    vlm_prompt_t  *p;
    vlm_message_t  m = { VLM_USER, parts, 2 };

    if (c->frames == NULL) {
        return vlm_tiny_prompt(v, QUESTION, c->n_pictures);
    }

    parts[0].picture = vlm_tiny_video(v, c->frames, 2, NULL, NULL, &err);

    p = parts[0].picture == NULL ? NULL : vlm_prompt_make(v, &m, 1, NULL, &err);
    if (p == NULL) {
        fail_msg("%s", err.text);
    }

    assert_int_equal(p->n_pictures, 2);
    assert_int_equal(p->picture[0]->slices, 2);

    return p;
}


static vlm_sampling_t
greedy(const vlm_t *v, vlm_bias_t *bias)
{
    uint32_t        i;
    vlm_sampling_t  s;

    s = vlm_tiny_sampling(1);
    s.temperature = 0;
    s.max_tokens = ANSWER;
    s.logprobs = 1;
    s.bias = bias;
    s.n_bias = v->config.generation.n_eos;

    for (i = 0; i < s.n_bias; i++) {
        bias[i].id = v->config.generation.eos[i];
        bias[i].bias = -100;           /* never the end */
    }

    return s;
}


static void
generate(vlm_t *v, const case_t *c, vlm_answer_t *a)
{
    vlm_bias_t       bias[16];
    vlm_sampling_t   s;

    s = greedy(v, bias);
    vlm_tiny_alone(v, question(v, c), &s, a);

    if (a->err.code != VLM_OK) {
        fail_msg("%s", a->err.text);
    }

    assert_int_equal(a->n_tokens, ANSWER);
}


/* The prompt with an answer behind it. */
static vlm_prompt_t *
prompt_and_answer(const vlm_t *v, const case_t *c, const vlm_answer_t *a)
{
    uint32_t        i, n;
    vlm_prompt_t   *p;

    p = question(v, c);
    n = p->n + (uint32_t) a->n_tokens;
    p->token = realloc(p->token, n * sizeof(uint32_t));
    p->source = realloc(p->source, n * sizeof(uint32_t));
    p->pos = realloc(p->pos, 3 * n * sizeof(int32_t));
    assert_true(p->token != NULL && p->source != NULL && p->pos != NULL);

    for (i = 0; p->n < n; i++, p->n++) {
        p->token[p->n] = a->tokens[i].picked.id;
        p->source[p->n] = VLM_NONE;
        p->pos[3 * p->n] = p->pos[3 * p->n + 1] = p->pos[3 * p->n + 2] = p->next_pos++;
    }

    return p;
}


static int
is_eos(const vlm_t *v, uint32_t id)
{
    uint32_t  i;

    for (i = 0; i < v->config.generation.n_eos; i++) {
        if (v->config.generation.eos[i] == id) {
            return 1;
        }
    }

    return 0;
}


/* Distance of one id from the largest of a row, in standard deviations of the row. */
static double
distance(const vlm_t *v, const float *row, uint32_t n, uint32_t id)
{
    double    sum, squares, max;
    uint32_t  i;

    sum = squares = 0;
    max = -INFINITY;

    for (i = 0; i < n; i++) {
        sum += row[i];
        squares += (double) row[i] * row[i];
        max = is_eos(v, i) ? max : fmax(max, row[i]);
    }

    return (max - row[id]) / sqrt(squares / n - sum / n * (sum / n));
}


static void
an_answer_of_32_tokens_is_the_definitions_but_for_near_ties(void **state)
{
    float         *logits;
    double         d;
    uint32_t       i, j, first, V, same;
    vlm_t         *host, *card;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_answer_t   a, again;
    vlm_prompt_t  *p;

    (void) state;

    for (i = 0; i < N_CASES; i++) {
        host = open_on(&cases[i], "cpu");
        card = open_on(&cases[i], "cuda");
        generate(card, &cases[i], &a);

        set(VLM_EMU_SEED, 2 + i);
        generate(card, &cases[i], &again);
        check_same(&again, &a);

        p = prompt_and_answer(host, &cases[i], &a);
        first = p->n - ANSWER - 1;
        assert_int_equal(vlm_logits(host, p, &logits, &V, &err), 0);

        for (same = 0, j = 0; j < ANSWER; j++) {
            d = distance(host, logits + (size_t) (first + j) * V, vlm_n_ids(host),
                         a.tokens[j].picked.id);
            same += d == 0;

            if (!(d <= NEAR)) {
                fail_msg("%s: token %u of the answer is %g deviations below the best",
                         cases[i].model, j, d);
            }
        }

        print_message("# %s: %u of %d tokens are the host's\n", cases[i].model, same, ANSWER);
        assert_true(same >= ANSWER * 3 / 4);

        free(logits);
        vlm_prompt_free(p);
        vlm_close(host);
        vlm_close(card);
    }
}


/* Root mean square of the differences, in standard deviations of each row. */
static double
distance_of_rows(const float *a, const float *b, uint32_t rows, uint32_t V)
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


static float *
logits_on(const case_t *c, vlm_type_t weights, const char *device, uint32_t *rows, uint32_t *V)
{
    float         *logits;
    case_t         as = *c;
    vlm_t         *v;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    as.weights = weights;
    v = open_on(&as, device);
    p = question(v, c);
    *rows = p->n;

    if (vlm_logits(v, p, &logits, V, &err) != 0) {
        fail_msg("%s", err.text);
    }

    vlm_prompt_free(p);
    vlm_close(v);

    return logits;
}


/*
 * Most of the error comes from int8 weights and activations; bf16 between operations adds little.
 */
static void
logits_are_about_as_near_to_f32_as_the_hosts_own_of_the_same_weights(void **state)
{
    float     *f32, *host, *card;
    double     theirs, ours;
    uint32_t   i, rows, V;

    (void) state;

    for (i = 0; i < N_CASES; i++) {
        f32 = logits_on(&cases[i], VLM_F32, "cpu", &rows, &V);
        host = logits_on(&cases[i], cases[i].weights, "cpu", &rows, &V);
        card = logits_on(&cases[i], cases[i].weights, "cuda", &rows, &V);
        theirs = distance_of_rows(f32, host, rows, V);
        ours = distance_of_rows(f32, card, rows, V);

        print_message("# %s: %.4f deviations from f32, the host's %.4f\n", cases[i].model, ours,
                      theirs);
        assert_true(ours < 1.15 * theirs + 0.01);

        free(f32);
        free(host);
        free(card);
    }
}


/* Two requests at once, one of them with a picture: each gets the answer that it gets alone. */
static void
answers_do_not_depend_on_other_requests_of_the_step(void **state)
{
    uint32_t         i;
    vlm_t           *v;
    vlm_bias_t       bias[16];
    vlm_answer_t     alone[2], together[2];
    vlm_sampling_t   s;

    (void) state;

    v = open_on(&cases[TINY_A], "cuda:0");
    s = greedy(v, bias);

    for (i = 0; i < 2; i++) {
        vlm_tiny_alone(v, vlm_tiny_prompt(v, i ? "x y z" : QUESTION, 1 - i), &s, &alone[i]);
    }

    for (i = 0; i < 2; i++) {
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, i ? "x y z" : QUESTION, 1 - i), &s,
                               &together[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (i = 0; i < 2; i++) {
        assert_int_equal(together[i].err.code, VLM_OK);
        assert_int_equal(alone[i].n_tokens, ANSWER);
        check_same(&together[i], &alone[i]);
    }

    vlm_close(v);
}


/* A question about pictures of different sizes. */
static vlm_prompt_t *
ask(const vlm_t *v, const char *text, uint32_t n)
{
    static const char *const  files[] = { PICTURE, "t/fidelity/pictures/61x117.png" };

    return vlm_tiny_prompt_of(v, text, n, files, 2);
}


static void
forget(vlm_t *v, int features)
{
    uint32_t  i;

    for (i = 0; i < v->conf.slots; i++) {
        vlm_prefix_forget(&v->sched.prefix, i);
    }

    for (i = 0; features && i < v->sched.features.n; i++) {
        vlm_features_forget(&v->sched.features, i);
    }
}


/*
 * Of Qwen3-VL, whose layers add features: two pictures in a prompt, beside another request with
 * one of them; then the pictures were encoded before, and then their rows were read before, too.
 */
static void
features_of_several_pictures_have_the_same_bits_wherever_they_come_from(void **state)
{
    uint32_t         i;
    vlm_t           *v;
    vlm_bias_t       bias[16];
    vlm_answer_t     alone[2], got[2];
    vlm_sampling_t   s;

    (void) state;

    v = open_on(&cases[TINY_I], "cuda");
    assert_int_equal(v->config.vision.deep, 3);
    s = greedy(v, bias);
    s.max_tokens = 4;

    for (i = 0; i < 2; i++) {
        forget(v, 1);
        vlm_tiny_alone(v, ask(v, i ? "x y z" : QUESTION, 2 - i), &s, &alone[i]);
        assert_int_equal(alone[i].usage.cached_pictures + alone[i].usage.cached_tokens, 0);
    }

    forget(v, 1);

    for (i = 0; i < 2; i++) {
        (void) vlm_tiny_submit(v, ask(v, i ? "x y z" : QUESTION, 2 - i), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    check_same(&got[0], &alone[0]);
    check_same(&got[1], &alone[1]);

    forget(v, 0);
    vlm_tiny_alone(v, ask(v, QUESTION, 2), &s, &got[0]);
    assert_int_equal(got[0].usage.cached_pictures, 2);
    check_same(&got[0], &alone[0]);

    vlm_tiny_alone(v, ask(v, QUESTION, 2), &s, &got[0]);
    assert_int_equal(got[0].usage.cached_tokens, got[0].usage.prompt_tokens - 1);
    check_same(&got[0], &alone[0]);

    vlm_close(v);
}


/* The default settings: sampled, with a penalty. */
static void
a_sampled_answer_is_the_same_each_time(void **state)
{
    uint32_t         i;
    vlm_t           *v;
    vlm_answer_t     a[2];
    vlm_sampling_t   s;

    (void) state;

    v = open_on(&cases[TINY_G], "cuda");
    s = vlm_tiny_sampling(77);
    s.top_k = 50;
    s.top_p = 0.95f;
    s.repetition_penalty = 1.05f;

    for (i = 0; i < 2; i++) {
        set(VLM_EMU_SEED, 5 + i);
        vlm_tiny_alone(v, vlm_tiny_prompt(v, QUESTION, 1), &s, &a[i]);
        assert_int_equal(a[i].err.code, VLM_OK);
        assert_true(a[i].bytes > 0);
    }

    assert_string_equal(a[0].text, a[1].text);
    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_answer_of_32_tokens_is_the_definitions_but_for_near_ties),
        cmocka_unit_test(logits_are_about_as_near_to_f32_as_the_hosts_own_of_the_same_weights),
        cmocka_unit_test(answers_do_not_depend_on_other_requests_of_the_step),
        cmocka_unit_test(features_of_several_pictures_have_the_same_bits_wherever_they_come_from),
        cmocka_unit_test(a_sampled_answer_is_the_same_each_time)
    };

    return cmocka_run_group_tests(tests, find_library, NULL);
}
