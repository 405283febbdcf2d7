/*
 * A product of weights and activation rows, for the operations that have one: linear, head, qkv,
 * qkv_2d.
 *
 * Sums have one order, whichever kernel takes them: a row's groups of 64 bytes are cut along K
 * into VLM_CUDA_PARTS runs, each run is added up from its first group on, and then the runs are
 * added in their order.  So a row's result does not depend on how many rows come with it.
 */

#ifndef VLM_PRODUCT_H
#define VLM_PRODUCT_H

#include "device.h"

#define VLM_GROUP       64             /* bytes of a row, of weights or activations */
#define VLM_CUDA_PARTS  8

typedef enum { VLM_FORM_F32, VLM_FORM_ACT } vlm_form_t;

typedef struct {
    const void      *x;                /* [rows][K], f32 or bf16 */
    const uint32_t  *rows;             /* [T] which rows of x; NULL: the first T */
    const float     *gain;             /* [K] or NULL */
    float            eps;
    uint32_t         K;
    uint32_t         row_words;        /* of q: 4 bytes each, whole blocks of values */
    unsigned        *q;                /* [T][row_words], in the order of ready.cu */
    float           *s;                /* [blocks][VLM_CUDA_ROWS] of int8 */
} vlm_ready_t;

/* ready.cu: at most VLM_CUDA_ROWS rows. */
void vlm_make_ready(vlm_device_t *d, vlm_type_t weights, vlm_form_t form, const vlm_ready_t &a,
                    uint32_t T);

/*
 * linear.cu: y = epilogue(W x + b) of at most VLM_CUDA_ROWS rows; x is f32 with a gain, and act
 * without one.  y is act but for VLM_ADD; VLM_STORE makes f32 if store says so.
 */
void vlm_product(vlm_device_t *d, const vlm_linear_t *w, const void *x, const uint32_t *rows,
                 const float *gain, float eps, uint32_t T, vlm_form_t store, void *y);

#endif
