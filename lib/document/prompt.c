/* Headings and texts of pages, as a prompt has them. */

#include "document/prompt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unicode.h"
#include "base/utf8.h"

#define NAME  160                          /* bytes of a name, at most */


/* Copies the printable characters of a name. */
static size_t
copy_name(char out[NAME], const char *name)
{
    size_t    at, len, n, bytes = strlen(name);
    uint32_t  code;

    for (at = n = 0; at < bytes; at += len) {
        len = vlm_utf8((const unsigned char *) name + at, bytes - at, &code);

        if (len == 0) {
            len = 1;
            continue;
        }

        if (!vlm_unicode_printable(code)) {
            continue;
        }

        if (n + len > NAME) {
            break;
        }

        memcpy(out + n, name + at, len);
        n += len;
    }

    return n;
}


size_t
vlm_prompt_heading(char out[VLM_PROMPT_HEADING], size_t n, const char *name, uint32_t page,
    uint32_t pages)
{
    char    shown[NAME];
    size_t  len = copy_name(shown, name);

    return (size_t) snprintf(out, VLM_PROMPT_HEADING, "[%zu] %.*s, page %u of %u\n", n, (int) len,
                             shown, page, pages);
}


int
vlm_page_layer(uint32_t flags, const vlm_pdf_word_t *words, size_t n)
{
    size_t  i;

    for (i = 0; i < n && (words[i].flags & VLM_PDF_HIDDEN) != 0; i++) { }

    return (flags & VLM_PDF_SCAN) != 0 && i == n;
}


size_t
vlm_page_word(const vlm_page_t *page, size_t at)
{
    size_t  low = 0, high = page->n_words, middle;

    while (low < high) {
        middle = low + (high - low) / 2;

        if ((size_t) page->words[middle].first + page->words[middle].bytes <= at) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }

    return low;
}


static size_t
append(char *out, size_t n, const char *text, size_t bytes)
{
    memcpy(out + n, text, bytes);

    return n + bytes;
}


/* The byte behind a hidden word, and behind one space after it. */
static size_t
skip_hidden(const vlm_page_t *page, const vlm_pdf_word_t *w, size_t end)
{
    size_t  at = (size_t) w->first + w->bytes;

    return at < end && page->text[at] == ' ' ? at + 1 : at;
}


char *
vlm_prompt_text(const vlm_page_t *page, uint32_t first, uint32_t bytes, size_t *len)
{
    char                  *out;
    size_t                 at, i, n, from, end;
    const vlm_pdf_word_t  *w;

    if (first > page->bytes || bytes > page->bytes - first) {
        return NULL;
    }

    out = malloc((size_t) bytes + 1);

    if (out == NULL) {
        return NULL;
    }

    at = first;
    end = (size_t) first + bytes;
    n = 0;

    for (i = vlm_page_word(page, at); i < page->n_words && !page->layer; i++) {
        w = &page->words[i];

        if (w->first >= end) {
            break;
        }

        if ((w->flags & VLM_PDF_HIDDEN) == 0) {
            continue;
        }

        from = w->first > at ? w->first : at;
        n = append(out, n, page->text + at, from - at);
        at = skip_hidden(page, w, end);

        if (at > end) {
            at = end;
        }
    }

    n = append(out, n, page->text + at, end - at);
    out[n] = '\0';
    *len = n;

    return out;
}
