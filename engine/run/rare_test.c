/*
 * Rarely used parameters, through the whole engine: JSON, bias, penalties, log-probabilities; and
 * jobs beside them are unaffected.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "base/json.h"
#include "run/fixture.h"

#define DEMO  "demo/model"

/* Answers; under sanitizers the model is some eight times slower. */
#ifdef __SANITIZE_ADDRESS__
#define N_JSON  40
#else
#define N_JSON  200
#endif

static vlm_t         *v;               /* two slots, f32 */
static vlm_grammar_t *object;
static vlm_answer_t   got[4];


static int
open_engine(void **state)
{
    vlm_conf_t  conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.model = DEMO;
    conf.weights = VLM_F32;
    v = vlm_tiny_open(&conf);
    object = vlm_grammar_object(v, NULL);
    assert_non_null(object);

    return 0;
}


static int
close_engine(void **state)
{
    (void) state;
    vlm_grammar_free(object);
    vlm_close(v);

    return 0;
}


static void
ask(const vlm_sampling_t *s, vlm_answer_t *a)
{
    vlm_tiny_alone(v, vlm_tiny_prompt(v, "What is on the table?", 0), s, a);
    assert_int_equal(a->err.code, VLM_OK);
}


static void
assert_refused(const vlm_sampling_t *s, vlm_code_t code, const char *why)
{
    int            idle;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_prompt_t  *p;

    p = vlm_tiny_prompt(v, "x", 0);
    assert_null(vlm_submit(v, p, s, NULL, &idle, &err));
    assert_int_equal(err.code, code);

    if (strstr(err.text, why) == NULL) {
        fail_msg("%s", err.text);
    }

    vlm_prompt_free(p);
}


/* The id of a text that is one token. */
static uint32_t
id_of(const char *text)
{
    size_t      n;
    uint32_t   *ids, id;
    vlm_err_t   err = { VLM_OK, "" };

    assert_int_equal(vlm_tokenize(v, text, strlen(text), &ids, &n, &err), 0);
    assert_int_equal(n, 1);
    id = ids[0];
    free(ids);

    return id;
}


static void
assert_object(const vlm_answer_t *a)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    j = vlm_json_named(a->text, a->bytes, "answer", &err);

    if (j == NULL || !vlm_json_is_object(j)) {
        fail_msg("%s: %.*s", err.text, (int) a->bytes, a->text);
    }

    vlm_json_free(j);
}


/* ---- JSON ---------------------------------------------------------------- */

static void
json_answers_at_temperature_1_5_parse(void **state)
{
    uint32_t        i, k;
    vlm_sampling_t  s;

    (void) state;

    for (i = 0; i < N_JSON; i += 4) {
        for (k = 0; k < 4; k++) {
            s = vlm_tiny_sampling(i + k + 1);
            s.temperature = 1.5f;
            s.top_k = k % 2 == 0 ? 0 : 50;
            s.top_p = k < 2 ? 1 : 0.8f;
            s.repetition_penalty = k == 0 ? 1 : 1.05f;
            s.max_tokens = 2 + (i + k) % 59;
            s.grammar = object;

            (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "List it.", k == 3), &s, &got[k]);
        }

        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (k = 0; k < 4; k++) {
            assert_int_equal(got[k].err.code, VLM_OK);
            assert_int_equal(got[k].finish, VLM_FINISH_STOP);
            assert_true(got[k].usage.completion_tokens <= 2 + (i + k) % 59);
            assert_object(&got[k]);
        }
    }
}


static void
a_greedy_json_answer_parses_whatever_its_budget(void **state)
{
    uint32_t        budget;
    vlm_sampling_t  s;

    (void) state;

    for (budget = 2; budget <= 40; budget++) {
        s = vlm_tiny_sampling(1);
        s.temperature = 0;
        s.max_tokens = budget;
        s.grammar = object;

        ask(&s, &got[0]);
        assert_int_equal(got[0].finish, VLM_FINISH_STOP);
        assert_object(&got[0]);
    }
}


static void
json_wants_room_for_two_tokens(void **state)
{
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    s.grammar = object;
    s.max_tokens = 1;
    assert_refused(&s, VLM_ELIMIT, "the shortest answer takes 2 tokens, there is room for 1");
}


static vlm_grammar_t *
choice(const char *list)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    j = vlm_json_parse(list, strlen(list), &err);
    assert_non_null(j);
    g = vlm_grammar_make(v, j, VLM_FORM_CHOICE, &err);
    assert_non_null(g);
    vlm_json_free(j);

    return g;
}


static void
an_answer_is_free_up_to_its_trigger_and_held_from_there(void **state)
{
    char            text[4096];
    uint32_t        i, found;
    const char     *p;
    vlm_grammar_t  *g;
    vlm_sampling_t  s;

    (void) state;
    g = choice("[\"xyz\"]");

    for (i = 1, found = 0; i <= 40; i++) {
        s = vlm_tiny_sampling(i);
        s.temperature = 1.5f;
        s.max_tokens = 60;
        s.grammar = g;
        s.trigger = "e";
        ask(&s, &got[0]);
        assert_int_equal(got[0].err.code, VLM_OK);
        assert_true(got[0].bytes < sizeof(text));
        memcpy(text, got[0].text, got[0].bytes);
        text[got[0].bytes] = '\0';
        p = strchr(text, 'e');

        /* A token may go on behind the trigger in its own way; then another e counts. */

        if (got[0].usage.completion_tokens < 50 && p != NULL && strstr(text, "exyz") != NULL) {
            assert_string_equal(strstr(text, "exyz") + 4, "");
            assert_int_equal(got[0].finish, VLM_FINISH_STOP);
            found++;
        }
    }

    assert_true(found > 5);

    /* Without room for the value, the answer stays free. */

    s.max_tokens = 2;
    ask(&s, &got[0]);
    assert_int_equal(got[0].err.code, VLM_OK);
    vlm_grammar_free(g);
}


static void
values_follow_each_other_with_a_text_between_them(void **state)
{
    char            text[4096];
    size_t          n_ids;
    uint32_t        i, n, most, *ids;
    vlm_bias_t      bias = { 0, 100 };
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g, *between;
    vlm_sampling_t  s;

    (void) state;
    g = choice("[\"ab\"]");
    between = choice("[\"-\",\"-+\"]");
    assert_int_equal(vlm_tokenize(v, "+", 1, &ids, &n_ids, &err), 0);
    bias.id = ids[0];
    free(ids);

    for (i = 1, most = 0; i <= 40; i++) {
        s = vlm_tiny_sampling(i);
        s.temperature = 1.5f;
        s.max_tokens = i % 2 == 0 ? 200 : 3;
        s.grammar = g;
        s.between = between;
        s.bias = &bias;                /* a further value is likelier than the end */
        s.n_bias = 1;
        ask(&s, &got[0]);
        assert_int_equal(got[0].finish, VLM_FINISH_STOP);
        memcpy(text, got[0].text, got[0].bytes);
        text[got[0].bytes] = '\0';

        for (n = 0; strncmp(text + 4 * n, "ab-+", 4) == 0; n++) { /* void */ }

        assert_int_equal(strncmp(text + 4 * n, "ab", 2), 0);
        assert_true(text[4 * n + 2] == '\0' || strcmp(text + 4 * n + 2, "-") == 0);
        assert_true(i % 2 == 0 || n == 0);
        most = n > most ? n : most;
    }

    assert_true(most > 1);
    vlm_grammar_free(g);
    vlm_grammar_free(between);
}


static void
a_bias_against_every_id_cannot_keep_json_from_its_end(void **state)
{
    uint32_t        i, n;
    vlm_bias_t      bias[VLM_MAX_BIAS];
    vlm_sampling_t  s = vlm_tiny_sampling(3);

    (void) state;

    n = vlm_n_ids(v);
    assert_true(n <= VLM_MAX_BIAS);

    for (i = 0; i < n; i++) {
        bias[i].id = i;
        bias[i].bias = -100;
    }

    s.bias = bias;
    s.n_bias = n;
    s.grammar = object;
    ask(&s, &got[0]);
    assert_object(&got[0]);

    /* Without JSON no id is left, and the error says so. */

    s.grammar = NULL;
    vlm_tiny_alone(v, vlm_tiny_prompt(v, "x", 0), &s, &got[0]);
    assert_int_equal(got[0].err.code, VLM_EINPUT);
    assert_non_null(strstr(got[0].err.text,
                           "logit_bias or no_repeat_ngram_size forbids every token"));
}


static void
a_stop_string_cuts_json_too(void **state)
{
    const char      *stop[] = { "}" };
    vlm_sampling_t   s = vlm_tiny_sampling(1);

    (void) state;

    s.grammar = object;
    s.stop = stop;
    s.n_stop = 1;
    ask(&s, &got[0]);

    assert_int_equal(got[0].finish, VLM_FINISH_STOP);
    assert_int_equal(got[0].text[0], '{');
    assert_null(memchr(got[0].text, '}', got[0].bytes));
}


/* ---- bias and penalties -------------------------------------------------- */

static void
a_bias_of_100_is_the_answer_and_one_of_minus_100_never_in_it(void **state)
{
    uint32_t        i, first;
    vlm_bias_t      bias[2];
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    s.temperature = 0;
    s.logprobs = 1;
    ask(&s, &got[0]);
    first = got[0].tokens[0].picked.id;

    bias[0].id = first;
    bias[0].bias = -100;
    s.bias = bias;
    s.n_bias = 1;
    s.temperature = 100;               /* as good as uniform */
    s.max_tokens = 3;

    for (i = 1; i <= 20; i++) {
        s.seed = i;
        ask(&s, &got[0]);
        assert_int_not_equal(got[0].tokens[0].picked.id, first);
    }

    bias[1].id = id_of("a");
    bias[1].bias = 100;
    s.n_bias = 2;
    s.max_tokens = 20;
    s.temperature = 1;
    ask(&s, &got[0]);

    assert_int_equal(got[0].finish, VLM_FINISH_LENGTH);
    assert_int_equal(got[0].bytes, 20);
    assert_memory_equal(got[0].text, "aaaaaaaaaaaaaaaaaaaa", 20);
}


/* Three letters of nearly equal probability, and no other: a penalty makes used letters rarer. */
static void
penalties_spread_an_answer_over_unused_tokens(void **state)
{
    uint32_t        i, n[128] = { 0 };
    vlm_bias_t      bias[3];
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    for (i = 0; i < 3; i++) {
        bias[i].id = id_of(i == 0 ? "x" : i == 1 ? "q" : "z");
        bias[i].bias = 100;
    }

    s.temperature = 0;
    s.bias = bias;
    s.n_bias = 3;
    s.max_tokens = 90;
    s.frequency_penalty = 2;
    ask(&s, &got[0]);
    assert_int_equal(got[0].bytes, 90);

    for (i = 0; i < 90; i++) {
        n[(uint8_t) got[0].text[i] & 127]++;
    }

    assert_int_equal(n['x'] + n['q'] + n['z'], 90);
    assert_true(n['x'] > 15 && n['q'] > 15 && n['z'] > 15);

    /* The other sign: a letter that was used once is used again. */

    s.frequency_penalty = -2;
    ask(&s, &got[0]);

    for (i = 10; i < 90; i++) {
        assert_int_equal(got[0].text[i], got[0].text[9]);
    }
}


/* The first id that a prompt is answered with: bias makes it one of the prompt's, or another. */
static uint32_t
first_of(float penalty, uint32_t own, uint32_t other)
{
    vlm_bias_t      bias[2] = { { own, 100 }, { other, 80 } };
    vlm_sampling_t  s;

    s = vlm_tiny_sampling(1);
    s.temperature = 0;
    s.max_tokens = 1;
    s.repetition_penalty = penalty;
    s.bias = bias;
    s.n_bias = 2;
    s.logprobs = 1;
    ask(&s, &got[0]);
    assert_int_equal(got[0].n_tokens, 1);

    return got[0].tokens[0].picked.id;
}


/* Also of a prompt whose rows are there from an earlier job. */
static void
the_repetition_penalty_counts_the_tokens_of_the_prompt(void **state)
{
    uint32_t       i, n, own, other;
    vlm_prompt_t  *p;

    (void) state;

    own = id_of("What");
    other = id_of("1");
    p = vlm_tiny_prompt(v, "What is on the table?", 0);

    for (n = 0, i = 0; i < vlm_prompt_tokens(p); i++) {
        assert_int_not_equal(vlm_prompt_ids(p)[i], other);
        n += vlm_prompt_ids(p)[i] == own;
    }

    vlm_prompt_free(p);
    assert_true(n > 0);

    assert_int_equal(first_of(1, own, other), own);
    assert_int_equal(first_of(10, own, other), other);
    assert_int_equal(first_of(1, own, other), own);
}


static void
a_value_out_of_range_is_refused_with_the_range(void **state)
{
    vlm_bias_t      bias[VLM_MAX_BIAS + 1] = { { 0, 0 } };
    vlm_sampling_t  s = vlm_tiny_sampling(1);

    (void) state;

    s.frequency_penalty = 2.5f;
    assert_refused(&s, VLM_EINPUT, "frequency_penalty is 2.5, expected -2 to 2");
    s.frequency_penalty = NAN;
    assert_refused(&s, VLM_EINPUT, "frequency_penalty is nan");

    s = vlm_tiny_sampling(1);
    s.presence_penalty = -2.01f;
    assert_refused(&s, VLM_EINPUT, "presence_penalty is -2.01, expected -2 to 2");

    s = vlm_tiny_sampling(1);
    s.logprobs = 1;
    s.top_logprobs = 21;
    assert_refused(&s, VLM_EINPUT, "top_logprobs is 21, expected 0 to 20");

    s = vlm_tiny_sampling(1);
    s.bias = bias;
    s.n_bias = VLM_MAX_BIAS + 1;
    assert_refused(&s, VLM_EINPUT, "a bias for 1025 tokens, at most 1024");

    s.n_bias = 1;
    bias[0].bias = 101;
    assert_refused(&s, VLM_EINPUT, "the bias of token 0 is 101, expected -100 to 100");

    bias[0].bias = 1;
    bias[0].id = vlm_n_ids(v);
    assert_refused(&s, VLM_EINPUT, "the model's are 0 to ");
}


/* ---- log-probabilities --------------------------------------------------- */

static void
log_probabilities_are_the_models_own_whatever_else_is_asked(void **state)
{
    float          *logits, *last;
    double          sum;
    uint32_t        i, k, V, best;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_bias_t      bias;
    vlm_prompt_t   *p;
    vlm_sampling_t  s = vlm_tiny_sampling(5);

    (void) state;

    p = vlm_tiny_prompt(v, "What is on the table?", 0);
    assert_int_equal(vlm_logits(v, p, &logits, &V, &err), 0);
    last = logits + (size_t) (vlm_prompt_tokens(p) - 1) * V;
    vlm_prompt_free(p);

    for (sum = 0, best = 0, i = 0; i < vlm_n_ids(v); i++) {
        sum += exp(last[i]);
        best = last[i] > last[best] ? i : best;
    }

    bias.id = id_of("a");
    bias.bias = 100;
    s.logprobs = 1;
    s.top_logprobs = 20;

    for (k = 0; k < 3; k++) {
        s.temperature = k == 0 ? 0 : 1.7f;
        s.top_k = 40;
        s.repetition_penalty = 1.2f;
        s.bias = k == 2 ? &bias : NULL;
        s.n_bias = k == 2;
        ask(&s, &got[0]);

        assert_int_equal(got[0].tokens[0].n_top, 20);
        assert_int_equal(got[0].tokens[0].top[0].id, best);

        for (i = 0; i < 20; i++) {
            assert_true(fabs(got[0].tokens[0].top[i].logprob
                             - (last[got[0].tokens[0].top[i].id] - log(sum))) < 1e-4);
        }

        assert_true(fabs(got[0].tokens[0].picked.logprob
                         - (last[got[0].tokens[0].picked.id] - log(sum))) < 1e-4);
    }

    assert_int_equal(got[0].tokens[0].picked.id, bias.id);
    free(logits);
}


static void
every_token_is_sent_once_with_its_text_and_not_before(void **state)
{
    size_t          n, bytes, said;
    uint32_t        i;
    vlm_sampling_t  s;

    (void) state;

    for (i = 1; i <= 30; i++) {
        s = vlm_tiny_sampling(i);
        s.temperature = 1.5f;
        s.max_tokens = 60;
        s.logprobs = 1;
        s.top_logprobs = i % 3;
        ask(&s, &got[0]);

        assert_int_equal(got[0].n_tokens, got[0].usage.completion_tokens);

        for (said = 0, n = 0; n < got[0].n_tokens; n++) {
            assert_int_equal(got[0].tokens[n].n_top, i % 3);
            assert_true(got[0].tokens[n].picked.logprob <= 0);
            assert_non_null(vlm_piece(v, got[0].tokens[n].picked.id, &bytes));

            if (!vlm_token_is_special(v->tokenizer, got[0].tokens[n].picked.id)) {
                said += bytes;
            }

            assert_true(got[0].text_at[n] >= said);
        }
    }
}


static void
tokens_of_a_stop_string_are_not_sent(void **state)
{
    vlm_bias_t       bias;
    const char      *stop[] = { "aaaa", "aab" };
    vlm_sampling_t   s = vlm_tiny_sampling(1);

    (void) state;

    bias.id = id_of("a");
    bias.bias = 100;
    s.bias = &bias;
    s.n_bias = 1;
    s.logprobs = 1;
    s.stop = stop;
    s.n_stop = 1;
    ask(&s, &got[0]);

    assert_int_equal(got[0].finish, VLM_FINISH_STOP);
    assert_int_equal(got[0].usage.completion_tokens, 4);
    assert_int_equal(got[0].bytes, 0);
    assert_int_equal(got[0].n_tokens, 0);

    /* One that never comes holds back two letters, and their tokens, until the end. */

    s.stop = stop + 1;
    ask(&s, &got[0]);
    assert_int_equal(got[0].finish, VLM_FINISH_LENGTH);
    assert_int_equal(got[0].bytes, 20);
    assert_int_equal(got[0].n_tokens, 20);
}


/* ---- the others ---------------------------------------------------------- */

static void
an_answer_is_the_same_beside_requests_with_other_options(void **state)
{
    uint32_t        i, k;
    vlm_bias_t      bias = { 5, 50 };
    vlm_answer_t    alone;
    vlm_sampling_t  plain, rare;

    (void) state;

    for (i = 1; i <= 10; i++) {
        plain = vlm_tiny_sampling(i);
        plain.max_tokens = 50;
        ask(&plain, &alone);

        rare = vlm_tiny_sampling(i + 100);
        rare.max_tokens = 60;
        rare.grammar = i % 2 == 0 ? object : NULL;
        rare.logprobs = i % 3 == 0;
        rare.presence_penalty = 1;
        rare.bias = &bias;
        rare.n_bias = 1;

        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Name one.", 0), &rare, &got[0]);
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "What is on the table?", 0), &plain, &got[1]);
        (void) vlm_tiny_submit(v, vlm_tiny_prompt(v, "Name two.", 1), &rare, &got[2]);
        vlm_tiny_run(v);
        vlm_tiny_drain(v, NULL);

        for (k = 0; k < 3; k++) {
            assert_int_equal(got[k].err.code, VLM_OK);
        }

        assert_int_equal(got[1].bytes, alone.bytes);
        assert_memory_equal(got[1].text, alone.text, alone.bytes);
        assert_int_equal(got[1].n_tokens, 0);
    }
}


/* Log-probabilities only look; a bias of nothing changes the row into itself. */
static void
options_without_an_effect_leave_the_answer_the_same(void **state)
{
    uint32_t        i;
    vlm_bias_t      bias = { 5, 0 };
    vlm_sampling_t  s;

    (void) state;

    for (i = 1; i <= 5; i++) {
        s = vlm_tiny_sampling(i);
        s.max_tokens = 50;
        s.repetition_penalty = 1.05f;
        s.top_p = 0.95f;
        ask(&s, &got[0]);

        s.logprobs = 1;
        ask(&s, &got[1]);

        s.bias = &bias;
        s.n_bias = 1;
        ask(&s, &got[2]);

        assert_int_equal(got[1].bytes, got[0].bytes);
        assert_int_equal(got[2].bytes, got[0].bytes);
        assert_memory_equal(got[1].text, got[0].text, got[0].bytes);
        assert_memory_equal(got[2].text, got[0].text, got[0].bytes);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(json_answers_at_temperature_1_5_parse),
        cmocka_unit_test(a_greedy_json_answer_parses_whatever_its_budget),
        cmocka_unit_test(json_wants_room_for_two_tokens),
        cmocka_unit_test(an_answer_is_free_up_to_its_trigger_and_held_from_there),
        cmocka_unit_test(values_follow_each_other_with_a_text_between_them),
        cmocka_unit_test(a_bias_against_every_id_cannot_keep_json_from_its_end),
        cmocka_unit_test(a_stop_string_cuts_json_too),
        cmocka_unit_test(a_bias_of_100_is_the_answer_and_one_of_minus_100_never_in_it),
        cmocka_unit_test(penalties_spread_an_answer_over_unused_tokens),
        cmocka_unit_test(the_repetition_penalty_counts_the_tokens_of_the_prompt),
        cmocka_unit_test(a_value_out_of_range_is_refused_with_the_range),
        cmocka_unit_test(log_probabilities_are_the_models_own_whatever_else_is_asked),
        cmocka_unit_test(every_token_is_sent_once_with_its_text_and_not_before),
        cmocka_unit_test(tokens_of_a_stop_string_are_not_sent),
        cmocka_unit_test(an_answer_is_the_same_beside_requests_with_other_options),
        cmocka_unit_test(options_without_an_effect_leave_the_answer_the_same)
    };

    return cmocka_run_group_tests(tests, open_engine, close_engine);
}
