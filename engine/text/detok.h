/* Bytes to text as they come, never half a character: what vlm_detok_next() is made of. */

#ifndef VLM_DETOK_H
#define VLM_DETOK_H

#include "text/tokenizer.h"

/*
 * Writes the characters that these bytes complete to out, and U+FFFD for what can no longer become
 * one.  Returns how many bytes it wrote: at most 3 * n + VLM_DETOK_ROOM.
 */
size_t vlm_detok_bytes(vlm_detok_t *d, const uint8_t *bytes, size_t n, char *out);

#endif
