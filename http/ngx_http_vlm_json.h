
/*
 * JSON of requests and answers: getters over a parsed body, and a writer.
 *
 * The only file of the nginx side that uses cJSON.  Plain C without nginx's
 * headers.  Parsing belongs into a thread unless the body is small; the
 * writer is for any thread.
 *
 * What is read is what Python's json.loads() would have made of it: the last
 * of equal keys counts, the text is UTF-8.  Unlike there, a character U+0000
 * is refused, so that every string can be measured by its zero, and so are
 * bodies whose shape alone would take much memory.
 */


#ifndef _NGX_HTTP_VLM_JSON_H_INCLUDED_
#define _NGX_HTTP_VLM_JSON_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>


#define NGX_HTTP_VLM_JSON_BYTES   (64u << 20)  /* of a body */
#define NGX_HTTP_VLM_JSON_DEPTH   64           /* arrays and objects, nested */
#define NGX_HTTP_VLM_JSON_VALUES  100000       /* about 64 bytes each */


typedef struct cJSON  ngx_http_vlm_json_t;

typedef struct {
    char                      text[160];
} ngx_http_vlm_json_err_t;


/* A whole document, freed with ..._free(); NULL and a sentence if it is not
   one, or beyond a limit.  data needs no zero and is not kept. */

ngx_http_vlm_json_t *ngx_http_vlm_json_parse(const void *data, size_t bytes,
    ngx_http_vlm_json_err_t *err);
void ngx_http_vlm_json_free(ngx_http_vlm_json_t *j);       /* takes NULL */


/* All that follow take NULL for j, which is like null there. */

/* the member of an object (exact case, the last of its name), or NULL */

const ngx_http_vlm_json_t *ngx_http_vlm_json_get(const ngx_http_vlm_json_t *j,
    const char *key);

/* an object's or array's first member, the next of it; NULL: no more */

const ngx_http_vlm_json_t *ngx_http_vlm_json_first(
    const ngx_http_vlm_json_t *j);
const ngx_http_vlm_json_t *ngx_http_vlm_json_next(
    const ngx_http_vlm_json_t *j);
const char *ngx_http_vlm_json_key(const ngx_http_vlm_json_t *j);
size_t ngx_http_vlm_json_count(const ngx_http_vlm_json_t *j);

int ngx_http_vlm_json_is_object(const ngx_http_vlm_json_t *j);
int ngx_http_vlm_json_is_array(const ngx_http_vlm_json_t *j);
int ngx_http_vlm_json_is_string(const ngx_http_vlm_json_t *j);
int ngx_http_vlm_json_is_number(const ngx_http_vlm_json_t *j);
int ngx_http_vlm_json_is_bool(const ngx_http_vlm_json_t *j);
int ngx_http_vlm_json_is_null(const ngx_http_vlm_json_t *j);

/* as Python's bool(): false for null, false, 0, "", [] and {} */

int ngx_http_vlm_json_is_true(const ngx_http_vlm_json_t *j);

/* The value, or NULL / otherwise if it is of another kind.  Text is UTF-8
   with a zero, and lives as long as the document. */

const char *ngx_http_vlm_json_text(const ngx_http_vlm_json_t *j);
double ngx_http_vlm_json_number(const ngx_http_vlm_json_t *j,
    double otherwise);
int ngx_http_vlm_json_bool(const ngx_http_vlm_json_t *j, int otherwise);

/* 0, and a whole number between low and high, both within 2^53; or -1 */

int ngx_http_vlm_json_int(const ngx_http_vlm_json_t *j, int64_t low,
    int64_t high, int64_t *out);


/*
 * A writer over a buffer that grows, in the form of Flask's answers: no
 * spaces, ASCII only, a newline at the end.  Flask sorts keys; here the caller
 * writes them in that order.  Commas are the writer's business:
 *
 *     ngx_http_vlm_json_init(&w, 4096);
 *     ngx_http_vlm_json_open(&w, '{');
 *     ngx_http_vlm_json_put_key(&w, "path");
 *     ngx_http_vlm_json_put_text(&w, path, strlen(path));
 *     ngx_http_vlm_json_shut(&w, '}');
 *     if (ngx_http_vlm_json_done(&w) != 0) { no memory, or beyond the limit }
 *
 * Errors are kept until ..._done(), so that no call in between is checked.
 */

typedef struct {
    char                     *data;        /* malloc()ed */
    size_t                    len;
    size_t                    size;
    size_t                    limit;       /* bytes that len may reach */
    unsigned                  comma:1;     /* before the next value */
    unsigned                  failed:1;
} ngx_http_vlm_json_out_t;


void ngx_http_vlm_json_init(ngx_http_vlm_json_out_t *w, size_t limit);
void ngx_http_vlm_json_open(ngx_http_vlm_json_out_t *w, char bracket);
void ngx_http_vlm_json_shut(ngx_http_vlm_json_out_t *w, char bracket);
void ngx_http_vlm_json_put_key(ngx_http_vlm_json_out_t *w, const char *key);

/* text NULL writes null; bytes that are not UTF-8 become U+FFFD */

void ngx_http_vlm_json_put_text(ngx_http_vlm_json_out_t *w, const char *text,
    size_t len);
void ngx_http_vlm_json_put_int(ngx_http_vlm_json_out_t *w, int64_t n);

/* six digits behind the point, from -9999.0 to 0.0: the rest is noise */

void ngx_http_vlm_json_put_logprob(ngx_http_vlm_json_out_t *w, double x);

/* those of so many tokens, with the likeliest beside each, take half a
   millisecond: the event loop writes no more at once */

#define NGX_HTTP_VLM_JSON_TOKENS  64

/* as Python writes a float: 12.0, 0.5; not a number and infinity as null */

void ngx_http_vlm_json_put_double(ngx_http_vlm_json_out_t *w, double x);
void ngx_http_vlm_json_put_bool(ngx_http_vlm_json_out_t *w, int yes);
void ngx_http_vlm_json_put_null(ngx_http_vlm_json_out_t *w);

/* the parsed value, with keys sorted */

void ngx_http_vlm_json_put_value(ngx_http_vlm_json_out_t *w,
    const ngx_http_vlm_json_t *j);

/* bytes as they stand: what a stream has between its documents */

void ngx_http_vlm_json_put_raw(ngx_http_vlm_json_out_t *w, const char *bytes,
    size_t len);

/* The newline.  0, and data and len are the caller's, freed with
   ..._release(); or -1: there is nothing to use, release it all the same. */

int ngx_http_vlm_json_done(ngx_http_vlm_json_out_t *w);
void ngx_http_vlm_json_release(ngx_http_vlm_json_out_t *w);


/*
 * For writers with a buffer of their own (events of a stream): a text as it
 * stands between quotes.  With dst NULL only counts.  Returns the bytes, at
 * most six times len.
 */

size_t ngx_http_vlm_json_escape(char *dst, const char *text, size_t len);


/*
 * Any text: how many bytes of it are whole characters of UTF-8, up to the
 * first that is not.
 */

size_t ngx_http_vlm_json_utf8(const char *text, size_t len);


#endif /* _NGX_HTTP_VLM_JSON_H_INCLUDED_ */
