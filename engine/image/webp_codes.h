/*
 * Counts the Huffman codes of a lossless WebP stream, which can take more memory than its pixels.
 */

#ifndef VLM_WEBP_CODES_H
#define VLM_WEBP_CODES_H

#include "vlm.h"

/*
 * Bounds the memory of a stream's codes.
 *
 *   p, bytes       a VP8L bitstream from its transforms on, behind its size
 *   width, height  size of its pixels
 *   memory         bytes that libwebp takes for its codes and transforms
 *   returns        0; or -1: VLM_EINPUT damaged, or it ends before its codes, VLM_ELIMIT groups of
 *                  codes that take more than 64 MiB
 *
 * The time is linear in bytes and in a sixteenth of the pixels; nothing is allocated.
 */
int vlm_webp_codes(const uint8_t *p, size_t bytes, uint32_t width, uint32_t height,
                   uint64_t *memory, vlm_err_t *err);

#endif
