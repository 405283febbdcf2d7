/* Columns of prose: bands between pieces that span the page, and gutters within a band. */

#include "order.h"

#define SPANS    0.6f                      /* of the page's width: a heading over all columns */
#define GUTTER   8.f                       /* points between two columns at least */
#define PROSE    15                        /* characters of most pieces of a column of prose */
#define COLUMNS  8

typedef struct {
    float   x0, x1;
    size_t  pieces;
    size_t  prose;                         /* pieces with at least PROSE characters */
} column_t;


/* Adds a piece to the columns that it overlaps, which become one.  The number of columns. */
static size_t
add_piece(column_t *columns, size_t n, const pdf_piece_t *piece)
{
    size_t    i, kept;
    column_t  c = { piece->x0, piece->x1, 1, piece->characters >= PROSE };

    for (i = kept = 0; i < n; i++) {
        if (columns[i].x0 > c.x1 + GUTTER || c.x0 > columns[i].x1 + GUTTER) {
            columns[kept++] = columns[i];
            continue;
        }

        c.x0 = columns[i].x0 < c.x0 ? columns[i].x0 : c.x0;
        c.x1 = columns[i].x1 > c.x1 ? columns[i].x1 : c.x1;
        c.pieces += columns[i].pieces;
        c.prose += columns[i].prose;
    }

    if (kept == COLUMNS) {
        return 0;
    }

    /* Columns stay sorted from left to right. */
    for (i = kept; i > 0 && columns[i - 1].x0 > c.x0; i--) {
        columns[i] = columns[i - 1];
    }

    columns[i] = c;

    return kept + 1;
}


/* The columns of the pieces in order[0..n), or 0 if they are not columns of prose. */
static size_t
find_columns(const pdf_piece_t *pieces, const size_t *order, size_t n, column_t *columns)
{
    size_t  i, n_columns;

    for (i = n_columns = 0; i < n; i++) {
        n_columns = add_piece(columns, n_columns, &pieces[order[i]]);

        if (n_columns == 0) {
            return 0;
        }
    }

    for (i = 0; i < n_columns; i++) {
        if (columns[i].pieces < 2 || 2 * columns[i].prose < columns[i].pieces) {
            return 0;
        }
    }

    return n_columns;
}


/* Sorts a band by its columns; within a column the rows stay as they are. */
static void
order_band(const pdf_piece_t *pieces, size_t *order, size_t n, size_t *room)
{
    size_t    i, c, n_columns, at;
    column_t  columns[COLUMNS];

    n_columns = find_columns(pieces, order, n, columns);

    if (n_columns < 2) {
        return;
    }

    for (c = at = 0; c < n_columns; c++) {
        for (i = 0; i < n; i++) {
            if (at < n && pieces[order[i]].x0 >= columns[c].x0
                && pieces[order[i]].x0 <= columns[c].x1)
            {
                room[at++] = order[i];
            }
        }
    }

    /* A piece without a place (NaN) is in no column. */
    for (i = 0; at == n && i < n; i++) {
        order[i] = room[i];
    }
}


void
pdf_order(const pdf_piece_t *pieces, size_t n, float width, size_t *order, size_t *room)
{
    size_t  i, first;

    for (i = 0; i < n; i++) {
        order[i] = i;
    }

    for (i = first = 0; i <= n; i++) {
        if (i == n || pieces[i].x1 - pieces[i].x0 >= SPANS * width) {
            order_band(pieces, order + first, i - first, room);
            first = i + 1;
        }
    }
}
