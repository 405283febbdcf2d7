/* GIF: the first frame on its canvas. */

#ifndef VLM_GIF_H
#define VLM_GIF_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a GIF does; sizes are checked by the caller. */
int vlm_gif_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * The first frame as RGBA, u8 [h->height][h->width][4], free()d by the caller.  Transparent where
 * the frame is or where it does not reach: browsers ignore the background colour as well.  NULL:
 * VLM_EINPUT the file ends inside the frame or its codes are damaged, VLM_EMEMORY.
 *
 *   h   what vlm_header_read() made of the same bytes
 */
uint8_t *vlm_gif_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

#endif
