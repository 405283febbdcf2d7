/* Lines of characters: their directions, rows, marks, and a page with too many words. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lines.h"

#define SIZE  10.                          /* of each character's box */

typedef struct {
    pdf_char_t  chars[200];
    size_t      n;
} page_t;


/* A line as the page shows it, from left to right; spaces separate words. */
static void
put(page_t *page, const char *text, double x, double y)
{
    size_t       i, first = page->n;
    pdf_char_t  *c;

    for (; *text; text = g_utf8_next_char(text), x += SIZE) {
        if (*text == ' ') {
            page->chars[page->n - 1].space = 1;
            continue;
        }

        c = &page->chars[page->n++];
        *c = (pdf_char_t) { .box = { x, y, x + SIZE, y + SIZE }, .c = g_utf8_get_char(text) };
        c->ends_word = text[1] == '\0' || *g_utf8_next_char(text) == ' '
                       || *g_utf8_next_char(text) == '\0';
    }

    for (i = first; i < page->n; i++) {
        page->chars[i].word = page->chars[i].box;
    }
}


static void
reads(const page_t *page, const char *wanted)
{
    uint32_t    left = 1000;
    pdf_text_t  t = { .width = 600, .height = 800, .text = g_string_new(NULL),
                      .words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t)),
                      .chars = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t)) };

    pdf_lines_append(&t, page->chars, page->n, &left);
    assert_string_equal(t.text->str, wanted);
    assert_int_equal(left, 1000 - g_utf8_strlen(wanted, -1));
    g_string_free(t.text, TRUE);
    g_array_free(t.words, TRUE);
    g_array_free(t.chars, TRUE);
}


static void
line_reads(const char *shown, const char *wanted)
{
    page_t  page = { 0 };

    put(&page, shown, 50, 50);
    reads(&page, wanted);
}


static void
runs_have_their_directions(void **state)
{
    (void) state;

    line_reads("one two", "one two");
    line_reads("םולש", "שלום");
    line_reads("םולש ןושאר", "ראשון שלום");
    line_reads("one two three םולש ןושאר four", "one two three ראשון שלום four");
    line_reads("תולעמ 70 לע", "על 70 מעלות");
    line_reads("תולעמ 1,250.5 לע", "על 1,250.5 מעלות");
    line_reads("ab 12 םולש 34 cdef", "ab 12 שלום 34 cdef");
    line_reads("ةعاس ٢٥٠ لك", "كل ٢٥٠ ساعة");
}


/* A sign between two numbers, or behind a word, is the line's; one within a number is that's. */
static void
signs_are_read_where_they_stand(void **state)
{
    (void) state;

    line_reads("תולעמ 70 ,איה", "היא, 70 מעלות");
    line_reads("5 :ריחמה", "המחיר: 5");
    line_reads("5- :ריחמה", "המחיר: -5");
    line_reads(".300 ,200 ,100 :םיכרע", "ערכים: 100, 200, 300.");
    line_reads("ריחמהמ 50% ,12/05/2024-ב", "ב-12/05/2024, 50% מהמחיר");
    line_reads("ةجرد 70 ،١٢٣٫٤٥ :ميقلا", "القيم: ١٢٣٫٤٥، 70 درجة");
    line_reads("ףוס ,IP 67 ,ןקת", "תקן, IP 67, סוף");
    line_reads("ףוס \\ab{cd} ןקת", "תקן \\ab{cd} סוף");
    line_reads("ףוס ,@ab.c ןקת", "תקן @ab.c, סוף");
}


static void
a_line_of_english_stays_on_a_page_of_hebrew(void **state)
{
    page_t  page = { 0 };

    (void) state;

    put(&page, "תועיטב תוארוה", 50, 50);
    put(&page, "12 ab (cd).", 50, 80);
    put(&page, "100, 200", 50, 110);
    reads(&page, "הוראות בטיעות\n12 ab (cd).\n100, 200");
}


/* They would change how a text is shown, and split the numbers in it. */
static void
marks_of_direction_are_left_out(void **state)
{
    (void) state;

    line_reads("\u202eone\u202c 47\u206611\u2069", "one 4711");
    line_reads("\u200f\u061cםולש\u202b", "שלום");
    line_reads("one \u202a two", "one  two");
    line_reads("\u202a", "");
}


static void
lines_and_rows(void **state)
{
    page_t  page = { 0 };

    (void) state;

    put(&page, "head", 50, 20);
    put(&page, "bolt", 50, 50);
    put(&page, "12", 150, 52);
    put(&page, "nut", 50, 70);
    put(&page, "34", 150, 70);
    reads(&page, "head\nbolt\t12\nnut\t34");

    /* The halves of a word in two fonts, and a word right below another. */
    memset(&page, 0, sizeof(page));
    put(&page, "be", 50, 50);
    put(&page, "lt", 70, 50);
    put(&page, "be", 50, 58);
    reads(&page, "belt\nbe");

    /* A line that runs down is of no row; a number that is none ends a line. */
    memset(&page, 0, sizeof(page));
    put(&page, "a", 50, 50);
    put(&page, "b", 50, 60);
    put(&page, "c", 90, 50);
    page.chars[0].rotation = page.chars[1].rotation = page.chars[2].rotation = 1;
    page.chars[0].word.y1 = 60;
    reads(&page, "ab\nc");
    page.chars[1].word.y0 = 0. / 0.;
    reads(&page, "a\nb\nc");
}


/* A character that has no word could not be told from a visible one. */
static void
words_beyond_the_last_have_no_text(void **state)
{
    size_t      i;
    uint32_t    left = 4000000;
    pdf_box_t   box = { 0, 0, 1, 1 };
    pdf_text_t  t = { .width = 600, .height = 800, .text = g_string_new(NULL),
                      .words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t)),
                      .chars = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t)) };

    (void) state;

    for (i = 0; i < VLM_PDF_WORDS + 10; i++) {
        pdf_text_character(&t, 'x', &box, &left);
        pdf_text_character(&t, '\n', &box, &left);
    }

    assert_int_equal(t.words->len, VLM_PDF_WORDS);
    assert_null(strchr(t.text->str + 2 * VLM_PDF_WORDS, 'x'));
    g_string_free(t.text, TRUE);
    g_array_free(t.words, TRUE);
    g_array_free(t.chars, TRUE);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(runs_have_their_directions),
        cmocka_unit_test(signs_are_read_where_they_stand),
        cmocka_unit_test(a_line_of_english_stays_on_a_page_of_hebrew),
        cmocka_unit_test(marks_of_direction_are_left_out),
        cmocka_unit_test(lines_and_rows),
        cmocka_unit_test(words_beyond_the_last_have_no_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
