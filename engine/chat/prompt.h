/*
 * A prompt: the tokens of a conversation, where its pictures' features go, and the positions.
 */

#ifndef VLM_PROMPT_H
#define VLM_PROMPT_H

#include "family/family.h"
#include "image/picture.h"
#include "text/tokenizer.h"
#include "vlm.h"

#define VLM_MAX_PICTURES  256          /* of one prompt; a pair of frames is one */

struct vlm_prompt_s {
    uint32_t        n;
    uint32_t       *token;             /* [n] id; rows of a picture have that of a cell */
    uint32_t       *source;            /* [n] row of the picture's features, or VLM_NONE */
    int32_t        *pos;               /* [n][3] time, row, column */
    int32_t         next_pos;          /* of the first answer token, on all three axes */
    uint32_t        n_pictures;
    vlm_picture_t **picture;           /* [n_pictures] owned */
    uint32_t       *picture_at;        /* [n_pictures] its first row */
    uint32_t       *time;              /* [n_pictures] positions of time after its video's first */
    uint8_t         salt[32];          /* see vlm_prompt_salt() */
    struct vlm_adapter_s *adapter;     /* held (run/adapters.h), or NULL */
    void          (*leave)(struct vlm_adapter_s *a);       /* releases it */
    float           scale;             /* of the adapter */
    int             tower;             /* 1: it changes the features of pictures */
    uint8_t         adapted[32];       /* hash of the adapter and its scale; zeros: none */
};

/* The parts that a prompt is made with; all are read-only and outlive the prompt. */
typedef struct {
    const vlm_tokenizer_t  *tokenizer;
    const vlm_family_t     *family;
    const vlm_words_t      *words;
    uint32_t                begin, role_end;       /* control tokens, if there are such words */
    uint32_t                turn, end, picture, cell, picture_end;         /* control tokens */
    uint32_t                frame_cell;            /* VLM_NONE: the tokenizer has no such token */
    uint32_t                mark[VLM_MARKS];       /* the same */
    uint32_t                merge;     /* patches on a side of a merged cell */
    uint32_t                per_second;            /* positions of time in a second of video */
    uint32_t                limit;     /* most tokens */
} vlm_template_t;

/* Finds the control tokens; VLM_EMODEL if one is missing or differs from config.json. */
int vlm_template_open(vlm_template_t *t, const vlm_tokenizer_t *tokenizer, const vlm_config_t *c,
                      uint32_t limit, vlm_err_t *err);

/* A salt in the form in which salts are compared. */
void vlm_salt_hash(const void *salt, size_t bytes, uint8_t hash[32]);

/* tools: see vlm_prompt_tools(); or NULL. */
vlm_prompt_t *vlm_template_apply(const vlm_template_t *t, const vlm_message_t *messages, size_t n,
                                 const char *tools, const char *tail, vlm_err_t *err);
vlm_prompt_t *vlm_template_raw(const vlm_template_t *t, const vlm_part_t *parts, size_t n,
                               vlm_err_t *err);

#endif
