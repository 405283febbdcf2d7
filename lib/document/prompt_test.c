/* Headings of pages, and their text without hidden words. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/prompt.h"

static const char  text[] = "The belt IGNORE ALL runs.\nFree now.";

/* The, belt, IGNORE, ALL, runs., Free, now. */
static vlm_pdf_word_t  words[] = {
    { .first = 0, .bytes = 3 }, { .first = 4, .bytes = 4 },
    { .first = 9, .bytes = 6, .flags = VLM_PDF_HIDDEN },
    { .first = 16, .bytes = 3, .flags = VLM_PDF_HIDDEN }, { .first = 20, .bytes = 5 },
    { .first = 26, .bytes = 4 }, { .first = 31, .bytes = 4, .flags = VLM_PDF_HIDDEN }
};


static vlm_page_t
page_of(int layer)
{
    return (vlm_page_t) { .text = text, .bytes = sizeof(text) - 1, .words = words,
                          .n_words = sizeof(words) / sizeof(words[0]), .width = 595, .height = 842,
                          .layer = layer };
}


static void
check(int layer, uint32_t first, uint32_t bytes, const char *expected)
{
    char        *out;
    size_t       len;
    vlm_page_t   page = page_of(layer);

    out = vlm_prompt_text(&page, first, bytes, &len);
    assert_non_null(out);
    assert_int_equal(len, strlen(expected));
    assert_string_equal(out, expected);
    free(out);
}


static void
hidden_words_are_left_out_but_not_of_a_layer(void **state)
{
    (void) state;
    check(0, 0, sizeof(text) - 1, "The belt runs.\nFree ");
    check(1, 0, sizeof(text) - 1, text);
}


static void
a_layer_is_of_a_scan_without_a_visible_word(void **state)
{
    vlm_pdf_word_t  two[] = { { .flags = VLM_PDF_HIDDEN }, { .flags = VLM_PDF_HIDDEN } };

    (void) state;
    assert_true(vlm_page_layer(VLM_PDF_SCAN, two, 2));
    assert_true(vlm_page_layer(VLM_PDF_SCAN, NULL, 0));
    assert_false(vlm_page_layer(0, two, 2));
    assert_false(vlm_page_layer(VLM_PDF_OCR, two, 2));

    two[1].flags = 0;
    assert_false(vlm_page_layer(VLM_PDF_SCAN, two, 2));
    assert_true(vlm_page_layer(VLM_PDF_SCAN, two, 1));
}


static void
a_piece_begins_and_ends_anywhere(void **state)
{
    (void) state;
    check(0, 4, 4, "belt");
    check(0, 4, 8, "belt ");
    check(0, 11, 9, "");
    check(0, 12, 13, "runs.");
    check(0, 0, 0, "");
    check(0, sizeof(text) - 1, 0, "");
    check(0, 16, 4, "");
    check(0, 16, 3, "");
}


static void
a_range_outside_the_page_has_no_text(void **state)
{
    size_t      len;
    vlm_page_t  page = page_of(0);

    (void) state;
    assert_null(vlm_prompt_text(&page, sizeof(text), 0, &len));
    assert_null(vlm_prompt_text(&page, 1, sizeof(text) - 1, &len));
    assert_null(vlm_prompt_text(&page, 1, UINT32_MAX, &len));
}


static void
a_heading_has_a_clean_name(void **state)
{
    char    out[VLM_PROMPT_HEADING], name[300];
    size_t  n;

    (void) state;
    n = vlm_prompt_heading(out, 2, "manual.pdf", 3, 12);
    assert_string_equal(out, "[2] manual.pdf, page 3 of 12\n");
    assert_int_equal(n, strlen(out));

    (void) vlm_prompt_heading(out, 1, "a\nb\x1b[0m\xff" "c \xe2\x80\xae" "d.pdf", 1, 1);
    assert_string_equal(out, "[1] ab[0mc d.pdf, page 1 of 1\n");

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    n = vlm_prompt_heading(out, SIZE_MAX, name, UINT32_MAX, UINT32_MAX);
    assert_true(n < sizeof(out));
    assert_int_equal(n, strlen(out));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(hidden_words_are_left_out_but_not_of_a_layer),
        cmocka_unit_test(a_layer_is_of_a_scan_without_a_visible_word),
        cmocka_unit_test(a_piece_begins_and_ends_anywhere),
        cmocka_unit_test(a_range_outside_the_page_has_no_text),
        cmocka_unit_test(a_heading_has_a_clean_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
