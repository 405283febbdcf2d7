/* Settings of JSON files: see item.h. */

#include "load/item.h"

#include <math.h>
#include <stdio.h>
#include <string.h>


vlm_item_t
vlm_item(const vlm_json_t *object, const char *prefix, const char *key)
{
    vlm_item_t  it;

    it.j = vlm_json_get(object, key);
    if (vlm_json_is_null(it.j)) {
        it.j = NULL;
    }

    snprintf(it.path, sizeof(it.path), "%.62s%.32s", prefix, key);

    return it;
}


vlm_item_t
vlm_item_text(const vlm_reader_t *r, const char *key)
{
    vlm_item_t  it;

    it = vlm_item(r->text, "text_config.", key);

    return it.j != NULL ? it : vlm_item_top(r, key);
}


vlm_item_t
vlm_item_vision(const vlm_reader_t *r, const char *key)
{
    return vlm_item(r->vision, "vision_config.", key);
}


vlm_item_t
vlm_item_top(const vlm_reader_t *r, const char *key)
{
    return vlm_item(r->top, r->prefix, key);
}


int
vlm_item_u32(const vlm_reader_t *r, vlm_item_t it, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t  n;

    if (vlm_json_u64(it.j, r->file, it.path, low, high, &n, r->err) != 0) {
        return -1;
    }

    *out = (uint32_t) n;

    return 0;
}


int
vlm_item_u32_or(const vlm_reader_t *r, vlm_item_t it, uint32_t low, uint32_t high,
                uint32_t otherwise, uint32_t *out)
{
    if (it.j == NULL) {
        *out = otherwise;
        return 0;
    }

    return vlm_item_u32(r, it, low, high, out);
}


int
vlm_item_f32_or(const vlm_reader_t *r, vlm_item_t it, double low, double high, double otherwise,
                float *out)
{
    double  d;

    if (it.j == NULL) {
        *out = (float) otherwise;
        return 0;
    }

    d = vlm_json_number(it.j, NAN);

    if (isnan(d)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is not a number", r->file, it.path);
    }

    if (!(d >= low && d <= high)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is %.9g, expected a number from %g to %g",
                        r->file, it.path, d, low, high);
    }

    *out = (float) d;

    return 0;
}


int
vlm_item_is(const vlm_reader_t *r, vlm_item_t it, const char *a, const char *b)
{
    const char  *s;

    if (it.j == NULL) {
        return 0;
    }

    s = vlm_json_text(it.j);

    if (s == NULL || (strcmp(s, a) != 0 && strcmp(s, b) != 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is \"%s\", only \"%s\" is understood",
                        r->file, it.path, s == NULL ? "not a text" : vlm_printable(s), b);
    }

    return 0;
}


vlm_item_t
vlm_item_element(const vlm_item_t *list, const vlm_json_t *element, uint32_t i)
{
    vlm_item_t  it;

    it.j = element;
    (void) snprintf(it.path, sizeof(it.path), "%.60s[%u]", list->path, i);

    return it;
}


int
vlm_items_read(const vlm_reader_t *r, vlm_item_fn find, const vlm_field_t *fields, void *to)
{
    int          rc;
    uint32_t    *out;
    vlm_item_t   it;

    for (rc = 0; rc == 0 && fields->key != NULL; fields++) {
        it = find(r, fields->key);
        out = (uint32_t *) ((char *) to + fields->at);
        rc = fields->otherwise == 0
             ? vlm_item_u32(r, it, fields->low, fields->high, out)
             : vlm_item_u32_or(r, it, fields->low, fields->high, fields->otherwise, out);
    }

    return rc;
}
