/* JPEG, PNG and BMP through stb_image, kept within a bound of memory; JPEG by stb_image_write. */

#ifndef VLM_STB_H
#define VLM_STB_H

#include "image/header.h"

/*
 *   h         what vlm_header_read() made of the same bytes: JPEG, PNG or BMP
 *   returns   u8 [h->height][h->width][h->alpha ? 4 : 3], RGB or RGBA, free()d by the caller; or
 *             NULL: VLM_EINPUT with the decoder's reason, VLM_ELIMIT it needs more memory than
 *             h->memory
 */
uint8_t *vlm_stb_decode(const vlm_header_t *h, const void *data, size_t bytes, vlm_err_t *err);

/*
 * A baseline JPEG of u8 [height][width][3], without chroma subsampling: thin coloured lines stay
 * what they are.  *jpeg is malloc()ed.  0, or -1 and VLM_EMEMORY.
 */
int vlm_stb_jpeg(const uint8_t *rgb, uint32_t width, uint32_t height, void **jpeg, size_t *bytes,
                 vlm_err_t *err);

#endif
