/*
 * Cuts a text into pieces with the checkpoint's own pattern: each match is a piece, and so is the
 * text between two matches.  No token crosses the border of a piece.
 */

#ifndef VLM_SPLIT_H
#define VLM_SPLIT_H

#include "vlm.h"

/*
 * The pattern of GPT-2 behind a "Digits" that cuts a text around each digit first: a blank before a
 * digit is the last of its part.
 */
#define VLM_DIGITS_PATTERN                                                                         \
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?![^\\s\\p{N}])|\\s+"

typedef struct vlm_split_s  vlm_split_t;

#define VLM_MAX_PATTERN  4096          /* bytes; the family's has 118 */

/* VLM_EMODEL with PCRE2's words and the offset in the pattern, or that there is none (NULL). */
vlm_split_t *vlm_split_open(const char *pattern, vlm_err_t *err);
void vlm_split_close(vlm_split_t *s);  /* takes NULL */

/* A walk over one text; any number of walks may use one vlm_split_t at the same time. */
typedef struct {
    const vlm_split_t  *split;
    const char         *text;          /* [bytes], UTF-8 that was checked, lives as long as this */
    size_t              bytes;
    size_t              done;          /* the bytes before were returned */
    size_t              from, to;      /* a match, returned after the text before it */
    size_t              search;        /* the next search begins here */
    void               *match;         /* PCRE2's data */
} vlm_pieces_t;

int vlm_pieces_open(vlm_pieces_t *p, const vlm_split_t *split, const char *text, size_t bytes,
                    vlm_err_t *err);
/* The walk begins again, over another text. */
void vlm_pieces_again(vlm_pieces_t *p, const char *text, size_t bytes);
void vlm_pieces_close(vlm_pieces_t *p);        /* safe twice */

/*
 * 1 and the next piece, never empty; 0 at the end; -1 and VLM_ELIMIT if the pattern takes too many
 * steps at this place.
 */
int vlm_pieces_next(vlm_pieces_t *p, const char **piece, size_t *bytes, vlm_err_t *err);

#endif
