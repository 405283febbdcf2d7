/*
 * The interface between a model and a device: two tables of functions, which the device fills in.
 * vlm_ops_t has the arithmetic; vlm_basic_t has memory, copies, waiting and the layout of weights.
 *
 * Model code knows these tables alone.  Each operation has a plain-C twin under ops/plain that is
 * its definition; a device's version computes the same within rounding.
 *
 * Letters: T rows of all sequences in this call, S sequences, R rows that want logits, D hidden, Hq
 * and Hkv heads of hd, F mlp, V vocabulary, L layers, C context; P patches, E hidden of the vision
 * encoder, Hv heads of dv.  The residual stream x is f32 everywhere.  "act" is the device's type
 * between operations: f32 on CPUs.  Counts are host values, arrays lie in device memory.
 *
 * int8 is the same everywhere: a weight row has one f32 scale, max|w| / 127; an activation row has
 * one f32 scale for each piece of VLM_PIECE values, s = max|x| / 127; q = round half to even; y =
 * scale * (sum over pieces, in order, of s * integer dot by fused multiply-adds) + bias.  Below
 * 2^-120 max|x| counts as 0 and q is 0.  If an x is not finite, s is not a number, so that the
 * fault is visible in the result.  The weights are turned (format/turn.h, model/turn.c), and so is
 * the residual stream; before some matrices an operation turns the blocks of x.
 *
 * int4 is an int8 row, with its scale, whose values are few: a group of VLM_BLOCK along K has a
 * step and a base, and each value is base + step times 0 .. 15 (format/int4.h).  A product is that
 * of the int8 row, to the bit.
 *
 * Attention in int16, which the CPU has when linears are int8 or int4, among patches (q, k and v of
 * qkv_2d are then int16) and to the cache, which is int16 then: a head of a query, a key or a value
 * has one f32 scale, max|x| / 4095 (of a query max|x| / 1023 if a head has more than 128 values).
 * A score is the integer dot times both scales.
 * Keys go in blocks of 64; with m the largest score so far, a block's keys have the weights
 * 2^(score - m), and what was summed before the block is multiplied by 2^(the m before - m).
 * Weights times their values' scales are rounded to integers under one scale for the block, their
 * maximum / 8191; an output adds, for each block, that scale times the integer sum over its keys.
 *
 * A key is rounded after its rotation, and ALiBi, in powers of two, is added to a score.  The cache
 * can be int8, beside all weights: the scale of a row and head is max|x| / 127 then, as activations
 * have it, and attention the same.
 *
 * A row's result never depends on the other rows of the call, so that a sequence's answer does not
 * depend on the sequences that share its steps.  Operations return nothing; shapes are checked at
 * load.
 */

#ifndef VLM_OPS_H
#define VLM_OPS_H

#include <math.h>

#include "vlm.h"

#define VLM_BLOCK  64                  /* values that are turned together; rows have whole ones */
#define VLM_PIECE  256                 /* activation values under one scale: some blocks */
#define VLM_KEPT   16                  /* number of steps that a device can keep; see below */
#define VLM_PATCH_TYPE  VLM_F32        /* of patch_embed's weights, whatever the others' */
#define VLM_LOW_PARTS  3               /* matrices that are one here */
#define VLM_MAX_RANK   256             /* of an adapter */
#define VLM_NONE   UINT32_MAX          /* in source[]: this row is a token; elsewhere, none */

typedef struct vlm_device_s  vlm_device_t;         /* each device has its own */
typedef struct vlm_ops_s     vlm_ops_t;
typedef struct vlm_basic_s   vlm_basic_t;

typedef int (*vlm_quit_fn)(void *data);            /* called to ask whether to go on; not 0: stop */

typedef enum {
    VLM_STORE,                         /* y [T][N] = W x + b */
    VLM_ADD,                           /* y f32 [T][N] += W x + b */
    VLM_SILU_MUL,                      /* rows are gate 0, up 0, gate 1, ...: y act [T][N/2] */
    VLM_GELU,                          /* y act [T][N] = gelu(W x + b), exact erf */
    VLM_GELU_TANH                      /* the same by the approximation with tanh */
} vlm_epilogue_t;

/* The turn of a stream of n values: see format/turn.h. */
typedef struct {
    uint32_t         n, two, odd;      /* n = two odd, and two is a power of two */
    float           *sign;             /* [n] + or - 1 / root of two */
    float           *small;            /* [odd][odd] */
    float           *mirror;           /* [n], or NULL */
} vlm_turn_t;

/*
 * Adapters add low-rank products to a matrix.  With x as f32, normed and turned as the matrix
 * reads it but not rounded, row n of part p gets
 *
 *   sum over i, in order, of b[i][n] z[p][i], by fused multiply-adds,
 *   z[p][i] = s (a[p][i] x + c[p][i])
 *
 * where s is the part's scale times the row's, and a x is summed as plain/low.c does.  The sum is
 * added between the matrix's scale and its bias.  A table's rows are picked: a[token][i] is then
 * instead of a[p][i] x.
 */
typedef struct {                       /* one adapter's part of it */
    uint32_t  r;                       /* 0: the adapter leaves the matrix as it is */
    void     *a;                       /* [parts][r][K] of vlm_lows_t's type; of a table [N][r] */
    void     *b;                       /* [r][N], of a table [r][K]; with a shift, one row more */
    float    *c;                       /* [parts][r] */
    int       shift;                   /* 1: the last row of b, times s, is added, too */
    float     scale[VLM_LOW_PARTS];    /* [parts] alpha / r */
} vlm_low_t;

typedef struct {                       /* the rows of a call, and their adapters: host values */
    int              any;              /* 0: no row has one */
    const uint32_t  *place;            /* [T] of each row, or VLM_NONE; NULL: all rows have `all` */
    const float     *scale;            /* [T] with place */
    uint32_t         all;
    float            all_scale;
    const uint32_t  *place_there;      /* [T] place and scale once more, in the device's memory */
    const float     *scale_there;
} vlm_low_rows_t;

typedef struct {                       /* of all adapters, for one matrix */
    vlm_type_t             type;       /* VLM_F32 or VLM_BF16 */
    uint32_t               parts, places;
    uint32_t               end[VLM_LOW_PARTS];     /* [parts] row after each part's last; */
    int                    in_turn;    /* 1: row n is of part n % parts instead */
    int                    packed;     /* 1: a and b are in the order of format/low.h */
    const vlm_low_t       *place;      /* [places] */
    const void            *there;      /* place 0 once more, in the device's memory; */
    uint64_t               stride;     /* and bytes from a place to the next */
    const vlm_low_rows_t  *rows;
} vlm_lows_t;

/* A weight matrix [N][K] in a device's own order. */
typedef struct {
    vlm_type_t       type;             /* VLM_F32, VLM_BF16, VLM_INT8, VLM_INT4 */
    vlm_epilogue_t   epilogue;
    uint32_t         N, K;
    void            *w;                /* packed_bytes(type, N, K) */
    float           *scale;            /* [N] of quantised rows, else NULL */
    float           *bias;             /* [N] or NULL */
    int              blocks;           /* 1: its input's blocks are turned first */
    vlm_turn_t      *turn;             /* of head(): see there; or NULL */
    const vlm_lows_t *low;             /* of adapters, or NULL */
} vlm_linear_t;

typedef enum {
    VLM_NORM_RMS,                      /* x / rms(x) * gain */
    VLM_NORM_LAYER                     /* (x - mean) / deviation(x) * gain + shift */
} vlm_norm_kind_t;

typedef struct {
    vlm_norm_kind_t  kind;
    float           *gain;             /* [n] */
    float            eps;
    float           *shift;            /* [n] of VLM_NORM_LAYER, else NULL */
} vlm_norm_t;

/* How one sequence picks its next token. */
typedef struct {
    float     temperature;             /* 0: greedy */
    float     top_p, repetition_penalty;           /* 1: off */
    uint32_t  top_k;                   /* 0: off */
    uint64_t  seed;
    uint32_t  step;                    /* tokens picked before: the random number's counter */
    uint32_t  seen;                    /* row of vlm_batch_t.seen: the slot */
} vlm_pick_t;

/* Rows of several sequences, one after the other; prefill and decode are the same form. */
typedef struct {
    uint32_t           T, S, R;
    uint32_t           max_rows, max_ctx;          /* of one sequence: rows here; and cached then */
    const uint32_t    *token;          /* [T] id */
    const uint32_t    *source;         /* [T] row of features, or VLM_NONE */
    const int32_t     *pos;            /* [3][T] time, row, column */
    const uint32_t    *seq;            /* [T] which sequence */
    const uint32_t    *start;          /* [S + 1] its first row */
    const uint32_t    *slot, *n_ctx;   /* [S] KV slot, rows cached before this call */
    const uint32_t    *logit_row;      /* [R] row of x */
    const vlm_pick_t  *pick;           /* [R] */
    uint32_t           pictures;       /* rows of features: not VLM_NONE in source */
} vlm_batch_t;

/* Keys and values of all slots. */
typedef struct {
    vlm_type_t  type;                  /* VLM_F32, VLM_BF16, VLM_INT16 or VLM_INT8 */
    uint32_t    layers, slots, heads, context, head_dim;
    void       *k, *v;                 /* [L][slots][Hkv][C][hd] */
    float      *k_scale, *v_scale;     /* [L][slots][Hkv][C] of the last two, else NULL */
} vlm_kv_t;

/* How the heads of queries and keys turn with a row's place. */
typedef struct {
    const float    *inv_freq;          /* [hd / 2]; of patches [dv / 4], for rows and columns */
    const uint8_t  *axis;              /* [hd / 2] 0 time, 1 row, 2 column; of patches NULL */
} vlm_rope_t;

/* From the residual stream to queries, keys and values: norm, product, rotation. */
typedef struct {
    const vlm_linear_t  *w;            /* [(Hq + 2 Hkv) hd][D]; [3 E][E] */
    const vlm_norm_t    *norm;         /* of x */
    const vlm_rope_t    *rope;
    uint32_t             heads;        /* of queries */
    const vlm_norm_t    *q_norm, *k_norm;          /* of each head before it turns, RMS; or NULL */
} vlm_qkv_t;

typedef struct {
    uint32_t      heads, head_dim;     /* of queries */
    float         scale;               /* of scores */
    const float  *slope;               /* [heads], if each has keys of its own: ALiBi adds slope
                                          (j - i) to the score of row i and key j; or NULL */
} vlm_attend_t;

/* The usual one, of heads of so many values. */
static inline float
vlm_head_scale(uint32_t head_dim)
{
    return 1 / sqrtf((float) head_dim);
}

/* The patches of a picture: places for the rotation, and the segments within which they attend. */
typedef struct {
    uint32_t         P;
    const uint32_t  *row, *column;     /* [P] */
    uint32_t         rows, columns;    /* of the picture's grid */
} vlm_patches_t;

/* Learned positions of patches: a square grid, over which a picture of any grid is stretched. */
typedef struct {
    float    *at;                      /* [side side][E] */
    uint32_t  side;                    /* 0: none */
} vlm_places_t;

typedef struct {
    const uint32_t  *border;           /* [n + 1] border[i] .. border[i + 1]; the last is P */
    uint32_t         n, P;
    uint32_t         longest;          /* no segment has more patches */
} vlm_segments_t;

/* The largest of each kind that a model asks for, which size an operation's own memory. */
typedef struct {
    vlm_type_t  type;                  /* of the finest linears: VLM_INT8 has attention in int16 */
    uint32_t  K;                       /* inputs of a linear */
    uint32_t  qkv;                     /* outputs of qkv and qkv_2d */
    uint32_t  heads, head_dim;         /* of attend */
    uint32_t  keys;                    /* rows that one attends to: context, patches */
    uint32_t  vocab;
    uint32_t  rows;                    /* that want logits */
    uint32_t  rank;                    /* of adapters; 0: there are none */
} vlm_need_t;

struct vlm_basic_s {
    /* A description for logs and health: "avx512, 2 threads". */
    void      (*describe)(const vlm_device_t *d, char *text, size_t bytes);
    void      (*close)(vlm_device_t *d);

    /* -- memory, copies, waiting: with pack(), the only ones that can fail -- */

    /* One block for a lifetime, zeroed; NULL and VLM_EMEMORY. */
    void     *(*reserve)(vlm_device_t *d, uint64_t bytes, vlm_err_t *err);
    /* Commits a range of it now, which would else be committed by its first use; any thread, in the
       background.  -1: the system has too little.  NULL: all of it is committed. */
    int       (*touch)(vlm_device_t *d, void *at, uint64_t bytes);
    void      (*put)(vlm_device_t *d, void *to, const void *from, uint64_t bytes);
    void      (*get)(vlm_device_t *d, void *to, const void *from, uint64_t bytes);
    /* Waits for all calls before it.  -1 and VLM_EDEVICE: the device is lost.  -1 and VLM_EMEMORY:
       the calls since the last sync were not done, and no call is done until a sync with an err has
       reported it; then the device goes on. */
    int       (*sync)(vlm_device_t *d, vlm_err_t *err);
    /* Lets the device ask within long operations, until NULL is passed.  Once the answer is not 0
       the device may leave them undone, and their results are undefined. */
    void      (*ask)(vlm_device_t *d, vlm_quit_fn quit, void *data);
    /* Bytes of its memory that the device has taken for itself besides the reserved ones; 0: not
       known.  NULL: it takes none. */
    uint64_t  (*taken)(vlm_device_t *d);
    uint64_t  (*act_bytes)(uint64_t n);
    /* Rows that a pass of these weights reads in about the time of one; NULL: one. */
    uint32_t  (*together)(const vlm_device_t *d, vlm_type_t type);
    /* Sizes of the operations' own memory, before anything was reserved; and its place */
    uint64_t  (*scratch_bytes)(vlm_device_t *d, const vlm_need_t *need);
    void      (*set_scratch)(vlm_device_t *d, const vlm_need_t *need, void *scratch);

    /* -- steps that are repeated; NULL: this device keeps none -- */

    /* 1: operations from here to keep() are not done but kept under a number, with their counts and
       addresses; the arrays at these are read when replay() runs them. */
    int       (*record)(vlm_device_t *d);
    void      (*keep)(vlm_device_t *d, uint32_t number);
    /* 0: no step is kept under that number, and nothing was launched. */
    int       (*replay)(vlm_device_t *d, uint32_t number);

    /* -- weights -- */

    /* The flip (format/panel.h) of the int8 panels that the device can use anywhere in the host's
       memory, read-only.  VLM_NONE, or NULL: it packs matrices into its own memory. */
    uint32_t  (*order)(const vlm_device_t *d);
    uint64_t  (*packed_bytes)(vlm_device_t *d, vlm_type_t type, uint32_t N, uint32_t K);
    /* 1: keys and values are in int16 beside int8 and int4. */
    int       kv_int16;
    /* 1: adapters are put in the order of format/low.h (vlm_lows_t). */
    int       low_packed;
    /* Packs rows [row, row + n) of w, from f32 [n][K] or quantised rows; row is a multiple of 64,
       any thread, different rows at once.  The caller puts scale and bias. */
    void      (*pack)(vlm_device_t *d, vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);
};

struct vlm_ops_s {
    const vlm_basic_t  *basic;         /* of the same device */

    /* -- text -- */

    /* x f32 [T][D] = features[source] or table[token] */
    void      (*embed)(vlm_device_t *d, const vlm_linear_t *table, const void *features,
                       const vlm_batch_t *b, float *x);
    /* y act [T][n] = norm of x */
    void      (*norm)(vlm_device_t *d, const vlm_norm_t *norm, const float *x, uint32_t T,
                      uint32_t n, void *y);
    /* x f32 [T][n] = norm of x, in place.  With a turn that is not NULL, what has been normed is
       turned back, gets gain and shift, and is turned again. */
    void      (*norm_stream)(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn,
                             float *x, uint32_t T, uint32_t n);
    /* x: f32 [T][K] with a norm, which comes first; or act [T][K] and norm NULL.  y: see above */
    void      (*linear)(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm,
                        const void *x, uint32_t T, void *y);
    /* q act [T][Hq hd]; k, v appended to the cache of a layer */
    void      (*qkv)(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_batch_t *b,
                     const vlm_kv_t *kv, uint32_t layer, void *q);
    /* o act [T][Hq hd]: causal in its sequence, all cached rows before it */
    void      (*attend)(vlm_device_t *d, const vlm_attend_t *a, const void *q,
                        const vlm_batch_t *b, const vlm_kv_t *kv, uint32_t layer, void *o);
    /* x f32 [T][D] += features[source], where there is a source */
    void      (*add_features)(vlm_device_t *d, const void *features, const vlm_batch_t *b,
                              uint32_t D, float *x);
    /* logits f32 [R][V] of the rows asked for; w->turn is norm_stream's */
    void      (*head)(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm,
                      const float *x, const vlm_batch_t *b, float *logits);
    /* token [R] and its log-probability [R] (not a number: the logits were not); marks seen
       [slots][seen_words].  Ids from n_vocab on are never picked.  logits are used up. */
    void      (*sample)(vlm_device_t *d, float *logits, uint32_t V, uint32_t n_vocab,
                        const vlm_batch_t *b, uint32_t *seen, uint32_t seen_words, uint32_t *token,
                        float *logprob);

    /* -- vision -- */

    /* x f32 [P][E] = W pixels + b; normalisation and both time slices are folded into W and b */
    void      (*patch_embed)(vlm_device_t *d, const vlm_linear_t *w, const uint8_t *pixels,
                             uint32_t P, float *x);
    /* x f32 [P][E] += the place of each patch, between four places of the square grid, whose
       corners are the picture's */
    void      (*add_places)(vlm_device_t *d, const vlm_places_t *places, const vlm_patches_t *p,
                            uint32_t E, float *x);
    /* q, k, v act [P][E] */
    void      (*qkv_2d)(vlm_device_t *d, const vlm_qkv_t *a, const float *x, const vlm_patches_t *p,
                        void *q, void *k, void *v);
    /* o act [P][E]: within each segment, all with all */
    void      (*attend_segments)(vlm_device_t *d, const vlm_attend_t *a, const void *q,
                                 const void *k, const void *v, const vlm_segments_t *s, void *o);
};

/*
 * Opens the CPU device: ops is "plain", "avx2", "avxvnni", "avx512", "amx" or NULL for the best
 * that this processor runs.  VLM_EINPUT if the processor does not run it.  Threads start with the
 * first reserve(), so that a plan starts none.
 */
vlm_device_t *vlm_cpu_open(const char *ops, uint32_t threads, const vlm_ops_t **table,
                           vlm_err_t *err);

#endif
