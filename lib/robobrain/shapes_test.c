/* Shapes in answers: the forms that the family writes, forms like these, and hostile text. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "robobrain/shapes.h"

#define G  VLM_GROUNDING
#define A  VLM_AFFORDANCE
#define T  VLM_TRAJECTORY
#define P  VLM_POINTING

typedef struct {
    vlm_task_t   task;
    const char  *text, *want;          /* as told() writes it */
} vlm_case_t;


/* "box 1 2 3 4 'label', point 1 2"; the text is copied, so that a sanitizer sees a byte beyond. */
static const char *
told(vlm_task_t task, const char *text, size_t bytes)
{
    char         *copy;
    size_t        i, n, at;
    vlm_shape_t   s[VLM_MAX_SHAPES];
    static char   out[16384];

    copy = malloc(bytes);
    memcpy(copy, text, bytes);
    n = vlm_shapes(task, copy, bytes, s, VLM_MAX_SHAPES);
    free(copy);

    out[0] = '\0';

    for (i = at = 0; i < n; i++) {
        at += (size_t) sprintf(out + at, "%s%s %g %g", i == 0 ? "" : ", ",
                               s[i].kind == VLM_SHAPE_BOX ? "box" : s[i].kind == VLM_SHAPE_PATH
                               ? "path" : "point", s[i].x, s[i].y);

        if (s[i].kind == VLM_SHAPE_BOX) {
            at += (size_t) sprintf(out + at, " %g %g", s[i].x2, s[i].y2);
        }

        if (!isnan(s[i].depth)) {
            at += (size_t) sprintf(out + at, " at %g", s[i].depth);
        }

        if (s[i].label[0] != '\0') {
            at += (size_t) sprintf(out + at, " '%s'", s[i].label);
        }
    }

    return out;
}


static void
check(const vlm_case_t *c, size_t n)
{
    size_t       i;
    const char  *got;

    for (i = 0; i < n; i++) {
        got = told(c[i].task, c[i].text, strlen(c[i].text));

        if (strcmp(got, c[i].want) != 0) {
            fail_msg("%s: %s\n    gives  %s\n    not    %s", vlm_task_name(c[i].task), c[i].text,
                     got, c[i].want);
        }
    }
}

#define CHECK(c)  check(c, sizeof(c) / sizeof(c[0]))


static void
answers_of_the_published_models_give_what_upstream_draws(void **state)
{
    static const vlm_case_t  cases[] = {
        { G, "[0, 194, 267, 632]", "box 0 194 267 632" },
        { G, "[0, 193, 226, 640]", "box 0 193 226 640" },
        { A, "[561, 205, 613, 284]", "box 561 205 613 284" },
        { P, "[(376, 345), (369, 359), (369, 1197)]",
          "point 376 345, point 369 359, point 369 1197" },
        { T, "[(145, 123), (176, 120), (198, 78), (224, 74)]",
          "path 145 123, path 176 120, path 198 78, path 224 74" },
        { T, "[[145, 123], [176, 120]]", "path 145 123, path 176 120" },
        { T, "[145, 123, 176, 120, 198, 78]", "path 145 123, path 176 120, path 198 78" },
        { T, "[561, 205, 613, 284]", "path 561 205, path 613 284" },
        { T, "145, 123, 176, 120", "path 145 123, path 176 120" },
        { G, "[ 1,2 , 3,4 ] and [5,6,7,8]", "box 1 2 3 4, box 5 6 7 8" },
        { P, "( 1 ,2 )(3,4)", "point 1 2, point 3 4" }
    };

    (void) state;
    CHECK(cases);
}


static void
every_bracket_holds_a_point(void **state)
{
    static const vlm_case_t  cases[] = {
        { P, "[[376, 345], [369, 359]]", "point 376 345, point 369 359" },
        { P, "[376, 345]", "point 376 345" },
        { P, "376, 345", "point 376 345" },
        { P, "The cup is at (376, 345).", "point 376 345" },
        { P, "1. (10, 20)\n2. (30, 40)\n", "point 10 20, point 30 40" },
        { P, "(x=10, y=20), (x: 30, y: 40), (x1 = 5, y1 = 6)",
          "point 10 20, point 30 40, point 5 6" },
        { P, "[10, 20, 30, 40, 50, 60]", "point 10 20, point 30 40, point 50 60" },
        { P, "<point>10 20</point><point> 30, 40 </point>", "point 10 20, point 30 40" },
        { P, "<point>(10, 20)</point>", "point 10 20" },
        { P, "<points>10 20, 30 40</points>", "point 10 20, point 30 40" },
        { P, "<point x=\"10.5\" y=\"20\" alt=\"the rolling pin\">the 2 pins</point>",
          "point 10.5 20 'the rolling pin'" },
        { P, "<points x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\" alt=\"cups\">cups</points>",
          "point 1 2 'cups', point 3 4 'cups'" },
        { P, "<points x1='1' y1='2' x2='3' y2='4' x3='5' y3='6'/>",
          "point 1 2, point 3 4, point 5 6" },
        { P, "\uff08" "10\uff0c20\uff09\u3001\u3010" "30\u3001" "40\u3011",
          "point 10 20, point 30 40" },
        { G, "x = 10, y = 20", "point 10 20" },
        { P, "array([[ 10.  20.]\n [ 30.5 40.]])", "point 10 20, point 30.5 40" },
        { P, "(120px, 40px)", "point 120 40" },
        { P, "**(10,\n\t20)**", "point 10 20" },
        { P, "(10, 20,)", "point 10 20" },
        { P, "(10; 20)", "point 10 20" }
    };

    (void) state;
    CHECK(cases);
}


static void
numbers_may_have_signs_and_decimals(void **state)
{
    static const vlm_case_t  cases[] = {
        { P, "(-3, +4.25)", "point -3 4.25" },
        { P, "(.5, 0.25)", "point 0.5 0.25" },
        { P, "(\xe2\x88\x92" "7, \xef\xbc\x8d" "8)", "point -7 -8" },
        { P, "(007, 000)", "point 7 0" },
        { G, "[10.5, -0.5, 300.25, 400.75]", "box 10.5 -0.5 300.25 400.75" }
    };

    (void) state;
    CHECK(cases);
}


static void
json_gives_shapes_and_labels(void **state)
{
    static const vlm_case_t  cases[] = {
        { G, "```json\n[\n\t{\"bbox_2d\": [10, 20, 30, 40], \"label\": \"red cup\"},\n"
          "\t{\"bbox_2d\": [50, 60, 70, 80], \"label\": \"plate\"}\n]\n```",
          "box 10 20 30 40 'red cup', box 50 60 70 80 'plate'" },
        { P, "[{\"point_2d\": [10, 20], \"label\": \"a\"},"
          " {\"label\": \"b\", \"point_2d\": [30, 40]}]",
          "point 10 20 'a', point 30 40 'b'" },
        { G, "{\"bbox\": [1, 2, 3, 4]}", "box 1 2 3 4" },
        { G, "{\"bbox_2d\": [[1, 2], [3, 4]]}", "box 1 2 3 4" },
        { G, "{\"bbox_2d\": [[1, 2, 3, 4], [5, 6, 7, 8]]}", "box 1 2 3 4, box 5 6 7 8" },
        { G, "{\"bbox_2d\": \"[1, 2, 3, 4]\"}", "box 1 2 3 4" },
        { P, "{\"points\": [[1, 2], [3, 4]], \"label\": \"two\"}",
          "point 1 2 'two', point 3 4 'two'" },
        { P, "{\"points\": [1, 2, 3, 4]}", "point 1 2, point 3 4" },
        { P, "{\"points\": [{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}], \"label\": \"two\"}",
          "point 1 2 'two', point 3 4 'two'" },
        { G, "{\"x1\": 1, \"y1\": 2, \"x2\": 3, \"y2\": 4, \"label\": \"c\"}", "box 1 2 3 4 'c'" },
        { G, "{\"label\": \"c\", \"box\": {\"x1\": 1, \"x2\": 3, \"y1\": 2, \"y2\": 4}}",
          "box 1 2 3 4 'c'" },
        { P, "{'point': [1, 2], 'label': 'the man\\'s cup'}", "point 1 2 'the man's cup'" },
        { P, "{\"point\": [1, 2], \"label\": \"the man's cup\"}", "point 1 2 'the man's cup'" },
        { T, "{\"trajectory\": [[1, 2], [3, 4]]}", "path 1 2, path 3 4" },
        { T, "{\"path\": [{\"x\": 1, \"y\": 2}, {\"x\": 3, \"y\": 4}]}", "path 1 2, path 3 4" },
        { G, "{\"answer\": \"It is at [1, 2, 3, 4].\"}", "box 1 2 3 4" },
        { G, "{\"cup\": [1, 2, 3, 4]}", "box 1 2 3 4" },
        { G, "{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"a (5, 6) [7, 8, 9, 10]\"}",
          "box 1 2 3 4 'a (5, 6) [7, 8, 9, 10]'" },
        { G, "{\"bbox_2d\": [1, 2, 3, 4],"
          " \"label\": \"\\u676f\\ud83c\\udf75 \\\"q\\\"\\n\\/\\\\\"}",
          "box 1 2 3 4 '\xe6\x9d\xaf\xf0\x9f\x8d\xb5 \"q\" /\\'" }
    };

    (void) state;
    CHECK(cases);
}


static void
an_answer_that_was_cut_off_keeps_what_was_whole(void **state)
{
    static const vlm_case_t  cases[] = {
        { G, "```json\n[{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"cup\"}, {\"bbox_2d\": [5, 6, 7",
          "box 1 2 3 4 'cup'" },
        { G, "[{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"cup\"", "box 1 2 3 4 'cup'" },
        { G, "[{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"cu", "box 1 2 3 4" },
        { G, "[{\"label\": \"cup\", \"bbox_2d\": [1, 2, 3, 4]", "box 1 2 3 4 'cup'" },
        { T, "[(1, 2), (3, 4), (5, 6", "path 1 2, path 3 4" },
        { G, "[0, 194, 267, 63", "" },
        { P, "<point>10 2", "" },
        { P, "<point x=\"10\" y=\"2", "" }
    };

    (void) state;
    CHECK(cases);
}


static void
other_numbers_are_not_read_as_coordinates(void **state)
{
    static const vlm_case_t  cases[] = {
        { P, "", "" }, { G, " \n", "" }, { P, "2 cups", "" }, { P, "2 cups, 3 plates", "" },
        { P, "[1]", "" }, { P, "(1)", "" }, { P, "12", "" }, { P, "[]", "" }, { P, "()", "" },
        { P, "(2 cups, 3 plates)", "" }, { P, "(see 3, 4)", "" }, { P, "(10%, 20%)", "" },
        { P, "(12:30, 13:45)", "" }, { P, "[12:30]", "" }, { P, "(1.2.3, 4)", "" },
        { P, "(10-20)", "" }, { P, "(1,,2)", "" }, { P, "(,1,2)", "" }, { P, "(1, 2]", "" },
        { P, "(1, 2, 3)", "" }, { P, "[(x1, y1), (x2, y2)]", "" }, { P, "(-, -)", "" },
        { P, "(., .)", "" }, { P, "(1e5, 2)", "" }, { P, "(0x10, 2)", "" }, { P, "(NaN, inf)", "" },
        { P, "(1000001, 2)", "" }, { P, "(99999999999999999999999999999999999999999, 1)", "" },
        { T, "[(1, 2)]", "" }, { T, "There are 2, 3 or 4, 5 cups", "" }, { T, "1, 2, 3", "" },
        { G, "[1, 2, 3]", "" }, { G, "[1, 2, 3, 4, 5]", "" },
        { G, "a < b [1] > c", "" }, { P, "{\"label\": \"(1, 2)\"}", "" },
        { P, "<point x=\"1\" x=\"2\" y=\"3\">", "" }, { P, "<point y=\"1\" x=\"2\">", "" },
        { P, "<points x1=\"1\" y1=\"2\" x2=\"3\">", "" }, { P, "<point x=\"a\" y=\"2\">", "" },
        { VLM_GENERAL, "[1, 2, 3, 4] (5, 6)", "" }, { VLM_TASKS, "[1, 2, 3, 4] (5, 6)", "" }
    };

    (void) state;
    CHECK(cases);
}


static void
a_task_takes_its_own_kind_and_else_the_other(void **state)
{
    static const vlm_case_t  cases[] = {
        { G, "(5, 6) [1, 2, 3, 4]", "box 1 2 3 4" },
        { G, "(5, 6), (7, 8)", "point 5 6, point 7 8" },
        { A, "Grasp it at (5, 6).", "point 5 6" },
        { P, "[1, 2, 3, 4] (5, 6)", "point 5 6" },
        { P, "[10, 20, 30, 50] [0, 0, 1, 1]", "point 20 35, point 0.5 0.5" },
        { P, "{\"bbox_2d\": [10, 20, 30, 40], \"label\": \"cup\"}", "point 20 30 'cup'" },
        { G, "<box>(1, 2), (3, 4)</box> (5, 6)", "box 1 2 3 4" },
        { G, "<|box_start|>(1,2),(3,4)<|box_end|><|box_start|>(5,6),(7,8)<|box_end|>",
          "box 1 2 3 4, box 5 6 7 8" },
        { G, "<box>1 2 3 4</box>", "box 1 2 3 4" },
        { G, "<box x1=\"1\" y1=\"2\" x2=\"3\" y2=\"4\" label=\"cup\"/>", "box 1 2 3 4 'cup'" },
        { G, "<box>(1, 2)</box><box>(3, 4)</box>", "" },
        { G, "\\[1, 2, 3, 4\\] \\boxed{[1, 2, 3, 4]}", "box 1 2 3 4" }
    };

    (void) state;
    CHECK(cases);
}


static void
a_path_of_triples_has_depths(void **state)
{
    static const vlm_case_t  cases[] = {
        { T, "[(145, 123, 1.25), (176, 120, -0.5), (198, 78, +2)]",
          "path 145 123 at 1.25, path 176 120 at -0.5, path 198 78 at 2" },
        { T, "[[145, 123, 1.25], [176, 120, 1]]", "path 145 123 at 1.25, path 176 120 at 1" },
        { T, "From (1, 2): [(3, 4, 0.5), (5, 6, 0.6)]", "path 3 4 at 0.5, path 5 6 at 0.6" },
        { T, "[(1, 2, 0.5), (3, 4, 0.6), (5, 6", "path 1 2 at 0.5, path 3 4 at 0.6" },
        { T, "[(1, 2), (3, 4), (5, 6, 7)]", "path 1 2, path 3 4" },
        { T, "[1, 2, 3, 4, 5, 6]", "path 1 2, path 3 4, path 5 6" },
        { T, "[(1, 2, 3)]", "" },
        { P, "[(1, 2, 3), (4, 5, 6)]", "" }
    };

    (void) state;
    CHECK(cases);
}


/* The first shape of a text, placed; a picture that is not square in any of its sizes. */
static vlm_shape_t
placed(vlm_task_t task, const char *text, uint32_t shares)
{
    size_t       n;
    vlm_shape_t  s[VLM_MAX_SHAPES];
    vlm_view_t   view = { 1200, 300, 600, 200, shares };

    n = vlm_shapes(task, text, strlen(text), s, VLM_MAX_SHAPES);
    assert_true(n > 0);
    vlm_shapes_place(&view, s, n);

    return s[0];
}


static void
pixels_of_the_resized_picture_become_pixels_of_the_picture_as_sent(void **state)
{
    vlm_shape_t  s = placed(G, "[30, 20, 600, 200]", 0);

    (void) state;
    assert_true(s.x == 60 && s.y == 30 && s.x2 == 1200 && s.y2 == 300);

    s = placed(P, "(700, -2)", 0);
    assert_true(s.x == 1400 && s.y == -3);
}


static void
shares_of_the_sides_become_pixels_of_the_picture_as_sent(void **state)
{
    vlm_shape_t  s = placed(G, "[250, 500, 1000, 1000]", 1000);

    (void) state;
    assert_true(s.x == 300 && s.y == 150 && s.x2 == 1200 && s.y2 == 300);

    s = placed(P, "(10, 900)", 1000);
    assert_true(fabs(s.x - 12) < 1e-9 && fabs(s.y - 270) < 1e-9);

    s = placed(P, "(10, 50)", 100);
    assert_true(fabs(s.x - 120) < 1e-9 && fabs(s.y - 150) < 1e-9);

    s = placed(T, "[(500, 100, 1.5), (0, 0, 1)]", 1000);       /* a depth is no coordinate */
    assert_true(s.x == 600 && fabs(s.y - 30) < 1e-9 && s.depth == 1.5);
}


static void
numbers_from_0_to_1_that_are_not_whole_are_fractions_of_any_picture(void **state)
{
    uint32_t     shares;
    vlm_shape_t  s;

    (void) state;

    for (shares = 0; shares <= 1000; shares += 1000) {
        s = placed(G, "[0.5, 0.25, 1, 0.75]", shares);
        assert_true(s.x == 600 && s.y == 75 && s.x2 == 1200 && s.y2 == 225);
    }

    s = placed(P, "(0, 1)", 0);                    /* whole numbers are pixels */
    assert_true(s.x == 0 && s.y == 1.5);

    s = placed(P, "(0.5, 0.5), (2, 0.5)", 0);      /* and so are all if one is too large */
    assert_true(s.x == 1 && s.y == 0.75);
}


static void
a_decimal_is_the_number_that_is_nearest_to_it(void **state)
{
    vlm_shape_t  s = placed(P, "(0.781, 500.3)", 600);

    (void) state;
    assert_true(s.x == 0.781 * 2 && s.y == 500.3 * 0.5);
}


static void
labels_end_with_a_whole_character(void **state)
{
    char         text[512];
    vlm_shape_t  s;

    (void) state;

    sprintf(text, "{\"box\": [1, 2, 3, 4], \"label\": \"%060d\xe6\x9d\xaf" "a\"}", 0);
    assert_int_equal(vlm_shapes(G, text, strlen(text), &s, 1), 1);
    assert_int_equal(strlen(s.label), 63);
    assert_string_equal(s.label + 60, "\xe6\x9d\xaf");

    sprintf(text, "{\"box\": [1, 2, 3, 4], \"label\": \"%061d\xe6\x9d\xaf" "a\"}", 0);
    assert_int_equal(vlm_shapes(G, text, strlen(text), &s, 1), 1);
    assert_int_equal(strlen(s.label), 61);

    sprintf(text, "{\"box\": [1, 2, 3, 4], \"label\": \"%0300d\"}", 0);
    assert_int_equal(vlm_shapes(G, text, strlen(text), &s, 1), 1);
    assert_int_equal(strlen(s.label), 63);
}


static void
bytes_that_are_no_character_become_question_marks(void **state)
{
    static const vlm_case_t  cases[] = {
        { G, "{\"box\": [1, 2, 3, 4], \"label\": \"a\x80\xc0\xaf\xed\xa0\x80z\"}",
          "box 1 2 3 4 'a?" "?" "?" "?" "?" "?z'" },
        { G, "{\"box\": [1, 2, 3, 4], \"label\": \"\xe6\x9d\"}", "box 1 2 3 4 '?" "?'" },
        { G, "{\"box\": [1, 2, 3, 4], \"label\": \"\\ud83c\\u0041\\udf75\\u12g\\u0000\\u001f\"}",
          "box 1 2 3 4 '?A?" "?12g  '" }
    };

    (void) state;
    CHECK(cases);
}


static void
no_more_than_asked_for_are_given(void **state)
{
    int          i;
    char        *text;
    vlm_shape_t  s[4];

    (void) state;
    text = malloc(100000);

    for (i = 0; i < 1000; i++) {
        sprintf(text + 10 * i, "(%03d, 10)", i);
    }

    memset(s, 0x55, sizeof(s));
    assert_int_equal(vlm_shapes(P, text, 10000, s, 3), 3);
    assert_float_equal(s[2].x, 2, 0);
    assert_int_equal(*(uint8_t *) &s[3], 0x55);
    assert_int_equal(vlm_shapes(P, text, 10000, s, 0), 0);

    /* One bracket with more numbers than a tuple holds. */

    for (i = 0; i < 2000; i++) {
        sprintf(text + 4 * i, "%c%02d ", i == 0 ? '[' : ' ', i % 100);
    }

    strcpy(text + 8000, "]");
    assert_int_equal(vlm_shapes(T, text, 8001, s, 3), 3);
    assert_float_equal(s[2].x, 4, 0);
    free(text);
}


/* A megabyte of beginnings without an end, in a time that only a linear walk can keep. */
static void
hostile_text_takes_linear_time(void **state)
{
    char            *text;
    size_t           i, j, n, bytes;
    clock_t          start;
    vlm_shape_t      s[VLM_MAX_SHAPES];
    static const char *const  pieces[] = {
        "[", "(", "{", "}", "<", "\"", "'", "\\", "{\"", "{\\\"", "[1,", "(1 ", "1,", "-", ".",
        "<point", "<point x=\"1\" ", "<point>1 ", "{\"label\":", "{\"label\":\"", "{\"a\":{\"b\":",
        "\"'", "[[1,2],", "\xef\xbc\x88", "\xef", "\xe6\x9d\xaf", " ", "\n", "x1=", "x=1 ", "0", "9"
    };

    (void) state;

    bytes = 1 << 20;
    text = malloc(bytes);
    start = clock();

    for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        n = strlen(pieces[i]);

        for (j = 0; j < bytes; j++) {
            text[j] = pieces[i][j % n];
        }

        (void) vlm_shapes(G, text, bytes, s, VLM_MAX_SHAPES);
        (void) vlm_shapes(T, text, bytes, s, VLM_MAX_SHAPES);
    }

    free(text);

    /* 64 MB, four walks over each at worst: some 2 s, and hours if they were quadratic. */
    assert_true((double) (clock() - start) / CLOCKS_PER_SEC < 60);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(answers_of_the_published_models_give_what_upstream_draws),
        cmocka_unit_test(every_bracket_holds_a_point),
        cmocka_unit_test(numbers_may_have_signs_and_decimals),
        cmocka_unit_test(json_gives_shapes_and_labels),
        cmocka_unit_test(an_answer_that_was_cut_off_keeps_what_was_whole),
        cmocka_unit_test(other_numbers_are_not_read_as_coordinates),
        cmocka_unit_test(a_task_takes_its_own_kind_and_else_the_other),
        cmocka_unit_test(a_path_of_triples_has_depths),
        cmocka_unit_test(pixels_of_the_resized_picture_become_pixels_of_the_picture_as_sent),
        cmocka_unit_test(shares_of_the_sides_become_pixels_of_the_picture_as_sent),
        cmocka_unit_test(numbers_from_0_to_1_that_are_not_whole_are_fractions_of_any_picture),
        cmocka_unit_test(a_decimal_is_the_number_that_is_nearest_to_it),
        cmocka_unit_test(labels_end_with_a_whole_character),
        cmocka_unit_test(bytes_that_are_no_character_become_question_marks),
        cmocka_unit_test(no_more_than_asked_for_are_given),
        cmocka_unit_test(hostile_text_takes_linear_time)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
