/* Bounds on the pixels of a picture after its resize, for one request. */

#include "base/pixels.h"

#include <inttypes.h>
#include <string.h>


/* A number of pixels, which stays 0 if the field is absent or null. */
static int
read_number(uint64_t *pixels, const vlm_json_t *fields, const char *name, uint64_t limit,
            vlm_err_t *err)
{
    int64_t            n;
    const vlm_json_t  *field;

    *pixels = 0;
    field = vlm_json_get(fields, name);

    if (vlm_json_is_null(field)) {
        return 0;
    }

    if (vlm_json_int(field, 1, (int64_t) limit, &n) != 0) {
        if (vlm_json_is_number(field)) {
            return vlm_fail(err, VLM_EINPUT, "%s is %.17g, it may be a whole number from 1 to %"
                            PRIu64, name, vlm_json_number(field, 0), limit);
        }

        return vlm_fail(err, VLM_EINPUT, "%s is not a number", name);
    }

    *pixels = (uint64_t) n;

    return 0;
}


int
vlm_pixels_read(vlm_pixels_t *p, const vlm_json_t *fields, uint64_t limit, vlm_err_t *err)
{
    const char        *text;
    const vlm_json_t  *detail;

    if (read_number(&p->min, fields, "min_pixels", limit, err) != 0
        || read_number(&p->max, fields, "max_pixels", limit, err) != 0)
    {
        return -1;
    }

    detail = vlm_json_get(fields, "detail");
    text = vlm_json_text(detail);

    if (text != NULL && strcmp(text, "low") == 0) {
        if (p->max == 0 || p->max > VLM_PIXELS_LOW) {
            p->max = VLM_PIXELS_LOW;
        }

    } else if (!vlm_json_is_null(detail)
               && (text == NULL || (strcmp(text, "high") != 0 && strcmp(text, "auto") != 0)))
    {
        return vlm_fail(err, VLM_EINPUT, "detail is not low, high or auto");
    }

    if (p->max != 0 && p->min > p->max) {
        return vlm_fail(err, VLM_EINPUT, "min_pixels is %" PRIu64 ", more than max_pixels %" PRIu64,
                        p->min, p->max);
    }

    return 0;
}
