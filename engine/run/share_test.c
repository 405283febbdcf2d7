/*
 * Sequences that share the engine: how long one waits for the others, in rows and blocks of the
 * vision encoder that go through the operations between two of its tokens, and that its answer is
 * the same as alone.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/fixture.h"

#define LONG_TEXT  700                 /* characters; three slices or so of a prompt */

static vlm_t            *v;
static vlm_ops_t         ops;          /* the engine's, with spies in some places */
static const vlm_ops_t  *real;

static struct {
    uint32_t  slot;                    /* of the sequence that is watched; VLM_NONE: none */
    uint32_t  rows, blocks, slices;    /* of the others, since its last token */
    uint32_t  most_rows, most_blocks, most_slices;
    uint32_t  steps, together;         /* its tokens; the most sequences in one step */
    uint32_t  all_blocks, order[64], n_order;      /* slots whose prompts were read, in turn */
} seen;


static void
spy_embed(vlm_device_t *d, const vlm_linear_t *table, const void *features, const vlm_batch_t *b,
          float *x)
{
    uint32_t  i;

    for (i = 0; i < b->S && b->slot[i] != seen.slot; i++) { /* void */ }

    if (i < b->S && b->n_ctx[i] > 0 && b->start[i + 1] - b->start[i] == 1) {
        if (seen.steps++ > 0) {        /* before its first step it reads, as the others do */
            seen.most_rows = seen.rows > seen.most_rows ? seen.rows : seen.most_rows;
            seen.most_blocks = seen.blocks > seen.most_blocks ? seen.blocks : seen.most_blocks;
            seen.most_slices = seen.slices > seen.most_slices ? seen.slices : seen.most_slices;
        }

        seen.together = b->S > seen.together ? b->S : seen.together;
        seen.rows = seen.blocks = seen.slices = 0;

    } else if (b->S == 1 && b->T > 1) {
        seen.rows += b->T;
        seen.slices++;

        if (seen.n_order < 64) {
            seen.order[seen.n_order++] = b->slot[0];
        }
    }

    real->embed(d, table, features, b, x);
}


static void
spy_qkv_2d(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_patches_t *p, void *q,
           void *k, void *vv)
{
    seen.slices += seen.blocks == 0;   /* a slice has some */
    seen.blocks++;
    seen.all_blocks++;
    real->qkv_2d(d, a, x, p, q, k, vv);
}


static void
open_engine(uint32_t slots)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.slots = slots;
    v = vlm_tiny_open(&conf);
    vlm_filling_stop(v);               /* its thread reads v->ops */

    real = v->ops;
    ops = *real;
    ops.embed = spy_embed;
    ops.qkv_2d = spy_qkv_2d;
    v->ops = &ops;
    v->sched.model.ops = &ops;

    memset(&seen, 0, sizeof(seen));
    seen.slot = VLM_NONE;
}


/* A prompt with a salt of its own, which is read from its first token on. */
static vlm_prompt_t *
prompt(uint32_t i, uint32_t n_pictures, uint32_t n_text)
{
    char             text[LONG_TEXT + 1];
    uint32_t         k;
    vlm_prompt_t    *p;
    static uint32_t  salt;

    for (k = 0; k < n_text; k++) {
        text[k] = (char) ('a' + (k * (i + 3)) % 23);
    }

    text[n_text] = '\0';
    p = vlm_tiny_prompt(v, text, n_pictures);
    salt++;
    vlm_prompt_salt(p, &salt, sizeof(salt));

    return p;
}


static void
submit(vlm_prompt_t *p, uint32_t max_tokens, uint64_t seed, vlm_answer_t *a)
{
    vlm_sampling_t  s = vlm_tiny_sampling(seed);

    s.max_tokens = max_tokens;
    (void) vlm_tiny_submit(v, p, &s, a);
}


static void
between_two_tokens_there_is_one_slice_of_what_the_others_have_read(void **state)
{
    uint32_t      i;
    vlm_answer_t  a[4];

    (void) state;
    open_engine(4);

    submit(prompt(0, 0, 10), 60, 6, &a[0]);        /* takes slot 0 and decodes for long */

    for (i = 1; i < 4; i++) {
        submit(prompt(i, i % 2 == 1 ? 2 : 0, LONG_TEXT), 20, i, &a[i]);
    }

    seen.slot = 0;
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    assert_true(a[0].usage.completion_tokens > 10);
    assert_int_equal(seen.steps, a[0].usage.completion_tokens - 1);
    assert_int_equal(seen.most_slices, 1);
    assert_int_equal(seen.most_blocks, vlm_vision_slice(&v->sched.model));
    assert_true(seen.most_rows > 200 && seen.most_rows <= VLM_SLICE);

    vlm_close(v);
}


static void
prompts_that_are_read_at_once_take_turns(void **state)
{
    uint32_t      i, changes;
    vlm_answer_t  a[3];

    (void) state;
    open_engine(3);

    for (i = 0; i < 3; i++) {
        submit(prompt(i, 0, LONG_TEXT), 1, i + 1, &a[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (changes = 0, i = 1; i < seen.n_order; i++) {
        changes += seen.order[i] != seen.order[i - 1];
    }

    assert_true(seen.n_order >= 6);
    assert_int_equal(changes, seen.n_order - 1);
    vlm_close(v);
}


static void
all_decoding_jobs_step_together(void **state)
{
    uint32_t      i;
    vlm_answer_t  a[4];

    (void) state;
    open_engine(4);

    for (i = 0; i < 4; i++) {
        submit(prompt(i, 0, 10), 40, 3, &a[i]);
    }

    seen.slot = 0;
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(seen.together, 4);
    vlm_close(v);
}


/* The text, and each token's logarithm to the bit. */
static void
assert_same_answer(const vlm_answer_t *got, const vlm_answer_t *want)
{
    uint32_t  i;

    assert_int_equal(got->n_ends, 1);
    assert_int_equal(got->bytes, want->bytes);
    assert_memory_equal(got->text, want->text, got->bytes);
    assert_int_equal(got->n_tokens, want->n_tokens);

    for (i = 0; i < got->n_tokens; i++) {
        assert_memory_equal(&got->tokens[i].picked, &want->tokens[i].picked,
                            sizeof(got->tokens[i].picked));
    }
}


/* Each subset of four requests beside this one: its answer has the same bits as alone. */
static void
an_answer_does_not_depend_on_other_requests_of_a_step(void **state)
{
    uint32_t         subset, i, n;
    vlm_answer_t     alone, got, others[4];
    vlm_sampling_t   s = vlm_tiny_sampling(11);

    (void) state;
    open_engine(4);

    s.logprobs = 1;
    vlm_tiny_alone(v, prompt(1, 1, 50), &s, &alone);

    for (subset = 1; subset < 16; subset++) {
        for (n = 0, i = 0; i < 4; i++) {
            if (i == subset % 3) {
                (void) vlm_tiny_submit(v, prompt(1, 1, 50), &s, &got);
            }

            if ((subset >> i & 1) != 0) {
                submit(prompt(i + 5, i % 2, i == 2 ? LONG_TEXT : 20 * i), 5 * i + 2, i + 1,
                       &others[n++]);
            }
        }

        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);
        assert_same_answer(&got, &alone);
    }

    vlm_close(v);
}


/* Products of one row, of a few rows and of many use different kernels: up to 16 requests. */
static void
an_answer_does_not_depend_on_the_number_of_requests(void **state)
{
    uint32_t         i;
    vlm_answer_t     alone, got, others[15];
    vlm_sampling_t   s = vlm_tiny_sampling(11);

    (void) state;
    open_engine(16);

    s.logprobs = 1;
    s.max_tokens = 100;
    vlm_tiny_alone(v, prompt(1, 0, 20), &s, &alone);
    assert_true(alone.n_tokens > 60);

    seen.slot = 0;
    (void) vlm_tiny_submit(v, prompt(1, 0, 20), &s, &got);

    for (i = 0; i < 15; i++) {
        submit(prompt(i + 2, 0, 20), 15 + 2 * i, i + 1, &others[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    assert_true(seen.together > 12);
    assert_same_answer(&got, &alone);
    vlm_close(v);
}


/* The plan has rows for as many tokens as slots x context, whatever the jobs are. */
static void
the_longest_prompts_in_all_slots_need_no_more_than_was_planned(void **state)
{
    char             text[2048];
    uint32_t         i;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_part_t       part = { .text = text, .bytes = 0 };
    vlm_answer_t     a[6];
    vlm_prompt_t    *p;

    (void) state;
    open_engine(3);

    for (i = 0; i < 6; i++) {
        memset(text, (int) ('1' + i), sizeof(text));   /* a digit is a token of its own */
        part.bytes = v->conf.context - 1 - (i < 3 ? 20 : 0);
        p = vlm_prompt_raw(v, &part, 1, &err);
        assert_non_null(p);
        submit(p, 30, i + 1, &a[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (i = 0; i < 6; i++) {
        assert_int_equal(a[i].n_ends, 1);
        assert_int_equal(a[i].err.code, VLM_OK);
        assert_true(a[i].usage.prompt_tokens + a[i].usage.completion_tokens <= v->conf.context);
    }

    part.bytes = v->conf.context;
    assert_null(vlm_prompt_raw(v, &part, 1, &err));
    assert_int_equal(err.code, VLM_ELIMIT);
    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(between_two_tokens_there_is_one_slice_of_what_the_others_have_read),
        cmocka_unit_test(prompts_that_are_read_at_once_take_turns),
        cmocka_unit_test(all_decoding_jobs_step_together),
        cmocka_unit_test(an_answer_does_not_depend_on_other_requests_of_a_step),
        cmocka_unit_test(an_answer_does_not_depend_on_the_number_of_requests),
        cmocka_unit_test(the_longest_prompts_in_all_slots_need_no_more_than_was_planned)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
