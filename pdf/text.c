/* The text of a page, its words and their boxes. */

#include "text.h"


size_t
pdf_text_clean(char *text, size_t bytes, int keep_lines)
{
    size_t       i;
    const char  *end;

    if (!g_utf8_validate(text, (gssize) bytes, &end)) {
        bytes = (size_t) (end - text);
    }

    for (i = 0; i < bytes; i++) {
        if (((unsigned char) text[i] < 0x20 && !(keep_lines && text[i] == '\n'))
            || text[i] == 0x7f)
        {
            text[i] = ' ';
        }
    }

    return bytes;
}


static float
within(double v, double most)
{
    return (float) (v >= 0 ? v <= most ? v : most : 0);    /* NaN is 0 */
}


static void
add_box(vlm_pdf_word_t *word, const PopplerRectangle *r, double width, double height)
{
    const float  x0 = within(MIN(r->x1, r->x2), width), x1 = within(MAX(r->x1, r->x2), width);
    const float  y0 = within(MIN(r->y1, r->y2), height), y1 = within(MAX(r->y1, r->y2), height);

    if (word->bytes == 0) {
        word->x0 = x0;
        word->y0 = y0;
        word->x1 = x1;
        word->y1 = y1;
        return;
    }

    word->x0 = MIN(word->x0, x0);
    word->y0 = MIN(word->y0, y0);
    word->x1 = MAX(word->x1, x1);
    word->y1 = MAX(word->y1, y1);
}


/* Appends a character, to a new word if word is NULL.  The word; NULL: there are too many. */
static vlm_pdf_word_t *
extend(pdf_text_t *t, vlm_pdf_word_t *word, const char *p, size_t bytes,
    const PopplerRectangle *box)
{
    if (word == NULL && t->words->len < VLM_PDF_WORDS) {
        g_array_set_size(t->words, t->words->len + 1);
        word = &g_array_index(t->words, vlm_pdf_word_t, t->words->len - 1);
        word->first = (uint32_t) t->text->len;
    }

    if (word != NULL) {
        add_box(word, box, t->width, t->height);
        word->bytes += (uint32_t) bytes;
    }

    g_string_append_len(t->text, p, (gssize) bytes);

    return word;
}


void
pdf_text_append(pdf_text_t *t, const char *text, size_t bytes, const PopplerRectangle *boxes,
    size_t step, uint32_t *left)
{
    const char      *p, *next;
    vlm_pdf_word_t  *word;

    word = NULL;

    for (p = text; p < text + bytes && *left > 0; p = next, boxes += step, (*left)--) {
        next = g_utf8_next_char(p);

        if (g_unichar_isspace(g_utf8_get_char(p))) {
            g_string_append_len(t->text, p, next - p);
            word = NULL;
        } else {
            word = extend(t, word, p, (size_t) (next - p), boxes);
        }
    }
}


void
pdf_text_separate(pdf_text_t *t, char c, uint32_t *left)
{
    if (t->text->len > 0 && *left > 0) {
        g_string_append_c(t->text, c);
        (*left)--;
    }
}
