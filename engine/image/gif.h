/* GIF: the first frame on its canvas. */

#ifndef VLM_GIF_H
#define VLM_GIF_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a GIF does; sizes are checked by the caller. */
int vlm_gif_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * Returns the first frame as RGBA, u8 [h->height][h->width][4], free()d by the caller.  Pixels are
 * transparent where the frame is, and outside of it: browsers ignore the background colour as well.
 * NULL: VLM_EINPUT the file ends inside the frame or its codes are damaged, VLM_EMEMORY.
 *
 *   h   vlm_header_read()'s result for the same bytes
 */
uint8_t *vlm_gif_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

#endif
