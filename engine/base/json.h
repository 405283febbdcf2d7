/* JSON files of a checkpoint: getters whose errors name the file and the path. */

#ifndef VLM_JSON_H
#define VLM_JSON_H

#include "base/err.h"

typedef struct cJSON  vlm_json_t;

/*
 * Parses a whole document.  name is for messages.  VLM_EMODEL with the byte offset where it stops
 * being JSON.  Freed with vlm_json_free().  Numbers above 2^53 are not exact: see vlm_json_u64().
 */
vlm_json_t *vlm_json_parse(const void *data, size_t bytes, const char *name, vlm_err_t *err);

/* DIR/NAME, at most limit bytes. */
vlm_json_t *vlm_json_read(const char *dir, const char *name, uint64_t limit, vlm_err_t *err);

void vlm_json_free(vlm_json_t *j);     /* NULL is fine */

/* The member key of an object (exact case), or NULL; j may be NULL. */
const vlm_json_t *vlm_json_get(const vlm_json_t *j, const char *key);

/* Walks an object or an array: first child or NULL, next sibling or NULL. */
const vlm_json_t *vlm_json_first(const vlm_json_t *j);
const vlm_json_t *vlm_json_next(const vlm_json_t *j);
const char *vlm_json_key(const vlm_json_t *j);     /* "" in an array */
uint32_t vlm_json_count(const vlm_json_t *j);

int vlm_json_is_object(const vlm_json_t *j);       /* these take NULL, and say no */
int vlm_json_is_array(const vlm_json_t *j);
int vlm_json_is_null(const vlm_json_t *j);         /* absent counts as null */

/* The value itself, or NULL / the default if j is absent or another kind of thing. */
const char *vlm_json_text(const vlm_json_t *j);
double vlm_json_number(const vlm_json_t *j, double otherwise);
int vlm_json_bool(const vlm_json_t *j, int otherwise);

/*
 * A whole number from low to high, both within 2^53.  0; or -1 and VLM_EMODEL
 * "config.json: hidden_size is 2048.5, expected a whole number from 1 to 65536".
 */
int vlm_json_u64(const vlm_json_t *j, const char *file, const char *path, uint64_t low,
                 uint64_t high, uint64_t *out, vlm_err_t *err);

#endif
