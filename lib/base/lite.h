/* The text of an answer to POST /generate-lite, made of the model's as the LoRA service does. */

#ifndef VLM_LITE_H
#define VLM_LITE_H

#include <stddef.h>

#define VLM_LITE_SHOWN  150            /* characters of a translation, and behind them "..." */

/*
 * Characters that are not printable, as Python's str.isprintable() has it, are left out: line ends,
 * tabs, no-break spaces, joiners without width.  Runs of spaces become one.  Where the prompt asks
 * to translate, only the translation is left: without an echo of the prompt the runs of characters
 * beyond ASCII, or where there are none a part of the text.  Bytes that are not UTF-8 are left out.
 *
 *   returns   malloc()ed, with a zero behind *len bytes; NULL: no memory
 */
char *vlm_lite_text(const char *text, size_t bytes, const char *prompt, size_t *len);

#endif
