/*
 * The answer of /v1/responses, written: a response with its items, which are messages and calls of
 * tools, whole or as events of a stream.  Texts that follow each other are one message.
 */

#ifndef VLM_RESPONSES_OUT_H
#define VLM_RESPONSES_OUT_H

#include "api/calls.h"

#define VLM_RESPONSES_TEXT  (4u << 20) /* bytes of one message */

typedef struct {
    vlm_json_t      *asked;            /* fields of the request that the answer repeats */
    const char      *id;               /* of the response; constant */
    const char      *core;             /* of it without its kind, for the items' ids */
    uint32_t         seq;              /* of events */
    uint32_t         n_items;          /* of the output, in events so far */
    int              in_text;          /* the last one is a message */
    vlm_json_out_t   said;             /* its text */
} vlm_response_t;

typedef enum {
    VLM_RESPONSE_BEGUN,                /* in progress */
    VLM_RESPONSE_WHOLE,
    VLM_RESPONSE_CUT                   /* at max_output_tokens */
} vlm_response_e;

/* Keeps copies of the fields that the answer repeats.  r is zeroed by the caller, and freed with
   ..._free() in any case.  -1: no memory. */
int vlm_response_take(vlm_response_t *r, const vlm_json_t *request);
void vlm_response_free(vlm_response_t *r);         /* safe twice */


/* ---- the response, an object: its parts in this order -------------------------------------- */

/* Up to the array "output", which is open.  created: seconds since 1970. */
void vlm_response_open(const vlm_response_t *r, vlm_json_out_t *w, vlm_response_e state,
                       const char *model, int64_t created);

/* The items of a whole answer, in which calls are looked for from its beginning; calls NULL: it is
   one message. */
void vlm_response_items(const vlm_response_t *r, vlm_json_out_t *w, vlm_calls_t *calls,
                        const char *text, size_t bytes);

/* Ends the array; the caller adds members of its own and shuts the object. */
void vlm_response_usage(vlm_json_out_t *w, uint32_t input, uint32_t cached, uint32_t output);
void vlm_response_no_usage(vlm_json_out_t *w);


/* ---- events of a stream --------------------------------------------------------------------- */

/* An event's type and number; the caller adds members and ends it. */
void vlm_response_event(vlm_response_t *r, vlm_json_out_t *w, const char *type);
void vlm_response_end(vlm_json_out_t *w);

/* A piece of text, [bytes], which begins a message unless one is open; the end of that message, if
   one is; a call. */
void vlm_response_text(vlm_response_t *r, vlm_json_out_t *w, const char *text, size_t bytes);
void vlm_response_said(vlm_response_t *r, vlm_json_out_t *w);
void vlm_response_called(vlm_response_t *r, vlm_json_out_t *w, const vlm_calls_piece_t *piece);

#endif
