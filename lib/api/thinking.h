/*
 * The text of a model that thinks before it answers, split into the two.
 *
 * A stream splits a text while it grows: each byte is read once, and an end that may be the
 * beginning of a mark is held back, so that both parts only grow.
 */

#ifndef VLM_THINKING_H
#define VLM_THINKING_H

#include <stddef.h>

typedef struct {                       /* all zero at the beginning of a text */
    size_t  at;                        /* bytes of the text that were read */
    int     place;                     /* of the next one: see thinking.c */
    size_t  first[2];                  /* of thinking and answer: the first byte in the room, */
    size_t  last[2];                   /* the end without the space there, */
    size_t  end[2];                    /* and with it */
} vlm_thinking_t;

typedef struct {
    const char  *data;                 /* [len], in the room */
    size_t       len;
} vlm_thinking_part_t;

/*
 *   t         how far earlier calls have read the text, with the same room
 *   text      [len], of which those at its beginning are not read again
 *   room      [len] takes the text without its marks
 *   thinks    the text begins with thinking, up to </think>; else all of it is the answer
 *   last      the text is complete: nothing is held back, and t is for another text
 *   thinking  empty, where there is none
 */
void vlm_thinking_split(vlm_thinking_t *t, const char *text, size_t len, char *room, int thinks,
                        int last, vlm_thinking_part_t *thinking, vlm_thinking_part_t *answer);

#endif
