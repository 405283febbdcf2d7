/* BMP: uncompressed, of 1 to 32 bits a pixel. */

#ifndef VLM_BMP_H
#define VLM_BMP_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a BMP does; the rows are in the file. */
int vlm_bmp_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * Returns u8 [h->height][h->width][h->alpha ? 4 : 3], free()d by the caller; or NULL: VLM_EINPUT,
 * VLM_EMEMORY.  An index without a colour is black; alpha that is zero everywhere is ignored.
 *
 *   h   vlm_header_read()'s result for the same bytes
 */
uint8_t *vlm_bmp_decode(const vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

#endif
