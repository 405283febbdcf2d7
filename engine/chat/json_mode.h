/*
 * A grammar for one JSON object (RFC 8259), byte by byte: which byte may come next, and how many
 * bytes the shortest end takes.
 *
 * The grammar is narrower than the RFC where a client's parser could fail: the answer begins with
 * the brace and ends with the matching one, 64 brackets may be open, 32 blanks may follow each
 * other, a number has 32 bytes at most and an exponent below 100 (which any double holds), and no
 * escape is half of a surrogate pair.  Strings are UTF-8.  A state is small and copied by
 * assignment; a zeroed state is the start.
 */

#ifndef VLM_JSON_MODE_H
#define VLM_JSON_MODE_H

#include <stdint.h>

#define VLM_JSON_DEPTH   64            /* brackets: bits of nest */
#define VLM_JSON_BLANKS  32
#define VLM_JSON_NUMBER  32

typedef struct {
    uint64_t  nest;                    /* open brackets, the innermost lowest: 1 is an object */
    uint8_t   depth;                   /* number of open brackets */
    uint8_t   at;                      /* the place in the grammar, see json_mode.c */
    uint8_t   run;                     /* blanks, or bytes of a number, in a row */
    uint8_t   rest;                    /* bytes to come of an escape, a character or a literal */
    uint8_t   key;                     /* the string is a member's name */
} vlm_json_mode_t;

/* 1; or 0, and the state is unchanged: this byte cannot come next. */
int vlm_json_mode_next(vlm_json_mode_t *m, uint8_t c);

/*
 * The least number of bytes that complete the object; from every state some byte makes it one less.
 */
uint32_t vlm_json_mode_left(const vlm_json_mode_t *m);

int vlm_json_mode_done(const vlm_json_mode_t *m);
/* 1 within a string, between its characters. */
int vlm_json_mode_in_text(const vlm_json_mode_t *m);

#endif
