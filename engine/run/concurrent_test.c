/*
 * The engine as a server uses it: a loop that submits, cancels and takes events, a thread that
 * runs, threads that make prompts, one that reads statistics; and a reload, in which a new engine
 * makes its prompts while the old one still answers.  Under TSan (make test-tsan) it also proves
 * that no thread reads data that another one writes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "run/fixture.h"

#define CLIENTS   48                   /* of one engine */
#define TOGETHER  6                    /* jobs that the loop hands over before others have ended */
#define KINDS     6                    /* of requests, by number */
#define MAKERS    2                    /* threads that make prompts */
#define RELOADS   3

typedef enum { WAITS, MAKING, MADE, RUNS, LEFT, ENDED } client_state_t;

typedef struct {
    uint32_t        kind;
    uint32_t        patience;          /* turns of the loop until it leaves; 0: it stays */
    atomic_int      state;             /* a client_state_t */
    vlm_prompt_t   *prompt;            /* owned by the maker until MADE */
    vlm_job_t      *job;
    vlm_answer_t    answer;
} client_t;

typedef struct {
    vlm_t           *v;
    pthread_t        engine, maker[MAKERS], asker;
    pthread_mutex_t  mutex;            /* of the next line */
    int              run, close, loaded;           /* run: times to be run */
    pthread_cond_t   posted;
    atomic_int       stop;
    int              made;             /* eventfd */
    client_t         clients[CLIENTS];
    uint32_t         n_running;
} server_t;

static vlm_answer_t  alone[KINDS];     /* the answer to each kind of request */


static int
stopping(void *data)
{
    return atomic_load(&((server_t *) data)->stop);
}


/* Some prompts share their beginnings and pictures, and so their cached rows and features. */
static vlm_prompt_t *
make_prompt(const vlm_t *v, uint32_t kind)
{
    char  text[64];

    (void) snprintf(text, sizeof(text), "Question %u, and how many cups are there?", kind / 2);

    return vlm_tiny_prompt(v, text, kind % 3);
}


static vlm_sampling_t
make_sampling(uint32_t kind)
{
    vlm_sampling_t  s = vlm_tiny_sampling(100 + kind);

    s.max_tokens = 4 + 3 * kind;
    s.frequency_penalty = kind == 4 ? 0.5f : 0;
    s.logprobs = kind == 5;
    s.top_logprobs = kind == 5 ? 3 : 0;

    return s;
}


/* ---- threads ------------------------------------------------------------- */

static void *
engine_thread(void *data)
{
    int        rc;
    server_t  *s = data;
    vlm_err_t  err = { VLM_OK, "" };

    rc = vlm_load(s->v, &err);

    pthread_mutex_lock(&s->mutex);
    s->loaded = rc == 0 ? 1 : -1;

    while (rc == 0) {
        while (s->run == 0 && !s->close) {
            pthread_cond_wait(&s->posted, &s->mutex);
        }

        if (s->close) {
            break;
        }

        s->run--;
        pthread_mutex_unlock(&s->mutex);
        rc = vlm_run(s->v, &err);
        pthread_mutex_lock(&s->mutex);
    }

    pthread_mutex_unlock(&s->mutex);

    return NULL;
}


static client_t *
next_order(server_t *s)
{
    int        waits;
    uint32_t   i;

    for (i = 0; i < CLIENTS; i++) {
        waits = WAITS;

        if (atomic_compare_exchange_strong(&s->clients[i].state, &waits, MAKING)) {
            return &s->clients[i];
        }
    }

    return NULL;
}


static void *
maker_thread(void *data)
{
    client_t  *c;
    server_t  *s = data;
    uint64_t   one = 1;

    while ((c = next_order(s)) != NULL) {
        c->prompt = make_prompt(s->v, c->kind);
        c->state = MADE;

        if (write(s->made, &one, sizeof(one)) != sizeof(one)) {
            break;
        }
    }

    return NULL;
}


static void *
asker_thread(void *data)
{
    size_t      n;
    uint32_t   *ids;
    server_t   *s = data;
    vlm_stat_t  st;

    while (!atomic_load(&s->stop)) {
        vlm_stat(s->v, &st);

        if (vlm_tokenize(s->v, "how many cups", 13, &ids, &n, NULL) == 0) {
            free(ids);
        }

        (void) usleep(500);
    }

    return NULL;
}


/* ---- the loop ------------------------------------------------------------ */

static void
post_run(server_t *s)
{
    pthread_mutex_lock(&s->mutex);
    s->run++;
    pthread_cond_signal(&s->posted);
    pthread_mutex_unlock(&s->mutex);
}


static int
is_loaded(server_t *s)
{
    int  loaded;

    pthread_mutex_lock(&s->mutex);
    loaded = s->loaded;
    pthread_mutex_unlock(&s->mutex);

    return loaded;
}


static void
hand_over(server_t *s, client_t *c)
{
    int             idle;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_sampling_t  sampling = make_sampling(c->kind);

    c->job = vlm_submit(s->v, c->prompt, &sampling, &c->answer, &idle, &err);
    assert_non_null(c->job);

    c->prompt = NULL;
    c->state = RUNS;
    s->n_running++;

    if (idle) {
        post_run(s);
    }
}


/*
 * A client whose time is over cancels in any state, but a maker thread keeps the prompt that it
 * makes.
 */
static void
tend(server_t *s, client_t *c)
{
    int  state;

    state = c->state;

    if (c->patience > 1) {
        c->patience--;
    }

    if (state == MADE && c->patience == 1) {
        vlm_prompt_free(c->prompt);
        c->prompt = NULL;
        c->state = ENDED;

    } else if (state == MADE && s->n_running < TOGETHER && is_loaded(s)) {
        hand_over(s, c);

    } else if (state == RUNS && c->answer.n_ends > 0) {
        c->state = ENDED;
        s->n_running--;

    } else if (state == RUNS && c->patience == 1) {
        vlm_cancel(s->v, c->job);
        c->state = LEFT;
        s->n_running--;
    }
}


/* One turn of the loop, as in nginx: sleeps until there are events, then takes all of them. */
static uint32_t
turn(server_t *s, vlm_answer_t *orphan)
{
    uint32_t       i, n;
    uint64_t       counter;
    struct pollfd  fds[2] = { { vlm_fd(s->v), POLLIN, 0 }, { s->made, POLLIN, 0 } };

    (void) poll(fds, 2, 5);

    for (i = 0; i < 2; i++) {
        if (fds[i].revents != 0 && read(fds[i].fd, &counter, sizeof(counter)) < 0) {
            break;
        }
    }

    for (i = 0; i < 64 && vlm_tiny_event(s->v, orphan); i++) { /* void */ }

    for (i = 0, n = 0; i < CLIENTS; i++) {
        tend(s, &s->clients[i]);
        n += s->clients[i].state != ENDED && s->clients[i].state != LEFT;
    }

    return n;
}


/* ---- a server's life ----------------------------------------------------- */

static server_t *
start(uint32_t seed)
{
    uint32_t    i;
    server_t   *s;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf;

    s = calloc(1, sizeof(*s));
    assert_non_null(s);

    vlm_tiny_conf(&conf);
    conf.slots = 3;
    conf.threads = 2;
    conf.stop = stopping;
    conf.data = s;

    s->v = vlm_open(&conf, &err);
    s->made = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    assert_non_null(s->v);
    assert_true(s->made != -1);

    for (i = 0; i < CLIENTS; i++) {
        s->clients[i].kind = (i * 5 + seed) % KINDS;
        s->clients[i].patience = i % 4 == 3 ? 2 + (i * 7 + seed * 3) % 40 : 0;
    }

    assert_int_equal(pthread_mutex_init(&s->mutex, NULL), 0);
    assert_int_equal(pthread_cond_init(&s->posted, NULL), 0);
    assert_int_equal(pthread_create(&s->engine, NULL, engine_thread, s), 0);
    assert_int_equal(pthread_create(&s->asker, NULL, asker_thread, s), 0);

    for (i = 0; i < MAKERS; i++) {
        assert_int_equal(pthread_create(&s->maker[i], NULL, maker_thread, s), 0);
    }

    return s;
}


/* Jobs that still run end with the engine, each with its last event. */
static void
end(server_t *s)
{
    uint32_t      i;
    vlm_answer_t  orphan;

    memset(&orphan, 0, sizeof(orphan));
    atomic_store(&s->stop, 1);

    for (i = 0; i < MAKERS; i++) {
        (void) pthread_join(s->maker[i], NULL);
    }

    pthread_mutex_lock(&s->mutex);
    s->close = 1;
    pthread_cond_signal(&s->posted);
    pthread_mutex_unlock(&s->mutex);

    (void) pthread_join(s->engine, NULL);
    (void) pthread_join(s->asker, NULL);

    while (vlm_tiny_event(s->v, &orphan)) { /* void */ }

    for (i = 0; i < CLIENTS; i++) {
        vlm_prompt_free(s->clients[i].prompt);
    }

    vlm_close(s->v);
    (void) close(s->made);
    (void) pthread_mutex_destroy(&s->mutex);
    (void) pthread_cond_destroy(&s->posted);
}


/* A client that stayed to the end has the answer that its request gets alone. */
static uint32_t
check_answers(const server_t *s)
{
    uint32_t             i, n;
    const vlm_answer_t  *a, *right;

    for (i = 0, n = 0; i < CLIENTS; i++) {
        a = &s->clients[i].answer;
        right = &alone[s->clients[i].kind];

        assert_true(a->n_ends <= 1);

        if (a->n_ends == 0 || a->err.code == VLM_ECANCELLED) {
            continue;
        }

        assert_int_equal(a->err.code, VLM_OK);
        assert_int_equal(a->finish, right->finish);
        assert_int_equal(a->bytes, right->bytes);
        assert_memory_equal(a->text, right->text, a->bytes);
        assert_int_equal(a->n_tokens, right->n_tokens);
        n++;
    }

    return n;
}


static int
ask_alone(void **state)
{
    vlm_t          *v;
    uint32_t        i;
    vlm_conf_t      conf;
    vlm_sampling_t  sampling;

    (void) state;

    vlm_tiny_conf(&conf);
    v = vlm_tiny_open(&conf);

    for (i = 0; i < KINDS; i++) {
        sampling = make_sampling(i);
        vlm_tiny_alone(v, make_prompt(v, i), &sampling, &alone[i]);
    }

    vlm_close(v);

    return 0;
}


static void
a_request_beside_others_that_come_and_leave_has_the_answer_it_has_alone(void **state)
{
    server_t      *s;
    vlm_answer_t   orphan;

    (void) state;

    memset(&orphan, 0, sizeof(orphan));
    s = start(1);

    while (turn(s, &orphan) > 0) { /* void */ }

    end(s);
    assert_true(check_answers(s) >= CLIENTS * 3 / 4);
    free(s);
}


static void
loading_an_engine_leaves_the_answers_of_another_as_they_are(void **state)
{
    uint32_t       i, n, left;
    server_t      *old, *s;
    vlm_answer_t   orphan;

    (void) state;

    memset(&orphan, 0, sizeof(orphan));
    old = start(2);
    n = 0;

    for (i = 0; i < RELOADS; i++) {
        for (left = CLIENTS; left > CLIENTS / 2; left = turn(old, &orphan)) { /* void */ }

        s = start(3 + i);

        while (left > 8) {
            left = turn(old, &orphan);
            (void) turn(s, &orphan);
        }

        end(old);
        n += check_answers(old);
        free(old);
        old = s;
    }

    while (turn(old, &orphan) > 0) { /* void */ }

    end(old);
    n += check_answers(old);
    free(old);

    assert_true(n > RELOADS * CLIENTS / 2);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_request_beside_others_that_come_and_leave_has_the_answer_it_has_alone),
        cmocka_unit_test(loading_an_engine_leaves_the_answers_of_another_as_they_are),
    };

    return cmocka_run_group_tests(tests, ask_alone, NULL);
}
