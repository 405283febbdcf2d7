/* Sources that an answer cites, their boxes on the page, and the numbers that no source has. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/cite.h"

#define WORDS    400
#define SOURCES  4
#define WIDE     5.f                       /* points of a character */
#define HIGH     12.f                      /* of a line */

static vlm_pdf_word_t     words[SOURCES][WORDS];
static vlm_cite_t         sources[SOURCES];
static vlm_unsupported_t  unsupported;


static int
is_space(char c)
{
    return c == ' ' || c == '\n';
}


/* A page of 500 x 800 points whose words stand where a typewriter would put them. */
static void
make(size_t i, const char *text)
{
    size_t           at, column, line;
    vlm_pdf_word_t  *w = words[i];
    vlm_cite_t      *s = &sources[i];

    memset(s, 0, sizeof(*s));
    s->page = (vlm_page_t) { .text = text, .bytes = strlen(text), .words = w, .width = 500,
                             .height = 800 };
    s->bytes = (uint32_t) s->page.bytes;
    s->name = "file.pdf";
    s->number = (uint32_t) i + 3;

    for (at = column = line = 0; text[at] != '\0'; at++) {
        if (is_space(text[at])) {
            column = text[at] == '\n' ? 0 : column + 1;
            line += text[at] == '\n';
            continue;
        }

        if (at == 0 || is_space(text[at - 1])) {
            assert_true(s->page.n_words < WORDS);
            w[s->page.n_words++] = (vlm_pdf_word_t) {
                .first = (uint32_t) at, .x0 = WIDE * (float) column, .y0 = HIGH * (float) line,
                .y1 = HIGH * (float) (line + 1)
            };
        }

        column++;
        w[s->page.n_words - 1].bytes++;
        w[s->page.n_words - 1].x1 = WIDE * (float) column;
    }
}


/* The unsupported numbers, each behind a bar. */
static const char *
missing(size_t n, const char *answer)
{
    size_t       i, at;
    static char  out[512];

    assert_int_equal(vlm_cite(sources, n, answer, strlen(answer), &unsupported), 0);
    out[0] = '\0';

    for (i = at = 0; i < unsupported.n; i++) {
        at += (size_t) snprintf(out + at, sizeof(out) - at, "|%.*s",
                                (int) unsupported.range[i].bytes,
                                answer + unsupported.range[i].first);
    }

    return out;
}


/* The cited sources as digits. */
static const char *
cited(size_t n, const char *answer)
{
    size_t       i, at;
    static char  out[SOURCES + 1];

    (void) missing(n, answer);

    for (i = at = 0; i < n; i++) {
        if (sources[i].cited) {
            out[at++] = (char) ('1' + i);
        }
    }

    out[at] = '\0';

    return out;
}


static void
make_three(void)
{
    make(0, "The belt runs at 1.2 m/s and is checked\nevery 250 hours by two people.");
    make(1, "Replace the bearing if its temperature\nexceeds 70 °C or 1,234.5 hours.");
    make(2, "Delivery on 15.03.2024 costs 12 % more.");
}


static void
a_source_is_cited_by_its_number(void **state)
{
    (void) state;
    make_three();
    assert_string_equal(cited(3, "It is so [2]."), "2");
    assert_string_equal(cited(3, "It is so [1, 3] and [2]."), "123");
    assert_string_equal(cited(3, "It is so [1][3]."), "13");
    assert_string_equal(cited(3, "It is so [0], [4], [12], [99999999999999999999], [], [x], [2"),
                        "");
    assert_string_equal(cited(3, "It is so [1,350], [2, 9], [0003], [1 of 3], [[2]"), "2");
}


static void
a_source_is_cited_by_its_words_or_numbers(void **state)
{
    (void) state;
    make_three();
    assert_string_equal(cited(3, "The bearing temperature exceeds the limit"), "2");
    assert_string_equal(cited(3, "After 250 revolutions we look"), "1");
    assert_string_equal(cited(3, "Somewhere 250 and 70 stand"), "");
    assert_string_equal(cited(3, "The belt is checked every 70 hours"), "2");
    assert_string_equal(cited(3, "The belt is checked every 71 hours"), "1");
    assert_string_equal(cited(3, "Nothing of it is written there"), "");
    assert_string_equal(cited(3, ""), "");
    assert_string_equal(cited(0, "No sources [1]"), "");
}


static void
numbers_that_no_source_has_are_listed(void **state)
{
    (void) state;
    make_three();
    assert_string_equal(missing(3, "It runs at 1.2 m/s for 250 hours."), "");
    assert_string_equal(missing(3, "It runs at 1.3 m/s for 251 hours."), "|1.3|251");
    assert_string_equal(missing(3, "1.234,5 hours at 70 °C, 12% more"), "");
    assert_string_equal(missing(3, "1234.5 and 1 234,6"), "|1 234,6");
    assert_string_equal(missing(3, "On 15 March 2024, or 2024-03-15"), "");
    assert_string_equal(missing(3, "On 16.03.2024"), "|16");
    assert_string_equal(missing(3, "No number"), "");
    assert_string_equal(missing(0, "All 5 of them"), "|5");
}


static void
numbers_that_state_nothing_are_not_looked_at(void **state)
{
    (void) state;
    make_three();
    assert_string_equal(missing(3, "It is so [2], and so [1, 3]."), "");
    assert_string_equal(missing(3, "1. one\n2. two\n  3) three\n5. five"), "|5");
    assert_string_equal(missing(3, "1. one\n\n1) one\n2) two"), "");
    assert_string_equal(missing(3, "4. is not a list"), "|4");
    assert_string_equal(missing(3, "as page 4 says (p. 5), page 9 not"), "|9");
    assert_string_equal(missing(3, "9"), "|9");
    assert_string_equal(missing(3, "9."), "|9");

    sources[1].name = "report-1987.pdf";
    assert_string_equal(missing(3, "the report of 1987"), "");
}


static void
brackets_around_other_numbers_are_no_mark(void **state)
{
    (void) state;
    make(0, "All 12 cost 99 EUR.");
    assert_string_equal(missing(1, "It is so [1]. And [1, 1] [1 ,1]"), "");
    assert_string_equal(missing(1, "It costs [1350], [1,350] or [1 350]"), "|1350|1,350|1 350");
    assert_string_equal(missing(1, "It is so [9], [0] and [1, 9]."), "|9|0|1|9");
    assert_string_equal(missing(1, "It is so [0001], [18446744073709551617]"),
                        "|0001|18446744073709551617");
    assert_string_equal(missing(1, "It costs [99]"), "");
    assert_string_equal(missing(1, "It is so [1"), "|1");
}


static void
check_box(const vlm_cite_t *s, size_t i, float column, float line, float columns)
{
    const vlm_box_t  *b = &s->boxes[i];

    assert_true(i < s->n_boxes);
    assert_true(fabsf(b->x0 * 500 - WIDE * column) < 1e-3f);
    assert_true(fabsf(b->x1 * 500 - WIDE * (column + columns)) < 1e-3f);
    assert_true(fabsf(b->y0 * 800 - HIGH * line) < 1e-3f);
    assert_true(fabsf(b->y1 * 800 - HIGH * (line + 1)) < 1e-3f);
}


static void
numbers_have_boxes_and_words_where_there_are_none(void **state)
{
    (void) state;
    make_three();
    assert_string_equal(cited(3, "250 hours at 1.2"), "1");
    assert_int_equal(sources[0].n_boxes, 2);
    check_box(&sources[0], 0, 17, 0, 3);
    check_box(&sources[0], 1, 6, 1, 3);

    assert_string_equal(cited(3, "The bearing temperature exceeds it"), "2");
    assert_int_equal(sources[1].n_boxes, 3);
    check_box(&sources[1], 0, 12, 0, 7);
    check_box(&sources[1], 1, 27, 0, 11);
    check_box(&sources[1], 2, 0, 1, 7);

    /* neighbours are joined, and a number of two words has one box */
    make(0, "Replace bearing now\nfor 1 234 hours");
    (void) cited(1, "bearing, replace [1]");
    assert_int_equal(sources[0].n_boxes, 1);
    check_box(&sources[0], 0, 0, 0, 15);
    (void) cited(1, "1,234");
    assert_int_equal(sources[0].n_boxes, 1);
    check_box(&sources[0], 0, 4, 1, 5);
}


static void
only_a_piece_of_the_page_counts(void **state)
{
    (void) state;
    make_three();
    sources[0].first = 40;
    sources[0].bytes = 9;                  /* "every 250" */
    assert_string_equal(cited(1, "250"), "1");
    check_box(&sources[0], 0, 6, 1, 3);
    assert_string_equal(missing(1, "1.2 and 250"), "|1.2");
}


static void
hidden_words_support_nothing(void **state)
{
    (void) state;
    make_three();
    words[0][9].flags = VLM_PDF_HIDDEN;    /* every */
    words[0][10].flags = VLM_PDF_HIDDEN;   /* 250 */
    assert_string_equal(missing(1, "250"), "|250");
    assert_string_equal(cited(1, "250 [1]"), "1");
    assert_int_equal(sources[0].n_boxes, 0);
    sources[0].page.layer = 1;
    assert_string_equal(missing(1, "250"), "");
    assert_int_equal(sources[0].n_boxes, 1);
}


/* A blank picture over the page makes no word of it visible. */
static void
hidden_words_before_a_background_picture_support_nothing(void **state)
{
    vlm_page_t   *page = &sources[0].page;
    const char    answer[] = "987654 and 456789 [1]";

    (void) state;
    make(0, "The total is 4120 EUR.\nIt was 987654 EUR.\nIt was 456789 EUR.");
    words[0][7].flags = VLM_PDF_HIDDEN;
    words[0][11].flags = VLM_PDF_HIDDEN;

    page->layer = vlm_page_layer(VLM_PDF_SCAN, page->words, page->n_words);
    assert_string_equal(missing(1, answer), "|987654|456789");
    assert_int_equal(sources[0].n_boxes, 0);
    assert_string_equal(cited(1, "987654 and 456789 EUR"), "");
}


static void
a_changed_number_is_found_30_of_30(void **state)
{
    int          i;
    char         answer[64];
    static char  text[2048];
    size_t       at;

    (void) state;

    for (i = 0, at = 0; i < 30; i++) {
        at += (size_t) snprintf(text + at, sizeof(text) - at, "Part %c%c weighs %d,%03d.%d g.\n",
                                'A' + i % 26, 'a' + i / 26, 11 + 7 * i, 101 + 29 * i,
                                2 * i % 9 + 1);
    }

    make(0, text);

    for (i = 0; i < 30; i++) {
        (void) snprintf(answer, sizeof(answer), "It weighs %d.%03d,%d g [1].", 11 + 7 * i,
                        101 + 29 * i, 2 * i % 9 + 1);
        assert_string_equal(missing(1, answer), "");
        assert_int_equal(sources[0].n_boxes, 1);
        assert_true(fabsf(sources[0].boxes[0].y0 * 800 - HIGH * (float) i) < 1e-3f);

        (void) snprintf(answer, sizeof(answer), "It weighs %d,%03d.%d g [1].", 11 + 7 * i,
                        102 + 29 * i, 2 * i % 9 + 1);
        assert_true(missing(1, answer)[0] == '|');
        assert_int_equal(unsupported.n, 1);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_source_is_cited_by_its_number),
        cmocka_unit_test(a_source_is_cited_by_its_words_or_numbers),
        cmocka_unit_test(numbers_that_no_source_has_are_listed),
        cmocka_unit_test(numbers_that_state_nothing_are_not_looked_at),
        cmocka_unit_test(brackets_around_other_numbers_are_no_mark),
        cmocka_unit_test(numbers_have_boxes_and_words_where_there_are_none),
        cmocka_unit_test(only_a_piece_of_the_page_counts),
        cmocka_unit_test(hidden_words_support_nothing),
        cmocka_unit_test(hidden_words_before_a_background_picture_support_nothing),
        cmocka_unit_test(a_changed_number_is_found_30_of_30),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
