/*
 * The tokenizer of a checkpoint: NFC, the split pattern, byte-level BPE, added tokens.
 *
 * tokenizer.json if there is one, else vocab.json + merges.txt (and tokenizer_config.json's
 * added_tokens_decoder).  Read-only after it was opened: any number of threads may use it.
 */

#ifndef VLM_TOKENIZER_H
#define VLM_TOKENIZER_H

#include "text/vocab.h"
#include "vlm.h"

typedef struct vlm_tokenizer_s  vlm_tokenizer_t;

/* pattern: by which text is split where the files have none. */
vlm_tokenizer_t *vlm_tokenizer_open(const char *dir, const char *pattern, vlm_err_t *err);

/* The parts of a tokenizer as lists, for files that have one among other things. */
typedef struct {
    const char        *name;           /* of the file, for messages */
    uint32_t           n_tokens, n_merges;
    int                nfc, whole;     /* as in read.h */
    void              *data;           /* passed to the functions */
    void             (*rewind)(void *data);        /* to the first token */
    /* The next text [n] of list 0, the tokens, or 1, the merges ("left right"). */
    const char      *(*next)(void *data, int list, size_t *n);
    vlm_token_kind_t (*kind)(void *data, uint32_t id);         /* BYTES, ADDED, SPECIAL or NONE */
} vlm_token_list_t;

vlm_tokenizer_t *vlm_tokenizer_list(const vlm_token_list_t *l, const char *pattern,
                                    vlm_err_t *err);
void vlm_tokenizer_close(vlm_tokenizer_t *t);      /* takes NULL */

/* A growing list of ids; zeroed by the caller, ids freed with free(). */
typedef struct {
    uint32_t  *ids;                    /* [n] */
    size_t     n, room;
} vlm_ids_t;

int vlm_ids_add(vlm_ids_t *ids, uint32_t id, vlm_err_t *err);      /* VLM_EMEMORY */

/*
 * Appends the ids of a text.  No text becomes a control token, whatever it spells; NUL is a
 * character.  VLM_EINPUT if it is not UTF-8, with the byte offset; VLM_ELIMIT past 4 MiB; on
 * failure the list is unchanged.  The time is at worst n log n of the text's length.
 */
int vlm_encode(const vlm_tokenizer_t *t, const char *text, size_t bytes, vlm_ids_t *ids,
               vlm_err_t *err);

/*
 * Memory of one thread that tokenises short texts again and again: opened for texts of at most so
 * many bytes, after which no call allocates.  NULL: VLM_EMEMORY.
 */
typedef struct vlm_encoder_s  vlm_encoder_t;

vlm_encoder_t *vlm_encoder_open(const vlm_tokenizer_t *t, size_t bytes, vlm_err_t *err);
void vlm_encoder_close(vlm_encoder_t *e);          /* takes NULL */

/* The ids of a text, [*n] until the next call, as vlm_encode() has them.  NULL: the text is longer,
   is not UTF-8, or may have to be normalised. */
const uint32_t *vlm_encoder_ids(vlm_encoder_t *e, const char *text, size_t bytes, size_t *n);
/* The start of the piece that byte `at` of a text is in: no token goes over it, whatever follows.
   -1: as NULL above, but for what is not normal. */
int vlm_encoder_piece(vlm_encoder_t *e, const char *text, size_t bytes, size_t at, size_t *start);

/* The id of an added token ("<|endoftext|>"); -1 if there is none of that name. */
int64_t vlm_special(const vlm_tokenizer_t *t, const char *name);

/* One past the largest id that means something. */
uint32_t vlm_vocab_size(const vlm_tokenizer_t *t);

/* The bytes of an id, or NULL; an added token gives its name. */
const char *vlm_token_bytes(const vlm_tokenizer_t *t, uint32_t id, size_t *bytes);
int vlm_token_is_special(const vlm_tokenizer_t *t, uint32_t id);   /* skipped in answers */
int vlm_token_is_text(const vlm_tokenizer_t *t, uint32_t id);      /* spelled in texts */
size_t vlm_token_max_bytes(const vlm_tokenizer_t *t);  /* of the longest one */

/*
 * Ids to text, never half a character.  Zeroed by the caller.  Bytes that can no longer become a
 * character are written as U+FFFD, as the reference's decoder does.
 */
typedef struct {
    uint8_t   held[4];
    uint32_t  n_held;
} vlm_detok_t;

/*
 * Writes the whole characters that this id completes to out and returns the number of bytes: at
 * most VLM_DETOK_ROOM + 3 * the token's bytes.  Special tokens give nothing.
 */
#define VLM_DETOK_ROOM  16
size_t vlm_detok_next(vlm_detok_t *d, const vlm_tokenizer_t *t, uint32_t id, char *out);

/* Ends a text: bytes still held back become U+FFFD.  At most VLM_DETOK_ROOM bytes. */
size_t vlm_detok_end(vlm_detok_t *d, char *out);

#endif
