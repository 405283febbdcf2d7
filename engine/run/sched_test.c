/*
 * The state machine over a tiny model: slots and lengths, stop strings, events, refused settings
 * and a broken model.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <poll.h>
#include <unistd.h>

#include "run/sched_fixture.h"


/* ---- slots, lengths, texts ----------------------------------------------- */

static void
more_jobs_than_slots_have_the_answers_that_they_have_alone(void **state)
{
    uint32_t        i;
    vlm_sampling_t  s;

    (void) state;
    ask_alone();

    for (i = 0; i < 12; i++) {
        s = vlm_tiny_sampling(i % 5 + 1);
        (void) vlm_tiny_submit(v, prompt(i % 5), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (i = 0; i < 12; i++) {
        check_answer(&got[i], &alone[i % 5]);
    }
}


/* A spy in place of stop(): did a job decode while a picture was in the vision encoder? */
static int
watch_encoder(void *data)
{
    uint32_t          i;
    const vlm_job_t  *j;

    for (i = 0; v->sched.encoder != VLM_NONE && i < v->conf.slots; i++) {
        j = v->sched.slot[i];

        if (j != NULL && j->state == VLM_DECODING) {
            *(int *) data = 1;
        }
    }

    return 0;
}


static void
a_text_is_read_and_answered_while_a_picture_is_in_the_encoder(void **state)
{
    int             seen;
    uint32_t        i;
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    seen = 0;
    hook.act = watch_encoder;
    hook.data = &seen;

    for (i = 0; i < 4; i++) {
        (void) vlm_tiny_submit(v, prompt(i % 2 == 0 ? 1 : 3), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    assert_int_equal(seen, 1);
}


static void
an_answer_has_at_most_max_tokens(void **state)
{
    uint32_t        max;
    vlm_sampling_t  s;

    (void) state;

    for (max = 1; max <= 9; max += 4) {
        s = vlm_tiny_sampling(3);
        s.max_tokens = max;
        vlm_tiny_alone(v, prompt(0), &s, &got[0]);

        assert_int_equal(got[0].finish, VLM_FINISH_LENGTH);
        assert_int_equal(got[0].usage.completion_tokens, max);
    }
}


static void
max_tokens_of_the_configuration_is_a_ceiling(void **state)
{
    vlm_t          *other;
    vlm_conf_t      conf;
    vlm_sampling_t  s;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.max_tokens = 6;
    other = vlm_tiny_open(&conf);

    s = vlm_tiny_sampling(3);
    s.max_tokens = 100;
    vlm_tiny_alone(other, vlm_tiny_prompt(other, "Where is the cup?", 0), &s, &got[0]);
    assert_int_equal(got[0].usage.completion_tokens, 6);

    s.max_tokens = 0;
    vlm_tiny_alone(other, vlm_tiny_prompt(other, "Where is the cup?", 0), &s, &got[0]);
    assert_int_equal(got[0].usage.completion_tokens, 6);

    vlm_close(other);
}


/* The context takes prompt and answer: the fullest prompt has room for one token. */
static void
a_prompt_may_fill_the_context_but_for_one_token(void **state)
{
    char            text[2048];
    uint32_t        n;
    vlm_err_t       err;
    vlm_part_t      part = { .text = text, .bytes = 0 };
    vlm_prompt_t   *p;
    vlm_sampling_t  s = vlm_tiny_sampling(3);

    (void) state;
    memset(text, '7', sizeof(text));   /* a digit is always a token of its own */

    for (n = v->conf.context - 2; n <= v->conf.context; n++) {
        memset(&err, 0, sizeof(err));
        part.bytes = n;
        p = vlm_prompt_raw(v, &part, 1, &err);

        if (n == v->conf.context) {
            assert_null(p);
            assert_int_equal(err.code, VLM_ELIMIT);
            assert_non_null(strstr(err.text, "is 1024 tokens"));
            assert_non_null(strstr(err.text, "has 1024"));
            break;
        }

        assert_non_null(p);
        assert_int_equal(vlm_prompt_tokens(p), n);
        vlm_tiny_alone(v, p, &s, &got[0]);
        assert_true(got[0].finish == VLM_FINISH_LENGTH || got[0].finish == VLM_FINISH_STOP);
        assert_true(got[0].usage.completion_tokens <= v->conf.context - n);
    }
}


static void
the_same_seed_has_the_same_answer_and_none_has_another_each_time(void **state)
{
    uint32_t        i;
    vlm_sampling_t  s = vlm_tiny_sampling(77);

    (void) state;

    for (i = 0; i < 6; i++) {
        s.seed = i < 3 ? 77 : i < 4 ? 78 : 0;
        vlm_tiny_alone(v, prompt(0), &s, &got[i]);
    }

    check_answer(&got[1], &got[0]);
    check_answer(&got[2], &got[0]);
    assert_string_not_equal(got[3].text, got[0].text);
    assert_string_not_equal(got[4].text, got[5].text);
}


static void
usage_and_counters_add_up(void **state)
{
    vlm_stat_t      before, after;
    vlm_prompt_t   *p;
    vlm_sampling_t  s = vlm_tiny_sampling(5);

    (void) state;

    vlm_stat(v, &before);
    p = prompt(4);
    assert_true(vlm_prompt_tokens(p) > 35);
    vlm_tiny_submit(v, p, &s, &got[0]);
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    vlm_stat(v, &after);

    assert_int_equal(after.state, VLM_READY);
    assert_int_equal(after.progress, 100);
    assert_int_equal(after.running, 0);
    assert_true(after.ticks > before.ticks);
    assert_int_equal(after.prompt_tokens - before.prompt_tokens, got[0].usage.prompt_tokens);
    assert_int_equal(after.completion_tokens - before.completion_tokens,
                     got[0].usage.completion_tokens);
    assert_true(got[0].usage.first_ms >= got[0].usage.encode_ms);

    /* The rows stay in the cache, and vlm_stat() counts them. */

    assert_true(after.kv_rows >= got[0].usage.prompt_tokens);
}


/* ---- stop strings -------------------------------------------------------- */

static void
an_answer_ends_before_a_stop_string(void **state)
{
    char             stop[64];
    size_t           at, len, cut;
    const char      *list[2] = { "never said", stop };
    vlm_sampling_t   s = vlm_tiny_sampling(9);

    (void) state;

    vlm_tiny_alone(v, prompt(0), &s, &alone[5]);
    assert_true(alone[5].bytes > 20);

    for (at = 0; at < alone[5].bytes; at += 3) {
        for (len = 1; len <= 9 && at + len <= alone[5].bytes; len += 4) {
            if ((alone[5].text[at] & 0xc0) == 0x80) {
                continue;              /* a stop string is text: it begins with a character */
            }

            memcpy(stop, alone[5].text + at, len);
            stop[len] = '\0';

            s.stop = list;
            s.n_stop = 2;
            vlm_tiny_alone(v, prompt(0), &s, &got[0]);

            cut = (size_t) (strstr(alone[5].text, stop) - alone[5].text);
            assert_int_equal(got[0].finish, VLM_FINISH_STOP);
            assert_int_equal(got[0].bytes, cut);
            assert_memory_equal(got[0].text, alone[5].text, cut);
            assert_true(got[0].usage.completion_tokens <= alone[5].usage.completion_tokens);
        }
    }
}


/* The beginning of a stop string is held back, and shown if nothing comes of it. */
static void
the_beginning_of_a_stop_string_is_shown_at_the_end(void **state)
{
    char             stop[64];
    const char      *list[1] = { stop };
    vlm_sampling_t   s = vlm_tiny_sampling(9);

    (void) state;

    vlm_tiny_alone(v, prompt(0), &s, &alone[5]);
    (void) snprintf(stop, sizeof(stop), "%.5s and more", alone[5].text + alone[5].bytes - 5);

    s.stop = list;
    s.n_stop = 1;
    vlm_tiny_alone(v, prompt(0), &s, &got[0]);
    check_answer(&got[0], &alone[5]);
}


/* ---- the loop's side ----------------------------------------------------- */

static int
drain_now(void *data)
{
    (void) data;
    vlm_tiny_drain(v, NULL);

    return 0;
}


static void
a_loop_that_looks_rarely_gets_all_in_one_piece(void **state)
{
    vlm_sampling_t  s = vlm_tiny_sampling(9);

    (void) state;

    vlm_tiny_alone(v, prompt(1), &s, &got[0]);
    assert_int_equal(got[0].n_texts, 1);

    (void) vlm_tiny_submit(v, prompt(1), &s, &got[1]);
    hook.act = drain_now;
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    assert_true(got[1].n_texts > 5);
    check_answer(&got[1], &got[0]);
}


/* Each piece is whole characters: the lead bytes say so. */
static int
check_pieces(void *data)
{
    size_t        i, n;
    vlm_event_t   e;
    uint32_t     *pieces = data;

    while (vlm_next_event(v, &e)) {
        for (i = 0; e.kind == VLM_TEXT && i < e.bytes; i += n) {
            n = (uint8_t) e.text[i] < 0x80 ? 1 : (uint8_t) e.text[i] < 0xe0 ? 2
                : (uint8_t) e.text[i] < 0xf0 ? 3 : 4;
            assert_int_not_equal(e.text[i] & 0xc0, 0x80);
            assert_true(i + n <= e.bytes);
        }

        *pieces += e.kind == VLM_TEXT;
    }

    return 0;
}


static void
no_piece_of_text_ends_within_a_character(void **state)
{
    uint32_t        seed, pieces;
    vlm_sampling_t  s;

    (void) state;

    pieces = 0;
    hook.act = check_pieces;
    hook.data = &pieces;

    for (seed = 1; seed < 12; seed++) {
        s = vlm_tiny_sampling(seed);
        s.temperature = 3;             /* random bytes */
        (void) vlm_tiny_submit(v, prompt(0), &s, &got[0]);
        vlm_tiny_run(v);
        (void) check_pieces(&pieces);
    }

    assert_true(pieces > 100);
}


typedef struct {
    int       submitted, idle;
    uint32_t  asked;
} late_t;


static int
submit_late(void *data)
{
    late_t          *l = data;
    vlm_err_t        err = { VLM_OK, "" };
    vlm_sampling_t   s = vlm_tiny_sampling(4);

    if (++l->asked == 25 && !l->submitted) {
        l->submitted = 1;
        assert_non_null(vlm_submit(v, prompt(3), &s, &got[1], &l->idle, &err));
    }

    return 0;
}


static void
only_a_job_that_no_run_would_see_asks_for_one(void **state)
{
    int             idle;
    late_t          late = { 0, 1, 0 };
    vlm_err_t       err = { VLM_OK, "" };
    vlm_sampling_t  s = vlm_tiny_sampling(4);

    (void) state;

    memset(&got[0], 0, sizeof(got[0]));
    assert_non_null(vlm_submit(v, prompt(0), &s, &got[0], &idle, &err));
    assert_int_equal(idle, 1);

    hook.act = submit_late;
    hook.data = &late;
    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    assert_true(late.submitted);
    assert_int_equal(late.idle, 0);
    assert_int_equal(got[0].n_ends, 1);
    assert_int_equal(got[1].n_ends, 1);
}


static void
the_descriptor_is_readable_after_news_and_not_before(void **state)
{
    uint64_t        n;
    struct pollfd   p = { vlm_fd(v), POLLIN, 0 };
    vlm_sampling_t  s = vlm_tiny_sampling(4);

    (void) state;

    (void) !read(p.fd, &n, sizeof(n));
    assert_int_equal(poll(&p, 1, 0), 0);

    (void) vlm_tiny_submit(v, prompt(0), &s, &got[0]);
    assert_int_equal(poll(&p, 1, 0), 0);
    vlm_tiny_run(v);
    assert_int_equal(poll(&p, 1, 0), 1);

    assert_int_equal(read(p.fd, &n, sizeof(n)), sizeof(n));
    vlm_tiny_drain(v, NULL);
    assert_int_equal(poll(&p, 1, 0), 0);
}


/* ---- refusals, and a broken model ----------------------------------------- */

static void
settings_out_of_range_are_refused_and_the_prompt_stays_with_the_caller(void **state)
{
    int              idle;
    char             long_stop[2000];
    uint32_t         i;
    vlm_err_t        err;
    const char      *stops[17];
    vlm_prompt_t    *p;
    vlm_sampling_t   s;

    (void) state;

    p = prompt(4);
    memset(long_stop, 'a', sizeof(long_stop));
    long_stop[sizeof(long_stop) - 1] = '\0';

    for (i = 0; i < 17; i++) {
        stops[i] = i == 0 ? long_stop : "a";
    }

    for (i = 0; i < 11; i++) {
        memset(&err, 0, sizeof(err));
        s = vlm_tiny_sampling(1);
        s.temperature = i == 0 ? -1 : i == 1 ? NAN : i == 2 ? 101 : 1;
        s.top_p = i == 3 ? 0 : i == 4 ? 1.5f : i == 5 ? NAN : 1;
        s.repetition_penalty = i == 6 ? 0 : i == 7 ? INFINITY : i == 8 ? NAN : 1;
        s.stop = i == 9 ? stops + 1 : stops;
        s.n_stop = i == 9 ? 17 : i == 10 ? 1 : 0;

        assert_null(vlm_submit(v, p, &s, NULL, &idle, &err));
        assert_int_equal(err.code, VLM_EINPUT);
        assert_true(strlen(err.text) > 20);
    }

    vlm_prompt_free(p);
}


static void
stop_strings_that_are_not_there_are_none(void **state)
{
    vlm_sampling_t  s = vlm_tiny_sampling(9);

    (void) state;

    vlm_tiny_alone(v, prompt(0), &s, &got[0]);
    s.n_stop = 3;
    s.stop = NULL;
    vlm_tiny_alone(v, prompt(0), &s, &got[1]);
    check_answer(&got[1], &got[0]);
}


static void
logits_that_are_no_numbers_end_the_answer_with_an_error(void **state)
{
    float           was;
    uint32_t        i;
    vlm_sampling_t  s = vlm_tiny_sampling(4);

    (void) state;
    ask_alone();

    was = v->sched.model.norm.gain[3];
    v->sched.model.norm.gain[3] = NAN;

    for (i = 0; i < 3; i++) {
        (void) vlm_tiny_submit(v, prompt(i), &s, &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);
    v->sched.model.norm.gain[3] = was;

    for (i = 0; i < 3; i++) {
        assert_int_equal(got[i].n_ends, 1);
        assert_int_equal(got[i].err.code, VLM_EMODEL);
        assert_int_equal(got[i].bytes, 0);
    }

    s = vlm_tiny_sampling(1);
    vlm_tiny_alone(v, prompt(0), &s, &got[0]);
    check_answer(&got[0], &alone[0]);
}


int
main(void)
{
#define TEST(name)  cmocka_unit_test_setup(name, forget_hook)

    const struct CMUnitTest  tests[] = {
        TEST(more_jobs_than_slots_have_the_answers_that_they_have_alone),
        TEST(a_text_is_read_and_answered_while_a_picture_is_in_the_encoder),
        TEST(an_answer_has_at_most_max_tokens),
        TEST(max_tokens_of_the_configuration_is_a_ceiling),
        TEST(a_prompt_may_fill_the_context_but_for_one_token),
        TEST(the_same_seed_has_the_same_answer_and_none_has_another_each_time),
        TEST(usage_and_counters_add_up),
        TEST(an_answer_ends_before_a_stop_string),
        TEST(the_beginning_of_a_stop_string_is_shown_at_the_end),
        TEST(a_loop_that_looks_rarely_gets_all_in_one_piece),
        TEST(no_piece_of_text_ends_within_a_character),
        TEST(only_a_job_that_no_run_would_see_asks_for_one),
        TEST(the_descriptor_is_readable_after_news_and_not_before),
        TEST(settings_out_of_range_are_refused_and_the_prompt_stays_with_the_caller),
        TEST(stop_strings_that_are_not_there_are_none),
        TEST(logits_that_are_no_numbers_end_the_answer_with_an_error)
    };

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
