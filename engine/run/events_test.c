/*
 * A loop, an engine thread and others at once: submit, cancel, events, statistics and prompts, as
 * fast as possible.  Under -fsanitize=thread this looks for races; without, for jobs that are lost,
 * reported twice, or answered otherwise than alone.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <unistd.h>

#include "run/fixture.h"

#define KINDS  6                       /* of jobs */
#define ROOM   4                       /* jobs that are the engine's: slots + 1, and one more */

typedef struct {                       /* the engine thread: runs when it is asked to */
    vlm_t            *v;
    pthread_t         thread;
    pthread_mutex_t   mutex;
    pthread_cond_t    wake;
    int               wanted, quit;
} runner_t;

typedef struct {
    vlm_job_t     *job;                /* NULL: free */
    uint32_t       kind;
    int            cancelled;
    vlm_answer_t   answer;
} place_t;

static vlm_answer_t   alone[KINDS];
static vlm_grammar_t *object;


static void *
runner_main(void *data)
{
    vlm_err_t   err = { VLM_OK, "" };
    runner_t   *r = data;

    for ( ;; ) {
        pthread_mutex_lock(&r->mutex);

        while (!r->wanted && !r->quit) {
            pthread_cond_wait(&r->wake, &r->mutex);
        }

        if (r->quit) {
            pthread_mutex_unlock(&r->mutex);
            return NULL;
        }

        r->wanted = 0;
        pthread_mutex_unlock(&r->mutex);

        if (vlm_run(r->v, &err) != 0) {
            return NULL;
        }
    }
}


static void
runner_ask(runner_t *r, int quit)
{
    pthread_mutex_lock(&r->mutex);
    r->wanted = 1;
    r->quit = quit;
    pthread_cond_signal(&r->wake);
    pthread_mutex_unlock(&r->mutex);
}


static void
runner_open(runner_t *r, vlm_t *v)
{
    memset(r, 0, sizeof(*r));
    r->v = v;
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->wake, NULL);
    assert_int_equal(pthread_create(&r->thread, NULL, runner_main, r), 0);
}


static void
runner_close(runner_t *r)
{
    runner_ask(r, 1);
    pthread_join(r->thread, NULL);
    pthread_cond_destroy(&r->wake);
    pthread_mutex_destroy(&r->mutex);
}


static vlm_prompt_t *
prompt(const vlm_t *v, uint32_t kind)
{
    static const char *const  words[KINDS] = {
        "Where?", "Is the red cup to the left of the blue one, or behind it?", "A", "Two.", "Three",
        "How many objects are there?"
    };

    return vlm_tiny_prompt(v, words[kind], kind == 3);
}


static vlm_sampling_t
sampling(uint32_t kind)
{
    vlm_sampling_t  s = vlm_tiny_sampling(kind + 1);

    s.max_tokens = 1 + 3 * kind;
    s.grammar = kind == 5 ? object : NULL;
    s.logprobs = kind >= 4;
    s.top_logprobs = 3;
    s.frequency_penalty = kind == 3 ? 1 : 0;

    return s;
}


static void
ask_alone(vlm_t *v)
{
    uint32_t        i;
    vlm_sampling_t  s;

    for (i = 0; i < KINDS; i++) {
        s = sampling(i);
        vlm_tiny_alone(v, prompt(v, i), &s, &alone[i]);
    }
}


/* Gives a place's job its events; 1: it has ended. */
static int
take_event(const vlm_event_t *e)
{
    place_t  *p = e->user;

    if (e->kind == VLM_TEXT) {
        assert_true(p->answer.bytes + e->bytes < sizeof(p->answer.text));
        memcpy(p->answer.text + p->answer.bytes, e->text, e->bytes);
        p->answer.bytes += e->bytes;
        vlm_tiny_tokens(e, &p->answer);
    }

    if (e->kind != VLM_DONE) {
        assert_int_not_equal(e->kind, VLM_FAILED);
        return 0;
    }

    assert_int_equal(e->finish, alone[p->kind].finish);
    assert_int_equal(p->answer.n_tokens, alone[p->kind].n_tokens);
    assert_int_equal(p->answer.bytes, alone[p->kind].bytes);
    assert_memory_equal(p->answer.text, alone[p->kind].text, p->answer.bytes);
    p->job = NULL;

    return 1;
}


typedef struct {
    uint32_t  submitted, ended, cancelled, idle;
} tally_t;


static void
submit_more(vlm_t *v, runner_t *r, place_t *places, tally_t *t, uint32_t all)
{
    int             idle;
    uint32_t        i;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_sampling_t  s;

    for (i = 0; i < ROOM && t->submitted < all; i++) {
        if (places[i].job != NULL) {
            continue;
        }

        places[i].kind = (t->submitted * 5 + i) % KINDS;
        places[i].answer.bytes = 0;
        places[i].answer.n_tokens = 0;
        s = sampling(places[i].kind);
        places[i].job = vlm_submit(v, prompt(v, places[i].kind), &s, &places[i], &idle, &err);
        assert_non_null(places[i].job);
        t->submitted++;

        if (idle) {
            runner_ask(r, 0);
            t->idle++;
        }
    }
}


static void
drain(vlm_t *v, tally_t *t, uint32_t *orphans)
{
    vlm_event_t  e;

    while (vlm_next_event(v, &e)) {
        if (e.user != NULL) {
            t->ended += (uint32_t) take_event(&e);
            continue;
        }

        if (e.kind == VLM_DONE) {
            t->ended++;
            (*orphans)++;
        }
    }
}


static void
hammer(vlm_t *v, uint32_t all)
{
    tally_t        t = { 0, 0, 0, 0 };
    place_t        places[ROOM];
    runner_t       r;
    uint32_t       i, turn, orphans;
    uint64_t       n;
    struct pollfd  p = { vlm_fd(v), POLLIN, 0 };

    memset(places, 0, sizeof(places));
    orphans = 0;
    runner_open(&r, v);

    for (turn = 0; t.ended < all; turn++) {
        submit_more(v, &r, places, &t, all);

        /* Now and then cancels a job in any state. */

        i = turn * 7 % (5 * ROOM);

        if (i < ROOM && places[i].job != NULL) {
            vlm_cancel(v, places[i].job);
            places[i].job = NULL;
            t.cancelled++;
        }

        assert_true(poll(&p, 1, turn % 3 == 0 ? 2 : 20000) >= 0);
        (void) !read(p.fd, &n, sizeof(n));
        drain(v, &t, &orphans);
    }

    runner_close(&r);

    assert_int_equal(t.submitted, all);
    assert_int_equal(orphans, t.cancelled);
    assert_true(t.cancelled > 0);
    assert_true(t.idle > 0);
}


static vlm_t *
open_engine(uint32_t threads)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.threads = threads;
    conf.context = 256;

    return vlm_tiny_open(&conf);
}


static void
jobs_from_a_busy_loop_are_neither_lost_nor_changed(void **state)
{
    vlm_t  *v;

    (void) state;

    v = open_engine(2);
    ask_alone(v);
    hammer(v, 150);
    vlm_close(v);
}


typedef struct {
    vlm_t        *v;
    atomic_int    quit;
    uint32_t      rounds;
} asker_t;


/* Functions that any thread may call: statistics, pictures, prompts, ids. */
static void *
ask_and_prepare(void *data)
{
    size_t         n;
    asker_t       *a = data;
    uint32_t      *ids, i;
    uint64_t       ticks;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_stat_t     stat;

    for (ticks = 0, i = 0; !atomic_load(&a->quit); i++) {
        vlm_stat(a->v, &stat);

        if (stat.ticks < ticks || stat.state != VLM_READY || stat.running > 2) {
            return a;
        }

        ticks = stat.ticks;

        if (vlm_tokenize(a->v, "Where is the cup?", 17, &ids, &n, &err) != 0) {
            return a;
        }

        free(ids);
        vlm_prompt_free(prompt(a->v, i % KINDS));
        a->rounds++;
    }

    return NULL;
}


static void
others_may_ask_and_prepare_prompts_meanwhile(void **state)
{
    void       *failed;
    asker_t     a;
    pthread_t   thread;

    (void) state;

    memset(&a, 0, sizeof(a));
    a.v = open_engine(1);
    ask_alone(a.v);

    assert_int_equal(pthread_create(&thread, NULL, ask_and_prepare, &a), 0);
    hammer(a.v, 60);
    atomic_store(&a.quit, 1);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    assert_true(a.rounds > 0);
    vlm_close(a.v);
}


static void *
hammer_main(void *data)
{
    hammer(data, 50);

    return NULL;
}


static void
two_engines_in_one_process_do_not_know_of_each_other(void **state)
{
    vlm_t      *a, *b;
    pthread_t   thread;

    (void) state;

    a = open_engine(1);
    b = open_engine(2);
    ask_alone(a);
    assert_int_equal(pthread_create(&thread, NULL, hammer_main, a), 0);
    hammer(b, 50);
    pthread_join(thread, NULL);
    vlm_close(a);
    vlm_close(b);
}


/* stop() from outside, at any moment: every job ends, and the loop gets each one's last event. */
static atomic_int  stopped;


static int
is_stopped(void *data)
{
    (void) data;

    return atomic_load(&stopped);
}


static void
stop_at_any_moment_leaves_no_job_without_an_end(void **state)
{
    int              idle;
    vlm_t           *v;
    runner_t         r;
    uint32_t         round, i, ends;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_conf_t       conf;
    vlm_event_t      e;
    vlm_sampling_t   s;
    struct timespec  pause = { 0, 0 };

    (void) state;

    vlm_tiny_conf(&conf);
    conf.stop = is_stopped;
    v = vlm_tiny_open(&conf);

    for (round = 0; round < 12; round++) {
        atomic_store(&stopped, 0);
        runner_open(&r, v);

        for (i = 0; i < 5; i++) {
            s = sampling(i);
            assert_non_null(vlm_submit(v, prompt(v, i), &s, &i, &idle, &err));

            if (idle) {
                runner_ask(&r, 0);
            }
        }

        pause.tv_nsec = (long) round * 700000;
        nanosleep(&pause, NULL);
        atomic_store(&stopped, 1);
        runner_close(&r);

        /* As the host does for jobs that no run will take up. */

        memset(&err, 0, sizeof(err));
        (void) vlm_fail(&err, VLM_ECANCELLED, "the server is stopping");
        vlm_fail_jobs(v, &err);
        memset(&err, 0, sizeof(err));

        for (ends = 0; vlm_next_event(v, &e); /* void */) {
            ends += e.kind == VLM_DONE || e.kind == VLM_FAILED;
        }

        assert_int_equal(ends, 5);
    }

    vlm_close(v);
}


static int
make_object(void **state)
{
    vlm_t  *v;

    (void) state;

    v = open_engine(1);
    object = vlm_grammar_object(v, NULL);
    vlm_close(v);

    return object == NULL;
}


static int
free_object(void **state)
{
    (void) state;
    vlm_grammar_free(object);

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(jobs_from_a_busy_loop_are_neither_lost_nor_changed),
        cmocka_unit_test(others_may_ask_and_prepare_prompts_meanwhile),
        cmocka_unit_test(two_engines_in_one_process_do_not_know_of_each_other),
        cmocka_unit_test(stop_at_any_moment_leaves_no_job_without_an_end)
    };

    return cmocka_run_group_tests(tests, make_object, free_object);
}
