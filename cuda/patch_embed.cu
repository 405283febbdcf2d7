/*
 * patch_embed: bytes of pixels times f32 weights; no other product has f32 weights.
 *
 * A block has 64 weight rows by 64 patches, a thread 4 by 4 of them, 16 inputs at a time through
 * shared memory.  Each sum is in the order of k, with fused multiply-adds, so it has the bits of
 * the definition.  cost.h bounds the patches of a launch.
 */

#include "device.h"

#define THREADS  256
#define TILE     64                    /* weight rows, and patches */
#define DEPTH    16                    /* inputs at a time */
#define ROW      (TILE + 4)            /* 4 more: columns begin in different banks */

typedef struct {
    const float    *w, *bias;          /* [N][K], [N] or NULL */
    const uint8_t  *pixels;            /* [P][K] */
    float          *x;                 /* [P][N] */
    uint32_t        N, K, P;
} args_t;


/* Inputs k to k + 15 of the block's weight rows and patches; zeros beyond the ends. */
static __device__ __forceinline__ void
load(const args_t &a, uint32_t n0, uint32_t p0, uint32_t k, float (*w)[ROW], float (*x)[ROW])
{
    uint32_t  i, row, in;

    for (i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
        row = i / DEPTH;
        in = i % DEPTH;
        w[in][row] = n0 + row < a.N && k + in < a.K
                     ? a.w[static_cast<size_t>(n0 + row) * a.K + k + in] : 0;
        x[in][row] = p0 + row < a.P && k + in < a.K
                     ? a.pixels[static_cast<size_t>(p0 + row) * a.K + k + in] : 0;
    }
}


/* blockIdx.x is 64 patches, y is 64 weight rows. */
__global__ void __launch_bounds__(THREADS)
patch_embed(args_t a)
{
    float     sum[4][4] = { { 0 } }, u[4], v[4];
    uint32_t  i, j, k, in, n, p, n0, p0;

    VLM_SHARED(float, w, DEPTH * ROW);
    VLM_SHARED(float, x, DEPTH * ROW);

    float  (*ws)[ROW] = reinterpret_cast<float (*)[ROW]>(w);
    float  (*xs)[ROW] = reinterpret_cast<float (*)[ROW]>(x);

    n = threadIdx.x % 16;
    p = threadIdx.x / 16;
    n0 = blockIdx.y * TILE;
    p0 = blockIdx.x * TILE;

    for (k = 0; k < a.K; k += DEPTH) {
        load(a, n0, p0, k, ws, xs);

        __syncthreads();

#pragma unroll
        for (in = 0; in < DEPTH; in++) {

#pragma unroll
            for (i = 0; i < 4; i++) {
                u[i] = ws[in][n + 16 * i];
                v[i] = xs[in][p + 16 * i];
            }

#pragma unroll
            for (i = 0; i < 16; i++) {
                sum[i / 4][i % 4] = fmaf(u[i / 4], v[i % 4], sum[i / 4][i % 4]);
            }
        }

        __syncthreads();
    }

#pragma unroll
    for (i = 0; i < 4; i++) {

#pragma unroll
        for (j = 0; j < 4; j++) {
            if (n0 + n + 16 * i < a.N && p0 + p + 16 * j < a.P) {
                a.x[static_cast<size_t>(p0 + p + 16 * j) * a.N + n0 + n + 16 * i] =
                    a.bias == nullptr ? sum[i][j] : sum[i][j] + a.bias[n0 + n + 16 * i];
            }
        }
    }
}


void
vlm_load_patch_embed(vlm_device_t *d)
{
    VLM_LOAD(d, patch_embed, 0);
}


void
vlm_cuda_patch_embed(vlm_device_t *d, const vlm_linear_t *w, const uint8_t *pixels, uint32_t P,
                     float *x)
{
    args_t    a;
    double    cost;
    uint32_t  p, n;

    a.w = static_cast<const float *>(w->w);
    a.bias = w->bias;
    a.N = w->N;
    a.K = w->K;
    cost = vlm_cost(4.0 * TILE * w->N, 2.0 * TILE * w->N * w->K);

    for (p = 0; p < P; p += a.P) {
        n = vlm_fit(d, cost, vlm_divide_up(P - p, TILE));
        a.P = min(P - p, n * TILE);
        a.pixels = pixels + static_cast<size_t>(p) * w->K;
        a.x = x + static_cast<size_t>(p) * w->N;

        VLM_LAUNCH(d, cost * n, patch_embed, dim3(n, vlm_divide_up(w->N, TILE)), THREADS, 0, a);
    }
}
