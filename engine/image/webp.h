/* WebP through libwebp: lossy, lossless, with alpha, and the first frame of an animation. */

#ifndef VLM_WEBP_H
#define VLM_WEBP_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a WebP does; sizes are checked by the caller. */
int vlm_webp_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * Decodes a WebP.
 *
 *   h         vlm_header_read()'s result for the same bytes
 *   returns   u8 [h->height][h->width][h->alpha ? 4 : 3], free()d by the caller, transparent
 *             outside the frame; or NULL: VLM_EINPUT damaged, VLM_EMEMORY, VLM_ECANCELLED
 */
uint8_t *vlm_webp_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes,
                         const vlm_stop_t *stop, vlm_err_t *err);

#endif
