/*
 * Helpers shared by the tests of operations: random numbers that are hard on arithmetic, from a
 * seed; a weight matrix packed for one set of kernels; its product with some rows; and a comparison
 * of bits.
 */

#ifndef VLM_PARITY_H
#define VLM_PARITY_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"
#include "ops/kernels.h"
#include "vlm.h"

typedef enum {
    VLM_RANDOM,                        /* within -1 .. 1 */
    VLM_ZEROS,                         /* and every seventh row random */
    VLM_MAXIMA,                        /* + or - one huge number: +-127 in int8 */
    VLM_OUTLIER,                       /* random, but one value a row is a million times larger */
    VLM_KINDS
} vlm_kind_t;


static inline uint32_t
vlm_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) (*state >> 33);
}


/* Within -1 .. 1, in steps of 2^-30. */
static inline float
vlm_random_float(uint64_t *state)
{
    return (float) ((double) vlm_random(state) / 0x1p30 - 1);
}


/* rows of n values */
static inline void
vlm_parity_fill(float *x, uint32_t rows, uint32_t n, vlm_kind_t kind, uint64_t seed)
{
    uint32_t  r, i;
    uint64_t  state = seed;

    for (r = 0; r < rows; r++, x += n) {
        for (i = 0; i < n; i++) {
            x[i] = vlm_random_float(&state);

            if (kind == VLM_MAXIMA) {
                x[i] = x[i] < 0 ? -1e6f : 1e6f;

            } else if (kind == VLM_ZEROS && r % 7 != 6) {
                x[i] = 0;
            }
        }

        if (kind == VLM_OUTLIER) {
            x[vlm_random(&state) % n] *= 1e6f;
        }
    }
}


static inline void *
vlm_aligned(uint64_t bytes)
{
    void  *p;

    p = aligned_alloc(64, vlm_round(bytes == 0 ? 1 : bytes, 64));

    if (p != NULL) {
        memset(p, 0xcb, bytes);        /* reads of unwritten values show */
    }

    return p;
}


/* rows [N][K] in the form of a type, with scale [N]; NULL: it has no other form than floats. */
static inline void *
vlm_quantised_rows(vlm_type_t type, uint32_t N, uint32_t K, const float *rows, float *scale)
{
    uint8_t             *q;
    uint32_t             n;
    const vlm_format_t  *f = vlm_format_of(type);

    if (f->quantise == NULL) {
        return NULL;
    }

    q = malloc((size_t) N * vlm_format_row(f, K));

    for (n = 0; n < N; n++) {
        f->quantise(rows + (size_t) n * K, K, q + (size_t) n * vlm_format_row(f, K), scale + n);
    }

    return q;
}


/* Rows packed as this set of kernels wants them: floats, or quantised; scale [N] is not copied. */
static inline void
vlm_packed_rows(vlm_linear_t *w, const vlm_kernels_t *k, vlm_type_t type, vlm_epilogue_t epilogue,
                uint32_t N, uint32_t K, const void *rows, float *scale, float *bias)
{
    memset(w, 0, sizeof(*w));
    w->type = type;
    w->epilogue = epilogue;
    w->N = N;
    w->K = K;
    w->scale = scale;
    w->bias = bias;
    w->w = vlm_aligned(k->packed_bytes(type, N, K));
    k->pack(w, 0, N, rows);
}


/* The same of floats whatever the type; bias [N] or NULL, not copied. */
static inline void
vlm_packed_open(vlm_linear_t *w, const vlm_kernels_t *k, vlm_type_t type, vlm_epilogue_t epilogue,
                uint32_t N, uint32_t K, const float *rows, float *bias)
{
    void   *q;
    float  *scale = NULL;

    if (vlm_format_of(type)->quantise != NULL) {
        scale = malloc(N * sizeof(float));
    }

    q = vlm_quantised_rows(type, N, K, rows, scale);
    vlm_packed_rows(w, k, type, epilogue, N, K, q == NULL ? (const void *) rows : q, scale, bias);
    free(q);
}


static inline void
vlm_packed_close(vlm_linear_t *w)
{
    free(w->w);
    free(w->scale);
}


/* Rows in the form that a product takes them. */
typedef struct {
    uint32_t   T, K;
    float     *x;                      /* [T][K] */
    int8_t    *q;
    float     *s;
    int32_t   *sum;
} vlm_activations_t;


static inline void
vlm_activations_open(vlm_activations_t *a, const vlm_kernels_t *k, const float *x, uint32_t T,
                     uint32_t K)
{
    size_t    values, pieces;
    uint32_t  t;

    values = (size_t) vlm_blocks(K) * VLM_BLOCK;
    pieces = vlm_pieces(K);
    a->T = T;
    a->K = K;
    a->x = vlm_aligned((size_t) T * K * sizeof(float));
    a->q = vlm_aligned(T * values);
    a->s = vlm_aligned(T * pieces * sizeof(float));
    a->sum = vlm_aligned(T * pieces * sizeof(int32_t));
    memcpy(a->x, x, (size_t) T * K * sizeof(float));

    for (t = 0; t < T; t++) {
        k->quantize(x + (size_t) t * K, K, a->q + t * values, a->s + t * pieces,
                    a->sum + t * pieces);
    }
}


static inline void
vlm_activations_close(vlm_activations_t *a)
{
    free(a->x);
    free(a->q);
    free(a->s);
    free(a->sum);
}


/* Rows [first, first + T) against the whole matrix; y [T][vlm_linear_out(w)]. */
static inline void
vlm_product(const vlm_kernels_t *k, const vlm_linear_t *w, const vlm_activations_t *a,
            uint32_t first, uint32_t T, float *y)
{
    size_t             pieces;
    vlm_linear_args_t  args;

    pieces = (size_t) first * vlm_pieces(w->K);

    args.w = w;
    args.T = T;
    args.x = a->x + (size_t) first * w->K;
    args.q = a->q + (size_t) first * vlm_blocks(w->K) * VLM_BLOCK;
    args.s = a->s + pieces;
    args.sum = a->sum + pieces;
    args.y = y;
    args.low = NULL;

    k->linear(&args, 0, (w->N + VLM_PANEL - 1) / VLM_PANEL);
}


/* The first of n values whose bits differ, or n. */
static inline size_t
vlm_differs(const float *a, const float *b, size_t n)
{
    size_t  i;

    for (i = 0; i < n && memcmp(a + i, b + i, sizeof(float)) == 0; i++) { /* void */ }

    return i;
}

#endif
