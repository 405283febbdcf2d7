/*
 * A vocabulary: the bytes of each id, the id of some bytes, and which pairs of ids become one.  It
 * is written while it is opened, and read-only after that.
 */

#ifndef VLM_VOCAB_H
#define VLM_VOCAB_H

#include "vlm.h"

#define VLM_MAX_ID           (1u << 24)        /* ids are below; a published one has 152,064 */
#define VLM_MAX_TOKEN_BYTES  4096              /* the longest published token has 128 */

typedef enum {
    VLM_TOKEN_NONE,                    /* no such id */
    VLM_TOKEN_BYTES,                   /* may come out of a text */
    VLM_TOKEN_FOREIGN,                 /* of the vocabulary, but not spelled in texts */
    VLM_TOKEN_ADDED,                   /* has a name; shown in answers */
    VLM_TOKEN_SPECIAL                  /* has a name; skipped in answers */
} vlm_token_kind_t;

typedef struct {
    uint32_t  at;                      /* in pool */
    uint16_t  bytes;
    uint8_t   kind;                    /* vlm_token_kind_t */
} vlm_entry_t;

typedef struct {
    uint32_t  left, right;             /* ids */
    uint32_t  rank;                    /* lower merges first */
    uint32_t  id;                      /* the joined id; VLM_MAX_ID: slot is free */
} vlm_pair_t;

typedef struct {
    uint8_t      *pool;                /* [pool_bytes] of pool_room */
    uint64_t      pool_bytes, pool_room;
    vlm_entry_t  *tokens;              /* [n_ids] of ids_room */
    uint32_t      n_ids, ids_room;     /* n_ids is one past the largest */
    uint32_t      max_bytes;           /* of the longest token */
    uint32_t     *slots;               /* [slot_mask + 1] ids by the hash of their bytes */
    uint32_t      slot_mask, n_slots;
    vlm_pair_t   *pairs;               /* [pair_mask + 1] by the hash of left, right */
    uint32_t      pair_mask, n_pairs;
} vlm_vocab_t;

/* Makes tables for so many tokens and merges, at most VLM_MAX_ID each; v is zeroed by this. */
int vlm_vocab_open(vlm_vocab_t *v, uint64_t n_tokens, uint64_t n_pairs, vlm_err_t *err);
void vlm_vocab_close(vlm_vocab_t *v);  /* safe twice, and on a zeroed structure */

/*
 * Gives id its bytes.  VLM_EMODEL if the id is taken, or (for VLM_TOKEN_BYTES) the bytes are, or
 * there are more tokens than room in the tables.
 */
int vlm_vocab_add(vlm_vocab_t *v, uint32_t id, const void *bytes, size_t n, vlm_token_kind_t kind,
                  vlm_err_t *err);

/*
 * Gives an id a name and a kind, whatever it had before: added tokens may lie inside the
 * vocabulary.
 */
int vlm_vocab_name(vlm_vocab_t *v, uint32_t id, const void *name, size_t n, vlm_token_kind_t kind,
                   vlm_err_t *err);

/* The id of VLM_TOKEN_BYTES, or -1. */
int64_t vlm_vocab_find(const vlm_vocab_t *v, const void *bytes, size_t n);

/* Adds a merge of two ids; a pair that is named twice has its last rank, as in the reference. */
int vlm_vocab_join(vlm_vocab_t *v, uint32_t left, uint32_t right, uint32_t rank, uint32_t id,
                   vlm_err_t *err);

/* The join of a pair, or NULL. */
const vlm_pair_t *vlm_vocab_pair(const vlm_vocab_t *v, uint32_t left, uint32_t right);

/* The token of an id, or NULL if there is none. */
const vlm_entry_t *vlm_vocab_token(const vlm_vocab_t *v, uint32_t id);

#endif
