/*
 * The tokenizer of an encoder of texts: words become pieces of a vocabulary, the longest first
 * (WordPiece).
 *
 * Before that a text is cleaned of control characters, and folded: characters of Han become words,
 * accents are taken off, letters become small, as tokenizer.json says.  Words end at spaces, and
 * each punctuation character is a word.  Read-only after it was opened: any number of threads may
 * use it.
 */

#ifndef VLM_WORDPIECE_H
#define VLM_WORDPIECE_H

#include "family/family.h"

typedef struct vlm_wordpiece_s  vlm_wordpiece_t;

/*
 * Reads DIR/tokenizer.json, which must be of the types in `pieces`.  VLM_EMODEL names file, member
 * and fault; every id is below `vocab`.
 */
vlm_wordpiece_t *vlm_wordpiece_open(const char *dir, const vlm_subwords_t *pieces, uint32_t vocab,
                                    vlm_err_t *err);
/* The same of a text; name is for messages. */
vlm_wordpiece_t *vlm_wordpiece_read(const void *json, size_t bytes, const char *name,
                                    const vlm_subwords_t *pieces, uint32_t vocab, vlm_err_t *err);
void vlm_wordpiece_close(vlm_wordpiece_t *t);      /* takes NULL */

/*
 * The ids of a text with the control tokens around it: ids [most], of which *n are set; most is 2
 * at least.  Text that does not fit is cut off, and not read.  A control token that the text spells
 * is one, as in the reference.  VLM_EINPUT: a byte that is read is not UTF-8.  Allocates nothing.
 */
int vlm_wordpiece_ids(const vlm_wordpiece_t *t, const char *text, size_t bytes, uint32_t *ids,
                      uint32_t most, uint32_t *n, vlm_err_t *err);

#endif
