/*
 * An answer and two pages of any text, with words and hidden words in any places: what is cited
 * lies within the page and the answer.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "document/cite.h"
#include "document/pick.h"

#define WORDS  64


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


/* Words of one to four bytes each, of which some are hidden. */
static size_t
make_words(vlm_pdf_word_t words[WORDS], const char *text, size_t bytes)
{
    size_t  at, n, len;

    for (at = n = 0; n < WORDS && at < bytes; at += len + 1) {
        len = 1 + ((unsigned char) text[at] & 3);

        if (at + len > bytes) {
            break;
        }

        words[n] = (vlm_pdf_word_t) {
            .first = (uint32_t) at, .bytes = (uint32_t) len,
            .flags = (uint32_t) ((unsigned char) text[at] >> 4) & VLM_PDF_HIDDEN,
            .x0 = (float) (n % 8), .x1 = (float) (n % 8 + 1), .y0 = (float) (n / 8),
            .y1 = (float) (n / 8 + 1)
        };
        n++;
    }

    return n;
}


static void
check(const vlm_cite_t *s)
{
    size_t            i;
    const vlm_box_t  *b;

    if (s->n_boxes > VLM_CITE_BOXES || (s->n_boxes > 0 && !s->cited)) {
        abort();
    }

    for (i = 0; i < s->n_boxes; i++) {
        b = &s->boxes[i];

        if (!(b->x0 >= 0 && b->x0 <= b->x1 && b->x1 <= 1 && b->y0 >= 0 && b->y0 <= b->y1
              && b->y1 <= 1))
        {
            abort();
        }
    }
}


static void
check_numbers(const vlm_unsupported_t *u, size_t bytes)
{
    size_t  i, end;

    for (i = end = 0; i < u->n; i++) {
        if (u->range[i].first < end || u->range[i].bytes == 0
            || u->range[i].bytes > bytes - u->range[i].first)
        {
            abort();
        }

        end = u->range[i].first + u->range[i].bytes;
    }
}


static void
check_text(const vlm_cite_t *s)
{
    char    *text;
    size_t   len;

    text = vlm_prompt_text(&s->page, s->first, s->bytes, &len);

    if (text == NULL || len > s->bytes || text[len] != '\0') {
        abort();
    }

    free(text);
}


/* The first two bytes are flags and the place where the answer ends. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char                     *text, heading[VLM_PROMPT_HEADING];
    size_t                    i, cut;
    vlm_cite_t                s[2];
    vlm_pdf_word_t            words[2][WORDS];
    static vlm_unsupported_t  unsupported;

    if (bytes < 3) {
        return 0;
    }

    text = malloc(bytes - 1);

    if (text == NULL) {
        return 0;
    }

    memcpy(text, data + 2, bytes - 2);
    text[bytes - 2] = '\0';
    cut = data[1] % (bytes - 2);
    memset(s, 0, sizeof(s));

    for (i = 0; i < 2; i++) {
        s[i].page = (vlm_page_t) { .text = text + cut, .bytes = bytes - 2 - cut, .words = words[i],
                                   .width = 8, .height = 8, .layer = data[0] >> i & 1 };
        s[i].page.n_words = make_words(words[i], text + cut, s[i].page.bytes);
        s[i].first = i == 0 ? 0 : (uint32_t) (data[0] % s[i].page.bytes);
        s[i].bytes = (uint32_t) s[i].page.bytes - s[i].first;
        s[i].name = text;
        s[i].number = data[0];
        check_text(&s[i]);
    }

    if (vlm_cite(s, 2, text, cut, &unsupported) == 0) {
        check(&s[0]);
        check(&s[1]);
        check_numbers(&unsupported, cut);
    }

    (void) vlm_pick_shows(text, bytes - 2);

    if (vlm_prompt_heading(heading, data[0], text, data[0], data[1]) != strlen(heading)) {
        abort();
    }

    free(text);

    return 0;
}
