/* Splits a model's text into thinking and answer, by the rule of the families that think. */

#define _GNU_SOURCE
#include "api/thinking.h"

#include <string.h>

static const char  end_mark[] = "</think>";


/* bytes at the end that may begin a mark */
static size_t
held(const char *p, size_t len)
{
    size_t  i, n;

    static const char *const  marks[] = { "</think>", "<think>", "<answer>", "</answer>" };

    n = sizeof("</answer>") - 2;

    for (n = len < n ? len : n; n; n--) {

        for (i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {

            if (n < strlen(marks[i]) && memcmp(p + len - n, marks[i], n) == 0) {
                return n;
            }
        }
    }

    return 0;
}


/* the length of this mark if it is at p, else 0 */
static size_t
mark_at(const char *p, const char *last, const char *mark)
{
    size_t  n;

    n = strlen(mark);

    return (size_t) (last - p) >= n && memcmp(p, mark, n) == 0 ? n : 0;
}


/* copies a part to the same place of the room, without these marks and without space around it */
static void
clean(const char *text, char *room, vlm_thinking_part_t *part, const char *one, const char *other)
{
    char        *q, *first;
    size_t       n;
    const char  *p, *last;

    p = part->data;
    last = p + part->len;
    first = room + (p - text);
    q = first;

    while (p < last) {
        n = mark_at(p, last, one);

        if (n == 0) {
            n = mark_at(p, last, other);
        }

        if (n == 0) {
            *q++ = *p++;
        }

        p += n;
    }

    while (first < q && memchr(" \t\n\v\f\r", *first, 6)) {
        first++;
    }

    while (first < q && memchr(" \t\n\v\f\r", q[-1], 6)) {
        q--;
    }

    part->data = first;
    part->len = (size_t) (q - first);
}


/* cuts the part at its first end of thinking, and returns what is behind that, or NULL */
static const char *
cut(vlm_thinking_part_t *part)
{
    const char  *p;

    p = memmem(part->data, part->len, end_mark, sizeof(end_mark) - 1);

    if (p == NULL) {
        return NULL;
    }

    part->len = (size_t) (p - part->data);

    return p + sizeof(end_mark) - 1;
}


void
vlm_thinking_split(const char *text, size_t len, char *room, int thinks, int last,
                   vlm_thinking_part_t *thinking, vlm_thinking_part_t *answer)
{
    const char  *end;

    len -= last ? 0 : held(text, len);
    end = text + len;

    thinking->data = text;
    thinking->len = 0;

    answer->data = text;
    answer->len = len;

    if (thinks) {
        thinking->len = len;
        answer->data = cut(thinking);
        answer->len = answer->data ? (size_t) (end - answer->data) : 0;

        if (answer->data) {
            (void) cut(answer);

        } else {
            answer->data = end;
        }

        clean(text, room, thinking, "<think>", "</think>");
    }

    clean(text, room, answer, "<answer>", "</answer>");
}
