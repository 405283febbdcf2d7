/* The order of reading: columns of prose, headings over them, tables. */

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "order.h"

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))
#define WIDTH  600.f


static void
check(const pdf_piece_t *pieces, const size_t *wanted, size_t n)
{
    size_t  i, order[32], room[32];

    pdf_order(pieces, n, WIDTH, order, room);

    for (i = 0; i < n; i++) {
        assert_int_equal(order[i], wanted[i]);
    }
}


/* Rows alternate between two columns, between a heading and a line over both. */
static void
two_columns(void **state)
{
    const pdf_piece_t  pieces[] = {
        { 50, 550, 70 },
        { 50, 280, 40 }, { 320, 550, 41 }, { 50, 275, 39 }, { 320, 549, 40 }, { 50, 120, 9 },
        { 320, 545, 40 },
        { 60, 540, 66 }
    };
    const size_t       wanted[] = { 0, 1, 3, 5, 2, 4, 6, 7 };

    (void) state;

    check(pieces, wanted, COUNT(pieces));
}


/* The right column's first piece comes first, and the columns are found from right to left. */
static void
three_columns(void **state)
{
    const pdf_piece_t  pieces[] = {
        { 420, 580, 30 }, { 220, 380, 31 }, { 20, 180, 30 }, { 20, 170, 28 }, { 220, 390, 29 },
        { 420, 585, 33 }
    };
    const size_t       wanted[] = { 2, 3, 1, 4, 0, 5 };

    (void) state;

    check(pieces, wanted, COUNT(pieces));
}


/* A table's names and values stay side by side, and so do single lines. */
static void
rows_stay(void **state)
{
    const pdf_piece_t  table[] = {
        { 50, 90, 7 }, { 320, 350, 4 }, { 50, 200, 30 }, { 320, 340, 3 }, { 50, 99, 8 },
        { 320, 345, 4 }
    };
    const pdf_piece_t  header[] = { { 50, 250, 40 }, { 350, 550, 40 } };
    const pdf_piece_t  one[] = { { 50, 250, 40 }, { 60, 240, 41 }, { 50, 250, 40 } };
    const pdf_piece_t  nowhere[] = {
        { 50, 280, 40 }, { 320, 550, 41 }, { NAN, NAN, 39 }, { 320, 549, 40 }, { 50, 280, 40 }
    };
    const size_t       wanted[] = { 0, 1, 2, 3, 4, 5 };

    (void) state;

    check(table, wanted, COUNT(table));
    check(header, wanted, COUNT(header));
    check(one, wanted, COUNT(one));
    check(one, wanted, 0);
    check(nowhere, wanted, COUNT(nowhere));
}


/* Cells in more columns than a page of prose can have. */
static void
many_columns(void **state)
{
    size_t       i, wanted[30];
    pdf_piece_t  pieces[30];

    (void) state;

    for (i = 0; i < COUNT(pieces); i++) {
        pieces[i] = (pdf_piece_t) { (float) (i % 10) * 60, (float) (i % 10) * 60 + 40, 20 };
        wanted[i] = i;
    }

    check(pieces, wanted, COUNT(pieces));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(two_columns),
        cmocka_unit_test(three_columns),
        cmocka_unit_test(rows_stay),
        cmocka_unit_test(many_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
