/* Lines of a page and their directions: see lines.h. */

#include "lines.h"

#include <math.h>
#include <string.h>
#include <utf8proc.h>

#include "order.h"

#define NEAR   0.5                         /* of a line's height, between words without a space */
#define SPACE  SIZE_MAX                    /* in place of a character's index */

typedef enum { NEUTRAL, RIGHTWARD, LEFTWARD, NUMBER } direction_t;


/* Signs that stand in numbers go with them, as in poppler's own table. */
static direction_t
direction_of(uint32_t c)
{
    switch (utf8proc_get_property((utf8proc_int32_t) c)->bidi_class) {
    case UTF8PROC_BIDI_CLASS_L:
        return RIGHTWARD;

    case UTF8PROC_BIDI_CLASS_R:
    case UTF8PROC_BIDI_CLASS_AL:
        return LEFTWARD;

    case UTF8PROC_BIDI_CLASS_EN:
    case UTF8PROC_BIDI_CLASS_ES:
    case UTF8PROC_BIDI_CLASS_ET:
    case UTF8PROC_BIDI_CLASS_AN:
    case UTF8PROC_BIDI_CLASS_CS:
        return NUMBER;

    default:
        return NEUTRAL;
    }
}


/*
 * Marks of direction show nothing on a page, whose glyphs stand where they stand; in the text they
 * would only change how it is shown elsewhere, and split numbers.
 */
static int
is_mark(uint32_t c)
{
    return (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069)
           || c == 0x200e || c == 0x200f || c == 0x61c;
}


/* ---- lines -------------------------------------------------------------------------------- */

/* A word's beginning and end along its line, and its sides across. */
typedef struct {
    double  begin, end, low, high;
} span_t;


static span_t
span_of(const pdf_char_t *c)
{
    const pdf_box_t  *b = &c->word;

    switch (c->rotation) {
    case 0:
        return (span_t) { b->x0, b->x1, b->y0, b->y1 };
    case 1:
        return (span_t) { b->y0, b->y1, b->x0, b->x1 };
    case 2:
        return (span_t) { -b->x1, -b->x0, b->y0, b->y1 };
    default:
        return (span_t) { -b->y1, -b->y0, b->x0, b->x1 };
    }
}


/*
 * Does a line end between the last character of a word and the next word?  poppler says where a
 * space follows; words without, such as the halves of one in two fonts, are side by side, or
 * overlap as a letter and its mark do.
 */
static int
ends_line(const pdf_char_t *last, const pdf_char_t *next)
{
    const span_t  a = span_of(last), b = span_of(next);
    const double  height = MAX(a.high - a.low, b.high - b.low);

    if (last->space) {
        return 0;
    }

    return last->rotation != next->rotation || a.high <= b.low || b.high <= a.low
           || !(fabs(b.begin - a.end) <= NEAR * height);
}


/* ---- the order within a line --------------------------------------------------------------- */

typedef struct {
    const pdf_char_t  *chars;
    size_t            *shown;              /* [n] indices of characters, as a line shows them */
    size_t            *read;               /* [n] in the order of reading */
    size_t             n, n_read;
} line_t;


static direction_t
direction_at(const line_t *line, size_t i)
{
    return line->shown[i] == SPACE ? NEUTRAL : direction_of(line->chars[line->shown[i]].c);
}


static void
read_from_left(line_t *line, size_t first, size_t end)
{
    while (first < end) {
        line->read[line->n_read++] = line->shown[first++];
    }
}


static void
read_from_right(line_t *line, size_t first, size_t end)
{
    while (end > first) {
        line->read[line->n_read++] = line->shown[--end];
    }
}


/*
 * A line of a page that is read rightward: its leftward runs are turned around.  The space between
 * a run and what follows stays between them, where pdftotext would turn it around with the run.
 */
static void
read_rightward(line_t *line)
{
    size_t       i, end;
    direction_t  d;

    for (i = 0; i < line->n; i = end) {
        for (end = i; end < line->n && direction_at(line, end) != LEFTWARD; end++) { }

        read_from_left(line, i, end);

        for (i = end; end < line->n; end++) {
            d = direction_at(line, end);

            if (d == RIGHTWARD || d == NUMBER) {
                break;
            }
        }

        for (; end > i && line->shown[end - 1] == SPACE; end--) { }

        read_from_right(line, i, end);
    }
}


static int
is_digit(const line_t *line, size_t i)
{
    int  class;

    if (i >= line->n || line->shown[i] == SPACE) {
        return 0;
    }

    class = utf8proc_get_property((utf8proc_int32_t) line->chars[line->shown[i]].c)->bidi_class;

    return class == UTF8PROC_BIDI_CLASS_EN || class == UTF8PROC_BIDI_CLASS_AN;
}


/* A sign is a number's within it, and such as a percent sign beside it, too. */
static direction_t
leftward_at(const line_t *line, size_t i)
{
    const direction_t  d = direction_at(line, i);
    const int          before = i > 0 && is_digit(line, i - 1), after = is_digit(line, i + 1);

    if (d != NUMBER || is_digit(line, i)) {
        return d;
    }

    return utf8proc_get_property((utf8proc_int32_t) line->chars[line->shown[i]].c)->bidi_class
           == UTF8PROC_BIDI_CLASS_ET ? before || after ? NUMBER : NEUTRAL
           : before && after ? NUMBER : NEUTRAL;
}


/* Numbers are read rightward, and what stands between them leftward, as in "1, 2". */
static void
read_numbers(line_t *line, size_t first, size_t end)
{
    size_t  i;

    for (; end > first; end = i) {
        for (i = end; i > first && leftward_at(line, i - 1) == NUMBER; i--) { }

        read_from_left(line, i, end);

        for (end = i; i > first && leftward_at(line, i - 1) != NUMBER; i--) { }

        read_from_right(line, i, end);
    }
}


/* The character if it is one of these, or 0. */
static char
one_of(const line_t *line, size_t i, const char *these)
{
    const uint32_t  c = line->shown[i] == SPACE ? 0 : line->chars[line->shown[i]].c;

    return c > 0 && c < 0x80 && strchr(these, (int) c) != NULL ? (char) c : 0;
}


/* The end of the brackets that a phrase opens and that stand right behind it. */
static size_t
close_brackets(const line_t *line, size_t first, size_t to, size_t end)
{
    size_t  open = 0;

    for (; first < to; first++) {
        open += one_of(line, first, "([{") != 0;
        open -= open > 0 && one_of(line, first, ")]}") != 0;
    }

    for (; open > 0 && to < end && one_of(line, to, ")]}"); to++) {
        open--;
    }

    return to;
}


/*
 * A part of a leftward line that has no leftward letters.  Signs around a phrase are the line's,
 * but for what begins names and commands, and what closes its brackets.
 */
static void
read_part(line_t *line, size_t first, size_t end)
{
    size_t  i, from, to, letters = 0;

    for (i = first; i < end; i++) {
        letters += direction_at(line, i) == RIGHTWARD;
    }

    if (letters == 0) {
        read_numbers(line, first, end);
        return;
    }

    for (to = end; leftward_at(line, to - 1) == NEUTRAL; to--) { }
    for (from = first; leftward_at(line, from) == NEUTRAL; from++) { }
    for (; from > first && one_of(line, from - 1, "\\#@/_"); from--) { }

    to = close_brackets(line, from, to, end);

    read_from_right(line, to, end);
    read_from_left(line, from, to);
    read_from_right(line, first, from);
}


/*
 * A line of a page that is read leftward: all is turned around but for words and numbers.  In one
 * without leftward letters nothing is.
 */
static void
read_leftward(line_t *line)
{
    size_t  i, first;

    for (i = 0; i < line->n && direction_at(line, i) != LEFTWARD; i++) { }

    if (i == line->n) {
        read_from_left(line, 0, line->n);
        return;
    }

    for (i = line->n; i > 0; i = first) {
        for (first = i; first > 0 && direction_at(line, first - 1) != LEFTWARD; first--) { }

        read_part(line, first, i);

        for (i = first; first > 0 && direction_at(line, first - 1) == LEFTWARD; first--) { }

        read_from_right(line, first, i);
    }
}


/* The characters of chars[first..end) as the line shows them, then as it is read. */
static void
read_line(line_t *line, size_t first, size_t end, int leftward)
{
    line->n = line->n_read = 0;

    for (; first < end; first++) {
        if (!is_mark(line->chars[first].c)) {
            line->shown[line->n++] = first;
        }

        if (line->chars[first].space) {
            line->shown[line->n++] = SPACE;
        }
    }

    if (leftward) {
        read_leftward(line);
    } else {
        read_rightward(line);
    }
}


/* ---- the lines of a page ------------------------------------------------------------------- */

typedef struct {
    size_t     first, end;                 /* of the page's characters */
    size_t     row;                        /* the cells of a table's row have one */
    pdf_box_t  box;
} range_t;


/* Is the page mostly written from right to left? */
static int
is_leftward(const pdf_char_t *chars, size_t n)
{
    size_t  i, left, right;

    for (i = left = right = 0; i < n; i++) {
        left += direction_of(chars[i].c) == LEFTWARD;
        right += direction_of(chars[i].c) == RIGHTWARD;
    }

    return left > right;
}


/* The line that begins at first. */
static range_t
find_line(const pdf_char_t *chars, size_t first, size_t n)
{
    size_t            i;
    range_t           line = { first, n, 0, chars[first].word };
    const pdf_box_t   *word;

    for (i = first; i < n; i++) {
        word = &chars[i].word;
        line.box.x0 = MIN(line.box.x0, word->x0);
        line.box.y0 = MIN(line.box.y0, word->y0);
        line.box.x1 = MAX(line.box.x1, word->x1);
        line.box.y1 = MAX(line.box.y1, word->y1);

        if (i + 1 < n && chars[i].ends_word && ends_line(&chars[i], &chars[i + 1])) {
            line.end = i + 1;
            break;
        }
    }

    return line;
}


/* Do two lines stand side by side, and share half of the lower one's height? */
static int
in_row(const pdf_box_t *a, const pdf_box_t *b)
{
    const double  shared = MIN(a->y1, b->y1) - MAX(a->y0, b->y0);

    return (a->x1 <= b->x0 || b->x1 <= a->x0)
           && 2 * shared >= MIN(a->y1 - a->y0, b->y1 - b->y0);
}


static GArray *
find_lines(const pdf_char_t *chars, size_t n)
{
    size_t    at, row;
    GArray   *lines = g_array_new(FALSE, FALSE, sizeof(range_t));
    range_t   line, *last;

    for (at = row = 0; at < n; at = line.end) {
        last = at ? &g_array_index(lines, range_t, lines->len - 1) : NULL;
        line = find_line(chars, at, n);
        row += last == NULL || chars[at].rotation % 2 || !in_row(&last->box, &line.box);
        line.row = row;
        g_array_append_val(lines, line);
    }

    return lines;
}


/*
 * The order in which lines are read.  On a page that is read leftward columns are counted from the
 * right; a line that runs up or down is part of no column, like a heading over all of them.
 */
static size_t *
find_order(const GArray *lines, const pdf_char_t *chars, double width, int leftward)
{
    size_t          i, *order = g_new(size_t, 2 * (size_t) lines->len);
    pdf_piece_t    *pieces = g_new(pdf_piece_t, lines->len);
    const range_t  *line;

    for (i = 0; i < lines->len; i++) {
        line = &g_array_index(lines, range_t, i);
        pieces[i] = (pdf_piece_t) { (float) line->box.x0, (float) line->box.x1,
                                    line->end - line->first };

        if (leftward) {
            pieces[i].x0 = (float) (width - line->box.x1);
            pieces[i].x1 = (float) (width - line->box.x0);
        }

        if (chars[line->first].rotation % 2) {
            pieces[i].x0 = 0;
            pieces[i].x1 = (float) width;
        }
    }

    pdf_order(pieces, lines->len, (float) width, order, order + lines->len);
    g_free(pieces);

    return order;
}


static void
append_line(pdf_text_t *t, const line_t *line, uint32_t *left)
{
    size_t             i;
    const pdf_char_t  *c;

    for (i = 0; i < line->n_read; i++) {
        if (line->read[i] == SPACE) {
            pdf_text_separate(t, ' ', left);
        } else {
            c = &line->chars[line->read[i]];
            t->rotation = c->rotation;
            pdf_text_character(t, c->c, &c->box, left);
        }
    }
}


void
pdf_lines_append(pdf_text_t *t, const pdf_char_t *chars, size_t n, uint32_t *left)
{
    const int       leftward = is_leftward(chars, n);
    size_t          i, *order, last;
    line_t          line = { .chars = chars };
    GArray         *lines = find_lines(chars, n);
    const range_t  *range;

    line.shown = g_new(size_t, 4 * n);
    line.read = line.shown + 2 * n;
    order = find_order(lines, chars, t->width, leftward);

    for (i = last = 0; i < lines->len && *left > 0; i++, last = range->row) {
        range = &g_array_index(lines, range_t, order[i]);
        read_line(&line, range->first, range->end, leftward);
        pdf_text_separate(t, range->row == last ? '\t' : '\n', left);
        append_line(t, &line, left);
    }

    g_free(order);
    g_free(line.shown);
    g_array_free(lines, TRUE);
}
