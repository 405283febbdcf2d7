/* Stop strings, across token borders. */

#ifndef VLM_CHAT_STOP_H
#define VLM_CHAT_STOP_H

#include <stddef.h>

/*
 * Looks for the first of the strings in text [bytes], of which the first `clear` bytes were cleared
 * before.  Returns how many bytes are clear now: those before a match, or those that can no longer
 * become the start of one.  *hit is 1 if there is a match.  last: no more text follows, so that the
 * mere start of a string holds nothing back.
 */
size_t vlm_stop_scan(const char *text, size_t bytes, size_t clear, char *const *stop, size_t n,
                     int last, int *hit);

#endif
