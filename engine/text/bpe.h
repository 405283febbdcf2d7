/* Byte-level BPE of one piece of text: the pair of lowest rank is joined until none is left. */

#ifndef VLM_BPE_H
#define VLM_BPE_H

#include "text/tokenizer.h"
#include "text/vocab.h"

#define VLM_MAX_PIECE  (1u << 26)      /* bytes; positions are uint32_t with room to spare */

typedef struct vlm_bpe_node_s   vlm_bpe_node_t;
typedef struct vlm_bpe_merge_s  vlm_bpe_merge_t;

/* Memory of one thread's work, kept from piece to piece; zeroed by the caller. */
typedef struct {
    vlm_bpe_node_t   *nodes;           /* [room] */
    vlm_bpe_merge_t  *heap;            /* [2 * room] */
    size_t            n_heap, room;
    uint64_t          steps;           /* pairs looked up and heap entries moved, for tests */
} vlm_bpe_t;

/* Room for pieces of n bytes, which vlm_bpe_encode() makes by itself.  Its errors. */
int vlm_bpe_grow(vlm_bpe_t *w, size_t n, vlm_err_t *err);
void vlm_bpe_free(vlm_bpe_t *w);       /* safe twice */

/*
 * Appends the ids of a piece, in time n log n of its length.
 *
 *   byte_id  [256] ids of the single bytes; VLM_MAX_ID: the byte is left out
 *
 * Errors: VLM_EMEMORY; VLM_ELIMIT for more than VLM_MAX_PIECE bytes.
 */
int vlm_bpe_encode(vlm_bpe_t *w, const vlm_vocab_t *v, const uint32_t *byte_id,
                   const uint8_t *piece, size_t n, vlm_ids_t *ids, vlm_err_t *err);

#endif
