/*
 * WebP through libwebp.  A frame of an animation is a still picture without its wrapping, which
 * the decoder takes as it is; so no second library is needed for the first one.
 */

#include "image/webp.h"

#include <stdlib.h>
#include <webp/decode.h>


/* Does the decoder see what our own reading of the header saw? */
static int
check_features(const vlm_header_t *h, const uint8_t *p, size_t bytes, vlm_err_t *err)
{
    VP8StatusCode          status;
    WebPBitstreamFeatures  f;

    status = WebPGetFeatures(p, bytes, &f);

    if (status != VP8_STATUS_OK) {
        return vlm_fail(err, VLM_EINPUT, "WebP: damaged header (libwebp status %d)", status);
    }

    if ((uint32_t) f.width != h->frame_width || (uint32_t) f.height != h->frame_height) {
        return vlm_fail(err, VLM_EINPUT, "WebP: its header says %ux%u, its pixels %dx%d",
                        h->frame_width, h->frame_height, f.width, f.height);
    }

    return 0;
}


uint8_t *
vlm_webp_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err)
{
    size_t          channels, stride, size, at;
    uint8_t        *out, *done;
    const uint8_t  *p;

    if (h->data_at > bytes || h->data_bytes > bytes - h->data_at) {
        (void) vlm_fail(err, VLM_EINPUT, "WebP: cut off after %zu bytes", bytes);
        return NULL;
    }

    p = data + h->data_at;

    if (check_features(h, p, h->data_bytes, err) != 0) {
        return NULL;
    }

    channels = h->alpha ? 4 : 3;
    stride = h->width * channels;
    size = stride * h->height;
    at = h->frame_y * stride + h->frame_x * channels;
    out = calloc(size, 1);

    if (out == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "WebP: no memory for %ux%u pixels", h->width, h->height);
        return NULL;
    }

    done = h->alpha ? WebPDecodeRGBAInto(p, h->data_bytes, out + at, size - at, (int) stride)
                    : WebPDecodeRGBInto(p, h->data_bytes, out + at, size - at, (int) stride);

    if (done == NULL) {
        (void) vlm_fail(err, VLM_EINPUT, "WebP: damaged or cut off: %zu bytes for %ux%u pixels",
                        h->data_bytes, h->frame_width, h->frame_height);
        free(out);
        return NULL;
    }

    return out;
}
