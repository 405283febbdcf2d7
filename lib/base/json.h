/*
 * JSON, read: getters over a parsed document.
 *
 * A request is parsed as Python's json.loads() does: the last of equal keys counts, the text is
 * UTF-8.  Unlike there, the character U+0000 is refused, so that every string ends at its zero, and
 * so are bodies whose shape alone would take much memory.
 */

#ifndef VLM_JSON_H
#define VLM_JSON_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VLM_JSON_BYTES   (64u << 20)  /* of a body */
#define VLM_JSON_DEPTH   64           /* arrays and objects, nested */
#define VLM_JSON_VALUES  100000       /* about 64 bytes each */


typedef struct cJSON  vlm_json_t;


/* Parses a request's document, freed with vlm_json_free(); NULL and a sentence, which overwrites an
   earlier one, if it is invalid or exceeds a limit. data needs no zero and is not kept. */

vlm_json_t *vlm_json_parse(const void *data, size_t bytes,
    vlm_err_t *err);
void vlm_json_free(vlm_json_t *j);       /* takes NULL */
vlm_json_t *vlm_json_copy(const vlm_json_t *j);    /* of its own; NULL: no memory */


/*
 * The text of a member of the outermost object, as the parsed document has it, for code that needs
 * one field of a large body before it may parse it: one pass over the bytes, which keeps nothing.
 *
 *   text, size    gets the text and a zero; empty with -1
 *   returns       0; -1 if there is no such member, it is no text, or has size bytes or more
 *
 * Of bytes that are not JSON either may be returned; nothing is read beyond their end.
 */
int vlm_json_peek(const void *data, size_t bytes, const char *key, char *text, size_t size);


/* A document of parts of others: an empty object or array, '{' or '['; a child that it takes
   over, or refers to and that has to live as long.  key NULL: an array's.  NULL, -1: no memory. */
vlm_json_t *vlm_json_make(char bracket);
int vlm_json_take(vlm_json_t *j, const char *key, vlm_json_t *child);
int vlm_json_refer(vlm_json_t *j, const char *key, const vlm_json_t *child);
vlm_json_t *vlm_json_make_text(const char *text);

/* All that follow accept NULL for j, which is like null there. */

/* the member of an object (exact case, the last of its name), or NULL */

const vlm_json_t *vlm_json_get(const vlm_json_t *j,
    const char *key);

/* the first of two such members that is true, else the other */

const vlm_json_t *vlm_json_either(const vlm_json_t *j, const char *one, const char *other);

/* an object's or array's first member, the next of it; NULL: no more */

const vlm_json_t *vlm_json_first(
    const vlm_json_t *j);
const vlm_json_t *vlm_json_next(
    const vlm_json_t *j);
const char *vlm_json_key(const vlm_json_t *j);
uint32_t vlm_json_count(const vlm_json_t *j);

int vlm_json_is_object(const vlm_json_t *j);
int vlm_json_is_array(const vlm_json_t *j);
int vlm_json_is_string(const vlm_json_t *j);
int vlm_json_is_number(const vlm_json_t *j);
int vlm_json_is_bool(const vlm_json_t *j);
int vlm_json_is_null(const vlm_json_t *j);

/* as Python's bool(): false for null, false, 0, "", [] and {} */

int vlm_json_is_true(const vlm_json_t *j);

/* The value, or NULL / otherwise if its type is another.  Text is UTF-8 with a zero, and lives as
   long as the document. */

const char *vlm_json_text(const vlm_json_t *j);
double vlm_json_number(const vlm_json_t *j,
    double otherwise);
int vlm_json_bool(const vlm_json_t *j, int otherwise);

/* The text of a string, or of a number, which may be put in digits; NULL: of another type. */

#define VLM_JSON_DIGITS  24

const char *vlm_json_word(const vlm_json_t *j, char digits[VLM_JSON_DIGITS]);

/* 0, and a whole number from low to high, to the last digit; or -1.  From 2^53 on it is exact in a
   document of vlm_json_parse() and if it is written in digits alone, else -1. */

int vlm_json_int(const vlm_json_t *j, int64_t low,
    int64_t high, int64_t *out);

/*
 * Of a document of vlm_json_parse(), for a number that its double, or a whole number of 64 bits,
 * would not give again: its text as it was written, which is one of JSON's; else NULL.  The second
 * only of those in digits alone, a whole number of any length.
 */
const char *vlm_json_written(const vlm_json_t *j);
const char *vlm_json_digits(const vlm_json_t *j);

/*
 * A checkpoint's document, without those limits.  name is for messages.  VLM_EMODEL with the byte
 * offset where it stops being JSON.  Numbers above 2^53 are not exact: see vlm_json_u64().
 */
vlm_json_t *vlm_json_named(const void *data, size_t bytes, const char *name, vlm_err_t *err);

/* DIR/NAME, at most limit bytes. */
vlm_json_t *vlm_json_read(const char *dir, const char *name, uint64_t limit, vlm_err_t *err);

/*
 * A whole number from low to high, both within 2^53.  0; or -1 and VLM_EMODEL
 * "config.json: hidden_size is 2048.5, expected a whole number from 1 to 65536".
 */
int vlm_json_u64(const vlm_json_t *j, const char *file, const char *path, uint64_t low,
                 uint64_t high, uint64_t *out, vlm_err_t *err);

#endif
