/* PNG: its header and its pixels. */

#ifndef VLM_PNG_H
#define VLM_PNG_H

#include "image/header.h"
#include "vlm.h"

/* vlm_header_read() for a file that begins as a PNG does; sizes are checked by the caller. */
int vlm_png_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * Decodes a PNG.
 *
 *   h         vlm_header_read()'s result for the same bytes
 *   returns   u8 [h->height][h->width][h->alpha ? 4 : 3], free()d by the caller; or NULL:
 *             VLM_EINPUT with the decoder's reason, VLM_ELIMIT more compressed bytes than the rows
 *             can account for, VLM_EMEMORY, VLM_ECANCELLED
 *
 * An index without a colour is black.
 */
uint8_t *vlm_png_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes,
                        const vlm_stop_t *stop, vlm_err_t *err);

#endif
