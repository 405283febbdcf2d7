/*
 * A model: hyperparameters, weights with their shapes, and the memory of a step.
 *
 * Letters as in ops/ops.h.  Weights, vision weights, KV and workspace are an arena each; the
 * functions that place them run once without a base, for the plan, and once with one.
 */

#ifndef VLM_MODEL_H
#define VLM_MODEL_H

#include "base/arena.h"
#include "load/checkpoint.h"
#include "load/config.h"
#include "load/packed.h"
#include "ops/ops.h"
#include "vlm.h"

#define VLM_SLICE        256           /* rows of one prefill slice, and the most sequences */
#define VLM_KEPT_ROWS    8             /* the most of a step that is kept */
#define VLM_VISION_ROWS  1024          /* patches that go through an MLP together */

typedef struct {                       /* a block of the language model or of the vision encoder:
                                          the same five steps */
    vlm_norm_t     norm1, norm2;       /* [D]; [E] */
    vlm_norm_t     q_norm, k_norm;     /* [hd]; without a gain: none */
    vlm_linear_t   qkv;                /* [(Hq + 2 Hkv) hd][D]; [3 E][E] */
    vlm_linear_t   o;                  /* [D][Hq hd]; [E][E], adds */
    vlm_linear_t   up;                 /* [2 F][D] of gate and up, rows in turn, silu_mul; or
                                          [F][D], gelu_tanh */
    vlm_linear_t   down;               /* [D][F], adds */
} vlm_layer_t;

typedef struct {                       /* makes rows of features from the rows of a block's output:
                                          those of merge^2 patches, joined, are one row */
    vlm_norm_t     norm;               /* [E] before they are joined, or [merge^2 E] */
    vlm_linear_t   first;              /* [merge^2 E][merge^2 E], gelu */
    vlm_linear_t   second;             /* [D][merge^2 E] */
} vlm_merger_t;

typedef struct {                       /* memory of one step; T up to VLM_SLICE, R up to slots */
    float       *x;                    /* [T][D] residual stream */
    void        *q, *o;                /* act [T][Hq hd] */
    void        *h;                    /* act [T][F] */
    float       *logits;               /* [R][V] */
    uint32_t    *token;                /* [R] picked */
    float       *logprob;              /* [R] */
    uint32_t    *seen;                 /* [slots][seen_words] bit per token of the sequence */
    uint32_t    *ids;                  /* batch arrays, see run/batch.c */
    vlm_pick_t  *pick;                 /* [R] */
    float       *inv_freq;             /* [hd / 2]; these three as in vlm_model_t */
    uint8_t     *axis;                 /* [hd / 2] */
    float       *inv_freq_2d;          /* [dv / 4] */
    float       *slope;                /* [Hq] of ALiBi, or NULL */
    void        *scratch;              /* the operations' own */
} vlm_text_work_t;

typedef struct {                       /* the vision encoder's work on one picture */
    uint8_t     *pixels;               /* [P][temporal channels patch^2], or of a still picture
                                          [P][channels patch^2] */
    uint32_t    *row, *column;         /* [P] */
    uint32_t    *border;               /* [P / merge^2 + 1] segments of a cell at least */
    uint32_t    *whole;                /* [2] 0, P */
    float       *x;                    /* [P][E] */
    void        *q, *k, *v, *o;        /* act [P][E] */
    void        *h;                    /* act [VLM_VISION_ROWS][F] */
    void        *features;             /* act [1 + deep][places][cells][D], see run/features.h */
    uint32_t     places, cells;        /* most cells of one picture */
    uint32_t     place;                /* of the picture in work */
    uint32_t     rows, columns;        /* its grid, patches and segments */
    uint32_t     n_patches;
    uint32_t     n_segments, longest;
    uint32_t     next_block;           /* depth: only the merger remains */
} vlm_vision_work_t;

typedef struct {
    vlm_config_t         config;
    struct vlm_lora_s   *lora;         /* of adapters (lora.h), or NULL */
    const vlm_ops_t     *ops;
    vlm_device_t        *device;
    vlm_type_t           type;         /* of the linears */
    int                  turned;       /* 1: they and the streams are: see turn.c */
    uint32_t             n_vocab;      /* ids that mean something: the tokenizer's */
    uint32_t             seen_words;   /* V / 32, up */

    vlm_linear_t         embed, head;  /* [V][D]; the same if tied */
    vlm_norm_t           norm;         /* [D] */
    float               *last;         /* [2][D] on the host: gain and shift of norm as the file has
                                          them, which norm itself may not have */
    vlm_norm_t           embed_norm;   /* [D] of the embedding; without a gain: none */
    float               *positions;    /* [max_positions][D] of an encoder of texts, and */
    float               *kinds;        /* [kinds][D]: both are added to the embedding's rows */
    vlm_turn_t           turn;         /* of the stream, around norms that keep their gain */
    vlm_layer_t         *layer;        /* [L] */
    float               *inv_freq;     /* [hd / 2] */
    uint8_t             *axis;         /* [hd / 2] */

    vlm_linear_t         patch[2];     /* f32: of a still picture [E][channels patch^2]; of
                                          frames [E][temporal channels patch^2] */
    vlm_layer_t         *block;        /* [depth] */
    vlm_places_t         places;       /* if the encoder has them */
    vlm_merger_t         merger;       /* of the last block */
    vlm_merger_t         deep[VLM_MAX_DEEP];       /* of deep_block's */
    float               *inv_freq_2d;  /* [dv / 4] */

    vlm_kv_t             kv;
    vlm_text_work_t      work;
    vlm_vision_work_t    vision;
    vlm_need_t           need;
} vlm_model_t;

/* Progress of a load, and its question whether to go on; the pointer may be NULL. */
typedef struct {
    int        (*step)(void *data, uint32_t percent);      /* not 0: stop with VLM_ECANCELLED */
    void        *data;
    uint32_t     threads;
    vlm_packed_t *packed;              /* the quantised cache file, to read or to write; or NULL */
} vlm_progress_t;

/* How many matrices a model has, at most; and the name of the tensor of an untied head, or "". */
uint32_t vlm_model_matrices(const vlm_config_t *config);
void vlm_model_head_name(const vlm_family_t *f, char *name, size_t bytes);

/* Sets what the tensors say better than config.json: the rows of the embedding table. */
void vlm_model_settle(vlm_config_t *config, const vlm_checkpoint_t *c);

/* The rates of the pairs of a head, f32 [head_dim / 2]: angle = position * rate. */
void vlm_rope_rates(const vlm_text_config_t *t, float *rate);
/* By which scores are multiplied, since q and k are: 1 but for YaRN. */
float vlm_rope_size(const vlm_text_config_t *t);

/* The slopes of ALiBi of so many heads: f32 [heads]. */
void vlm_alibi_slopes(uint32_t heads, float *slope);

/* Host structures; config and device are kept.  Freed with vlm_model_free(). */
int vlm_model_init(vlm_model_t *m, const vlm_config_t *config, const vlm_ops_t *ops,
                   vlm_device_t *device, vlm_type_t type, vlm_err_t *err);
void vlm_model_free(vlm_model_t *m);   /* the host's part; a zeroed structure is fine */

/*
 * Places every weight and checks that the checkpoint has exactly those, with the right shapes.
 * With bases in the arenas the weights are also read, quantised and packed.  If progress->packed
 * stays open, its matrices are not placed but used where they are mapped, and it must live as long
 * as the model.
 */
int vlm_model_bind(vlm_model_t *m, vlm_checkpoint_t *c, vlm_arena_t *text, vlm_arena_t *vision,
                   const vlm_progress_t *progress, vlm_err_t *err);

/* Writes the quantised cache of every matrix into progress->packed; no device is needed. */
int vlm_model_keep(vlm_model_t *m, vlm_checkpoint_t *c, const vlm_progress_t *progress,
                   vlm_err_t *err);

/* Places KV and the memory of a step. */
void vlm_model_place_kv(vlm_model_t *m, vlm_arena_t *a, const vlm_conf_t *conf);
void vlm_model_place_work(vlm_model_t *m, vlm_arena_t *text, vlm_arena_t *vision, uint32_t slots,
                          uint64_t max_pixels, uint32_t places);
/* Sets constants and the operations' scratch, after both functions above, with bases. */
void vlm_model_ready(vlm_model_t *m);

/*
 * Runs a step of one row for each sequence, with logits for each.  A device that keeps steps runs
 * the one that vlm_text_record() has kept for as many rows.  The bits are the same either way.
 */
int vlm_text_step(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data);
/* Keeps the step of b's rows, where b is such a step with the longest context; and a second one, if
   some of the rows have adapters.  Each time its rows may have others. */
void vlm_text_record(vlm_model_t *m, const vlm_batch_t *b);

/*
 * Runs all layers over a batch: x is then ready for the head, and KV rows are written.  -1: quit
 * returned true.
 */
int vlm_text_forward(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data);
/* Computes the logits of the batch's logit rows, into work.logits. */
void vlm_text_head(vlm_model_t *m, const vlm_batch_t *b);

/* Copies rows [first, end) of one slot's cache to another slot, through room on the host; or -1. */
uint64_t vlm_kv_room(const vlm_kv_t *kv);          /* bytes */
int vlm_kv_copy(vlm_model_t *m, uint32_t from, uint32_t to, uint32_t first, uint32_t end,
                void *room);

/*
 * Runs the vision encoder over a picture in slices: begin, blocks until they are done, end.  Then a
 * place of the features has those of the picture; until then the place has undefined ones.
 */
struct vlm_picture_s;
void vlm_vision_begin(vlm_model_t *m, const struct vlm_picture_s *p, uint32_t place);
int vlm_vision_blocks(vlm_model_t *m, uint32_t n);     /* 1: all blocks are done */
/* Number of blocks that cost as much arithmetic as VLM_SLICE rows of a prompt, for this picture. */
uint32_t vlm_vision_slice(const vlm_model_t *m);
void vlm_vision_end(vlm_model_t *m);
/* Part 0 is instead of a token's row of the embedding; part 1 + i is added after layer i. */
const void *vlm_vision_part(const vlm_model_t *m, uint32_t part);

#endif
