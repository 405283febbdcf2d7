/* Splits a model's text into thinking and answer, by the rule of the families that think. */

#include "api/thinking.h"

#include <string.h>

enum { THINKING, ANSWER, BEHIND };     /* behind: the model thinks again, which is left out */


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
mark_at(const char *p, size_t left, const char *mark)
{
    size_t  n;

    n = strlen(mark);

    return left >= n && memcmp(p, mark, n) == 0 ? n : 0;
}


static void
begin(vlm_thinking_t *t, int place)
{
    t->place = place;

    if (place != BEHIND) {
        t->first[place] = t->last[place] = t->end[place] = t->at;
    }
}


/* the length of a mark that belongs to no part, or 0; the end of thinking begins the next part */
static size_t
mark(vlm_thinking_t *t, const char *p, size_t left, int thinks)
{
    size_t  n;

    n = thinks ? mark_at(p, left, "</think>") : 0;

    if (n) {
        t->at += n;
        begin(t, t->place + 1);

        return n;
    }

    if (t->place == THINKING) {
        n = mark_at(p, left, "<think>");

    } else {
        n = mark_at(p, left, "<answer>");
        n = n ? n : mark_at(p, left, "</answer>");
    }

    t->at += n;

    return n;
}


/* one more byte of a part, unless it is space before it */
static void
put(vlm_thinking_t *t, char *room, char c)
{
    int     space;
    size_t  *end;

    space = memchr(" \t\n\v\f\r", c, 6) != NULL;
    end = &t->end[t->place];

    if (!space || *end > t->first[t->place]) {
        room[(*end)++] = c;
    }

    if (!space) {
        t->last[t->place] = *end;
    }
}


void
vlm_thinking_split(vlm_thinking_t *t, const char *text, size_t len, char *room, int thinks,
                   int last, vlm_thinking_part_t *thinking, vlm_thinking_part_t *answer)
{
    len -= last ? 0 : held(text, len);

    if (t->at == 0) {
        begin(t, thinks ? THINKING : ANSWER);
    }

    while (t->at < len && t->place != BEHIND) {

        if (text[t->at] != '<' || mark(t, text + t->at, len - t->at, thinks) == 0) {
            put(t, room, text[t->at++]);
        }
    }

    thinking->data = room + t->first[THINKING];
    thinking->len = t->last[THINKING] - t->first[THINKING];

    answer->data = room + t->first[ANSWER];
    answer->len = t->last[ANSWER] - t->first[ANSWER];

    if (last) {
        memset(t, 0, sizeof(*t));
    }
}
