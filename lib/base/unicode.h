/* Properties of characters, of the Unicode that the system's utf8proc has. */

#ifndef VLM_UNICODE_H
#define VLM_UNICODE_H

#include <stddef.h>
#include <stdint.h>

#define VLM_UNICODE_DECOMPOSED  32     /* the longest decomposition has 18 */

/* As Python's str.isprintable(): not of the categories "other" and "separator", or the space. */
int vlm_unicode_printable(uint32_t code);

/* The compatibility decomposition of a character; returns the number of its codes. */
size_t vlm_unicode_decompose(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED]);

/*
 * The compatibility decomposition of a character after case folding, so that two texts that are the
 * same to a search have the same codes; returns the number of codes.
 */
size_t vlm_unicode_fold(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED]);

/* The canonical decomposition of a character; returns the number of its codes. */
size_t vlm_unicode_canonical(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED]);
/* The lower case of a character that has one of one code, else the character. */
uint32_t vlm_unicode_lower(uint32_t code);

int vlm_unicode_mark(uint32_t code);               /* a mark without a width: category Mn */
int vlm_unicode_punctuation(uint32_t code);        /* the categories that begin with P */
int vlm_unicode_space(uint32_t code);              /* the property White_Space */
/* A control or format character, or one for private use: the categories Cc, Cf, Cs and Co. */
int vlm_unicode_other(uint32_t code);

/* A letter, a digit, or a mark such as an Indic vowel. */
int vlm_unicode_in_word(uint32_t code);

/* A format character, such as a soft hyphen or a joiner: it is within words and not seen. */
int vlm_unicode_invisible(uint32_t code);

/* Of a script that writes words without spaces: Han, Kana, Thai. */
int vlm_unicode_unspaced(uint32_t code);

#endif
