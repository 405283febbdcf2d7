/* JPEG: its header, its pixels, and the way back. */

#ifndef VLM_JPEG_H
#define VLM_JPEG_H

#include "image/header.h"
#include "vlm.h"

/*
 * vlm_header_read() for a file that begins as a JPEG does; sizes are checked by the caller.
 * h->memory is what libjpeg and the pixels take, exactly where the file is large.
 */
int vlm_jpeg_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

/*
 *   h         what vlm_header_read() made of the same bytes
 *   returns   u8 [h->height][h->width][3], free()d by the caller, equal to what Pillow shows; or
 *             NULL: VLM_EINPUT with the decoder's reason, VLM_ELIMIT it needs more memory than
 *             h->memory, VLM_EMEMORY, VLM_ECANCELLED
 *
 * A file without an end is refused by its header.  One whose data end too early, or are damaged,
 * but can be decoded is shown as Pillow and browsers show it: grey where nothing came.
 */
uint8_t *vlm_jpeg_decode(const vlm_header_t *h, const void *data, size_t bytes,
                         const vlm_stop_t *stop, vlm_err_t *err);

/*
 * A baseline JPEG of u8 [height][width][3], without chroma subsampling: thin coloured lines stay
 * as they are.  *jpeg is malloc()ed.  0, or -1 and VLM_EMEMORY.
 */
int vlm_jpeg_encode(const uint8_t *rgb, uint32_t width, uint32_t height, void **jpeg, size_t *bytes,
                    vlm_err_t *err);

#endif
