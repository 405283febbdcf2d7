/* Boxes of words that an answer has, too, as shares of their page. */

#include "document/cite_box.h"

#include <stdlib.h>

#include "document/number.h"

#define LONG  4                            /* characters of a word that says something */
#define DENSE  2                           /* bytes of a character of scripts with short words */


static int
is_hidden(const vlm_page_t *page, const vlm_pdf_word_t *word)
{
    return (word->flags & VLM_PDF_HIDDEN) != 0 && !page->layer;
}


static vlm_box_t
box_of(const vlm_page_t *page, const vlm_pdf_word_t *word)
{
    return (vlm_box_t) { .x0 = word->x0 / page->width, .y0 = word->y0 / page->height,
                         .x1 = word->x1 / page->width, .y1 = word->y1 / page->height };
}


/* Do two boxes share half of the lower one's height? */
static int
in_line(const vlm_box_t *a, const vlm_box_t *b)
{
    const float  top = a->y0 > b->y0 ? a->y0 : b->y0, bottom = a->y1 < b->y1 ? a->y1 : b->y1;
    const float  high = a->y1 - a->y0, other = b->y1 - b->y0;

    return 2 * (bottom - top) >= (high < other ? high : other);
}


static void
extend(vlm_box_t *a, const vlm_box_t *b)
{
    a->x0 = a->x0 < b->x0 ? a->x0 : b->x0;
    a->y0 = a->y0 < b->y0 ? a->y0 : b->y0;
    a->x1 = a->x1 > b->x1 ? a->x1 : b->x1;
    a->y1 = a->y1 > b->y1 ? a->y1 : b->y1;
}


/* A box of its own, or part of the last one. */
static void
add_box(vlm_cite_t *s, const vlm_box_t *box, int joins)
{
    if (joins && s->n_boxes > 0 && in_line(&s->boxes[s->n_boxes - 1], box)) {
        extend(&s->boxes[s->n_boxes - 1], box);

    } else if (s->n_boxes < VLM_CITE_BOXES) {
        s->boxes[s->n_boxes++] = *box;
    }
}


static int
among(const vlm_number_t *number, const uint64_t *values, size_t n)
{
    size_t  i, low, high, middle;

    for (i = 0; i < number->n_values; i++) {
        for (low = 0, high = n; low < high; ) {
            middle = low + (high - low) / 2;

            if (values[middle] == number->value[i]) {
                return 1;
            }

            if (values[middle] < number->value[i]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
    }

    return 0;
}


/* The boxes of the words that a range of the page's text touches: one for each line. */
static void
add_range(vlm_cite_t *s, size_t first, size_t end)
{
    int        joins;
    size_t     i;
    vlm_box_t  box;

    joins = 0;

    for (i = vlm_page_word(&s->page, first);
         i < s->page.n_words && s->page.words[i].first < end;
         i++)
    {
        if (!is_hidden(&s->page, &s->page.words[i])) {
            box = box_of(&s->page, &s->page.words[i]);
            add_box(s, &box, joins);
            joins = 1;
        }
    }
}


void
vlm_cite_number_boxes(vlm_cite_t *s, const uint64_t *values, size_t n)
{
    vlm_number_t   number = { .first = s->first };
    const size_t   end = (size_t) s->first + s->bytes;

    while (s->n_boxes < VLM_CITE_BOXES && vlm_number_next(&number, s->page.text, end)) {
        if (among(&number, values, n)) {
            add_range(s, number.first, number.first + number.bytes);
        }
    }
}


/* Has a word enough characters, and does the answer have at least half of its terms? */
static int
is_said(const char *text, const vlm_pdf_word_t *word, const vlm_terms_t *terms, int *said)
{
    size_t       i, j, n, characters;
    vlm_terms_t  own;

    *said = 0;

    for (i = characters = 0; i < word->bytes; i++) {
        characters += (text[word->first + i] & 0xc0) != 0x80;
    }

    if (characters < LONG && word->bytes <= DENSE * characters) {
        return 0;
    }

    if (vlm_terms_of(&own, text + word->first, word->bytes) != 0) {
        return -1;
    }

    for (i = j = n = 0; i < own.n && j < terms->n; ) {
        if (own.terms[i].hash == terms->terms[j].hash) {
            n++;
            i++;
            j++;
        } else if (own.terms[i].hash < terms->terms[j].hash) {
            i++;
        } else {
            j++;
        }
    }

    *said = n > 0 && 2 * n >= own.n;
    free(own.terms);

    return 0;
}


int
vlm_cite_word_boxes(vlm_cite_t *s, const vlm_terms_t *terms)
{
    int           joins, said;
    size_t        i;
    vlm_box_t     box;
    const size_t  end = (size_t) s->first + s->bytes;

    joins = 0;

    for (i = vlm_page_word(&s->page, s->first);
         i < s->page.n_words && s->page.words[i].first < end && s->n_boxes < VLM_CITE_BOXES; i++)
    {
        said = 0;

        if (!is_hidden(&s->page, &s->page.words[i])
            && is_said(s->page.text, &s->page.words[i], terms, &said) != 0)
        {
            return -1;
        }

        if (said) {
            box = box_of(&s->page, &s->page.words[i]);
            add_box(s, &box, joins);
        }

        joins = said;
    }

    return 0;
}
