/* A pipeline's plan, its questions, and the answer of all of its steps. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "robobrain/steps.h"
#include "robobrain/task.h"

#define PLAN  "Here: [{\"step\":1,\"task\":\"grounding\",\"prompt\":\"the cup\",\"description\":"  \
              "\"find it\"},{\"step\":2,\"task\":\"cook\",\"prompt\":\"\",\"description\":\"do\"," \
              "\"use_previous\":true}] so"

static vlm_steps_t  s;
static vlm_json_out_t  w;


static void
begin(const char *words)
{
    memset(&s, 0, sizeof(s));
    s.words = words != NULL ? strdup(words) : NULL;
    assert_int_equal(vlm_steps_plan(&s, "pour tea", "Fallback"), 0);
}


/* An object of these members, which the caller frees. */
static vlm_json_t *
answer(int of_steps)
{
    vlm_err_t         err = { VLM_OK, "" };
    vlm_json_t       *j;
    const vlm_view_t  view = { .width = 100, .height = 100, .seen_width = 100, .seen_height = 100 };

    vlm_json_init(&w, 1 << 20);
    vlm_json_open(&w, '{');

    if (of_steps) {
        vlm_steps_put_final(&s, &w);
        vlm_steps_put(&s, &w, &view);
    } else {
        vlm_steps_put_why(&s, &w);
    }

    vlm_json_shut(&w, '}');
    assert_int_equal(vlm_json_done(&w), 0);

    j = vlm_json_parse(w.data, w.len, &err);
    assert_non_null(j);
    vlm_json_release(&w);

    return j;
}


static const char *
text_of(const vlm_json_t *j, const char *key)
{
    const char  *text = vlm_json_text(vlm_json_get(j, key));

    return text != NULL ? text : "(none)";
}


static void
each_step_of_a_plan_gets_a_task_and_a_question(void **state)
{
    char  *text;

    (void) state;

    begin(PLAN);
    assert_int_equal(s.n, 2);
    assert_string_equal(s.why, "");
    assert_int_equal(s.steps[0].task, VLM_GROUNDING);
    assert_int_equal(s.steps[1].task, VLM_GENERAL);
    assert_string_equal(s.plan[1].task, "general");
    assert_string_equal(s.plan[1].prompt, "pour tea");

    /* The answer of an earlier step stands in a question that refers to it, once there is one. */

    s.at = 1;
    text = vlm_steps_text(&s);
    assert_string_equal(text, "pour tea");
    free(text);

    assert_int_equal(vlm_steps_keep(&s.steps[0], "", "[1, 2, 3, 4]", 12), 0);
    s.steps[0].said = 1;
    text = vlm_steps_text(&s);
    assert_string_equal(text, "pour tea\nPrevious result: [1, 2, 3, 4]");
    free(text);

    vlm_steps_free(&s);
}


static void
without_a_plan_the_request_is_the_only_step(void **state)
{
    vlm_json_t  *j;

    (void) state;

    begin("I cannot");
    assert_int_equal(s.n, 1);
    assert_string_equal(s.plan[0].prompt, "pour tea");
    assert_string_equal(s.plan[0].description, "Fallback");
    assert_string_equal(s.why, "Could not parse JSON from response: I cannot");

    j = answer(0);
    assert_string_equal(text_of(j, "message"),
                        "Could not decompose query: Could not parse JSON from response: I cannot");
    vlm_json_free(j);
    vlm_steps_free(&s);

    begin(NULL);
    assert_int_equal(s.n, 1);
    vlm_steps_free(&s);

    begin(PLAN);
    j = answer(0);
    assert_int_equal(vlm_json_count(j), 0);
    vlm_json_free(j);
    vlm_steps_free(&s);
}


static void
the_answer_has_what_each_step_has_brought(void **state)
{
    char              *text;
    vlm_json_t        *j;
    const vlm_json_t  *step;

    (void) state;

    begin(PLAN);
    assert_int_equal(vlm_steps_keep(&s.steps[0], "", "[1, 2, 30, 40]", 14), 0);
    s.steps[0].prompt = strdup("the cup");
    s.steps[0].result = calloc(1, sizeof(vlm_store_file_t));
    strcpy(s.steps[0].result->name, "a.jpg");
    strcpy(s.steps[1].error, "no memory");

    j = answer(1);
    assert_string_equal(text_of(j, "final_answer"), "Step 1 (grounding): [1, 2, 30, 40]");
    assert_string_equal(text_of(j, "final_image"), "/result/a.jpg");
    assert_int_equal(vlm_json_count(vlm_json_get(j, "pipeline")), 2);
    assert_false(vlm_json_is_true(vlm_json_get(j, "success")));

    step = vlm_json_first(vlm_json_get(j, "steps"));
    assert_string_equal(text_of(step, "output_image"), "/result/a.jpg");
    assert_int_equal(vlm_json_count(vlm_json_first(vlm_json_get(step, "coordinates"))), 4);
    assert_true(vlm_json_is_true(vlm_json_get(step, "success")));
    assert_null(vlm_json_get(step, "error"));

    step = vlm_json_next(step);
    assert_string_equal(text_of(step, "error"), "no memory");
    assert_null(vlm_json_get(step, "answer"));
    vlm_json_free(j);

    /* Of a long answer the summary has 200 characters. */

    text = malloc(3 * 300 + 1);
    memset(text, 'x', 3 * 300);
    assert_int_equal(vlm_steps_keep(&s.steps[1], "Inference error: ", text, 3 * 300), 0);
    s.steps[1].prompt = strdup("pour tea");
    free(text);

    j = answer(1);
    assert_int_equal(strlen(text_of(j, "final_answer")),
                     strlen("Step 1 (grounding): [1, 2, 30, 40]\n\nStep 2 (general): ") + 200);
    assert_true(vlm_json_is_true(vlm_json_get(j, "success")));
    vlm_json_free(j);
    vlm_steps_free(&s);

    begin(PLAN);
    j = answer(1);
    assert_string_equal(text_of(j, "final_answer"), "Pipeline execution failed.");
    assert_true(vlm_json_is_null(vlm_json_get(j, "final_image")));
    vlm_json_free(j);
    vlm_steps_free(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_step_of_a_plan_gets_a_task_and_a_question),
        cmocka_unit_test(without_a_plan_the_request_is_the_only_step),
        cmocka_unit_test(the_answer_has_what_each_step_has_brought)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
