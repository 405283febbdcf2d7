/*
 * Settings in the JSON files of a checkpoint: found by their place, bounded as they are read, and
 * refused with file, path and value.  Families read their config.json with it.
 */

#ifndef VLM_ITEM_H
#define VLM_ITEM_H

#include "base/json.h"
#include "vlm.h"

typedef struct {
    const char        *file;           /* its path, for messages */
    const vlm_json_t  *top;            /* the document, or the part of it that is read */
    const vlm_json_t  *text;           /* "text_config", or NULL */
    const vlm_json_t  *vision;         /* "vision_config" */
    const char        *prefix;         /* of the paths of top's settings */
    vlm_err_t         *err;
} vlm_reader_t;

typedef struct {
    const vlm_json_t  *j;              /* NULL: absent */
    char               path[96];
} vlm_item_t;

/* A member of an object whose own path is prefix; a null is absent. */
vlm_item_t vlm_item(const vlm_json_t *object, const char *prefix, const char *key);
vlm_item_t vlm_item_top(const vlm_reader_t *r, const char *key);
/* A setting of the language model: under "text_config" if that has it, else at the top. */
vlm_item_t vlm_item_text(const vlm_reader_t *r, const char *key);
vlm_item_t vlm_item_vision(const vlm_reader_t *r, const char *key);
/* Element i of a list, which the caller walks. */
vlm_item_t vlm_item_element(const vlm_item_t *list, const vlm_json_t *element, uint32_t i);

/* A number from low to high; the _or forms take `otherwise` if it is absent. */
int vlm_item_u32(const vlm_reader_t *r, vlm_item_t it, uint32_t low, uint32_t high, uint32_t *out);
int vlm_item_u32_or(const vlm_reader_t *r, vlm_item_t it, uint32_t low, uint32_t high,
                    uint32_t otherwise, uint32_t *out);
int vlm_item_f32_or(const vlm_reader_t *r, vlm_item_t it, double low, double high,
                    double otherwise, float *out);
/* A string that must be one of two (which may be the same) if it is given. */
int vlm_item_is(const vlm_reader_t *r, vlm_item_t it, const char *a, const char *b);

/* Whole numbers of a structure; the list ends with a key that is NULL. */
typedef struct {
    const char  *key;
    size_t       at;                   /* offset of a uint32_t */
    uint32_t     low, high;
    uint32_t     otherwise;            /* 0: the key is required */
} vlm_field_t;

typedef vlm_item_t (*vlm_item_fn)(const vlm_reader_t *r, const char *key);

int vlm_items_read(const vlm_reader_t *r, vlm_item_fn find, const vlm_field_t *fields, void *to);

#endif
