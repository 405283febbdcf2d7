/*
 * The state machine over a tiny model: jobs that are cancelled in each state or ended by a stop end
 * once, soon, and without an effect on other jobs.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "run/sched_fixture.h"


/* ---- cancel -------------------------------------------------------------- */

typedef struct {
    vlm_job_t        *job;
    vlm_job_state_t   state;           /* in which it is cancelled */
    uint32_t          at_least;        /* rows or tokens that it has by then */
    int               cancelled;
    int               ended;
    uint32_t          said, said_by_then;          /* by the others, when cancelled and ended */
} cancel_t;


/* Tokens of those in slots but one. */
static uint32_t
tokens_of_others(const vlm_job_t *but)
{
    uint32_t  i, n;

    for (n = 0, i = 0; i < v->conf.slots; i++) {
        if (v->sched.slot[i] != NULL && v->sched.slot[i] != but) {
            n += v->sched.slot[i]->usage.completion_tokens;
        }
    }

    return n;
}


static int
in_state(const cancel_t *c)
{
    uint32_t          i;
    const vlm_job_t  *j;

    for (j = v->submitted; j != NULL; j = j->next) {
        if (j == c->job) {
            return c->state == VLM_WAITING;
        }
    }

    for (i = 0; i < v->conf.slots; i++) {
        j = v->sched.slot[i];

        if (j == c->job && j->state == c->state) {
            return c->state == VLM_DECODING ? j->usage.completion_tokens >= c->at_least
                                            : j->n_ctx >= c->at_least;
        }
    }

    return 0;
}


/* Cancels when the time has come, and then looks for the end each time. */
static int
cancel_in_state(void *data)
{
    cancel_t  *c = data;

    if (!c->cancelled && in_state(c)) {
        c->cancelled = 1;
        c->said = tokens_of_others(c->job);
        vlm_cancel(v, c->job);

    } else if (c->cancelled && !c->ended) {
        vlm_tiny_drain(v, &orphan);
        c->ended = orphan.n_ends != 0;
        c->said_by_then = tokens_of_others(c->job);
    }

    return 0;
}


/* Five jobs over two slots; number `which` is cancelled. */
static void
cancel_one(uint32_t which, vlm_job_state_t at, uint32_t at_least)
{
    uint32_t        i;
    cancel_t        c;
    vlm_sampling_t  s;

    ask_alone();
    memset(&c, 0, sizeof(c));
    c.state = at;
    c.at_least = at_least;

    for (i = 0; i < 5; i++) {
        s = vlm_tiny_sampling(i + 1);

        if (i == which) {
            c.job = vlm_tiny_submit(v, prompt(i), &s, &got[i]);
        } else {
            (void) vlm_tiny_submit(v, prompt(i), &s, &got[i]);
        }
    }

    hook.act = cancel_in_state;
    hook.data = &c;
    vlm_tiny_run(v);
    vlm_tiny_drain(v, &orphan);

    assert_true(c.cancelled);
    assert_int_equal(orphan.n_ends, 1);
    assert_int_equal(orphan.finish, VLM_FINISH_CANCELLED);
    assert_int_equal(got[which].n_ends, 0);

    /* A step of the two others: no more than that is between cancel and the end. */

    assert_true(c.ended);
    assert_true(c.said_by_then <= c.said + 2);

    for (i = 0; i < 5; i++) {
        if (i != which) {
            check_answer(&got[i], &alone[i]);
        }
    }
}


static void
a_job_cancelled_while_it_waits_ends_though_no_slot_is_free(void **state)
{
    (void) state;
    cancel_one(3, VLM_WAITING, 0);
    assert_int_equal(orphan.n_started, 0);
}


static void
a_job_cancelled_while_its_first_picture_is_encoded_frees_its_slot(void **state)
{
    (void) state;
    cancel_one(1, VLM_ENCODING, 0);
}


static void
a_job_cancelled_between_its_pictures_frees_its_slot(void **state)
{
    (void) state;
    cancel_one(1, VLM_ENCODING, 10);
}


static void
a_job_cancelled_while_its_prompt_is_read_frees_its_slot(void **state)
{
    (void) state;
    cancel_one(2, VLM_PREFILLING, 100);
}


static void
a_job_cancelled_while_it_decodes_frees_its_slot(void **state)
{
    (void) state;
    cancel_one(0, VLM_DECODING, 3);
}


static void
a_job_cancelled_twice_and_after_its_end_ends_once(void **state)
{
    vlm_job_t       *j;
    vlm_sampling_t   s = vlm_tiny_sampling(1);

    (void) state;

    j = vlm_tiny_submit(v, prompt(0), &s, &got[0]);
    vlm_tiny_run(v);

    vlm_cancel(v, j);
    vlm_cancel(v, j);
    vlm_tiny_drain(v, &orphan);
    assert_int_equal(orphan.n_ends, 1);
}


/* ---- stop ---------------------------------------------------------------- */

static int
count_down(void *data)
{
    int  *left = data;

    return (*left)-- <= 0;
}


static void
stop_ends_every_job_wherever_it_is(void **state)
{
    int             left, first;
    uint32_t        i, n_cancelled;
    vlm_stat_t      stat;
    vlm_sampling_t  s;

    (void) state;
    ask_alone();

    for (first = 0; first < 900; first += first < 100 ? 7 : 45) {
        for (i = 0; i < 5; i++) {
            s = vlm_tiny_sampling(i + 1);
            (void) vlm_tiny_submit(v, prompt(i), &s, &got[i]);
        }

        left = first;
        hook.act = count_down;
        hook.data = &left;
        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (n_cancelled = 0, i = 0; i < 5; i++) {
            assert_int_equal(got[i].n_ends, 1);

            if (got[i].err.code == VLM_OK) {
                check_answer(&got[i], &alone[i]);
            } else {
                assert_int_equal(got[i].err.code, VLM_ECANCELLED);
                n_cancelled++;
            }
        }

        assert_true(n_cancelled > 0);
        vlm_stat(v, &stat);
        assert_int_equal(stat.running, 0);
    }

    /* And the engine runs again. */

    hook.act = NULL;
    s = vlm_tiny_sampling(1);
    vlm_tiny_alone(v, prompt(0), &s, &got[0]);
    check_answer(&got[0], &alone[0]);
}


static int
say_once(void *data)
{
    int  *left = data;

    return (*left)-- == 0;
}


/* stop() says so once, within a pass, and no more: the pass is done again from its beginning. */
static void
a_pass_that_was_left_and_is_done_again_changes_nothing(void **state)
{
    int             left, first;
    uint32_t        i, again;
    vlm_sampling_t  s;

    (void) state;
    ask_alone();

    for (again = 0, first = 1; first < 700; first += 23) {
        for (i = 0; i < 3; i++) {
            s = vlm_tiny_sampling(i + 1);
            (void) vlm_tiny_submit(v, prompt(i), &s, &got[i]);
        }

        left = first;
        hook.act = say_once;
        hook.data = &left;
        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (i = 0; i < 3; i++) {
            assert_int_equal(got[i].n_ends, 1);

            if (got[i].err.code == VLM_OK) {
                check_answer(&got[i], &alone[i]);
                again++;
            }
        }
    }

    assert_true(again > 40);
}


static void
jobs_of_an_engine_that_never_runs_end_with_the_error_given(void **state)
{
    uint32_t        i;
    vlm_err_t       err = { VLM_EMODEL, "it did not load" };
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    for (i = 0; i < 4; i++) {
        (void) vlm_tiny_submit(v, prompt(0), &s, &got[i]);
    }

    vlm_fail_jobs(v, &err);
    vlm_tiny_drain(v, NULL);

    for (i = 0; i < 4; i++) {
        assert_int_equal(got[i].n_ends, 1);
        assert_int_equal(got[i].n_started, 0);
        assert_int_equal(got[i].err.code, VLM_EMODEL);
        assert_string_equal(got[i].err.text, "it did not load");
    }
}


static void
an_engine_may_be_closed_with_waiting_jobs_and_unread_events(void **state)
{
    vlm_t          *other;
    vlm_conf_t      conf;
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    vlm_tiny_conf(&conf);
    other = vlm_tiny_open(&conf);
    (void) vlm_tiny_submit(other, vlm_tiny_prompt(other, "one", 1), &s, &got[0]);
    vlm_tiny_run(other);
    (void) vlm_tiny_submit(other, vlm_tiny_prompt(other, "two", 1), &s, &got[1]);
    vlm_close(other);
}


int
main(void)
{
#define TEST(name)  cmocka_unit_test_setup(name, forget_hook)

    const struct CMUnitTest  tests[] = {
        TEST(a_job_cancelled_while_it_waits_ends_though_no_slot_is_free),
        TEST(a_job_cancelled_while_its_first_picture_is_encoded_frees_its_slot),
        TEST(a_job_cancelled_between_its_pictures_frees_its_slot),
        TEST(a_job_cancelled_while_its_prompt_is_read_frees_its_slot),
        TEST(a_job_cancelled_while_it_decodes_frees_its_slot),
        TEST(a_job_cancelled_twice_and_after_its_end_ends_once),
        TEST(stop_ends_every_job_wherever_it_is),
        TEST(a_pass_that_was_left_and_is_done_again_changes_nothing),
        TEST(jobs_of_an_engine_that_never_runs_end_with_the_error_given),
        TEST(an_engine_may_be_closed_with_waiting_jobs_and_unread_events)
    };

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
