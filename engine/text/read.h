/*
 * The parts of a tokenizer, and the readers of the two forms in which checkpoints bring one:
 * tokenizer.json, or vocab.json with merges.txt.  Only tokenizer.c and tests include this; other
 * code uses tokenizer.h.
 */

#ifndef VLM_READ_H
#define VLM_READ_H

#include "text/split.h"
#include "text/tokenizer.h"
#include "text/vocab.h"

struct vlm_tokenizer_s {
    vlm_vocab_t   vocab;
    vlm_split_t  *split;
    int           nfc;                 /* 1: texts are composed (NFC) first */
    int           whole;               /* 1: a piece that is a token is that id, without merges */
    uint32_t      byte_id[256];        /* the token that each single byte begins as; VLM_MAX_ID: the
                                          byte is left out of texts */
    uint32_t     *added;               /* [n_added] ids of tokens that have a name */
    uint32_t      n_added, added_room;
};

/* A file in memory. */
typedef struct {
    const char  *name;                 /* for messages */
    const void  *data;                 /* [bytes] */
    size_t       bytes;
} vlm_source_t;

/*
 * Reads tokenizer.json.  VLM_EMODEL names the file, the member and the fault; kinds of tokenizers
 * that are not byte-level BPE are refused by name.  pattern is as for vlm_tokenizer_open().
 */
vlm_tokenizer_t *vlm_read_json(const vlm_source_t *json, const char *pattern, vlm_err_t *err);

/* Reads vocab.json, merges.txt and, if there is one (else NULL), tokenizer_config.json. */
vlm_tokenizer_t *vlm_read_plain(const vlm_source_t *vocab, const vlm_source_t *merges,
                                const vlm_source_t *config, const char *pattern, vlm_err_t *err);

#endif
