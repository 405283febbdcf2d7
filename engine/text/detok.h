/* Bytes to whole characters, as the bytes arrive: the core of vlm_detok_next(). */

#ifndef VLM_DETOK_H
#define VLM_DETOK_H

#include "text/tokenizer.h"

/*
 * Writes the characters that these bytes complete to out, and U+FFFD for bytes that can no longer
 * become one.  Returns the number of bytes written: at most 3 * n + VLM_DETOK_ROOM.
 */
size_t vlm_detok_bytes(vlm_detok_t *d, const uint8_t *bytes, size_t n, char *out);

#endif
