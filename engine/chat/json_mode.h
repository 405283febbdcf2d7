/*
 * One JSON object (RFC 8259), byte by byte: what may come next, and how far its end is.
 *
 * Narrower than the RFC where a reader could stumble: it begins with the brace, nothing follows
 * its last one, 64 brackets may be open, 32 blanks may stand in a row, a number has 32 bytes at
 * most and an exponent below 100 (any double holds it), and no escape is half of a surrogate pair.
 * Strings are UTF-8.  A state is small and copied by assignment; zeroed, it is the beginning.
 */

#ifndef VLM_JSON_MODE_H
#define VLM_JSON_MODE_H

#include <stdint.h>

#define VLM_JSON_DEPTH   64            /* brackets: bits of nest */
#define VLM_JSON_BLANKS  32
#define VLM_JSON_NUMBER  32

typedef struct {
    uint64_t  nest;                    /* open brackets, the innermost lowest: 1 is an object */
    uint8_t   depth;                   /* how many */
    uint8_t   at;                      /* the place in the grammar, see json_mode.c */
    uint8_t   run;                     /* blanks, or bytes of a number, in a row */
    uint8_t   rest;                    /* bytes to come of an escape or a character; a literal's */
    uint8_t   key;                     /* the string is a member's name */
} vlm_json_mode_t;

/* 1; or 0 and nothing is changed: this byte cannot come here. */
int vlm_json_mode_next(vlm_json_mode_t *m, uint8_t c);

/* The least number of bytes that complete the object; some byte always makes it one less. */
uint32_t vlm_json_mode_left(const vlm_json_mode_t *m);

int vlm_json_mode_done(const vlm_json_mode_t *m);
/* Within a string, between its characters. */
int vlm_json_mode_in_text(const vlm_json_mode_t *m);

#endif
