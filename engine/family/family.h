/*
 * A family of models: all that the engine knows of it by name.  Other code reads this structure and
 * does not tell one family from another; a further family is a folder beside the first, and a line
 * in family.c.
 *
 * The layers of a model are data: lists of weights, each with the tensors that it is made of, their
 * shapes, and its place in the model's structures.  model/bind.c walks the lists, and the forward
 * passes go by what it has put there: the kind of a norm, the end of a matrix.
 */

#ifndef VLM_FAMILY_H
#define VLM_FAMILY_H

#include "load/config.h"
#include "load/item.h"
#include "ops/ops.h"
#include "vlm.h"

struct vlm_prompt_s;

#define VLM_PARTS  3                   /* tensors of one matrix, at most */

/* ---- weights ------------------------------------------------------------- */

typedef enum {                         /* a size, by the letters of ops/ops.h */
    VLM_DIM_NONE,
    VLM_DIM_D, VLM_DIM_V, VLM_DIM_F,   /* of the language model: hidden, vocabulary, mlp */
    VLM_DIM_Q, VLM_DIM_KV, VLM_DIM_HEAD,           /* Hq hd, Hkv hd, hd */
    VLM_DIM_QKV,                       /* (Hq + 2 Hkv) hd */
    VLM_DIM_POSITIONS, VLM_DIM_KINDS,  /* of an encoder of texts: rows of its two small tables */
    VLM_DIM_E, VLM_DIM_3E,             /* of the encoder: hidden, and three times that */
    VLM_DIM_ENCODER_F,                 /* its mlp */
    VLM_DIM_CELL,                      /* merge^2 E */
    VLM_DIM_PLACES,                    /* learned positions */
    VLM_DIMS
} vlm_dim_t;

typedef enum {
    VLM_STACKED,                       /* one part behind the other */
    VLM_IN_TURN,                       /* row 0 of each, row 1 of each, ... */
    VLM_BY_HEAD                        /* one part, which has rows of q, k and v of a head, then of
                                          the next: q of all heads is put before k and v */
} vlm_order_t;

typedef enum {
    VLM_WEIGHT_END,                    /* of a list */
    VLM_WEIGHT_RMS,                    /* a vlm_norm_t: NAME.weight [columns] */
    VLM_WEIGHT_LAYER,                  /* such a norm of the other kind: NAME.bias [columns], too */
    VLM_WEIGHT_PLACES,                 /* a vlm_places_t of f32: NAME.weight [rows][columns] */
    VLM_WEIGHT_TABLE,                  /* a float *: such rows, of f32 */
    VLM_WEIGHT_MATRIX,                 /* a vlm_linear_t: NAME.weight [rows][columns] of each part;
                                          with a bias, NAME.bias [rows], too */
    VLM_WEIGHT_HEAD,                   /* such a matrix, or the table again if the head is tied:
                                          the second name is the table's */
    VLM_WEIGHT_PATCH                   /* of f32 with a bias, in which normalisation and time slices
                                          are folded: NAME.weight [E][channels][time][y][x]; with a
                                          bias, NAME.bias [E], too */
} vlm_weight_kind_t;

typedef struct {
    vlm_weight_kind_t  kind;
    size_t             at;             /* offset in a vlm_layer_t (a vlm_merger_t); outside of
                                          layers, in the vlm_model_t */
    const char        *name[VLM_PARTS];            /* within a layer, behind the layer's own */
    vlm_dim_t          columns, rows[VLM_PARTS];
    vlm_order_t        order;
    vlm_epilogue_t     epilogue;
    int                bias;
} vlm_weight_t;

/*
 * The language model, the vision encoder, or the mergers of the encoder's other blocks, in the
 * order in which the weights are placed.
 */
typedef struct {
    const vlm_weight_t  *before, *layer, *after;   /* lists, or NULL; layer is of each layer */
    const char          *layers;       /* "model.layers.": the number and "." follow */
} vlm_stack_t;

/* Tensors that begin with `from` are known by names that begin with `to`. */
typedef struct {
    const char  *from, *to;            /* NULL: the end of a list */
} vlm_alias_t;


/* ---- GGUF ---------------------------------------------------------------- */

#define VLM_GGUF_CLIP    "clip."       /* begins the keys of the vision encoder's file */
#define VLM_GGUF_VISION  VLM_GGUF_CLIP "vision."   /* and those of the encoder itself */

typedef struct {                       /* a setting of config.json, from a key of the files */
    const char  *from, *to;            /* NULL: the end of a list; from lacks the key's beginning */
    uint32_t     list;                 /* a list of at most so many numbers */
    const char  *every;                /* layers: each from-th of as many as this key says */
    int          flags;                /* a list of flags: the numbers of those that are set */
} vlm_gguf_key_t;

/* A key that a file may have with one value alone, since another needs other arithmetic. */
typedef struct {
    const char  *key;                  /* NULL: the end of a list; its beginning is left out */
    const char  *text;                 /* the value, if it is a text; else a number: */
    double       number;
    size_t       field;                /* if not 0: that of a uint32_t here in a vlm_config_t */
} vlm_gguf_must_t;

typedef enum {
    VLM_GGUF_WHOLE,
    VLM_GGUF_ROWS,                     /* one of several with rows of a tensor */
    VLM_GGUF_SLICE,                    /* one of several time slices of the patch embedding */
    VLM_GGUF_PAIRS,                    /* rows of q or k: those that are rotated together lie side
                                          by side in the file */
    VLM_GGUF_DEEP                      /* * is a block, and in the name its place in the list of
                                          those whose features the language model adds */
} vlm_gguf_how_t;

typedef struct {                       /* names; * is a layer's number, and what follows stays */
    const char     *from, *to;
    vlm_gguf_how_t  how;
    uint32_t        part;
} vlm_gguf_name_t;

typedef struct {                       /* how text is cut before tokens are merged */
    const char  *name, *pattern;
    int          nfc;                  /* 1: composed (NFC) first */
    int          whole;                /* 1: a piece that is a token is not merged */
} vlm_gguf_splitter_t;

typedef struct {
    const char             *architecture, *projector;  /* of the two files; the keys of the text
                                                          file begin with the first and ".".  NULL:
                                                          there is no second file */
    const vlm_gguf_splitter_t  *splitter;          /* a name of NULL ends them */
    const char             *table, *head;          /* tensors: the embedding; one if not tied */
    uint32_t                merge;
    const vlm_gguf_key_t   *text, *vision[2], *pixels;
    const vlm_gguf_key_t   *tokens;    /* by their texts */
    const vlm_gguf_key_t   *rows;      /* settings that are a tensor's rows; or NULL */
    const char             *constant;  /* settings of vision that no key has, as JSON; or NULL */
    const vlm_gguf_must_t  *must, *must_vision[2]; /* behind VLM_GGUF_CLIP */
    const vlm_gguf_name_t  *names[4];          /* NULL ends them */
} vlm_gguf_map_t;


/* ---- the template of a conversation -------------------------------------- */

enum { VLM_MARK_CALL, VLM_MARK_CALL_END, VLM_MARK_RESULT, VLM_MARK_RESULT_END,
       VLM_MARK_THOUGHT, VLM_MARK_THOUGHT_END, VLM_MARKS };

typedef struct vlm_words_s {
    const char  *name;                 /* of the template, for the configuration */
    const char  *begin;                /* control token before all prompts, raw ones too, or NULL */
    const char  *turn, *end;           /* control tokens around a turn; NULL: the family has no
                                          template, and takes raw prompts alone */
    const char  *role_end;             /* control token behind the role, and */
    const char  *role_after;           /* text behind that; NULL: there is none */
    const char  *picture, *cell, *picture_end;     /* around a picture, and for each of its cells */
    const char  *frame_cell;           /* the same of a video's frames */
    const char  *seconds[2];           /* text around the time of frames, which stands before them;
                                          each time's frames are then between tokens of their own.
                                          NULL: one pair of tokens around all */
    const char  *role[4];              /* text after the turn's token, by vlm_role_t: results of
                                          tools that follow each other are one turn */
    const char  *after;                /* text after the end's token */
    const char  *quiet;                /* text that an answer without thoughts begins with, of a
                                          model that thinks or does not; or NULL */
    const char  *system;               /* the system message of a conversation without one, or
                                          NULL */
    const char  *tools[2];             /* text around the tools in the system message; NULL: the
                                          template has none */
    const char  *mark[VLM_MARKS];      /* around a call, a result and thoughts: control tokens of
                                          some tokenizers */
} vlm_words_t;


/* ---- the tokenizer of an encoder of texts -------------------------------- */

typedef struct {
    const char  *model, *normalizer, *splitter;    /* types that tokenizer.json must say */
    const char  *begin, *end;          /* control tokens around a text */
} vlm_subwords_t;


/* ---- a family ------------------------------------------------------------ */

struct vlm_family_s {
    const char          *model_type;   /* in config.json */
    const char          *title;        /* for people */

    /* config.json: text, vision, and the control tokens of generation. */
    int                (*read)(const vlm_reader_t *r, vlm_config_t *c);
    int                  vocab_of_table;           /* 1: config.json may say a vocab_size that is
                                                      not the embedding's */
    vlm_pixel_config_t   pixel, video; /* where no file says how pictures and frames are resized */
    uint32_t             eos[2], n_eos;            /* where no file says what ends an answer */
    const char          *split;        /* of text, where the tokenizer's files have no pattern */

    const vlm_alias_t   *aliases;      /* spellings of tensors' names other than those below */
    vlm_stack_t          text, encoder, deep;      /* lists of an encoder that the family lacks are
                                                      NULL */
    const vlm_gguf_map_t  *gguf;       /* or NULL: such files of the family are not read */

    vlm_order_fn         order;        /* of patches, and the segments in which they attend */
    void               (*positions)(struct vlm_prompt_s *p, uint32_t merge);
    vlm_words_t          words;

    /*
     * Of an encoder of texts (embedder.h), which answers nothing: it has no head, no cache and no
     * template, and a block's norms come after its sums.
     */
    const vlm_subwords_t  *pieces;       /* NULL: a language model */
    const char *const   *spare;        /* [.. NULL] tensors that its files may have and nothing
                                          reads; or NULL */

    /* Coordinates in answers: 0, of the picture as resized; N, shares of its sides, 0 to N. */
    uint32_t             coordinates;
    /* Release of the words that ask for visual tasks, as in vlm_facts_t. */
    uint32_t             tasks;
    /* Whether a model of this name, which has no path, thinks before it answers, unless configured
       otherwise. */
    int                (*thinks)(const char *name);
};

/* ---- templates by name: words.c ------------------------------------------- */

/* The words of a template of this name; NULL: there is none. */
const vlm_words_t *vlm_words_find(const char *name);
/* The same for the text of a checkpoint's Jinja template, if it is one of those that were compared
   (t/fixtures/text/templates.py); NULL: it is not. */
const vlm_words_t *vlm_words_of(const char *jinja, size_t bytes);
/* The names, for messages. */
void vlm_words_list(char *text, size_t bytes);

/* The family of a model_type; NULL: none.  Language models, and encoders of texts. */
const vlm_family_t *vlm_family_find(const char *model_type);
const vlm_family_t *vlm_family_encoder(const char *model_type);
/* The family of two GGUF files, by texts without a zero; NULL: none, and known has all. */
const vlm_family_t *vlm_family_gguf(const char *architecture, size_t n_architecture,
                                    const char *projector, size_t n_projector, char *known,
                                    size_t bytes);
/* 1: a family has files of this architecture, with the vision encoder in a second one. */
int vlm_family_has_projector(const char *architecture, size_t n);
/* Whether a model of this family in this place thinks: its name is the last part of the path, or
   NAME of models--ORG--NAME/snapshots/HASH in a cache of the hub. */
int vlm_family_thinks(const vlm_family_t *f, const char *path);
/* The model_types that there are, for messages. */
void vlm_family_list(char *text, size_t bytes);
void vlm_family_encoders(char *text, size_t bytes);

#endif
