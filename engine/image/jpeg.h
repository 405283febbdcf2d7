/* JPEG: its header and its decoder.  Its encoder, vlm_jpeg_encode(), is in vlm.h. */

#ifndef VLM_JPEG_H
#define VLM_JPEG_H

#include "image/header.h"
#include "vlm.h"

/*
 * vlm_header_read() for a file that begins as a JPEG does; the caller checks sizes.  h->memory is
 * the memory of libjpeg and of the pixels, exact where the file is large.
 */
int vlm_jpeg_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 * Decodes a JPEG.
 *
 *   h         vlm_header_read()'s result for the same bytes
 *   returns   u8 [h->height][h->width][3], free()d by the caller, equal to Pillow's; or NULL:
 *             VLM_EINPUT with the decoder's reason, VLM_ELIMIT it needs more memory than
 *             h->memory, VLM_EMEMORY, VLM_ECANCELLED
 *
 * A file without an end is refused by its header.  If the data end too early or are damaged but
 * decodable, the picture is shown as in Pillow and browsers: grey where data are missing.
 */
uint8_t *vlm_jpeg_decode(const vlm_header_t *h, const void *data, size_t bytes,
                         const vlm_stop_t *stop, vlm_err_t *err);

#endif
