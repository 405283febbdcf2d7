/* Bounds on the pixels of a picture after its resize, for one request. */

#ifndef VLM_PIXELS_H
#define VLM_PIXELS_H

#include "base/json.h"

#define VLM_PIXELS_LOW  262144         /* "detail": "low", 512 x 512 */

typedef struct {
    uint64_t  min, max;                /* 0: the engine's own bound */
} vlm_pixels_t;

/*
 * Reads "min_pixels", "max_pixels" and "detail" of an object; any other value has none of them.
 *
 *   limit    the engine's max_pixels, which neither number may exceed
 *   returns  0; or -1 and VLM_EINPUT with the field, its value and what it may be
 */
int vlm_pixels_read(vlm_pixels_t *p, const vlm_json_t *fields, uint64_t limit, vlm_err_t *err);

#endif
