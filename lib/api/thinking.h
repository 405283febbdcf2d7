/*
 * The text of a model that thinks before it answers, split into the two.
 *
 * A stream splits the whole text so far, again with each new piece; an end that may be the
 * beginning of a mark is held back, so that both parts only grow.
 */

#ifndef VLM_THINKING_H
#define VLM_THINKING_H

#include <stddef.h>

typedef struct {
    const char  *data;                 /* [len], in the text or in the room */
    size_t       len;
} vlm_thinking_part_t;

/*
 *   text      [len]; room [len] takes it without its marks
 *   thinks    the text begins with thinking, up to </think>; else all of it is the answer
 *   last      the text is complete: nothing is held back
 *   thinking  empty, where there is none; both parts lie in room
 */
void vlm_thinking_split(const char *text, size_t len, char *room, int thinks, int last,
                        vlm_thinking_part_t *thinking, vlm_thinking_part_t *answer);

#endif
