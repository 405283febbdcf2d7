/* PNG: its header and its palette; the pixels are stb.c's. */

#ifndef VLM_PNG_H
#define VLM_PNG_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a PNG does; sizes are checked by the caller. */
int vlm_png_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * The file with its palette filled up with black, if it has fewer colours than its pixels can
 * name: *filled, [*n_filled], free()d by the caller; else NULL.  0, or -1 and VLM_EMEMORY.  Check
 * sums are left as they are: the decoder does not look at them.
 */
int vlm_png_fill_palette(const uint8_t *data, size_t bytes, uint8_t **filled, size_t *n_filled,
                         vlm_err_t *err);

#endif
