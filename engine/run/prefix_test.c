/*
 * The prefix cache: which beginnings count as equal, which slot is chosen, and that an answer has
 * the same bits whatever was reused for it.  Conversations that grow, fork and start again at
 * random are put to an engine that reuses rows and to one that does not.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "run/fixture.h"

#define TURNS        8                 /* of a conversation */
#define SESSIONS     6
#define BATCH        6                 /* jobs that are submitted at once */
#define MAX_TEXT     600
#define LONG_PROMPT  650               /* tokens; after that a conversation starts again */

typedef struct {
    char      user[MAX_TEXT], answer[MAX_TEXT * 4];
    int       picture;                 /* before the text; -1: none */
    uint32_t  n_answer;
} turn_t;

typedef struct {
    turn_t    turn[TURNS];
    uint32_t  n;
    int       system;                  /* which system text; -1: the default */
} talk_t;

static const char *const  pictures[] = {
    "t/fidelity/pictures/200x150.png", "t/fidelity/pictures/168x168.png",
    "t/fidelity/pictures/113x57-grey.png", "t/fidelity/pictures/40x30.png"
};

static const char *const  systems[] = {
    "You answer in one word.",
    "You are the arm of a robot.  You are told what to take, and say where it is and how you take "
    "it without pushing over what stands beside it.  You never take what is hot, sharp or alive."
};

static const char      *model = CHECKPOINT;
static int              kv_int8;
static uint64_t         random_state;
static vlm_t           *v;
static vlm_answer_t     got[BATCH], want[BATCH], orphan;


static uint32_t
below(uint32_t n)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) (random_state >> 33) % n;
}


static vlm_t *
open_engine(vlm_type_t form, uint32_t slots)
{
    vlm_conf_t  conf;

    vlm_tiny_conf(&conf);
    conf.model = model;
    conf.weights = form;
    conf.kv_int8 = kv_int8;
    conf.slots = slots;
    conf.features = 2;

    return vlm_tiny_open(&conf);
}


static vlm_picture_t *
read_picture(const vlm_t *e, const char *path)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_file_t      f;
    vlm_picture_t  *p;

    assert_int_equal(vlm_file_open(&f, path, 0, &err), 0);
    p = vlm_picture_read(e, f.data, f.bytes, &err);
    assert_non_null(p);
    vlm_file_close(&f);

    return p;
}


static vlm_message_t
say(vlm_part_t *part, vlm_role_t role, const char *text, size_t bytes)
{
    vlm_message_t  m = { role, part, 1 };

    *part = (vlm_part_t) { .text = text, .bytes = bytes };

    return m;
}


/* A conversation as a prompt: its last turn has no answer yet. */
static vlm_prompt_t *
prompt_of(const vlm_t *e, const talk_t *t)
{
    uint32_t        i, n;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_part_t      part[3 * TURNS + 1], *at;
    vlm_prompt_t   *p;
    vlm_message_t   message[2 * TURNS + 1];

    at = part;
    n = 0;

    if (t->system >= 0) {
        message[n++] = say(at++, VLM_SYSTEM, systems[t->system], strlen(systems[t->system]));
    }

    for (i = 0; i < t->n; i++) {
        if (t->turn[i].picture >= 0) {
            (void) say(at, VLM_USER, NULL, 0);
            at->picture = read_picture(e, pictures[t->turn[i].picture]);
            (void) say(at + 1, VLM_USER, t->turn[i].user, strlen(t->turn[i].user));
            message[n] = (vlm_message_t) { VLM_USER, at, 2 };
            at += 2;
            n++;

        } else {
            message[n++] = say(at++, VLM_USER, t->turn[i].user, strlen(t->turn[i].user));
        }

        if (i + 1 < t->n) {
            message[n++] = say(at++, VLM_ASSISTANT, t->turn[i].answer, t->turn[i].n_answer);
        }
    }

    p = vlm_prompt_make(e, message, n, NULL, &err);
    if (p == NULL) {
        fail_msg("%s", err.text);
    }

    return p;
}


static vlm_prompt_t *
salted(vlm_prompt_t *p)
{
    static uint32_t  n;

    n++;
    vlm_prompt_salt(p, &n, sizeof(n));

    return p;
}


static vlm_sampling_t
sampling(uint64_t seed)
{
    vlm_sampling_t  s = vlm_tiny_sampling(seed);

    s.repetition_penalty = 1.1f;
    s.logprobs = 1;
    s.top_logprobs = 3;

    return s;
}


/* The same text, and log-probabilities with the same bits. */
static void
expect_same(const vlm_answer_t *a, const vlm_answer_t *b)
{
    size_t              i;
    const vlm_token_t  *t, *u;

    assert_int_equal(a->n_ends, 1);
    assert_int_equal(a->finish, b->finish);
    assert_int_equal(a->err.code, b->err.code);
    assert_int_equal(a->usage.prompt_tokens, b->usage.prompt_tokens);
    assert_int_equal(a->usage.completion_tokens, b->usage.completion_tokens);
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->text, b->text, a->bytes);
    assert_int_equal(a->n_tokens, b->n_tokens);

    for (i = 0; i < a->n_tokens; i++) {
        t = &a->tokens[i];
        u = &b->tokens[i];
        assert_int_equal(t->n_top, u->n_top);
        assert_memory_equal(&t->picked, &u->picked, sizeof(t->picked));
        assert_memory_equal(t->top, u->top, t->n_top * sizeof(t->top[0]));
    }
}


/* ---- at random ----------------------------------------------------------- */

static talk_t       talks[SESSIONS];
static uint64_t     cached_tokens, cached_pictures;
static uint32_t     calls_left;        /* of stop(), until this job is cancelled */
static vlm_job_t   *to_cancel;


static int
cancel_later(void *data)
{
    (void) data;

    if (to_cancel != NULL && calls_left-- == 0) {
        vlm_cancel(v, to_cancel);
        to_cancel = NULL;
    }

    return 0;
}


static void
add_words(char *text, size_t room)
{
    size_t                    n;
    uint32_t                  i, words;
    static const char *const  known[] = {
        "where", "is", "the", "cup", "red", "box", "left", "of", "it", "take", "42", "put", "down"
    };

    words = below(8) == 0 ? 100 : 1 + below(12);

    for (text[0] = '\0', n = 0, i = 0; i < words && n + 8 < room; i++) {
        n += (size_t) snprintf(text + n, room - n, "%s ", known[below(13)]);
    }
}


/* One turn more, of a conversation that goes on, starts again, or goes on like another. */
static void
grow(talk_t *t)
{
    turn_t        *turn;
    const talk_t  *other;

    if (t->n == TURNS || below(6) == 0) {
        t->n = 0;
        t->system = (int) below(3) - 1;

    } else if (below(6) == 0) {
        other = &talks[below(SESSIONS)];

        if (other != t && other->n > 0) {
            *t = *other;
            t->n = below(other->n);
        }
    }

    turn = &t->turn[t->n++];
    turn->picture = below(3) == 0 ? (int) below(4) : -1;
    add_words(turn->user, sizeof(turn->user));
}


static void
note_answer(talk_t *t, const vlm_answer_t *a)
{
    turn_t  *turn = &t->turn[t->n - 1];

    if (a->err.code != VLM_OK || a->bytes > sizeof(turn->answer)) {
        t->n = 0;
        return;
    }

    memcpy(turn->answer, a->text, a->bytes);
    turn->n_answer = (uint32_t) a->bytes;

    if (a->usage.prompt_tokens > LONG_PROMPT) {
        t->n = 0;
    }
}


/* Some sessions ask at once; one of them may cancel, one may send a request that is refused. */
static void
ask_batch(vlm_t *plain, uint64_t seed)
{
    uint32_t         i, n, leaves, fails;
    float            was;
    vlm_job_t       *j;
    vlm_prompt_t    *p;
    vlm_sampling_t   s;

    n = 1 + below(BATCH);
    leaves = below(3) == 0 ? below(n) : BATCH;
    fails = below(12) == 0;
    was = v->sched.model.norm.gain[3];
    memset(&orphan, 0, sizeof(orphan));

    for (i = 0; i < n; i++) {
        grow(&talks[i]);
        s = sampling(seed + i);
        s.max_tokens = 1 + below(20);

        p = salted(prompt_of(plain, &talks[i]));
        vlm_tiny_alone(plain, p, &s, &want[i]);
        assert_int_equal(want[i].usage.cached_tokens, 0);

        j = vlm_tiny_submit(v, prompt_of(v, &talks[i]), &s, &got[i]);

        if (i == leaves) {
            to_cancel = j;
            calls_left = below(60);
        }
    }

    v->sched.model.norm.gain[3] = fails ? NAN : was;
    vlm_tiny_run(v);
    v->sched.model.norm.gain[3] = was;
    to_cancel = NULL;
    vlm_tiny_drain(v, &orphan);

    for (i = 0; i < n; i++) {
        if (got[i].n_ends == 0) {
            assert_int_equal(i, leaves);
            assert_int_equal(orphan.n_ends, 1);
            talks[i].n = 0;
            continue;
        }

        if (fails) {
            assert_int_equal(got[i].err.code, VLM_EMODEL);
        } else {
            expect_same(&got[i], &want[i]);
            cached_tokens += got[i].usage.cached_tokens;
            cached_pictures += got[i].usage.cached_pictures;
            assert_true(got[i].usage.cached_tokens < got[i].usage.prompt_tokens);
            assert_true(got[i].usage.cached_pictures <= got[i].usage.pictures);
        }

        note_answer(&talks[i], &got[i]);
    }
}


static void
answers_have_the_same_bits_whatever_was_reused(vlm_type_t form, uint32_t slots, uint32_t batches)
{
    uint32_t   i;
    vlm_t     *plain;
    vlm_conf_t conf;

    memset(talks, 0, sizeof(talks));
    cached_tokens = cached_pictures = 0;
    random_state = 1000 * slots + form;
    plain = open_engine(form, 1);

    vlm_tiny_conf(&conf);
    conf.model = model;
    conf.weights = form;
    conf.kv_int8 = kv_int8;
    conf.slots = slots;
    conf.stop = cancel_later;
    v = vlm_tiny_open(&conf);

    for (i = 0; i < batches; i++) {
        ask_batch(plain, 1 + i * BATCH);
    }

    /* With one slot little is left of one session when it is asked again. */

    assert_true(cached_tokens > (slots == 1 ? 20 : 100) * batches);
    assert_true(cached_pictures > batches / 8);

    vlm_close(v);
    vlm_close(plain);
}


static void
int8_answers_have_the_same_bits_with_one_slot(void **state)
{
    (void) state;
    answers_have_the_same_bits_whatever_was_reused(VLM_INT8, 1, 40);
}


static void
int8_answers_have_the_same_bits_with_four_slots(void **state)
{
    (void) state;
    answers_have_the_same_bits_whatever_was_reused(VLM_INT8, 4, 60);
}


static void
bf16_answers_have_the_same_bits_with_one_slot(void **state)
{
    (void) state;
    answers_have_the_same_bits_whatever_was_reused(VLM_BF16, 1, 30);
}


static void
bf16_answers_have_the_same_bits_with_four_slots(void **state)
{
    (void) state;
    answers_have_the_same_bits_whatever_was_reused(VLM_BF16, 4, 40);
}


static void
f32_answers_have_the_same_bits_with_three_slots(void **state)
{
    (void) state;
    answers_have_the_same_bits_whatever_was_reused(VLM_F32, 3, 30);
}


static void
answers_of_a_model_whose_layers_add_features_have_the_same_bits(void **state)
{
    (void) state;
    model = DEEP;
    answers_have_the_same_bits_whatever_was_reused(VLM_INT8, 2, 20);
}


static void
answers_of_keys_and_values_in_int8_have_the_same_bits_with_three_slots(void **state)
{
    (void) state;
    kv_int8 = 1;
    answers_have_the_same_bits_whatever_was_reused(VLM_INT8, 3, 30);
}


static int
take_first_model(void **state)
{
    (void) state;
    model = CHECKPOINT;
    kv_int8 = 0;

    return 0;
}


/* ---- one thing at a time ------------------------------------------------- */

static vlm_prompt_t *
question(const char *text, int picture)
{
    talk_t  t;

    t.n = 1;
    t.system = -1;
    t.turn[0].picture = picture;
    (void) snprintf(t.turn[0].user, sizeof(t.turn[0].user), "%s", text);

    return prompt_of(v, &t);
}


static void
ask(vlm_prompt_t *p, vlm_answer_t *a)
{
    vlm_sampling_t  s = sampling(7);

    vlm_tiny_alone(v, p, &s, a);
    assert_int_equal(a->err.code, VLM_OK);
}


static void
a_prompt_that_was_read_is_read_again_for_its_last_token_alone(void **state)
{
    (void) state;
    v = open_engine(VLM_INT8, 2);

    ask(question("How many?", 0), &got[0]);
    assert_int_equal(got[0].usage.cached_tokens, 0);
    ask(question("How many?", 0), &got[1]);
    assert_int_equal(got[1].usage.cached_tokens, got[1].usage.prompt_tokens - 1);
    assert_int_equal(got[1].usage.cached_pictures, 1);
    assert_int_equal(got[1].usage.encode_ms, 0);
    expect_same(&got[1], &got[0]);

    vlm_close(v);
}


static void
a_sessions_next_turn_reads_only_what_is_new(void **state)
{
    talk_t    t;
    uint32_t  i, before;

    (void) state;
    v = open_engine(VLM_INT8, 2);
    memset(&t, 0, sizeof(t));
    t.system = 1;
    before = 0;

    for (i = 0; i < 5; i++) {
        t.turn[i].picture = i == 0 ? 0 : -1;
        (void) snprintf(t.turn[i].user, sizeof(t.turn[i].user), "And number %u?", i);
        t.n = i + 1;
        ask(prompt_of(v, &t), &got[0]);
        assert_true(got[0].usage.cached_tokens >= before);

        memcpy(t.turn[i].answer, got[0].text, got[0].bytes);
        t.turn[i].n_answer = (uint32_t) got[0].bytes;
        before = got[0].usage.prompt_tokens;
    }

    vlm_close(v);
}


static void
another_picture_of_the_same_size_is_another_beginning(void **state)
{
    uint32_t        at;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_prompt_t   *p, *q;
    vlm_prefix_t    x = { NULL, 0, 0, 0 };

    (void) state;
    v = open_engine(VLM_INT8, 1);
    assert_int_equal(vlm_prefix_open(&x, 1, 1024, &err), 0);

    p = question("How many?", 0);
    q = question("How many?", 0);
    at = p->picture_at[0];
    (void) vlm_prefix_begin(&x, 0, p);
    vlm_prefix_read(&x, 0, p->n);

    assert_int_equal(vlm_prefix_match(&x, 0, q), p->n - 1);
    q->picture[0]->sha256[0] ^= 1;
    assert_int_equal(vlm_prefix_match(&x, 0, q), at);
    q->picture[0]->sha256[0] ^= 1;
    q->picture[0]->grid_h ^= 1;
    assert_int_equal(vlm_prefix_match(&x, 0, q), at);
    q->picture[0]->grid_h ^= 1;
    q->token[at + 1]++;
    assert_int_equal(vlm_prefix_match(&x, 0, q), at);
    q->token[at + 1]--;
    vlm_prompt_salt(q, "x", 1);
    assert_int_equal(vlm_prefix_match(&x, 0, q), 0);

    vlm_prompt_free(p);
    vlm_prompt_free(q);
    vlm_prefix_close(&x);
    vlm_close(v);
}


static void
a_beginning_ends_before_a_picture_or_after_it(void **state)
{
    uint32_t        n, at, end;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_prompt_t   *p;
    vlm_prefix_t    x = { NULL, 0, 0, 0 };

    (void) state;
    v = open_engine(VLM_INT8, 1);
    assert_int_equal(vlm_prefix_open(&x, 1, 1024, &err), 0);

    p = question("How many?", 0);
    at = p->picture_at[0];
    end = at + p->picture[0]->n_cells;
    (void) vlm_prefix_begin(&x, 0, p);

    for (n = 0; n <= p->n; n++) {
        vlm_prefix_read(&x, 0, n);
        assert_int_equal(vlm_prefix_match(&x, 0, p),
                         n > at && n < end ? at : n < p->n ? n : n - 1);
        assert_int_equal(vlm_prefix_common(&x, 0, p), p->n - 1);
    }

    vlm_prompt_free(p);
    vlm_prefix_close(&x);
    vlm_close(v);
}


/* An answer's token may be the one that stands for a picture's rows. */
static void
an_answer_that_says_the_pictures_token_is_no_picture(void **state)
{
    uint32_t        i;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_prompt_t   *p, *q;
    vlm_prefix_t    x = { NULL, 0, 0, 0 };

    (void) state;
    v = open_engine(VLM_INT8, 1);
    assert_int_equal(vlm_prefix_open(&x, 1, 1024, &err), 0);

    q = question("How many?", 0);
    p = question("How many?", -1);
    p->n = q->picture_at[0];           /* what stands before the picture, and then an answer */
    memcpy(p->token, q->token, p->n * sizeof(*p->token));
    (void) vlm_prefix_begin(&x, 0, p);
    vlm_prefix_read(&x, 0, p->n);

    for (i = p->n; i + 1 < q->n; i++) {
        vlm_prefix_add(&x, 0, q->token[i]);
    }

    assert_int_equal(vlm_prefix_match(&x, 0, q), q->picture_at[0]);

    vlm_prompt_free(p);
    vlm_prompt_free(q);
    vlm_prefix_close(&x);
    vlm_close(v);
}


static void
two_sessions_that_take_turns_keep_a_slot_each(void **state)
{
    talk_t    t[2];
    uint32_t  i, k, before[2];

    (void) state;
    v = open_engine(VLM_INT8, 2);
    memset(t, 0, sizeof(t));

    for (i = 0; i < 8; i++) {
        k = i % 2;
        t[k].system = 1;               /* a long beginning that they share */
        t[k].turn[t[k].n].picture = i < 2 ? (int) k : -1;
        (void) snprintf(t[k].turn[t[k].n].user, MAX_TEXT, "Session %u asks for %u.", k, i);
        t[k].n++;

        ask(prompt_of(v, &t[k]), &got[k]);

        assert_true(i < 2 || got[k].usage.cached_tokens + 2 >= before[k]);
        before[k] = got[k].usage.prompt_tokens;

        memcpy(t[k].turn[t[k].n - 1].answer, got[k].text, got[k].bytes);
        t[k].turn[t[k].n - 1].n_answer = (uint32_t) got[k].bytes;
    }

    vlm_close(v);
}


static void
a_new_prompt_takes_the_slot_released_first(void **state)
{
    (void) state;
    v = open_engine(VLM_INT8, 2);

    ask(question("A: where is the cup on this table of wood?", 0), &got[0]);
    ask(question("B: where is the cup on this table of wood?", 1), &got[0]);
    ask(question("C: where is the cup on this table of wood?", 2), &got[0]);
    assert_int_equal(got[0].usage.cached_pictures, 0);

    ask(question("B: where is the cup on this table of wood?", 1), &got[0]);
    assert_int_equal(got[0].usage.cached_tokens, got[0].usage.prompt_tokens - 1);
    ask(question("C: where is the cup on this table of wood?", 2), &got[0]);
    assert_int_equal(got[0].usage.cached_tokens, got[0].usage.prompt_tokens - 1);
    ask(question("A: where is the cup on this table of wood?", 0), &got[0]);
    assert_true(got[0].usage.cached_tokens < got[0].usage.prompt_tokens / 2);

    vlm_close(v);
}


static void
questions_about_one_picture_leave_the_other_sessions_alone(void **state)
{
    char      text[64];
    uint32_t  i;

    (void) state;
    v = open_engine(VLM_INT8, 3);

    ask(question("A: where is the cup on this table of wood?", 1), &got[0]);

    for (i = 0; i < 10; i++) {
        (void) snprintf(text, sizeof(text), "%u", i);
        ask(question(text, 0), &got[0]);
        assert_true(i == 0 || got[0].usage.cached_pictures == 1);
    }

    ask(question("A: where is the cup on this table of wood?", 1), &got[0]);
    assert_int_equal(got[0].usage.cached_tokens, got[0].usage.prompt_tokens - 1);

    vlm_close(v);
}


static void
five_requests_with_one_picture_read_it_once(void **state)
{
    char            text[64];
    uint32_t        i, read;
    vlm_sampling_t  s = sampling(7);

    (void) state;
    v = open_engine(VLM_INT8, 5);

    for (i = 0; i < 5; i++) {
        (void) snprintf(text, sizeof(text), "%u is what I ask for", i);
        vlm_tiny_alone(v, salted(question(text, 0)), &s, &want[i]);
    }

    vlm_close(v);
    v = open_engine(VLM_INT8, 5);

    for (i = 0; i < 5; i++) {
        (void) snprintf(text, sizeof(text), "%u is what I ask for", i);
        (void) vlm_tiny_submit(v, question(text, 0), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (read = 0, i = 0; i < 5; i++) {
        expect_same(&got[i], &want[i]);
        read += got[i].usage.prompt_tokens - got[i].usage.cached_tokens;
    }

    /* One reads all of it, the others their own words and the template's end. */

    assert_true(read < got[0].usage.prompt_tokens + 4 * 25);
    vlm_close(v);
}


static void
a_request_that_waits_for_one_that_leaves_goes_on_alone(void **state)
{
    uint32_t        calls, i;
    vlm_conf_t      conf;
    vlm_sampling_t  s = sampling(7);

    (void) state;

    vlm_tiny_conf(&conf);
    conf.slots = 3;
    conf.stop = cancel_later;

    for (calls = 0; calls < 40; calls += 3) {
        v = vlm_tiny_open(&conf);
        vlm_tiny_alone(v, salted(question("How many?", 0)), &s, &want[0]);
        memset(&orphan, 0, sizeof(orphan));

        for (i = 0; i < 3; i++) {
            (void) vlm_tiny_submit(v, question("How many?", 0), &s, &got[i]);
        }

        calls_left = calls;
        to_cancel = v->submitted;      /* the first: the others wait for its rows */
        vlm_tiny_run(v);
        to_cancel = NULL;
        vlm_tiny_drain(v, &orphan);

        assert_int_equal(orphan.n_ends + got[0].n_ends, 1);
        expect_same(&got[1], &want[0]);
        expect_same(&got[2], &want[0]);
        vlm_close(v);
    }
}


static void
a_prompt_with_another_salt_is_read_from_its_first_token_on(void **state)
{
    vlm_prompt_t  *p;

    (void) state;
    v = open_engine(VLM_INT8, 4);

    p = question("How many?", 0);
    vlm_prompt_salt(p, "tenant 1", 8);
    ask(p, &got[0]);

    p = question("How many?", 0);
    vlm_prompt_salt(p, "tenant 2", 8);
    ask(p, &got[1]);
    assert_int_equal(got[1].usage.cached_tokens, 0);
    assert_int_equal(got[1].usage.cached_pictures, 0);
    expect_same(&got[1], &got[0]);

    ask(question("How many?", 0), &got[1]);
    assert_int_equal(got[1].usage.cached_tokens, 0);

    p = question("How many?", 0);
    vlm_prompt_salt(p, "tenant 1", 8);
    ask(p, &got[1]);
    assert_int_equal(got[1].usage.cached_tokens, got[1].usage.prompt_tokens - 1);

    vlm_close(v);
}


static void
reused_tokens_are_counted_since_the_start(void **state)
{
    uint32_t     i, tokens;
    vlm_stat_t   stat;

    (void) state;
    v = open_engine(VLM_INT8, 2);

    for (tokens = 0, i = 0; i < 3; i++) {
        ask(question("How many?", 0), &got[0]);
        tokens += got[0].usage.cached_tokens;
    }

    vlm_stat(v, &stat);
    assert_true(tokens > 0);
    assert_int_equal(stat.cached_tokens, tokens);
    assert_int_equal(stat.pictures, 3);
    assert_int_equal(stat.cached_pictures, 2);
    vlm_close(v);
}


static void
logits_of_a_prompt_leave_nothing_to_reuse_that_is_wrong(void **state)
{
    float           *logits;
    uint32_t         V;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_prompt_t    *p;

    (void) state;
    v = open_engine(VLM_INT8, 1);

    ask(question("How many?", 0), &got[0]);
    p = question("Something else", 1);
    assert_int_equal(vlm_logits(v, p, &logits, &V, &err), 0);
    free(logits);
    vlm_prompt_free(p);

    ask(question("How many?", 0), &got[1]);
    assert_int_equal(got[1].usage.cached_tokens, 0);
    assert_int_equal(got[1].usage.cached_pictures, 0);
    expect_same(&got[1], &got[0]);

    vlm_close(v);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(int8_answers_have_the_same_bits_with_one_slot),
        cmocka_unit_test(int8_answers_have_the_same_bits_with_four_slots),
        cmocka_unit_test(bf16_answers_have_the_same_bits_with_one_slot),
        cmocka_unit_test(bf16_answers_have_the_same_bits_with_four_slots),
        cmocka_unit_test(f32_answers_have_the_same_bits_with_three_slots),
        cmocka_unit_test_teardown(answers_of_a_model_whose_layers_add_features_have_the_same_bits,
                                  take_first_model),
        cmocka_unit_test_teardown(
            answers_of_keys_and_values_in_int8_have_the_same_bits_with_three_slots,
            take_first_model),
        cmocka_unit_test(a_prompt_that_was_read_is_read_again_for_its_last_token_alone),
        cmocka_unit_test(a_sessions_next_turn_reads_only_what_is_new),
        cmocka_unit_test(another_picture_of_the_same_size_is_another_beginning),
        cmocka_unit_test(a_beginning_ends_before_a_picture_or_after_it),
        cmocka_unit_test(an_answer_that_says_the_pictures_token_is_no_picture),
        cmocka_unit_test(two_sessions_that_take_turns_keep_a_slot_each),
        cmocka_unit_test(a_new_prompt_takes_the_slot_released_first),
        cmocka_unit_test(questions_about_one_picture_leave_the_other_sessions_alone),
        cmocka_unit_test(five_requests_with_one_picture_read_it_once),
        cmocka_unit_test(a_request_that_waits_for_one_that_leaves_goes_on_alone),
        cmocka_unit_test(a_prompt_with_another_salt_is_read_from_its_first_token_on),
        cmocka_unit_test(reused_tokens_are_counted_since_the_start),
        cmocka_unit_test(logits_of_a_prompt_leave_nothing_to_reuse_that_is_wrong)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
