/*
 * Forced tokens, through the whole engine: answers with them are those without them, in fewer
 * steps, and what is told of an answer is the same.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/json_out.h"
#include "run/fixture.h"

#define DEMO   "demo/model"
#define SLOTS  12
#define TABLE  "Where are the cups on the table?"

#define BOXES  "{\"type\":\"array\",\"minItems\":4,\"maxItems\":4,\"items\":{\"type\":\"object\"," \
               "\"properties\":{\"bbox_2d\":{\"type\":\"array\",\"minItems\":4,\"maxItems\":4," \
               "\"items\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":999}}," \
               "\"label\":{\"type\":\"string\",\"maxLength\":12}}," \
               "\"required\":[\"bbox_2d\",\"label\"],\"additionalProperties\":false}}"

/* Answers; under sanitizers the model is some eight times slower. */
#ifdef __SANITIZE_ADDRESS__
#define N_ANSWERS  3
#else
#define N_ANSWERS  20
#endif

static const char *const  schemas[] = {
    BOXES,
    "{\"type\":\"object\",\"properties\":{\"direction\":{\"enum\":[\"forward\",\"backward\"]},"
    "\"distance_in_metres\":{\"type\":\"number\",\"minimum\":0,\"maximum\":9},"
    "\"reason\":{\"type\":\"string\",\"maxLength\":12}},"
    "\"required\":[\"direction\",\"distance_in_metres\",\"reason\"],"
    "\"additionalProperties\":false}",
    "{\"const\":{\"the only answer\":[1,2,{\"caf\xc3\xa9\":null}]}}",
    "{\"type\":\"object\",\"properties\":{\"when\":{\"type\":\"string\",\"format\":\"date\"},"
    "\"colour of it\":{\"type\":\"string\",\"pattern\":\"^#[0-9a-f]{6}$\"}},"
    "\"required\":[\"when\",\"colour of it\"],\"additionalProperties\":false}",
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"boolean\"}}}"
};

#define N_SCHEMAS  (sizeof(schemas) / sizeof(schemas[0]))

static vlm_t         *v;               /* two slots, f32 */
static vlm_answer_t   got[4];
static const char    *question = TABLE;
static uint32_t       n_pictures;


static int
open_engine(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.model = DEMO;
    conf.weights = VLM_F32;
    v = vlm_tiny_open(&conf);

    return 0;
}


static int
close_engine(void **state)
{
    (void) state;
    vlm_close(v);

    return 0;
}


static vlm_grammar_t *
compile(const char *text, vlm_form_t kind)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    j = vlm_json_parse(text, strlen(text), &err);
    assert_non_null(j);
    g = vlm_grammar_make(v, j, kind, &err);

    if (g == NULL) {
        fail_msg("%s", err.text);
    }

    vlm_json_free(j);

    return g;
}


static void
ask(const vlm_sampling_t *s, int unforced, vlm_answer_t *a)
{
    v->sched.adjust.unforced = unforced;
    vlm_tiny_alone(v, vlm_tiny_prompt(v, question, n_pictures), s, a);
    v->sched.adjust.unforced = 0;

    if (a->err.code != VLM_OK) {
        fail_msg("%s", a->err.text);
    }
}


static uint64_t
forced(void)
{
    vlm_stat_t  stat;

    vlm_stat(v, &stat);

    return stat.forced_tokens;
}


/* The share of an answer's tokens that took a step. */
static double
share(const char *schema, float temperature, uint32_t n)
{
    uint32_t        i, tokens;
    uint64_t        before;
    vlm_grammar_t  *g = compile(schema, VLM_FORM_SCHEMA);
    vlm_sampling_t  s;

    before = forced();

    for (i = 1, tokens = 0; i <= n; i++) {
        s = vlm_tiny_sampling(i);
        s.temperature = temperature;
        s.max_tokens = 400;
        s.grammar = g;
        ask(&s, 0, &got[0]);
        assert_int_equal(got[0].finish, VLM_FINISH_STOP);
        tokens += got[0].usage.completion_tokens;
    }

    vlm_grammar_free(g);

    return 1 - (double) (forced() - before) / tokens;
}


static void
a_list_of_four_boxes_takes_at_most_0_65_of_the_steps(void **state)
{
    double  greedy, hot;

    (void) state;

    greedy = share(BOXES, 0, 1);
    hot = share(BOXES, 1, N_ANSWERS);
    print_message("%.2f of the steps, at temperature 1 %.2f\n", greedy, hot);
    assert_true(greedy <= 0.65);
    assert_true(hot <= 0.65);
}


/* 1: the answer's tokens are those that the tokenizer makes of its text. */
static int
is_canonical(const vlm_answer_t *a)
{
    int         same;
    size_t      n, i;
    uint32_t   *ids;
    vlm_err_t   err = { VLM_OK, "" };

    assert_int_equal(vlm_tokenize(v, a->text, a->bytes, &ids, &n, &err), 0);

    for (i = 0, same = n == a->n_tokens; same && i < n; i++) {
        same = ids[i] == a->tokens[i].picked.id;
    }

    free(ids);

    return same;
}


/* A choice of two answers, as a JSON array. */
static vlm_grammar_t *
compile_choice(const vlm_answer_t *a, const char *other)
{
    vlm_grammar_t   *g;
    vlm_json_out_t   w;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '[');
    vlm_json_put_text(&w, a->text, a->bytes);
    vlm_json_put_text(&w, other, strlen(other));
    vlm_json_shut(&w, ']');
    assert_int_equal(vlm_json_done(&w), 0);
    w.data[w.len - 1] = '\0';          /* in place of the newline */
    g = compile((const char *) w.data, VLM_FORM_CHOICE);
    vlm_json_release(&w);

    return g;
}


/* The model's own answer is the likelier one of two; without forced tokens it is the same. */
static void
a_greedy_answer_of_the_tokenizers_own_tokens_is_the_same(void **state)
{
    uint32_t                  i, compared;
    uint64_t                  before, n;
    vlm_grammar_t            *g;
    vlm_sampling_t            s;
    static const char *const  questions[] = {
        "What is on the table?", "How many cups are there?", "What colour is the cup?",
        "Where is the bowl?", "Is there a bottle?", "Which object is left of the cup?"
    };

    (void) state;

    for (n = 0, compared = 0, i = 0; i < 6; i++) {
        question = questions[i];
        n_pictures = 1;
        s = vlm_tiny_sampling(1);
        s.temperature = 0;
        s.max_tokens = 100;
        ask(&s, 0, &got[0]);
        g = compile_choice(&got[0], i % 2 == 0 ? "The answer is not known." : "[[1, 2]]");
        s.grammar = g;
        s.logprobs = 1;
        ask(&s, 1, &got[1]);
        s.logprobs = 0;
        before = forced();
        ask(&s, 0, &got[2]);
        if (is_canonical(&got[1])) {
            assert_string_equal(got[1].text, got[2].text);
            n += forced() - before;
            compared++;
        }

        vlm_grammar_free(g);
    }

    question = TABLE;
    n_pictures = 0;
    assert_true(compared >= 4);
    assert_true(n > 20);
}


/* With them tokens are not fed: each has a row of logits, whose pick has one way. */
static void
an_answer_is_the_same_with_log_probabilities(void **state)
{
    size_t          bytes, said;
    uint32_t        i, k, n;
    uint64_t        before;
    vlm_grammar_t  *g;
    vlm_sampling_t  s;

    (void) state;

    for (i = 1; i < N_SCHEMAS; i++) {
        g = compile(schemas[i], VLM_FORM_SCHEMA);

        for (k = 0; k < 3; k++) {
            s = vlm_tiny_sampling(7 + k);
            s.temperature = 0.5f * (float) k;
            s.repetition_penalty = 1 + 0.15f * (float) k;
            s.frequency_penalty = k == 2 ? 0.5f : 0;
            s.max_tokens = TOKENS;
            s.grammar = g;
            ask(&s, 0, &got[0]);
            before = forced();
            s.logprobs = 1;
            ask(&s, 0, &got[1]);
            assert_int_equal(forced(), before);

            assert_string_equal(got[0].text, got[1].text);
            assert_int_equal(got[0].finish, got[1].finish);
            assert_int_equal(got[0].usage.completion_tokens, got[1].usage.completion_tokens);
            assert_int_equal(got[1].n_tokens, got[1].usage.completion_tokens);

            for (said = 0, n = 0; n < got[1].n_tokens; n++) {
                assert_non_null(vlm_piece(v, got[1].tokens[n].picked.id, &bytes));
                said += bytes;
            }

            assert_int_equal(said, got[1].bytes);
        }

        vlm_grammar_free(g);
    }
}


static void
a_text_without_any_choice_has_the_tokenizers_own_tokens(void **state)
{
    vlm_sampling_t  s = vlm_tiny_sampling(3);
    vlm_grammar_t  *g = compile(schemas[2], VLM_FORM_SCHEMA);

    (void) state;

    s.temperature = 1.5f;
    s.max_tokens = 60;
    s.grammar = g;
    s.logprobs = 1;
    ask(&s, 0, &got[0]);
    assert_string_equal(got[0].text, "{\"the only answer\":[1,2,{\"caf\xc3\xa9\":null}]}");
    assert_true(is_canonical(&got[0]));
    vlm_grammar_free(g);
}


/* Also within a forced text, of which the tokenizer's own tokens may not fit. */
static void
an_answer_is_whole_whatever_its_budget(void **state)
{
    uint32_t        i, budget, fitting;
    vlm_json_t     *j;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    vlm_sampling_t  s;

    (void) state;

    for (fitting = 0, i = 1; i < N_SCHEMAS; i++) {
        g = compile(schemas[i], VLM_FORM_SCHEMA);

        for (budget = vlm_grammar_least(g); budget < vlm_grammar_least(g) + 12; budget++) {
            s = vlm_tiny_sampling(budget);
            s.max_tokens = budget;
            s.grammar = g;
            ask(&s, 0, &got[0]);
            assert_int_equal(got[0].finish, VLM_FINISH_STOP);
            assert_true(got[0].usage.completion_tokens <= budget);
            j = vlm_json_named(got[0].text, got[0].bytes, "answer", &err);
            assert_non_null(j);
            vlm_json_free(j);
            fitting++;
        }

        vlm_grammar_free(g);
    }

    assert_true(fitting > 40);
}


static void
a_stop_string_in_forced_text_ends_the_answer_there(void **state)
{
    const char      *stop[] = { "swer\":[1" };
    vlm_sampling_t   s = vlm_tiny_sampling(3);
    vlm_grammar_t   *g = compile(schemas[2], VLM_FORM_SCHEMA);

    (void) state;

    s.max_tokens = 60;
    s.grammar = g;
    s.stop = stop;
    s.n_stop = 1;
    ask(&s, 0, &got[0]);
    assert_string_equal(got[0].text, "{\"the only an");
    assert_int_equal(got[0].finish, VLM_FINISH_STOP);
    vlm_grammar_free(g);
}


/* Four answers for two slots: rows of several in one pass, and prompts beside them. */
static void
answers_at_once_are_those_that_each_has_alone(void **state)
{
    uint32_t        i;
    vlm_answer_t    want;
    vlm_grammar_t  *g[4];
    vlm_sampling_t  s[4];

    (void) state;

    for (i = 0; i < 4; i++) {
        g[i] = i == 3 ? NULL : compile(schemas[i], VLM_FORM_SCHEMA);
        s[i] = vlm_tiny_sampling(20 + i);
        s[i].repetition_penalty = i % 2 == 0 ? 1.2f : 1;
        s[i].max_tokens = 300;
        s[i].grammar = g[i];
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, TABLE, 0), &s[i],
                               &got[i]);
    }

    vlm_tiny_run(v);
    vlm_tiny_drain(v, NULL);

    for (i = 0; i < 4; i++) {
        assert_int_equal(got[i].err.code, VLM_OK);
        ask(&s[i], 0, &want);
        assert_string_equal(got[i].text, want.text);
        vlm_grammar_free(g[i]);
    }
}


/* The engine asks before each step: once all decode, each has 32 forced tokens more. */
static int
feed_all(void *data)
{
    uint32_t    i, k, n;
    vlm_t      *engine = *(vlm_t **) data;
    vlm_job_t  *j;

    static int  fed;

    if (engine == NULL) {
        return 0;                      /* it loads */
    }

    assert_true(engine->sched.rows.T <= VLM_SLICE);

    for (n = 0, i = 0; i < SLOTS; i++) {
        j = engine->sched.slot[i];
        n += j != NULL && j->state == VLM_DECODING && j->n_fed == 0;
    }

    for (i = 0; n == SLOTS && !fed && i < SLOTS; i++) {
        j = engine->sched.slot[i];

        for (k = 0; k <= VLM_FED; k++) {
            j->fed[k] = j->token;
        }

        j->n_fed = 1 + VLM_FED;
    }

    fed |= n == SLOTS;

    return 0;
}


/*
 * Sequences that sat out steps for their masks may all go on in one step, each with the forced
 * tokens that it has had since.
 */
static void
a_step_has_no_more_rows_than_a_slice(void **state)
{
    vlm_t           *many = NULL;
    uint32_t         i;
    vlm_conf_t       conf;
    vlm_answer_t     answers[SLOTS];
    vlm_sampling_t   s = vlm_tiny_sampling(1);

    (void) state;

    vlm_tiny_conf(&conf);
    conf.model = DEMO;
    conf.weights = VLM_F32;
    conf.slots = SLOTS;
    conf.stop = feed_all;
    conf.data = &many;
    many = vlm_tiny_open(&conf);
    s.max_tokens = 60;
    s.min_tokens = 60;

    for (i = 0; i < SLOTS; i++) {
        (void) vlm_tiny_submit(many, vlm_tiny_prompt(many, TABLE, 0), &s, &answers[i]);
    }

    vlm_tiny_run(many);
    vlm_tiny_drain(many, NULL);
    vlm_close(many);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_list_of_four_boxes_takes_at_most_0_65_of_the_steps),
        cmocka_unit_test(a_greedy_answer_of_the_tokenizers_own_tokens_is_the_same),
        cmocka_unit_test(an_answer_is_the_same_with_log_probabilities),
        cmocka_unit_test(a_text_without_any_choice_has_the_tokenizers_own_tokens),
        cmocka_unit_test(an_answer_is_whole_whatever_its_budget),
        cmocka_unit_test(a_stop_string_in_forced_text_ends_the_answer_there),
        cmocka_unit_test(answers_at_once_are_those_that_each_has_alone),
        cmocka_unit_test(a_step_has_no_more_rows_than_a_slice)
    };

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
