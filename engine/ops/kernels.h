/*
 * The kernels of one thread of the CPU device, over a range of items.
 *
 * The plain versions are the definitions; an instruction set replaces the entries for which it has
 * a faster one.  A weight matrix is packed by the same set that multiplies with it.
 */

#ifndef VLM_KERNELS_H
#define VLM_KERNELS_H

#include "format/bf16.h"
#include "format/low.h"
#include "format/panel.h"
#include "vlm.h"

#define VLM_ATTEND_ROWS  64            /* queries that go over the same keys together */
#define VLM_ATTEND_KEYS  64            /* keys of a block */
#define VLM_INT16_ROWS   64            /* the same of attention in int16 */
#define VLM_INT16_WIDE   32            /* its rows are a multiple of this */

/* Bytes of an element; int4 has more than its own. */
static inline uint32_t
vlm_type_bytes(vlm_type_t type)
{
    return type == VLM_F32 ? 4 : type == VLM_INT8 ? 1 : 2;
}

/* 1: products with such weights take their rows in int8. */
static inline int
vlm_takes_int8(vlm_type_t type)
{
    return type == VLM_INT8 || type == VLM_INT4;
}

static inline uint32_t
vlm_blocks(uint32_t K)
{
    return (K + VLM_BLOCK - 1) / VLM_BLOCK;
}

static inline uint32_t
vlm_pieces(uint32_t K)
{
    return (K + VLM_PIECE - 1) / VLM_PIECE;
}

/*
 * Floats of a thread's scratch for attention over so many keys: scores of each query, and a block
 * of keys.
 */
static inline uint64_t
vlm_attend_floats(uint32_t keys, uint32_t head_dim)
{
    return vlm_add(vlm_mul(VLM_ATTEND_ROWS, vlm_round(keys, VLM_ATTEND_KEYS)),
                   vlm_mul(VLM_ATTEND_KEYS, head_dim));
}

/* The same for attention in int16: what belongs to a block of keys and some rows. */
static inline uint64_t
vlm_int16_floats(uint32_t head_dim)
{
    return VLM_INT16_ROWS * (3 * vlm_round(head_dim, VLM_INT16_WIDE) + 160);
}

/* T rows against a range of weight rows. */
typedef struct {
    const vlm_linear_t  *w;
    uint32_t             T;
    const float         *x;            /* [T][K] for f32 and bf16 weights */
    const int8_t        *q;            /* [T][blocks 64], for quantised weights, zeros at the end */
    const float         *s;            /* [T][pieces] */
    const int32_t       *sum;          /* [T][pieces] of each piece's q */
    float               *y;            /* as the epilogue says */
    const struct vlm_low_job_s *low;   /* of rows with adapters (low.h), or NULL */
} vlm_linear_args_t;

typedef struct {                       /* a group of rows of an adapter's a: see format/low.h */
    vlm_type_t   type;
    int          packed;               /* 0: [n][K] */
    const void  *a;
    uint32_t     n, K;                 /* n at most VLM_LOW_GROUP */
} vlm_low_down_t;

/* Where value k of row i begins, from which on some lie together: LANES, or those that are left. */
static inline size_t
vlm_low_down_at(const vlm_low_down_t *d, uint32_t i, uint32_t k)
{
    uint32_t  values;

    values = d->K - k < VLM_LOW_LANES ? d->K - k : VLM_LOW_LANES;

    return d->packed ? (size_t) k * d->n + i * values : (size_t) i * d->K + k;
}

typedef struct {                       /* r rows of an adapter's b, within a panel */
    vlm_type_t    type;
    const void   *b;
    uint32_t      r, step, n;          /* n values a row, `step` from one to the next */
    uint32_t      ahead;               /* bytes to those that are wanted soon */
    int           in_turn;             /* 1: value j has z[2 i + j % 2] */
    const float  *scale;               /* [n] or NULL */
} vlm_low_up_t;

typedef struct {
    const vlm_attend_t  *a;
    const float         *q;            /* [T][heads hd] */
    const vlm_batch_t   *batch;
    const vlm_kv_t      *kv;
    uint32_t             layer;
    float               *o;            /* [T][heads hd] */
} vlm_attend_args_t;

typedef struct {
    const vlm_attend_t    *a;
    const float           *q, *k, *v;  /* [P][heads dv] */
    const vlm_segments_t  *segments;
    float                 *o;          /* [P][heads dv] */
} vlm_segments_args_t;

typedef struct {                       /* heads of rows as int16 */
    int16_t  *x;                       /* [heads][n][hd] */
    float    *scale;                   /* [heads][n] */
} vlm_rows16_t;

#define VLM_INT16_MOST  4095           /* of a key and a value */
#define VLM_INT8_MOST   127            /* the same of those in the cache in int8 */

/* The sum over a head of a query's products with a key is below 2^31. */
static inline float
vlm_int16_query(uint32_t head_dim)
{
    return head_dim <= 128 ? VLM_INT16_MOST : 1023;
}

/* Where they lie in a buffer that has room for as many floats. */
static inline vlm_rows16_t
vlm_int16_in(void *act, uint64_t n, uint32_t heads, uint32_t head_dim)
{
    vlm_rows16_t  w = { act, (float *) ((int16_t *) act + n * heads * (head_dim + head_dim % 2)) };

    return w;
}

typedef struct {
    const vlm_attend_t    *a;
    vlm_rows16_t            q, k, v;    /* [heads][P][dv] */
    const vlm_segments_t  *segments;
    float                 *o;          /* [P][heads dv] */
} vlm_segments16_args_t;

/*
 * The end of a linear: acc [rows][n] are sums of weight rows n0 .. n0 + n of so many activation
 * rows, the first of which has the output row y.  n0 and n are even for VLM_SILU_MUL.
 */
typedef void (*vlm_epilogue_fn)(const vlm_linear_t *w, uint32_t n0, uint32_t n, uint32_t rows,
                                float acc[][VLM_PANEL], float *y);

typedef struct {
    const char  *name;
    uint32_t     order;                /* of int8 weights: see vlm_basic_t */
    uint32_t     together;             /* the same, of quantised weights */

    uint64_t  (*packed_bytes)(vlm_type_t type, uint32_t N, uint32_t K);
    /* rows [row, row + n), row a multiple of VLM_PANEL */
    void      (*pack)(vlm_linear_t *w, uint32_t row, uint32_t n, const void *from);
    /* one row back as f32, unscaled for int8 */
    void      (*unpack_row)(const vlm_linear_t *w, uint32_t row, float *out);
    /* panels [begin, end) of w, all T rows */
    void      (*linear)(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
    /* rows [begin, end), the query heads that share one KV head; scratch: vlm_attend_floats() */
    void      (*attend)(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                        float *scratch);
    /* the same with keys and values in int16 or int8; scratch: vlm_int16_floats() */
    void      (*attend_int16)(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                             uint32_t kv_head, float *scratch);
    /* patches [begin, end), one head */
    void      (*attend_segments)(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                                 uint32_t head, float *scratch);
    /* x [n] as int16 up to `most`; returns their scale */
    float     (*int16_row)(const float *x, uint32_t n, float most, int16_t *q);
    /* attend_segments in int16; scratch: vlm_int16_floats() */
    void      (*segments_int16)(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                                uint32_t head, float *scratch);
    /* gain NULL: neither gain nor shift */
    void      (*norm)(const vlm_norm_t *norm, const float *x, uint32_t n, float *y);
    /* x [n] += the sum of four rows, each with its weight */
    void      (*add_four)(const float *const row[4], const float weight[4], uint32_t n, float *x);
    /* one row to int8: q [blocks 64], s and sum [pieces] */
    void      (*quantize)(const float *x, uint32_t n, int8_t *q, float *s, int32_t *sum);
    /* the end of a linear: see vlm_epilogue_fn */
    vlm_epilogue_fn  epilogue;
    /* of adapters (vlm_lows_t): y [m] = a's rows times m rows x [K] */
    void      (*low_down)(const vlm_low_down_t *d, const float *const x[], uint32_t m,
                          float y[][VLM_LOW_GROUP]);
    /* m rows y [n] = y scale + the sums over i of b[i] and the row's z[i] */
    void      (*low_up)(const vlm_low_up_t *u, const float *const z[], float *const y[],
                        uint32_t m);
} vlm_kernels_t;

void vlm_kernels_plain(vlm_kernels_t *k);
void vlm_kernels_avx2(vlm_kernels_t *k);
void vlm_kernels_avxvnni(vlm_kernels_t *k);
void vlm_kernels_avx512(vlm_kernels_t *k);
int vlm_avxvnni_there(void);           /* clang 14 cannot be asked for this feature by a name */
int vlm_amx_there(void);               /* and asks the kernel for its use: once for the process */
void vlm_kernels_amx(vlm_kernels_t *k);
void vlm_kernels_neon(vlm_kernels_t *k);
void vlm_kernels_i8mm(vlm_kernels_t *k);
int vlm_neon_there(void);              /* with sdot */
int vlm_i8mm_there(void);

void vlm_epilogue_plain(const vlm_linear_t *w, uint32_t n0, uint32_t n, uint32_t rows,
                        float acc[][VLM_PANEL], float *y);
void vlm_epilogue_avx2(const vlm_linear_t *w, uint32_t n0, uint32_t n, uint32_t rows,
                       float acc[][VLM_PANEL], float *y);
void vlm_epilogue_avx512(const vlm_linear_t *w, uint32_t n0, uint32_t n, uint32_t rows,
                         float acc[][VLM_PANEL], float *y);

/* y [n] = the norm of a turned row, with gain and shift of what was turned; work [n]. */
void vlm_norm_turned(const vlm_kernels_t *k, const vlm_norm_t *norm, const vlm_turn_t *turn,
                     const float *x, float *y, float *work);

/* The definition of low_up(), for ranges that vectors do not divide. */
void vlm_low_up_plain(const vlm_low_up_t *u, const float *const z[], float *const y[], uint32_t m);

/*
 * A piece of an int4 panel (format/int4.h), of so many groups, as int8 panels have it, with that
 * flip: [groups 16][VLM_PANEL] words.
 */
void vlm_int4_piece_avx2(const uint8_t *from, uint32_t groups, uint32_t flip, uint8_t *to);
void vlm_int4_piece_avx512(const uint8_t *from, uint32_t groups, uint32_t flip, uint8_t *to);
void vlm_int4_piece_neon(const uint8_t *from, uint32_t groups, int8_t *to);        /* no flip */

/* For sets of other processors that replace some shapes of it. */
void vlm_linear_neon(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);

/* The definitions of attention, for shapes that vectors do not divide; and the place of a patch. */
void vlm_attend_plain(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                      float *scratch);
void vlm_attend_segments_plain(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                               uint32_t head, float *scratch);
void vlm_segments_int16_plain(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                              uint32_t head, float *scratch);
void vlm_attend_int16_plain(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                           uint32_t kv_head, float *scratch);
uint32_t vlm_segment_of(const uint32_t *border, uint32_t n, uint32_t patch);

/* Row 0 of a sequence's cache, of one layer and head, among the rows of all; row t is of it. */
static inline size_t
vlm_kv_row(const vlm_attend_args_t *a, uint32_t t, uint32_t kv_head)
{
    const vlm_kv_t  *kv = a->kv;

    return (((size_t) a->layer * kv->slots + a->batch->slot[a->batch->seq[t]]) * kv->heads
            + kv_head) * kv->context;
}

/* Keys that row t sees: those before it in its sequence, and its own. */
static inline uint32_t
vlm_kv_seen(const vlm_batch_t *b, uint32_t t)
{
    return b->n_ctx[b->seq[t]] + (t - b->start[b->seq[t]]) + 1;
}

/* ALiBi: adds to the score of each of n keys its distance from the last one, which is the row's. */
static inline void
vlm_alibi(float *scores, uint32_t n, float slope)
{
    uint32_t  j;

    for (j = 0; j < n; j++) {
        scores[j] = fmaf(slope, (float) (int32_t) (j - (n - 1)), scores[j]);
    }
}

/* Output values of one row: N, or half of it. */
static inline size_t
vlm_linear_out(const vlm_linear_t *w)
{
    return w->epilogue == VLM_SILU_MUL ? w->N / 2 : w->N;
}

/* Rotates one head of `half` pairs (i, i + half) in place. */
static inline void
vlm_rotate(float *x, const float *cosine, const float *sine, uint32_t half)
{
    float     a, b;
    uint32_t  i;

    for (i = 0; i < half; i++) {
        a = x[i];
        b = x[i + half];
        x[i] = a * cosine[i] - b * sine[i];
        x[i + half] = b * cosine[i] + a * sine[i];
    }
}

/*
 * Filters logits [V] in the reference's order: penalty for tokens seen [V / 32 bits], temperature,
 * top k, top p; logits that may not be picked become -INFINITY.  With greedy (temperature 0) only
 * the penalty is applied.  work [V].  -1 if a logit is not a number, or none is finite.
 */
typedef struct {
    float     logit;
    uint32_t  id;
} vlm_candidate_t;

int vlm_sample_filter(float *logits, uint32_t V, uint32_t n_vocab, const uint32_t *seen,
                      const vlm_pick_t *pick, vlm_candidate_t *work);
/* Picks from filtered logits. */
uint32_t vlm_sample_pick(const float *logits, uint32_t V, const vlm_pick_t *pick, float *logprob);

#endif
