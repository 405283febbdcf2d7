/* JSON, written. */

#ifndef VLM_JSON_OUT_H
#define VLM_JSON_OUT_H

#include "base/json.h"

/*
 * A writer over a buffer that grows, in the form of Flask's answers: no
 * spaces, ASCII only, a newline at the end.  Flask sorts keys; here the caller
 * writes them in that order.  Commas are the writer's business:
 *
 *     vlm_json_init(&w, 4096);
 *     vlm_json_open(&w, '{');
 *     vlm_json_add_string(&w, "path", path);
 *     vlm_json_shut(&w, '}');
 *     if (vlm_json_done(&w) != 0) { no memory, or beyond the limit }
 *
 * Errors are kept until ..._done(), so that no call in between is checked.
 */

typedef struct {
    char                     *data;        /* malloc()ed */
    size_t                    len;
    size_t                    size;
    size_t                    limit;       /* bytes that len may reach */
    unsigned                  comma:1;     /* precedes the next value */
    unsigned                  failed:1;
} vlm_json_out_t;


void vlm_json_init(vlm_json_out_t *w, size_t limit);
void vlm_json_open(vlm_json_out_t *w, char bracket);
void vlm_json_shut(vlm_json_out_t *w, char bracket);
void vlm_json_put_key(vlm_json_out_t *w, const char *key);

/* text NULL writes null; bytes that are not UTF-8 become U+FFFD */

void vlm_json_put_text(vlm_json_out_t *w, const char *text,
    size_t len);
void vlm_json_put_int(vlm_json_out_t *w, int64_t n);

/* six digits behind the point, from -9999.0 to 0.0: the rest is noise */

void vlm_json_put_logprob(vlm_json_out_t *w, double x);

/* the log-probabilities of so many tokens, with the likeliest beside each, take half a millisecond
   to write: the event loop writes no more at once */

#define VLM_JSON_TOKENS  64

/* as Python writes a float: 12.0, 0.5; not a number and infinity as null */

void vlm_json_put_double(vlm_json_out_t *w, double x);
void vlm_json_put_bool(vlm_json_out_t *w, int yes);
void vlm_json_put_null(vlm_json_out_t *w);

/* an array; nine digits give the same float again; not a number and infinity as null */

void vlm_json_put_floats(vlm_json_out_t *w, const float *x, size_t n);

/* a member of an object: its key and its value.  A string ends with a zero, or is NULL */

void vlm_json_add_open(vlm_json_out_t *w, const char *key, char bracket);
void vlm_json_add_text(vlm_json_out_t *w, const char *key, const char *text, size_t len);
void vlm_json_add_string(vlm_json_out_t *w, const char *key, const char *text);
void vlm_json_add_int(vlm_json_out_t *w, const char *key, int64_t n);
void vlm_json_add_bool(vlm_json_out_t *w, const char *key, int yes);
void vlm_json_add_double(vlm_json_out_t *w, const char *key, double x);
void vlm_json_add_logprob(vlm_json_out_t *w, const char *key, double x);

/* a text as printf() writes it, at most 1,023 bytes */

void vlm_json_add_format(vlm_json_out_t *w, const char *key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* the parsed value, with keys sorted; whole numbers to the last digit, others as doubles */

void vlm_json_put_value(vlm_json_out_t *w,
    const vlm_json_t *j);

/* copies bytes as they are: the text between a stream's documents */

void vlm_json_put_raw(vlm_json_out_t *w, const char *bytes,
    size_t len);

/* Appends the newline.  0: data and len are the caller's, to be freed with ..._release(); -1: there
   is no document, release it all the same. */

int vlm_json_done(vlm_json_out_t *w);
void vlm_json_release(vlm_json_out_t *w);      /* idempotent */


/*
 * For writers with a buffer of their own (events of a stream): the text escaped for a place between
 * quotes.  With dst NULL only counts.  Returns the bytes, at most six times len.
 */

size_t vlm_json_escape(char *dst, const char *text, size_t len);

#endif
