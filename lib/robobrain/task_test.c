/* RoboBrain's tasks: its training's words to the letter, and the order of the keywords. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "robobrain/task.h"


static void
a_task_has_a_name_and_is_found_by_it(void **state)
{
    int                       i;
    static const char *const  names[] = {
        "general", "grounding", "affordance", "trajectory", "pointing"
    };

    (void) state;

    for (i = 0; i < VLM_TASKS; i++) {
        assert_string_equal(vlm_task_name((vlm_task_t) i), names[i]);
        assert_int_equal(vlm_task_find(names[i], strlen(names[i])), i);
    }

    assert_int_equal(vlm_task_find("auto", 4), -1);
    assert_int_equal(vlm_task_find("point", 5), -1);
    assert_int_equal(vlm_task_find("pointing!", 9), -1);
    assert_int_equal(vlm_task_find("Pointing", 8), -1);
    assert_int_equal(vlm_task_find("", 0), -1);
    assert_string_equal(vlm_task_name(VLM_TASKS), "unknown");
}


/* The prompts of a release for all tasks, around "the red cup". */
static void
check_prompts(uint32_t release, const char *const want[VLM_TASKS])
{
    int    i;
    char  *got;

    for (i = 0; i < VLM_TASKS; i++) {
        got = vlm_task_prompt(release, (vlm_task_t) i, "the red cup, not this", 11);
        assert_non_null(got);
        assert_string_equal(got, want[i]);
        free(got);
    }
}


static void
the_words_around_a_request_are_those_of_the_training(void **state)
{
    static const char *const  want[VLM_TASKS] = {
        "the red cup",

        "Please provide the bounding box coordinate of the region this sentence describes: "
        "the red cup.",

        "You are a robot using the joint control. The task is \"the red cup\". "
        "Please predict a possible affordance area of the end effector.",

        "You are a robot using the joint control. The task is \"the red cup\". "
        "Please predict up to 10 key trajectory points to complete the task. "
        "Your answer should be formatted as a list of tuples, i.e. [[x1, y1], [x2, y2], ...], "
        "where each tuple contains the x and y coordinates of a point.",

        "the red cup. Your answer should be formatted as a list of tuples, "
        "i.e. [(x1, y1), (x2, y2), ...], where each tuple contains the x and y coordinates of a "
        "point satisfying the conditions above. The coordinates should indicate the normalized "
        "pixel locations of the points in the image."
    };

    (void) state;
    check_prompts(20, want);
    check_prompts(0, want);
}


static void
release_2_5_asks_for_one_point_and_for_paths_with_depth(void **state)
{
    static const char *const  want[VLM_TASKS] = {
        "the red cup",

        "Please provide the bounding box coordinate of the region this sentence describes: "
        "the red cup.",

        "the red cup. Please provide its 2D coordinates. Your answer should be formatted as a "
        "tuple, i.e. [(x, y)], where the tuple contains the x and y coordinates of a point "
        "satisfying the conditions above.",

        "Please predict 3D end-effector-centric waypoints to complete the task successfully. "
        "The task is \"the red cup\". Your answer should be formatted as a list of tuples, "
        "i.e., [(x1, y1, d1), (x2, y2, d2), ...], where each tuple contains the x and y "
        "coordinates and the depth of the point.",

        "the red cup. Please provide its 2D coordinates. Your answer should be formatted as a "
        "tuple, i.e. [(x, y)], where the tuple contains the x and y coordinates of a point "
        "satisfying the conditions above."
    };

    (void) state;
    check_prompts(25, want);
    check_prompts(26, want);
}


static void
release_2_5_does_affordance_by_pointing_and_every_other_task_as_it_is(void **state)
{
    int  i;

    (void) state;

    for (i = -1; i < VLM_TASKS; i++) {
        assert_int_equal(vlm_task_of(20, i), i);
        assert_int_equal(vlm_task_of(25, i), i == VLM_AFFORDANCE ? (int) VLM_POINTING : i);
    }
}


static void
a_request_may_be_empty(void **state)
{
    char  *got;

    (void) state;

    got = vlm_task_prompt(20, VLM_GROUNDING, "", 0);
    assert_string_equal(got, "Please provide the bounding box coordinate of the region this "
                             "sentence describes: .");
    free(got);
}


static void
a_length_that_nothing_has_gives_no_prompt(void **state)
{
    (void) state;
    assert_null(vlm_task_prompt(20, VLM_TRAJECTORY, "", SIZE_MAX - 8));
    assert_null(vlm_task_prompt(25, VLM_TRAJECTORY, "", SIZE_MAX - 8));
}


static void
keywords_decide_in_their_order(void **state)
{
    size_t  i;

    static const struct {
        const char  *text;
        vlm_task_t   task;
    } cases[] = {
        { "Where is the cup?", VLM_GROUNDING },
        { "FIND the apple", VLM_GROUNDING },
        { "locate it", VLM_GROUNDING },
        { "show me where to go", VLM_GROUNDING },
        { "find a path to grasp it", VLM_GROUNDING },          /* the first group wins */
        { "How would you grasp this?", VLM_AFFORDANCE },
        { "grab it", VLM_AFFORDANCE },
        { "Pick up the pen", VLM_AFFORDANCE },
        { "which parts are graspable", VLM_AFFORDANCE },
        { "its affordance", VLM_AFFORDANCE },
        { "grasp it and move to the left", VLM_AFFORDANCE },   /* the second before the third */
        { "draw a path", VLM_TRAJECTORY },
        { "the trajectory", VLM_TRAJECTORY },
        { "move to the door", VLM_TRAJECTORY },
        { "reach for it", VLM_TRAJECTORY },
        { "navigate", VLM_TRAJECTORY },
        { "reach what is at (10, 20)", VLM_TRAJECTORY },       /* the third before the fourth */
        { "what is at (10, 20)?", VLM_POINTING },
        { "what is at 10, 20?", VLM_POINTING },
        { "what is at(10", VLM_POINTING },
        { "what is at   7", VLM_POINTING },
        { "what is at coordinate x", VLM_POINTING },
        { "what is at the top?", VLM_GENERAL },
        { "what is at ( 10", VLM_GENERAL },
        { "Describe this.", VLM_GENERAL },
        { "that at last at", VLM_GENERAL },
        { "", VLM_GENERAL }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (vlm_task_guess(cases[i].text, strlen(cases[i].text)) != (int) cases[i].task) {
            fail_msg("\"%s\" is not %s", cases[i].text, vlm_task_name(cases[i].task));
        }
    }
}


/* The text is bytes with a length: bytes behind it are not read. */
static void
nothing_is_read_past_the_end(void **state)
{
    char        *text;
    size_t       i, n;
    const char  *words[] = { "where is", "at coordinate", "at (5", "at 5", "navigate" };

    (void) state;

    for (i = 0; i < 5; i++) {
        for (n = 0; n < strlen(words[i]); n++) {
            text = malloc(n);
            memcpy(text, words[i], n);
            assert_int_equal(vlm_task_guess(text, n), VLM_GENERAL);
            free(text);

            if (i > 0 && n > 0) {
                assert_int_equal(vlm_task_find(words[i], n), -1);
            }
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_task_has_a_name_and_is_found_by_it),
        cmocka_unit_test(the_words_around_a_request_are_those_of_the_training),
        cmocka_unit_test(release_2_5_asks_for_one_point_and_for_paths_with_depth),
        cmocka_unit_test(release_2_5_does_affordance_by_pointing_and_every_other_task_as_it_is),
        cmocka_unit_test(a_request_may_be_empty),
        cmocka_unit_test(a_length_that_nothing_has_gives_no_prompt),
        cmocka_unit_test(keywords_decide_in_their_order),
        cmocka_unit_test(nothing_is_read_past_the_end)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
