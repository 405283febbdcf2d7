/* Which pages and pieces a prompt has, in what order, and what is left out first. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "document/pick.h"

#define PIECES  40

/* Two documents of ten pages, each with two pieces. */
static const uint32_t  ten[] = { 10, 10 };

typedef struct {
    vlm_piece_t   pieces[PIECES];
    double        scores[PIECES];
    vlm_source_t  sources[VLM_PICK_MAX];
    size_t        n;
} set_t;


static void
make(set_t *s)
{
    uint32_t  i;

    memset(s, 0, sizeof(*s));

    for (i = 0; i < PIECES; i++) {
        s->pieces[i] = (vlm_piece_t) { .document = i / 20, .page = i % 20 / 2 + 1,
                                       .first = i % 2 * 900, .bytes = 1000 };
    }
}


/* Sources as "document.page" for a whole page, "document.page+first" for a piece. */
static const char *
shown(const set_t *s)
{
    size_t              i, at;
    const vlm_source_t *p;
    static char         out[512];

    out[0] = '\0';

    for (i = at = 0; i < s->n; i++) {
        p = &s->sources[i];
        at += (size_t) snprintf(out + at, sizeof(out) - at, "%s%u.%u", i ? " " : "", p->document,
                                p->page);

        if (!p->whole) {
            at += (size_t) snprintf(out + at, sizeof(out) - at, "+%u", p->first);
        }
    }

    return out;
}


static const char *
picked(set_t *s, vlm_pages_t mode)
{
    s->n = vlm_pick(s->sources, mode, s->pieces, s->scores, PIECES, ten, 2);

    return shown(s);
}


static void
the_best_pages_are_whole_and_further_ones_are_pieces(void **state)
{
    set_t  s;

    (void) state;
    make(&s);
    s.scores[5] = 9;                       /* document 0, page 3 */
    s.scores[4] = 8;                       /* the same page */
    s.scores[30] = 7;                      /* document 1, page 6 */
    s.scores[0] = 6;
    s.scores[31] = 5.5;
    s.scores[39] = 5;
    s.scores[38] = 4;

    assert_string_equal(picked(&s, VLM_PAGES_AUTO), "0.3 1.6 0.1 1.10+900 1.10+0");
    assert_int_equal(s.sources[0].first, 900);
    assert_true(s.sources[0].score == 9);
    vlm_pick_sort(s.sources, s.n);
    assert_string_equal(shown(&s), "0.1 0.3 1.6 1.10+0 1.10+900");
    assert_string_equal(picked(&s, VLM_PAGES_PICTURES), "0.3 1.6 0.1");
    assert_string_equal(picked(&s, VLM_PAGES_TEXT), "0.3+900 0.3+0 1.6+0 0.1+0");
}


static void
a_question_without_a_hit_gets_the_first_pages(void **state)
{
    set_t  s;

    (void) state;
    make(&s);
    assert_string_equal(picked(&s, VLM_PAGES_AUTO), "0.1 0.2 0.3");
    assert_string_equal(picked(&s, VLM_PAGES_PICTURES), "0.1 0.2 0.3");
    assert_string_equal(picked(&s, VLM_PAGES_TEXT), "0.1+0 0.1+900 0.2+0 0.2+900");
    s.scores[2] = 1;
    assert_string_equal(picked(&s, VLM_PAGES_AUTO), "0.2");
    assert_string_equal(picked(&s, VLM_PAGES_TEXT), "0.2+0 0.1+0 0.1+900 0.2+900");
}


static void
few_pages_are_always_there(void **state)
{
    set_t           s;
    const uint32_t  one_two[] = { 1, 2 };

    (void) state;
    make(&s);
    s.pieces[0] = (vlm_piece_t) { .document = 1, .page = 2, .bytes = 10 };
    s.scores[0] = 1;
    s.n = vlm_pick(s.sources, VLM_PAGES_AUTO, s.pieces, s.scores, 1, one_two, 2);
    assert_string_equal(shown(&s), "1.2 0.1 1.1");
    vlm_pick_sort(s.sources, s.n);
    assert_string_equal(shown(&s), "0.1 1.1 1.2");

    /* a scan, which has no pieces */
    s.n = vlm_pick(s.sources, VLM_PAGES_AUTO, NULL, NULL, 0, one_two, 1);
    assert_string_equal(shown(&s), "0.1");
    assert_int_equal(vlm_pick(s.sources, VLM_PAGES_TEXT, NULL, NULL, 0, one_two, 1), 0);
    assert_int_equal(vlm_pick(s.sources, VLM_PAGES_AUTO, NULL, NULL, 0, NULL, 0), 0);
}


static void
the_search_never_gives_more_than_there_is_room_for(void **state)
{
    int     i;
    set_t   s;

    (void) state;
    make(&s);

    for (i = 0; i < PIECES; i++) {
        s.scores[i] = 1 + i;
    }

    (void) picked(&s, VLM_PAGES_AUTO);
    assert_true(s.n <= VLM_PICK_MAX);
    assert_int_equal(s.n, 3 + VLM_PICK_PIECES - 6);
}


static void
the_worst_is_left_out_first(void **state)
{
    set_t  s;

    (void) state;
    make(&s);
    s.scores[5] = 9;
    s.scores[30] = 7;
    s.scores[0] = 6;
    s.scores[39] = 5;
    s.scores[38] = 4;
    (void) picked(&s, VLM_PAGES_AUTO);
    s.sources[0].picture = 1;

    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_string_equal(shown(&s), "0.3 1.6 0.1 1.10+900");
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_string_equal(shown(&s), "0.3 1.6");
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_string_equal(shown(&s), "0.3");
    assert_int_equal(s.sources[0].picture, 1);
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_int_equal(s.sources[0].picture, 0);
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 1);
    assert_string_equal(shown(&s), "0.3+900");
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_AUTO), 0);
}


static void
of_a_picture_that_is_wanted_the_text_is_left_out(void **state)
{
    set_t  s;

    (void) state;
    make(&s);
    s.scores[5] = 9;
    (void) picked(&s, VLM_PAGES_PICTURES);
    s.sources[0].picture = 1;
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_PICTURES), 1);
    assert_true(s.sources[0].picture && s.sources[0].textless);
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_PICTURES), 0);
    s.n = 0;
    assert_int_equal(vlm_pick_drop(s.sources, &s.n, VLM_PAGES_PICTURES), 0);
}


static int
shows(const char *question)
{
    return vlm_pick_shows(question, strlen(question));
}


static void
questions_about_what_text_does_not_show_are_known(void **state)
{
    size_t  i;

    static const char *const  wanted[] = {
        "What does Figure 3 show?", "the total in the TABLE", "Fig. 12?", "Is there a stamp?",
        "How much, by table 2.1?", "What does the map show?", "Where on the map is the depot?",
        "the values in Tables 4 and 5", "Explain the diagram", "Who signed the contract?",
        "What colour is the cover?", "What does the valve look like?", "Is there a company seal?",
        "Read the table on page 7", "Explain the figures shown", "the image below",
        "签名在哪里？", "इस चित्र में क्या है?", "Was zeigt die Abbildung?", "Que montre l’image ?",
        "¿Dónde está la firma?", "Que dit le schéma"
    };
    static const char *const  others[] = {
        "How fast is the belt?", "Is the vegetable stable?", "", "table", "3", "show",
        "Of what is the seal of the pump made?", "When is the mechanical seal replaced?",
        "How do I map a network drive?", "How high is the table?", "Where do I look for the key?",
        "May dogs sit under the table or on it?", "Who owns the plot of land?", "the sales figures",
        "Wie heißt die Firma?", "Whom do I telephone about stamp duty?", "an image of honesty",
        "What is drawing current?", "figure out the cost of 3 lamps", "table of 3", "in the stable"
    };

    (void) state;

    for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        if (!shows(wanted[i])) {
            fail_msg("\"%s\" wants no picture", wanted[i]);
        }
    }

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (shows(others[i])) {
            fail_msg("\"%s\" wants a picture", others[i]);
        }
    }
}


static void
pages_that_text_does_not_show_are_pictures(void **state)
{
    (void) state;
    assert_true(vlm_pick_picture(VLM_PAGES_AUTO, 0, 1, 5000));
    assert_true(vlm_pick_picture(VLM_PAGES_AUTO, 0, 0, 3));
    assert_true(vlm_pick_picture(VLM_PAGES_AUTO, 1, 0, 5000));
    assert_false(vlm_pick_picture(VLM_PAGES_AUTO, 0, 0, 5000));
    assert_true(vlm_pick_picture(VLM_PAGES_PICTURES, 0, 0, 5000));
    assert_false(vlm_pick_picture(VLM_PAGES_TEXT, 1, 1, 0));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_best_pages_are_whole_and_further_ones_are_pieces),
        cmocka_unit_test(a_question_without_a_hit_gets_the_first_pages),
        cmocka_unit_test(few_pages_are_always_there),
        cmocka_unit_test(the_search_never_gives_more_than_there_is_room_for),
        cmocka_unit_test(the_worst_is_left_out_first),
        cmocka_unit_test(of_a_picture_that_is_wanted_the_text_is_left_out),
        cmocka_unit_test(questions_about_what_text_does_not_show_are_known),
        cmocka_unit_test(pages_that_text_does_not_show_are_pictures),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
