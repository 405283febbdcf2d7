/* JPEG: its header; the pixels are stb.c's. */

#ifndef VLM_JPEG_H
#define VLM_JPEG_H

#include "image/header.h"

/* vlm_header_read() for a file that begins as a JPEG does; sizes are checked by the caller. */
int vlm_jpeg_header(vlm_header_t *h, const uint8_t *data, size_t bytes, vlm_err_t *err);

#endif
