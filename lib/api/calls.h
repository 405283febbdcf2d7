/*
 * Calls of tools in a model's answer: JSON objects with a name and arguments, each between two
 * marks.  Text outside of them is content.
 *
 * An answer is read while it grows: each piece is found once, as soon as it is certain.
 */

#ifndef VLM_CALLS_H
#define VLM_CALLS_H

#include "base/json_out.h"

#define VLM_CALLS  64                  /* of one answer; further ones are content */

typedef struct {
    const char  *open, *end;           /* the marks; constant */
    size_t       at;                   /* bytes of the text that are done */
    size_t       from;                 /* where the call at hand begins, with its mark */
    size_t       scanned;              /* in a call: bytes that were looked at */
    uint32_t     depth;                /* brackets open in it */
    uint32_t     n;                    /* calls so far */
    int          place;                /* see calls.c */
    int          in_string, escaped;   /* in a call */
} vlm_calls_t;

typedef enum { VLM_CALLS_NONE, VLM_CALLS_TEXT, VLM_CALLS_CALL } vlm_calls_e;

typedef struct {
    const char        *text;           /* [bytes] of content, in the text that was given */
    size_t             bytes;
    vlm_json_t        *call;           /* the caller frees it with vlm_json_free() */
    const char        *name;           /* of the call, as long as it lives */
    const vlm_json_t  *arguments;      /* NULL: none */
} vlm_calls_piece_t;

/* inside: the text begins behind an opening mark. */
void vlm_calls_start(vlm_calls_t *c, const char *open, const char *end, int inside);

/* The next piece of an answer so far, [bytes]; last: it is whole.  NONE: nothing is certain. */
vlm_calls_e vlm_calls_next(vlm_calls_t *c, const char *text, size_t bytes, int last,
                           vlm_calls_piece_t *piece);

/* A value as Python's json.dumps(value, ensure_ascii=False) writes it, in the order of its keys:
   the form in which templates have tools and arguments.  Numbers keep the text that they have. */
void vlm_calls_put(vlm_json_out_t *w, const vlm_json_t *j);

/* The arguments of a call as a client sent them: an object, or its text; broken text as it is. */
void vlm_calls_arguments(vlm_json_out_t *w, const vlm_json_t *j);

/* A line for a call that was made, as it stands between the marks of a history. */
void vlm_calls_write(vlm_json_out_t *w, const char *name, const vlm_json_t *arguments);

/* A member "arguments" of an object: those of a call, at most VLM_CALLS_ARGUMENTS bytes, as text or
   as they are. */
#define VLM_CALLS_ARGUMENTS  (4u << 20)
void vlm_calls_add_arguments(vlm_json_out_t *w, const vlm_calls_piece_t *piece, int as_text);

#endif
