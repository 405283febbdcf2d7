/* The text of a page, its words and their boxes. */

#include "text.h"

#define MAX_TEXT  (VLM_PDF_TEXT / 2)       /* bytes of a page */


size_t
pdf_text_clean(char *text, size_t bytes)
{
    size_t       i;
    const char  *end;

    if (!g_utf8_validate(text, (gssize) bytes, &end)) {
        bytes = (size_t) (end - text);
    }

    for (i = 0; i < bytes; i++) {
        if ((unsigned char) text[i] < 0x20 || text[i] == 0x7f) {
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
add_box(vlm_pdf_word_t *word, const pdf_box_t *r, double width, double height)
{
    const float  x0 = within(MIN(r->x0, r->x1), width), x1 = within(MAX(r->x0, r->x1), width);
    const float  y0 = within(MIN(r->y0, r->y1), height), y1 = within(MAX(r->y0, r->y1), height);

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


/*
 * To a new word, if the last one has ended.  -1: there are too many; a character without a word has
 * no place on the page, and could not be told from a visible one.
 */
static int
extend(pdf_text_t *t, size_t bytes, const pdf_box_t *box)
{
    vlm_pdf_word_t  *word;
    vlm_pdf_word_t   c = { .first = (uint32_t) t->text->len };

    if (!t->in_word) {
        if (t->words->len == VLM_PDF_WORDS) {
            return -1;
        }

        g_array_set_size(t->words, t->words->len + 1);
        word = &g_array_index(t->words, vlm_pdf_word_t, t->words->len - 1);
        word->first = (uint32_t) t->text->len;
        t->in_word = 1;
    }

    word = &g_array_index(t->words, vlm_pdf_word_t, t->words->len - 1);
    add_box(word, box, t->width, t->height);
    word->bytes += (uint32_t) bytes;

    add_box(&c, box, t->width, t->height);
    c.bytes = (uint32_t) bytes;
    c.flags = t->rotation;
    g_array_append_val(t->chars, c);

    return 0;
}


void
pdf_text_character(pdf_text_t *t, gunichar c, const pdf_box_t *box, uint32_t *left)
{
    char    text[6];
    size_t  bytes;

    if (*left == 0 || t->text->len >= MAX_TEXT) {
        return;
    }

    c = g_unichar_validate(c) && !g_unichar_iscntrl(c) ? c : ' ';
    bytes = (size_t) g_unichar_to_utf8(c, text);

    if (g_unichar_isspace(c)) {
        t->in_word = 0;
    } else if (extend(t, bytes, box)) {
        return;
    }

    g_string_append_len(t->text, text, (gssize) bytes);
    (*left)--;
}


void
pdf_text_append(pdf_text_t *t, const char *text, size_t bytes, const pdf_box_t *box,
    uint32_t *left)
{
    const char  *p;

    t->in_word = 0;

    for (p = text; p < text + bytes; p = g_utf8_next_char(p)) {
        pdf_text_character(t, g_utf8_get_char(p), box, left);
    }
}


void
pdf_text_separate(pdf_text_t *t, char c, uint32_t *left)
{
    if (t->text->len > 0 && t->text->len < MAX_TEXT && *left > 0) {
        g_string_append_c(t->text, c);
        t->in_word = 0;
        (*left)--;
    }
}
