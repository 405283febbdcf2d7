/* UTF-8, strictly: shortest forms, no surrogates. */

#ifndef VLM_UTF8_H
#define VLM_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The length of the character at p, and its code; 0: there is none within len bytes. */
size_t vlm_utf8(const unsigned char *p, size_t len, uint32_t *code);

/* Writes a character that may be one, up to 4 bytes; returns their number. */
size_t vlm_utf8_put(unsigned char *p, uint32_t code);

/* The bytes of any text that are whole, valid characters, up to the first that is not. */
size_t vlm_utf8_whole(const char *text, size_t len);

#endif
