/* Pieces of a page's text: their lengths, borders and overlaps. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/utf8.h"
#include "document/chunk.h"


static size_t
characters(const char *text, size_t bytes)
{
    size_t  i, n;

    for (i = n = 0; i < bytes; i++) {
        n += (text[i] & 0xc0) != 0x80;
    }

    return n;
}


/* Any text: pieces are whole characters, not too long, go on, and leave nothing but spaces out. */
static size_t
check(const char *text, size_t bytes)
{
    char         *copy;
    size_t        n, end;
    vlm_chunk_t   chunk = { 0 };

    copy = malloc(bytes + (bytes == 0));
    assert_non_null(copy);
    memcpy(copy, text, bytes);

    for (n = end = 0; vlm_chunk_next(&chunk, copy, bytes); n++) {
        assert_true(chunk.bytes > 0 && chunk.first + chunk.bytes <= bytes);
        assert_int_equal(vlm_utf8_whole(copy + chunk.first, chunk.bytes), chunk.bytes);
        assert_true(characters(copy + chunk.first, chunk.bytes) <= VLM_CHUNK);
        assert_true(chunk.first + chunk.bytes > end);

        for ( ; end < chunk.first; end++) {
            assert_non_null(strchr(" \n\t", copy[end]));
        }

        end = chunk.first + chunk.bytes;
    }

    for ( ; end < bytes; end++) {
        assert_non_null(strchr(" \n\t", copy[end]));
    }

    free(copy);

    return n;
}


static void
short_texts_are_one_piece(void **state)
{
    vlm_chunk_t  chunk = { 0 };

    (void) state;

    assert_int_equal(check("", 0), 0);
    assert_int_equal(check(" \n\t", 3), 0);
    assert_int_equal(check("a", 1), 1);
    assert_int_equal(vlm_chunk_next(&chunk, "  Two words. \n", 14), 1);
    assert_int_equal(chunk.first, 2);
    assert_int_equal(chunk.bytes, 10);
}


/* Sentences of 60 characters: a piece ends with a sentence, and the next begins before that end. */
static void
pieces_end_with_sentences(void **state)
{
    int          i;
    char         text[6000], line[80];
    size_t       end;
    vlm_chunk_t  chunk = { 0 };

    (void) state;

    for (i = 0; i < 100; i++) {
        snprintf(line, sizeof(line), "Sentence number %04d is written with sixty characters here. ",
                 i);
        memcpy(text + 60 * i, line, 60);
    }

    assert_true(check(text, 6000) >= 6);
    assert_int_equal(vlm_chunk_next(&chunk, text, 6000), 1);
    assert_int_equal(chunk.bytes, 959);
    end = chunk.first + chunk.bytes;

    while (vlm_chunk_next(&chunk, text, 6000)) {
        assert_true(chunk.first < end && chunk.first + VLM_CHUNK_OVERLAP + 20 > end);
        assert_int_equal(text[chunk.first - 1], ' ');
        assert_int_equal(text[chunk.first + chunk.bytes - 1], '.');
        end = chunk.first + chunk.bytes;
    }
}


/* No space at all, characters of one to four bytes, and a random mixture of everything. */
static void
any_text_is_covered(void **state)
{
    int                        i, k;
    char                       text[20000];
    size_t                     n;
    uint32_t                   numbers;
    static const char *const   parts[] = {
        "a", "word", "\xc3\xa9", "\xe6\x9c\xba", "\xf0\x9f\x99\x82", " ", "\n", "\n\n", ". ", "\t",
        "\xe3\x80\x82", "long-word-without-any-space-in-it"
    };

    (void) state;

    memset(text, 'x', 5000);
    assert_true(check(text, 5000) >= 5);

    for (i = 0; i + 3 <= 6000; i += 3) {
        memcpy(text + i, "\xe6\x9c\xba", 3);
    }

    assert_true(check(text, 6000) >= 2);

    /* Long gaps, as the values of forms may have them: no piece is the overlap alone. */
    memset(text, ' ', 6000);
    memcpy(text, "\xc3\xa9", 2);
    memcpy(text + 1100, "abc", 3);
    assert_int_equal(check(text, 1103), 2);

    for (i = 0; i < 5; i++) {
        memset(text + 1200 * i, 'y', 100);
    }

    assert_int_equal(check(text, 6000), 5);

    for (k = 1; k <= 200; k++) {
        for (n = 0, numbers = (uint32_t) k; n < sizeof(text) - 64; n += strlen(text + n)) {
            numbers = numbers * 1664525u + 1013904223u;
            strcpy(text + n, parts[(numbers >> 16) % (unsigned) (1 + k % 12)]);
        }

        (void) check(text, n);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(short_texts_are_one_piece),
        cmocka_unit_test(pieces_end_with_sentences),
        cmocka_unit_test(any_text_is_covered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
