/*
 * A model: hyperparameters, weights with their shapes, and the memory that a step needs.
 *
 * Letters as in ops/ops.h.  Weights, vision weights, KV and workspace are an arena each; the
 * functions that place them run once without a base, for the plan, and once with.
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
#define VLM_VISION_ROWS  1024          /* patches that go through an MLP together */

typedef struct {                       /* a language layer or a tower block: the same five steps */
    float         *norm1, *norm2;      /* [D]; [E] */
    vlm_linear_t   qkv;                /* [(Hq + 2 Hkv) hd][D]; [3 E][E] */
    vlm_linear_t   o;                  /* [D][Hq hd]; [E][E], adds */
    vlm_linear_t   gate_up;            /* [2 F][D], rows in turn, silu_mul */
    vlm_linear_t   down;               /* [D][F], adds */
} vlm_layer_t;

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
    void        *scratch;              /* the operations' own */
} vlm_text_work_t;

typedef struct {                       /* one picture on its way through the tower */
    uint8_t     *pixels;               /* [P][channels patch^2] */
    uint32_t    *row, *column;         /* [P] */
    uint32_t    *border;               /* [P / merge^2 + 1] windows; a window has a cell at least */
    uint32_t    *whole;                /* [2] 0, P */
    float       *x;                    /* [P][E] */
    void        *q, *k, *v, *o;        /* act [P][E] */
    void        *h;                    /* act [VLM_VISION_ROWS][F] */
    void        *features;             /* act [places][cells][D], see run/features.h */
    uint32_t     cells;                /* most cells of one picture */
    uint32_t     n_patches, n_windows; /* of the picture in work */
    uint32_t     next_block;           /* depth: only the merger is left */
} vlm_vision_work_t;

typedef struct {
    vlm_config_t         config;
    const vlm_ops_t     *ops;
    vlm_device_t        *device;
    vlm_type_t           type;         /* of the linears */
    uint32_t             n_vocab;      /* ids that mean something: the tokenizer's */
    uint32_t             seen_words;   /* V / 32, up */

    vlm_linear_t         embed, head;  /* [V][D]; the same if tied */
    float               *norm;         /* [D] */
    vlm_layer_t         *layer;        /* [L] */
    float               *inv_freq;     /* [hd / 2] */
    uint8_t             *axis;         /* [hd / 2] */

    vlm_linear_t         patch;        /* [E][channels patch^2], f32 */
    vlm_layer_t         *block;        /* [depth] */
    float               *merge_norm;   /* [E] */
    vlm_linear_t         merge1;       /* [merge^2 E][merge^2 E], gelu */
    vlm_linear_t         merge2;       /* [D][merge^2 E] */
    float               *inv_freq_2d;  /* [dv / 4] */

    uint32_t             pieces;       /* of a step */
    vlm_kv_t             kv;
    vlm_text_work_t      work;
    vlm_vision_work_t    vision;
    vlm_need_t           need;
} vlm_model_t;

/* What loading tells and asks; may be NULL as a whole. */
typedef struct {
    int        (*step)(void *data, uint32_t percent);      /* not 0: stop with VLM_ECANCELLED */
    void        *data;
    uint32_t     threads;
    vlm_packed_t *packed;              /* the int8 form, to read or to make; or NULL */
} vlm_progress_t;

/* How many matrices a model has, at most. */
uint32_t vlm_model_matrices(const vlm_config_t *config);

/* Host structures; config and device are kept.  Freed with vlm_model_free(). */
int vlm_model_init(vlm_model_t *m, const vlm_config_t *config, const vlm_ops_t *ops,
                   vlm_device_t *device, vlm_type_t type, vlm_err_t *err);
void vlm_model_free(vlm_model_t *m);   /* the host's part; a zeroed structure is fine */

/*
 * Places every weight and checks that the checkpoint has it with the right shape, and nothing
 * else.  With bases in the arenas the weights are also read, quantised and packed.  If
 * progress->packed stays, its matrices are not placed: they are used where they are mapped, and
 * that must live as long as the model.
 */
int vlm_model_bind(vlm_model_t *m, vlm_checkpoint_t *c, vlm_arena_t *text, vlm_arena_t *vision,
                   const vlm_progress_t *progress, vlm_err_t *err);

/* Makes the int8 form of every matrix, into progress->packed; the device is not needed. */
int vlm_model_keep(vlm_model_t *m, vlm_checkpoint_t *c, const vlm_progress_t *progress,
                   vlm_err_t *err);

/* Places KV and everything a step needs. */
void vlm_model_place_kv(vlm_model_t *m, vlm_arena_t *a, uint32_t slots, uint32_t context);
void vlm_model_place_work(vlm_model_t *m, vlm_arena_t *text, vlm_arena_t *vision, uint32_t slots,
                          uint64_t max_pixels, uint32_t places);
/* After both, with bases: constants and the operations' scratch are set. */
void vlm_model_ready(vlm_model_t *m);

/*
 * A step of one row each, all of which want logits, and those.  With a device that keeps steps it
 * is a few launches of what vlm_text_record() has kept for as many rows, in pieces that take no
 * longer than 50 ms on a small card.  The device waits between those that take longer together,
 * and asks (ops->ask), so that somebody who leaves is heard.  The bits are the same.
 */
int vlm_text_step(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data);
/* For steps of b's rows: b is such a step, with the longest context. */
void vlm_text_record(vlm_model_t *m, const vlm_batch_t *b);
/* How many pieces, if a step reads so many bytes. */
uint32_t vlm_text_pieces(const vlm_text_config_t *c, uint64_t bytes);

/* All layers over a batch: x is ready for the head, KV rows are written.  -1: quit said so. */
int vlm_text_forward(vlm_model_t *m, const vlm_batch_t *b, vlm_quit_fn quit, void *data);
/* Logits of the batch's logit rows, into work.logits. */
void vlm_text_head(vlm_model_t *m, const vlm_batch_t *b);

/* Rows [first, end) of a slot's cache become those of another, through room on the host; or -1. */
uint64_t vlm_kv_room(const vlm_kv_t *kv);          /* bytes */
int vlm_kv_copy(vlm_model_t *m, uint32_t from, uint32_t to, uint32_t first, uint32_t end,
                void *room);

/* A picture through the tower in slices: begin, blocks until they are done, end. */
struct vlm_picture_s;
void vlm_vision_begin(vlm_model_t *m, const struct vlm_picture_s *p);
int vlm_vision_blocks(vlm_model_t *m, uint32_t n);     /* 1: all blocks are done */
/* Blocks of the picture in work that are as much arithmetic as VLM_SLICE rows of a prompt. */
uint32_t vlm_vision_slice(const vlm_model_t *m);
void vlm_vision_end(vlm_model_t *m, uint32_t place);   /* of the features: they are ready */

#endif
