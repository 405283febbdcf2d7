/*
 * The product of weights and activation rows, for the operations that have one: linear, head, qkv,
 * qkv_2d.
 *
 * Sums have one order in every kernel: a row's groups of 64 bytes, or of 64 values of int4, are cut
 * along K into VLM_CUDA_PARTS runs of whole pieces, each run is summed from its first group on (of
 * int8 the exact sums of its pieces are), and then the runs are added in their order.  So a row's
 * result does not depend on the number of rows in the call.
 */

#ifndef VLM_PRODUCT_H
#define VLM_PRODUCT_H

#include "device.h"
#include "vlm.h"

#define VLM_GROUP       64             /* bytes of a row, of activations or of such weights */
#define VLM_PIECE_GROUPS  (VLM_PIECE / VLM_GROUP)  /* of int8 */
#define VLM_CUDA_PARTS  8
#define VLM_INSIDE      (56u << 10)    /* dynamic bytes of a block that makes rows ready */
#define VLM_FEW         8              /* activation rows of a fragment, and the most of `few` */
#define VLM_FEW_BLOCKS  3              /* of few rows, on a processor: 256 threads each */

typedef enum { VLM_OUT_F32, VLM_OUT_ACT } vlm_out_t;

/* Activation rows, and what they become: see ready.cuh. */
typedef struct {
    const void      *x;                /* [rows][K], f32 with a norm, bf16 without */
    const uint32_t  *rows;             /* [T] which rows of x; NULL: the first T */
    vlm_norm_t       norm;             /* gain NULL: none */
    uint32_t         blocks;           /* 1, of int8: they are turned */
    uint32_t         K;
    uint32_t         row_words;        /* of q: 4 bytes each, whole blocks of values */
    uint32_t         q_stride, s_stride;
    unsigned        *q;                /* [T][q_stride] */
    float           *s;                /* [blocks][s_stride] of int8 */
} vlm_ready_t;

/* The rows of the operation's call that a product has, by which their adapters are found. */
typedef struct {
    uint32_t         first;
    const uint32_t  *rows;             /* [T]; NULL: first, first + 1, ... */
} vlm_which_t;

typedef struct {
    vlm_ready_t   in;
    const uint4  *w;                   /* packed */
    const float  *scale, *bias;        /* [N] or NULL */
    const float  *low;                 /* [T][N] what adapters add before the bias, or NULL */
    void         *y;
    uint32_t      N, T;
    uint32_t      groups;              /* of a row, and of each of the VLM_CUDA_PARTS of it */
    uint32_t      run;
    uint32_t      group_bytes;         /* of a weight row */
    uint32_t      tiles;               /* of few rows: that a block takes one after the other */
    uint32_t      inside;              /* of few rows: each block makes them ready for itself */
} vlm_product_t;

/* ready.cu: at most VLM_CUDA_ROWS rows. */
void vlm_make_ready(vlm_device_t *d, vlm_type_t weights, const vlm_ready_t &a, uint32_t T);

/*
 * turn.cu: y [T][n] = the norm of turned rows of x, with gain and shift of what was turned; rows as
 * above, T at most VLM_CUDA_TURNED.  y is f32, and then may be x, or act.
 */
void vlm_norm_turned(vlm_device_t *d, const vlm_norm_t *norm, const vlm_turn_t *turn,
                     const float *x, const uint32_t *rows, uint32_t T, vlm_out_t form, void *y);

/*
 * linear.cu: prepares a kernel's arguments for a product of at most VLM_CUDA_ROWS rows; x is f32
 * with a norm, and act without one (NULL).  If blocks do not make rows ready, a launch has done so,
 * and so have others for adapters.
 */
vlm_product_t vlm_product_of(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm,
                             const void *x, const uint32_t *rows, uint32_t T, vlm_which_t which);

/* Activation rows that one product may have: VLM_CUDA_ROWS, or fewer by cost.h. */
uint32_t vlm_product_rows(const vlm_device_t *d, const vlm_linear_t *w);
/* The cost of a launch of the product. */
double vlm_product_cost(const vlm_product_t &a);

/* Of few rows: the grid for that many units of `tiles` tiles, and a block's dynamic memory. */
typedef struct {
    unsigned  blocks;
    size_t    shared;
} vlm_few_grid_t;

vlm_few_grid_t vlm_few_grid(const vlm_device_t *d, vlm_product_t *a, uint32_t units);

/*
 * linear.cu: y = epilogue(W x + b), act but for VLM_ADD; VLM_STORE makes f32 if store says so.  T
 * is at most vlm_product_rows().
 */
void vlm_product(vlm_device_t *d, const vlm_linear_t *w, const vlm_norm_t *norm, const void *x,
                 const uint32_t *rows, uint32_t T, vlm_which_t which, vlm_out_t store, void *y);

/*
 * low.cu: launches the products of adapters for the rows of a product, and returns what they add to
 * its sums, [T][N], until the next call; or NULL: nothing.
 */
const float *vlm_low_sums(vlm_device_t *d, const vlm_linear_t *w, const vlm_ready_t &in, uint32_t T,
                          vlm_which_t which);
/* The most of n rows that it takes at once. */
uint32_t vlm_low_rows(const vlm_device_t *d, const vlm_linear_t *w, uint32_t n);

#endif
