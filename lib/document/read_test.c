/* Pages of vlm-pdf's frames: their text, words, chunks and terms. */

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "document/read.h"


/* ---- frames ------------------------------------------------------------------------------- */

/* A page of this text with these words. */
static vlm_frame_t
page(uint32_t number, const char *text, uint32_t flags, vlm_pdf_word_t *words, uint32_t n)
{
    return (vlm_frame_t) {
        .kind = VLM_FRAME_PAGE,
        .page = { .number = number, .width = 612, .height = 792, .flags = flags, .words = n,
                  .text_bytes = (uint32_t) strlen(text) },
        .words = words, .text = text, .bytes = strlen(text)
    };
}


static vlm_frame_t
info(uint32_t pages, uint32_t to_read, const char *title)
{
    return (vlm_frame_t) { .kind = VLM_FRAME_INFO, .pages = pages, .to_read = to_read,
                           .text = title, .bytes = strlen(title) };
}


/* Have these terms the one of this word? */
static int
has(const vlm_terms_t *terms, const char *word)
{
    int          found = 0;
    size_t       i;
    vlm_terms_t  one;

    assert_int_equal(vlm_terms_of(&one, word, strlen(word)), 0);
    assert_int_equal(one.n, 1);

    for (i = 0; i < terms->n; i++) {
        found |= terms->terms[i].hash == one.terms[0].hash;
    }

    free(one.terms);

    return found;
}


/* ---- tests -------------------------------------------------------------------------------- */

static void
a_page_keeps_its_text_words_and_size(void **state)
{
    char            text[] = "Two words";
    vlm_read_t      read = { 0 };
    vlm_frame_t     frame;
    vlm_pdf_word_t  words[2] = { { 0, 3, 10, 10, 40, 20, 0 }, { 4, 5, 50, 10, 90, 20, 0 } };

    (void) state;
    frame = info(812, 200, "A title");
    assert_int_equal(vlm_read_frame(&read, &frame), 0);
    frame = page(7, text, 0, words, 2);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);

    /* The frame's memory is the reader's, which uses it again. */
    memset(text, 'x', sizeof(text));
    memset(words, 0xff, sizeof(words));

    assert_int_equal(read.pages, 812);
    assert_int_equal(read.to_read, 200);
    assert_string_equal(read.title, "A title");
    assert_int_equal(read.n, 1);
    assert_int_equal(read.page[0].number, 7);
    assert_true(read.page[0].width == 612 && read.page[0].height == 792);
    assert_int_equal(read.page[0].bytes, 9);
    assert_memory_equal(read.page[0].text, "Two words", 9);
    assert_int_equal(read.page[0].n_words, 2);
    assert_int_equal(read.page[0].words[1].first, 4);
    assert_true(read.page[0].words[1].x1 == 90);
    assert_int_equal(read.page[0].n_chunks, 1);
    assert_true(has(&read.page[0].terms[0], "words"));

    vlm_read_free(&read);
    vlm_read_free(&read);
}


static void
a_long_page_has_chunks_that_cover_it(void **state)
{
    char         text[20001];
    size_t       i, end;
    vlm_read_t   read = { 0 };
    vlm_frame_t  frame;

    (void) state;

    for (i = 0; i < 20000; i += 10) {
        snprintf(text + i, 11, "word%05zu ", i / 10);
    }

    frame = page(1, text, 0, NULL, 0);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);
    assert_true(read.page[0].n_chunks >= 20);
    assert_int_equal(read.n_chunks, read.page[0].n_chunks);

    for (i = end = 0; i < read.page[0].n_chunks; i++) {
        assert_true(read.page[0].chunks[i].first <= end);
        end = read.page[0].chunks[i].first + read.page[0].chunks[i].bytes;
        assert_true(end <= 20000);
        assert_true(read.page[0].terms[i].n > 0);
    }

    assert_true(end >= 19999);
    vlm_read_free(&read);
}


static void
the_search_does_not_see_hidden_words(void **state)
{
    vlm_read_t      read = { 0 };
    vlm_frame_t     frame;
    vlm_pdf_word_t  words[] = { { 0, 7, 0, 0, 9, 9, 0 }, { 8, 6, 0, 0, 9, 9, VLM_PDF_HIDDEN },
                                { 15, 5, 0, 0, 9, 9, 0 } };

    (void) state;
    frame = page(1, "visible hidden again", 0, words, 3);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);

    assert_memory_equal(read.page[0].text, "visible hidden again", 20);
    assert_int_equal(read.page[0].n_chunks, 1);
    assert_true(has(&read.page[0].terms[0], "visible"));
    assert_true(has(&read.page[0].terms[0], "again"));
    assert_false(has(&read.page[0].terms[0], "hidden"));
    vlm_read_free(&read);

    /* also before a picture that covers the page */
    frame = page(1, "visible hidden again", VLM_PDF_SCAN, words, 3);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);
    assert_true(has(&read.page[0].terms[0], "again"));
    assert_false(has(&read.page[0].terms[0], "hidden"));
    vlm_read_free(&read);
}


static void
a_page_of_hidden_words_has_no_chunk_but_a_scan_has(void **state)
{
    vlm_read_t      read = { 0 };
    vlm_frame_t     frame;
    vlm_pdf_word_t  words[] = { { 0, 6, 0, 0, 9, 9, VLM_PDF_HIDDEN } };

    (void) state;
    frame = page(1, "hidden", 0, words, 1);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);
    frame = page(2, "hidden", VLM_PDF_SCAN, words, 1);
    assert_int_equal(vlm_read_frame(&read, &frame), 0);

    assert_int_equal(read.page[0].n_chunks, 0);
    assert_int_equal(read.page[1].n_chunks, 1);
    assert_true(has(&read.page[1].terms[0], "hidden"));
    assert_int_equal(read.n_chunks, 1);
    vlm_read_free(&read);
}


static void
many_pages_keep_their_order(void **state)
{
    uint32_t     i;
    vlm_read_t   read = { 0 };
    vlm_frame_t  frame;

    (void) state;

    for (i = 1; i <= 200; i++) {
        frame = page(i, i % 3 ? "text" : "", 0, NULL, 0);
        assert_int_equal(vlm_read_frame(&read, &frame), 0);
    }

    assert_int_equal(read.n, 200);

    for (i = 0; i < 200; i++) {
        assert_int_equal(read.page[i].number, i + 1);
        assert_int_equal(read.page[i].n_chunks, (i + 1) % 3 ? 1 : 0);
    }

    vlm_read_free(&read);
}


static void
a_picture_is_no_page(void **state)
{
    vlm_read_t   read = { 0 };
    vlm_frame_t  frame = { .kind = VLM_FRAME_PICTURE, .number = 1, .text = "x", .bytes = 1 };

    (void) state;
    assert_int_equal(vlm_read_frame(&read, &frame), 0);
    assert_int_equal(read.n, 0);
    vlm_read_free(&read);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_page_keeps_its_text_words_and_size),
        cmocka_unit_test(a_long_page_has_chunks_that_cover_it),
        cmocka_unit_test(the_search_does_not_see_hidden_words),
        cmocka_unit_test(a_page_of_hidden_words_has_no_chunk_but_a_scan_has),
        cmocka_unit_test(many_pages_keep_their_order),
        cmocka_unit_test(a_picture_is_no_page)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
