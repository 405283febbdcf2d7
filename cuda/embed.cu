/*
 * embed: copies rows of the embedding table, or of picture features, to the residual stream.
 * add_features: adds further features to the rows of pictures, between layers.
 */

#include "device.h"

#define THREADS  128


/* One value of a packed row, unscaled: see pack.cu for where it lies. */
static __device__ __forceinline__ unsigned
packed_piece(const unsigned *tiles, uint32_t row, uint32_t row_bytes, uint32_t byte)
{
    uint32_t  r, in, lane, i;

    r = row % VLM_CUDA_TILE;
    in = byte % 32;
    lane = r % 8 * 4 + in % 16 / 4;
    i = r / 8 + 2 * (in / 16);

    return tiles[(static_cast<size_t>(row / VLM_CUDA_TILE) * row_bytes + byte / 32 * 32)
                 * (VLM_CUDA_TILE / 4) + lane * 4 + i];
}


/* Four bytes a thread: 4 values of int8, or 2 of bf16. */
template <bool INT8>
static __device__ __forceinline__ void
embed_token(const unsigned *table, float scale, uint32_t id, uint32_t D, float *x)
{
    unsigned  piece;
    uint32_t  k, i, row_bytes;

    row_bytes = (D + VLM_BLOCK - 1) / VLM_BLOCK * VLM_BLOCK * (INT8 ? 1 : 2);

    for (k = threadIdx.x * (INT8 ? 4 : 2); k < D; k += THREADS * (INT8 ? 4 : 2)) {
        piece = packed_piece(table, id, row_bytes, INT8 ? k : 2 * k);

        for (i = 0; i < (INT8 ? 4 : 2) && k + i < D; i++) {
            x[k + i] = INT8 ? static_cast<int8_t>(piece >> 8 * i) * scale
                            : __uint_as_float(piece >> 16 * i << 16);
        }
    }
}


/* A block for each row of x [T][D]. */
template <bool INT8>
__global__ void __launch_bounds__(THREADS)
embed(const unsigned *table, const float *scale, const vlm_bf16_t *features, const uint32_t *token,
      const uint32_t *source, uint32_t D, float *x)
{
    uint32_t           i, t, from;
    const vlm_bf16_t  *row;

    t = blockIdx.x;
    from = source[t];
    x += static_cast<size_t>(t) * D;

    if (from == VLM_NONE) {
        embed_token<INT8>(table, INT8 ? scale[token[t]] : 1, token[t], D, x);
        return;
    }

    row = features + static_cast<size_t>(from) * D;

    for (i = threadIdx.x; i < D; i += THREADS) {
        x[i] = vlm_from_bf16(row[i]);
    }
}


__global__ void __launch_bounds__(THREADS)
add_features(const vlm_bf16_t *features, const uint32_t *source, uint32_t D, float *x)
{
    uint32_t           i, from;
    const vlm_bf16_t  *row;

    from = source[blockIdx.x];

    if (from == VLM_NONE) {
        return;                        /* all threads of the block: the row is a token's */
    }

    x += static_cast<size_t>(blockIdx.x) * D;
    row = features + static_cast<size_t>(from) * D;

    for (i = threadIdx.x; i < D; i += THREADS) {
        x[i] += vlm_from_bf16(row[i]);
    }
}


void
vlm_load_embed(vlm_device_t *d)
{
    VLM_LOAD(d, embed<true>, 0);
    VLM_LOAD(d, embed<false>, 0);
    VLM_LOAD(d, add_features, 0);
}


void
vlm_cuda_embed(vlm_device_t *d, const vlm_linear_t *table, const void *features,
               const vlm_batch_t *b, float *x)
{
    const unsigned    *w = static_cast<const unsigned *>(table->w);
    const vlm_bf16_t  *f = static_cast<const vlm_bf16_t *>(features);
    const double       cost = vlm_cost(8.0 * b->T * table->K, 0);

    if (table->type == VLM_INT8) {
        VLM_LAUNCH(d, cost, embed<true>, b->T, THREADS, 0, w, table->scale, f, b->token, b->source,
                   table->K, x);
    } else {
        VLM_LAUNCH(d, cost, embed<false>, b->T, THREADS, 0, w, nullptr, f, b->token, b->source,
                   table->K, x);
    }

    vlm_low_embed(d, table, b, x);
}


void
vlm_cuda_add_features(vlm_device_t *d, const void *features, const vlm_batch_t *b, uint32_t D,
                      float *x)
{
    VLM_LAUNCH(d, vlm_cost(10.0 * b->T * D, 0), add_features, b->T, THREADS, 0,
               static_cast<const vlm_bf16_t *>(features), b->source, D, x);
}
