/*
 * qkv and qkv_2d: the product, then the rotation of a row's heads by its position, and the copy of
 * each head to its place; keys and values of text go into the cache.
 *
 * Up to 8 rows, a block has the two tiles of weight rows that are rotated together, value i of a
 * head and value i + half, and one launch does all.  Otherwise the product goes to memory, and a
 * block of threads has one row, with the sines and cosines that its heads share in shared memory.
 */

#include "product.cuh"

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


/* Values i and i + half of a head, rotated. */
static __device__ __forceinline__ float2
turn(float a, float b, float cosine, float sine)
{
    return make_float2(a * cosine - b * sine, b * cosine + a * sine);
}


static __device__ __forceinline__ void
put_pair(vlm_bf16_t *head, uint32_t i, uint32_t half, float2 v)
{
    head[i] = vlm_to_bf16(v.x);
    head[i + half] = vlm_to_bf16(v.y);
}


/* The rotation of pair i of row t's heads. */
static __device__ __forceinline__ void
angle_of(const text_t &a, uint32_t t, uint32_t i, float *sine, float *cosine)
{
    vlm_sincos(static_cast<float>(a.pos[static_cast<size_t>(a.axis[i]) * a.T + t]) * a.inv_freq[i],
               sine, cosine);
}


/* The destination of head h of row t: queries come first, then keys, then values. */
static __device__ __forceinline__ vlm_bf16_t *
place_of(const text_t &a, uint32_t t, uint32_t h)
{
    size_t    cache;
    uint32_t  s, k;

    if (h < a.heads) {
        return a.q + (static_cast<size_t>(t) * a.heads + h) * a.kv.head_dim;
    }

    s = a.seq[t];
    k = h - a.heads;
    cache = (((static_cast<size_t>(a.layer) * a.kv.slots + a.slot[s]) * a.kv.heads
              + k % a.kv.heads) * a.kv.context + a.n_ctx[s] + (t - a.start[s])) * a.kv.head_dim;

    return static_cast<vlm_bf16_t *>(k < a.kv.heads ? a.kv.k : a.kv.v) + cache;
}


/* ---- few rows of text --------------------------------------------------------------------- */

/* Of a unit, the head and the tile of its first half; the tile of the second is half a head on. */
static __device__ __forceinline__ uint32_t
tile_of(const text_t &a, uint32_t unit, uint32_t *head)
{
    uint32_t  tiles = a.kv.head_dim / 2 / VLM_CUDA_TILE;

    *head = unit / tiles;

    return unit + *head * tiles;
}


/* Each thread has a pair of values and a row; parts are those of both tiles. */
static __device__ __forceinline__ void
put_turned(const vlm_product_t &p, const text_t &a, uint32_t head, uint32_t tile,
           const float *parts)
{
    float     v, w, sine, cosine;
    uint32_t  row, t, n, i, half;

    half = a.kv.head_dim / 2;
    row = threadIdx.x / VLM_FEW;
    t = threadIdx.x % VLM_FEW;
    n = tile * VLM_CUDA_TILE + row;
    i = n - head * a.kv.head_dim;

    if (row >= VLM_CUDA_TILE || t >= p.T) {
        return;
    }

    v = vlm_finish(p, n, vlm_add_parts(parts, row, t));
    w = vlm_finish(p, n + half, vlm_add_parts(parts + VLM_FEW_PARTS, row, t));

    if (head >= a.heads + a.kv.heads) {
        put_pair(place_of(a, t, head), i, half, make_float2(v, w));
        return;
    }

    angle_of(a, t, i, &sine, &cosine);
    put_pair(place_of(a, t, head), i, half, turn(v, w, cosine, sine));
}


/* Units one after the other, all rows. */
template <bool INT8>
__global__ void __launch_bounds__(VLM_FEW_THREADS, VLM_FEW_BLOCKS)
qkv_few(vlm_product_t p, text_t a)
{
    uint32_t  unit, end, tile, head, i;

    VLM_SHARED(float, parts, 2 * VLM_FEW_PARTS);
    VLM_SHARED_DYNAMIC(room);

    unit = blockIdx.x * p.tiles;
    end = min(unit + p.tiles, p.N / (2 * VLM_CUDA_TILE));

    vlm_begin_few<INT8>(p, tile_of(a, unit, &head), room, parts);

    for ( /* void */ ; unit < end; unit++) {
        tile = tile_of(a, unit, &head);

#pragma unroll 1
        for (i = 0; i < 2; i++) {
            vlm_sum_tile<INT8>(p, tile + i * (a.kv.head_dim / 2 / VLM_CUDA_TILE),
                               parts + i * VLM_FEW_PARTS);
        }

        __syncthreads();

        put_turned(p, a, head, tile, parts);

        __syncthreads();               /* parts were used */
    }
}


/* ---- many rows, and pictures -------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
append(text_t a)
{
    uint32_t     i, j, h, t, half;
    const float *row;

    VLM_SHARED(float, cosine, MAX_HALF);
    VLM_SHARED(float, sine, MAX_HALF);

    half = a.kv.head_dim / 2;
    t = a.first + blockIdx.x;
    row = a.rows + static_cast<size_t>(blockIdx.x) * (a.heads + 2 * a.kv.heads) * a.kv.head_dim;

    if (threadIdx.x < half) {
        angle_of(a, t, threadIdx.x, &sine[threadIdx.x], &cosine[threadIdx.x]);
    }

    __syncthreads();

    for (i = threadIdx.x; i < (a.heads + 2 * a.kv.heads) * half; i += THREADS) {
        h = i / half;
        j = i % half + h * a.kv.head_dim;

        put_pair(place_of(a, t, h), i % half, half,
                 h < a.heads + a.kv.heads
                 ? turn(row[j], row[j + half], cosine[i % half], sine[i % half])
                 : make_float2(row[j], row[j + half]));
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
                              ? turn(row[h * a.dv + j], row[h * a.dv + j + half], cosine[j],
                                     sine[j])
                              : make_float2(row[h * a.dv + j], row[h * a.dv + j + half]));
    }
}


void
vlm_load_qkv(vlm_device_t *d)
{
    VLM_LOAD(d, qkv_few<true>, VLM_INSIDE);
    VLM_LOAD(d, qkv_few<false>, VLM_INSIDE);
    VLM_LOAD(d, append, 0);
    VLM_LOAD(d, part, 0);
}


/* Whether the tiles of a head's halves do not overlap, and rows are few. */
static int
is_few(const vlm_batch_t *b, const vlm_kv_t *kv)
{
    return b->T <= VLM_FEW && kv->head_dim % (2 * VLM_CUDA_TILE) == 0;
}


static void
launch_few(vlm_device_t *d, vlm_type_t type, vlm_product_t p, const text_t &a)
{
    vlm_few_grid_t  grid;
    const double    cost = vlm_product_cost(p);

    grid = vlm_few_grid(d, &p, p.N / (2 * VLM_CUDA_TILE));

    if (type == VLM_INT8) {
        VLM_LAUNCH(d, cost, qkv_few<true>, grid.blocks, VLM_FEW_THREADS, grid.shared, p, a);
    } else {
        VLM_LAUNCH(d, cost, qkv_few<false>, grid.blocks, VLM_FEW_THREADS, grid.shared, p, a);
    }
}


void
vlm_cuda_qkv(vlm_device_t *d, const vlm_qkv_t *how, const float *x, const vlm_batch_t *b,
             const vlm_kv_t *kv, uint32_t layer, void *q)
{
    text_t               a;
    uint32_t             n;
    const vlm_linear_t  *w = how->w;

    a.rows = d->scratch.qkv;
    a.inv_freq = how->rope->inv_freq;
    a.axis = how->rope->axis;
    a.pos = b->pos;
    a.seq = b->seq;
    a.start = b->start;
    a.slot = b->slot;
    a.n_ctx = b->n_ctx;
    a.kv = *kv;
    a.layer = layer;
    a.heads = how->heads;
    a.T = b->T;
    a.q = static_cast<vlm_bf16_t *>(q);
    a.first = 0;

    if (is_few(b, kv)) {
        launch_few(d, w->type, vlm_product_of(d, w, how->norm, x, nullptr, b->T), a);
        return;
    }

    for ( /* void */ ; a.first < b->T; a.first += n) {
        n = min(b->T - a.first, vlm_product_rows(d, w));
        vlm_product(d, w, how->norm, x + static_cast<size_t>(a.first) * w->K, nullptr, n,
                    VLM_FORM_F32, d->scratch.qkv);
        VLM_LAUNCH(d, vlm_cost(6.0 * n * w->N, 0), append, n, THREADS, 0, a);
    }
}


void
vlm_cuda_qkv_2d(vlm_device_t *d, const vlm_qkv_t *how, const float *x, const vlm_patches_t *patches,
                void *q, void *k, void *v)
{
    size_t               E;
    uint32_t             p, n;
    picture_t            a;
    const vlm_linear_t  *w = how->w;

    E = w->N / 3;
    a.rows = d->scratch.qkv;
    a.inv_freq = how->rope->inv_freq;
    a.heads = how->heads;
    a.dv = w->N / 3 / how->heads;

    for (p = 0; p < patches->P; p += n) {
        n = min(patches->P - p, vlm_product_rows(d, w));
        a.row = patches->row + p;
        a.column = patches->column + p;
        a.q = static_cast<vlm_bf16_t *>(q) + p * E;
        a.k = static_cast<vlm_bf16_t *>(k) + p * E;
        a.v = static_cast<vlm_bf16_t *>(v) + p * E;

        vlm_product(d, w, how->norm, x + static_cast<size_t>(p) * w->K, nullptr, n, VLM_FORM_F32,
                    d->scratch.qkv);
        VLM_LAUNCH(d, vlm_cost(6.0 * n * w->N, 0), part, n, THREADS, 0, a);
    }
}
