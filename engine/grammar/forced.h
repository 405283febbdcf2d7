/*
 * Text that a grammar allows in one way only.
 *
 * Between the parts of JSON blanks may come anywhere, so that hardly a text would be the only one.
 * But they are no choice that matters, so an answer keeps to the blanks that it has: where it had
 * none, or one space, behind the last mark of a kind (a colon, a comma), that is the one way behind
 * the next one.  Behind a mark that did not come yet, and behind line breaks, any blanks may come.
 */

#ifndef VLM_FORCED_H
#define VLM_FORCED_H

#include "grammar/match.h"

#define VLM_FORCED_BYTES  128          /* of a text; below VLM_PIECE_BYTES */

enum {                                 /* what stands before a place for blanks */
    VLM_BEHIND_NOTHING, VLM_BEHIND_VALUE, VLM_BEHIND_COLON, VLM_BEHIND_COMMA,
    VLM_BEHIND_OBJECT,                 /* a comma behind an object */
    VLM_BEHIND_BRACE, VLM_BEHIND_BRACKET,          /* that opens */
    VLM_PLACES
};

typedef struct {                       /* where an answer is; zeros at the beginning of a value */
    uint8_t  in_string, escaped;
    uint8_t  last;                     /* byte outside of strings that is no blank */
    uint8_t  behind;                   /* a place */
    uint8_t  run;                      /* blanks since */
    uint8_t  form[VLM_PLACES];         /* the blanks of the last such place */
} vlm_blanks_t;

/* Begins another value, with the same blanks. */
void vlm_blanks_start(vlm_blanks_t *b);
void vlm_blanks_read(vlm_blanks_t *b, const char *bytes, size_t n);

typedef struct {
    char      text[VLM_FORCED_BYTES];  /* [n] */
    uint32_t  n;
    int       whole;                   /* 1: nothing may follow */
    uint8_t   next[256];               /* 1: the byte may follow */
} vlm_forced_t;

/*
 * Finds the text that has to follow m, as far as there is room for it and w is not spent.  State d
 * of w is then that after d bytes of it, up to n.
 */
void vlm_forced_text(vlm_forced_t *f, const vlm_match_t *m, vlm_walk_t *w, const vlm_blanks_t *b);

#endif
