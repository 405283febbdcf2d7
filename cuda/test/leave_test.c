/*
 * A cancellation takes effect while the device is at work: the device asks within a picture, a
 * prompt and a step, and nothing more is launched for a job once the answer was to stop.
 *
 * The emulated device is so slow, by arithmetic, that each launch causes a question.  Here the test
 * cancels within the question itself: it is the device's own, and no other part asks it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "library.h"

#define SLOW  UINT64_C(1000000000)

typedef struct {
    vlm_t             *v;
    vlm_job_t         *job;            /* the job that is cancelled; NULL: the process stops */
    uint32_t           at, asked;      /* question at which it is; number of questions so far */
    int                left;
    vlm_emu_counts_t   then;           /* the counts at that time */
    vlm_quit_fn        quit;           /* the scheduler's */
    void              *data;
    const vlm_ops_t   *ops;            /* the device's */
    vlm_basic_t        basic;          /* with the test's ask() */
} leaver_t;

static leaver_t  leaver;


static int
stop(void *data)
{
    (void) data;

    return leaver.job == NULL && leaver.left;
}


static int
leave(void *data)
{
    (void) data;

    if (++leaver.asked == leaver.at) {
        leaver.left = 1;
        leaver.then = counts();

        if (leaver.job != NULL) {
            vlm_cancel(leaver.v, leaver.job);
        }
    }

    return leaver.quit(leaver.data);
}


/* Replaces the device's question by the test's. */
static void
ask(vlm_device_t *d, vlm_quit_fn quit, void *data)
{
    leaver.quit = quit;
    leaver.data = data;
    leaver.ops->basic->ask(d, quit == NULL ? NULL : leave, NULL);
}


/* A model on a device whose questions come to leave(). */
static vlm_t *
open_model(vlm_ops_t *ops, const char *model)
{
    vlm_t       *v;
    vlm_conf_t   conf;

    vlm_tiny_conf(&conf);
    conf.model = model;
    conf.device = "cuda";
    conf.max_pixels = 4096;
    conf.context = 200;
    conf.stop = stop;

    memset(&leaver, 0, sizeof(leaver));
    set(VLM_EMU_SLOW, SLOW);
    v = vlm_tiny_open(&conf);
    set(VLM_EMU_SLOW, 1);

    leaver.v = v;
    leaver.ops = v->ops;
    leaver.basic = *v->ops->basic;
    leaver.basic.ask = ask;
    *ops = *v->ops;
    ops->basic = &leaver.basic;
    v->ops = v->sched.model.ops = ops;

    return v;
}


static void
close_model(vlm_t *v)
{
    v->ops = v->sched.model.ops = leaver.ops;
    vlm_close(v);
}


static vlm_job_t *
submit(vlm_t *v, uint32_t n_pictures, vlm_answer_t *a)
{
    vlm_sampling_t  s;

    s = vlm_tiny_sampling(3);
    s.max_tokens = 4;
    vlm_features_forget(&v->sched.features, 0);
    vlm_prefix_forget(&v->sched.prefix, 0);
    vlm_prefix_forget(&v->sched.prefix, 1);

    return vlm_tiny_submit(v, vlm_tiny_prompt(v, "What is on the table?", n_pictures), &s, a);
}


/* Cancelled at one question after another; nothing is launched after it, and others are served. */
static void
check_cancels(const char *model)
{
    vlm_t         *v;
    uint32_t       n_pictures, at;
    vlm_ops_t      ops;
    vlm_answer_t   want, a, orphan;

    v = open_model(&ops, model);

    for (n_pictures = 0; n_pictures <= 1; n_pictures++) {
        leaver.at = 0;
        (void) submit(v, n_pictures, &want);
        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);
        assert_int_equal(want.err.code, VLM_OK);

        for (at = 1; at <= 16; at *= 2) {
            leaver.left = 0;
            leaver.asked = 0;
            leaver.at = at;
            leaver.job = submit(v, n_pictures, &a);
            vlm_tiny_run(v);
            memset(&orphan, 0, sizeof(orphan));
            vlm_tiny_drain(v, &orphan);

            assert_true(leaver.left);
            assert_int_equal(orphan.n_ends, 1);
            assert_int_equal(orphan.finish, VLM_FINISH_CANCELLED);
            assert_int_equal(orphan.n_texts + a.n_texts + a.n_ends, 0);
            assert_int_equal(counts().launches, leaver.then.launches);
        }

        leaver.at = 0;
        (void) submit(v, n_pictures, &a);
        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);
        assert_int_equal(a.err.code, VLM_OK);
        assert_string_equal(a.text, want.text);
    }

    close_model(v);
}


static void
a_cancel_within_a_picture_or_a_prompt_takes_effect(void **state)
{
    (void) state;

    check_cancels(CHECKPOINT);
}


/* Its vision encoder has mergers between its layers, whose features the text's layers add. */
static void
a_cancel_takes_effect_in_a_model_whose_layers_add_features(void **state)
{
    (void) state;

    check_cancels("build/fidelity/tiny-i");
}


/* All jobs share a step: only the process can stop within it. */
static void
a_stop_within_a_step_takes_effect(void **state)
{
    vlm_t         *v;
    uint32_t       last;
    vlm_err_t      err;
    vlm_ops_t      ops;
    vlm_answer_t   a;

    (void) state;

    set(VLM_EMU_CAPTURES, 0);
    v = open_model(&ops, CHECKPOINT);
    set(VLM_EMU_CAPTURES, 1);
    (void) submit(v, 0, &a);
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    last = leaver.asked;

    leaver.asked = 0;
    leaver.at = last - 3;
    (void) submit(v, 0, &a);
    (void) vlm_run(v, &err);
    vlm_tiny_drain(v, NULL);

    assert_true(leaver.left);
    assert_int_equal(a.n_ends, 1);
    assert_int_equal(a.err.code, VLM_ECANCELLED);
    assert_int_equal(counts().launches, leaver.then.launches);
    close_model(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_cancel_within_a_picture_or_a_prompt_takes_effect),
        cmocka_unit_test(a_cancel_takes_effect_in_a_model_whose_layers_add_features),
        cmocka_unit_test(a_stop_within_a_step_takes_effect)
    };

    return cmocka_run_group_tests(tests, find_library, NULL);
}
