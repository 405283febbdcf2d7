/*
 * Vectors of prompts against Hugging Face transformers: the head, read from the checkpoint, makes
 * the reference's logits of a prompt's last token of its vector, up to the vector's length.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load/files.h"
#include "run/fidelity_run.h"
#include "run/fixture.h"

#define INT8_COSINE  0.99              /* of int8's vector with f32's: measured 0.9968 at least */


static vlm_sampling_t
wanted(void)
{
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    s.vector = 1;

    return s;
}


static const float *
vector_of(vlm_t *v, vlm_prompt_t *p, vlm_answer_t *a)
{
    vlm_sampling_t  s = wanted();

    vlm_tiny_alone(v, p, &s, a);

    if (a->err.code != VLM_OK) {
        fail_msg("%s", a->err.text);
    }

    assert_int_equal(a->finish, VLM_FINISH_STOP);
    assert_int_equal(a->n_texts, 1);
    assert_int_equal(a->usage.completion_tokens, 0);
    assert_int_equal(a->bytes, v->config.text.hidden * sizeof(float));

    return (const float *) (const void *) a->text;
}


static double
dot(const float *a, const float *b, uint32_t n)
{
    double    sum;
    uint32_t  i;

    for (sum = 0, i = 0; i < n; i++) {
        sum += (double) a[i] * b[i];
    }

    return sum;
}


/* The logits of some ids have the same ratio to the head's products with x. */
static void
check_logits(vlm_t *v, const case_t *c, const float *x)
{
    int                  assumed;
    char                 name[128], dir[256];
    float               *row;
    ref_t                r;
    double               got[64], want[64], scale, d;
    uint32_t             k, top, T, D = v->config.text.hidden;
    uint64_t             dims[2] = { v->config.text.vocab, D };
    vlm_err_t            err = { VLM_OK, "" };
    vlm_conf_t           conf = v->conf;
    vlm_checkpoint_t    *files;
    const vlm_weight_t  *w;
    const vlm_tensor_t  *head;

    for (w = v->config.family->text.before; w->kind != VLM_WEIGHT_HEAD; w++) { /* void */ }

    (void) snprintf(name, sizeof(name), "%s.weight", w->name[v->config.text.tied != 0]);
    (void) snprintf(dir, sizeof(dir), CHECKPOINTS "/%s", c->checkpoint);
    conf.model = dir;                  /* open_case()'s own is gone */
    files = vlm_files_weights(&conf, &v->config, &assumed, &err);
    head = files == NULL ? NULL : vlm_checkpoint_find(files, name, dims, 2, &err);

    if (head == NULL) {
        fail_msg("%s: %s", c->name, err.text);
    }

    open_ref(&r, c->name);
    row = malloc(D * sizeof(float));
    T = r.ids.dims[0];
    top = r.top.dims[1] < 64 ? r.top.dims[1] : 64;
    scale = 0;

    for (k = 0; k < top; k++) {
        vlm_tensor_f32(head, (uint64_t) r.top_ids.u[(T - 1) * top + k] * D, D, row);
        got[k] = dot(row, x, D);
        want[k] = r.top.f[(T - 1) * top + k];
        scale += want[k] / got[k] / top;
    }

    for (k = 0; k < top; k++) {
        d = fabs(got[k] * scale - want[k]) / (1 + fabs(want[k]));

        if (!(d <= (double) TOLERANCE) || !(scale > 0)) {
            fail_msg("%s: logit %u is %g times %g, not %g", c->name, k, scale, got[k], want[k]);
        }
    }

    free(row);
    vlm_file_close(&r.file);
    vlm_checkpoint_close(files);
}


/* The first case of each checkpoint, and the first with a picture. */
static int
is_chosen(uint32_t i)
{
    uint32_t  k;

    for (k = i; k > 0 && strcmp(cases[k - 1].checkpoint, cases[i].checkpoint) == 0; k--) {
        if (cases[k - 1].part[0].picture || !cases[i].part[0].picture) {
            return 0;
        }
    }

    return 1;
}


static void
the_head_makes_the_reference_s_logits_of_a_vector(void **state)
{
    double         cosine;
    uint32_t       i, D;
    vlm_t         *v, *rough;
    const float   *x, *y;
    vlm_answer_t   a, b;

    (void) state;

    read_family("t/fidelity/cases.txt", 0);
    read_family("t/fidelity/cases-qwen3.txt", 1);
    read_family("t/fidelity/cases-bloom.txt", 2);

    for (i = 0; i < n_cases; i++) {
        if (!is_chosen(i)) {
            continue;
        }

        v = open_case(&cases[i], VLM_F32, NULL, 1);
        rough = open_case(&cases[i], VLM_INT8, NULL, 1);
        D = v->config.text.hidden;

        x = vector_of(v, make_prompt(v, &cases[i]), &a);
        y = vector_of(rough, make_prompt(rough, &cases[i]), &b);
        assert_true(fabs(dot(x, x, D) - 1) < 1e-5);
        check_logits(v, &cases[i], x);

        cosine = dot(x, y, D);

        if (!(cosine > INT8_COSINE)) {
            fail_msg("%s: int8's vector has the cosine %g with f32's", cases[i].name, cosine);
        }

        vlm_close(v);
        vlm_close(rough);
    }
}


static void
a_vector_has_the_same_bits_beside_answers_and_with_cached_rows(void **state)
{
    vlm_t           *v;
    vlm_conf_t       conf;
    vlm_answer_t     first, again, answer, beside;
    vlm_sampling_t   s = vlm_tiny_sampling(3), want = wanted();

    (void) state;

    vlm_tiny_conf(&conf);
    v = vlm_tiny_open(&conf);

    (void) vector_of(v, vlm_tiny_prompt(v, "Where is the cup? It is on the table.", 1), &first);
    (void) vector_of(v, vlm_tiny_prompt(v, "Where is the cup? It is on the table.", 1), &again);
    assert_int_equal(again.usage.cached_tokens, again.usage.prompt_tokens - 1);
    assert_memory_equal(first.text, again.text, first.bytes);

    (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Describe it.", 0), &s, &answer);
    (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Where is the cup? It is on the table.", 1), &want,
                           &beside);
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(beside.n_ends, 1);
    assert_int_equal(answer.n_ends, 1);
    assert_int_equal(beside.bytes, first.bytes);
    assert_memory_equal(first.text, beside.text, first.bytes);

    vlm_close(v);
}


static void
options_of_answers_do_not_matter_to_a_vector(void **state)
{
    vlm_t           *v;
    vlm_conf_t       conf;
    vlm_answer_t     first, other;
    vlm_sampling_t   s;
    const char      *stop[] = { "a" };

    (void) state;

    vlm_tiny_conf(&conf);
    v = vlm_tiny_open(&conf);

    s = wanted();
    vlm_tiny_alone(v, vlm_tiny_prompt(v, "one", 0), &s, &first);
    s.temperature = -1;
    s.logprobs = 1;
    s.min_tokens = 9;
    s.max_tokens = 9;
    s.stop = stop;
    s.n_stop = 1;
    vlm_tiny_alone(v, vlm_tiny_prompt(v, "one", 0), &s, &other);
    assert_int_equal(other.n_tokens, 0);
    assert_int_equal(first.bytes, other.bytes);
    assert_memory_equal(first.text, other.text, first.bytes);

    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_head_makes_the_reference_s_logits_of_a_vector),
        cmocka_unit_test(a_vector_has_the_same_bits_beside_answers_and_with_cached_rows),
        cmocka_unit_test(options_of_answers_do_not_matter_to_a_vector)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
