/*
 * qkv and qkv_2d: the product, and then a row's heads turn by its position and go to their places,
 * keys and values of text into the cache.
 *
 * A row's angles are the same for all its heads: a block of threads is a row, and has their sines
 * and cosines in shared memory.
 */

#include "product.h"

#define THREADS   128
#define MAX_HALF  64                   /* pairs of a head */

typedef struct {
    const float     *rows;             /* [n][(heads + 2 kv.heads) hd] of this part */
    const float     *inv_freq;
    const uint8_t   *axis;
    const int32_t   *pos;              /* [3][T] */
    const uint32_t  *seq, *start, *slot, *n_ctx;
    vlm_kv_t         kv;
    uint32_t         layer, heads, first, T;       /* first: row of this part */
    vlm_bf16_t      *q;                /* [T][heads hd] */
} text_t;

typedef struct {
    const float     *rows;             /* [n][3][heads dv] */
    const float     *inv_freq;
    const uint32_t  *row, *column;     /* [n] */
    uint32_t         heads, dv;
    vlm_bf16_t      *q, *k, *v;        /* [n][heads dv] */
} picture_t;


/* Values i and i + half of a head, turned. */
static __device__ __forceinline__ float2
turn(const float *head, uint32_t i, uint32_t half, float cosine, float sine)
{
    float  a = head[i], b = head[i + half];

    return make_float2(a * cosine - b * sine, b * cosine + a * sine);
}


static __device__ __forceinline__ void
put_pair(vlm_bf16_t *head, uint32_t i, uint32_t half, float2 v)
{
    head[i] = vlm_to_bf16(v.x);
    head[i + half] = vlm_to_bf16(v.y);
}


__global__ void __launch_bounds__(THREADS)
append(text_t a)
{
    size_t       cache;
    uint32_t     i, h, t, s, hd, half;
    const float *row;
    vlm_bf16_t  *to;

    VLM_SHARED(float, cosine, MAX_HALF);
    VLM_SHARED(float, sine, MAX_HALF);

    hd = a.kv.head_dim;
    half = hd / 2;
    t = a.first + blockIdx.x;
    s = a.seq[t];
    row = a.rows + static_cast<size_t>(blockIdx.x) * (a.heads + 2 * a.kv.heads) * hd;

    if (threadIdx.x < half) {
        vlm_sincos(static_cast<float>(a.pos[static_cast<size_t>(a.axis[threadIdx.x]) * a.T + t])
                   * a.inv_freq[threadIdx.x], &sine[threadIdx.x], &cosine[threadIdx.x]);
    }

    __syncthreads();

    for (i = threadIdx.x; i < (a.heads + 2 * a.kv.heads) * half; i += THREADS) {
        h = i / half;
        cache = (((static_cast<size_t>(a.layer) * a.kv.slots + a.slot[s]) * a.kv.heads
                  + (h - a.heads) % a.kv.heads) * a.kv.context + a.n_ctx[s] + (t - a.start[s]))
                * hd;

        if (h < a.heads) {
            to = a.q + (static_cast<size_t>(t) * a.heads + h) * hd;
        } else if (h < a.heads + a.kv.heads) {
            to = static_cast<vlm_bf16_t *>(a.kv.k) + cache;
        } else {
            to = static_cast<vlm_bf16_t *>(a.kv.v) + cache;
            put_pair(to, i % half, half, make_float2(row[h * hd + i % half],
                                                     row[h * hd + i % half + half]));
            continue;
        }

        put_pair(to, i % half, half, turn(row + h * hd, i % half, half, cosine[i % half],
                                          sine[i % half]));
    }
}


__global__ void __launch_bounds__(THREADS)
part(picture_t a)
{
    size_t        E, at;
    float         angle;
    uint32_t      i, h, j, half;
    const float  *row;
    vlm_bf16_t   *to;

    VLM_SHARED(float, cosine, MAX_HALF);
    VLM_SHARED(float, sine, MAX_HALF);

    half = a.dv / 2;
    E = static_cast<size_t>(a.heads) * a.dv;
    row = a.rows + blockIdx.x * 3 * E;
    at = blockIdx.x * E;

    if (threadIdx.x < half) {
        i = threadIdx.x < half / 2 ? threadIdx.x : threadIdx.x - half / 2;
        angle = static_cast<float>(threadIdx.x < half / 2 ? a.row[blockIdx.x]
                                                          : a.column[blockIdx.x]) * a.inv_freq[i];
        vlm_sincos(angle, &sine[threadIdx.x], &cosine[threadIdx.x]);
    }

    __syncthreads();

    for (i = threadIdx.x; i < 3 * a.heads * half; i += THREADS) {
        h = i / half;
        j = i % half;
        to = (h < a.heads ? a.q : h < 2 * a.heads ? a.k : a.v) + at
             + static_cast<size_t>(h % a.heads) * a.dv;

        put_pair(to, j, half, h < 2 * a.heads
                              ? turn(row + h * a.dv, j, half, cosine[j], sine[j])
                              : make_float2(row[h * a.dv + j], row[h * a.dv + j + half]));
    }
}


void
vlm_cuda_qkv(vlm_device_t *d, const vlm_linear_t *w, const float *x, const float *gain, float eps,
             const vlm_rope_t *rope, const vlm_batch_t *b, const vlm_kv_t *kv, uint32_t layer,
             uint32_t heads, void *q)
{
    text_t    a;
    uint32_t  n;

    a.rows = d->scratch.qkv;
    a.inv_freq = rope->inv_freq;
    a.axis = rope->axis;
    a.pos = b->pos;
    a.seq = b->seq;
    a.start = b->start;
    a.slot = b->slot;
    a.n_ctx = b->n_ctx;
    a.kv = *kv;
    a.layer = layer;
    a.heads = heads;
    a.T = b->T;
    a.q = static_cast<vlm_bf16_t *>(q);

    for (a.first = 0; a.first < b->T; a.first += n) {
        n = min(b->T - a.first, static_cast<uint32_t>(VLM_CUDA_ROWS));
        vlm_product(d, w, x + static_cast<size_t>(a.first) * w->K, nullptr, gain, eps, n,
                    VLM_FORM_F32, d->scratch.qkv);
        VLM_LAUNCH(d, append, n, THREADS, 0, a);
    }
}


void
vlm_cuda_qkv_2d(vlm_device_t *d, const vlm_linear_t *w, const float *x, const float *gain,
                float eps, const float *inv_freq, const uint32_t *row, const uint32_t *column,
                uint32_t P, uint32_t heads, void *q, void *k, void *v)
{
    size_t     E;
    uint32_t   p, n;
    picture_t  a;

    E = w->N / 3;
    a.rows = d->scratch.qkv;
    a.inv_freq = inv_freq;
    a.heads = heads;
    a.dv = w->N / 3 / heads;

    for (p = 0; p < P; p += n) {
        n = min(P - p, static_cast<uint32_t>(VLM_CUDA_ROWS));
        a.row = row + p;
        a.column = column + p;
        a.q = static_cast<vlm_bf16_t *>(q) + p * E;
        a.k = static_cast<vlm_bf16_t *>(k) + p * E;
        a.v = static_cast<vlm_bf16_t *>(v) + p * E;

        vlm_product(d, w, x + static_cast<size_t>(p) * w->K, nullptr, gain, eps, n, VLM_FORM_F32,
                    d->scratch.qkv);
        VLM_LAUNCH(d, part, n, THREADS, 0, a);
    }
}
