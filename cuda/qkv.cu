/*
 * qkv and qkv_2d: the product, then the norm of a row's heads, if they have one, their rotation by
 * the row's position, and the copy of each head to its place; keys and values of text go into the
 * cache.
 *
 * Up to 8 rows, a block has the two tiles of weight rows that are rotated together, value i of a
 * head and value i + half, and one launch does all: heads without a norm are rotated by that block,
 * heads with a norm go to memory; the block that finishes a head last normalises and rotates it.
 * Otherwise the product goes to memory, and a block of threads has one row, a warp a head.
 */

#include "product.cuh"

#define THREADS   128
#define MAX_HALF  64                   /* pairs of a head */
#define PAIRS     (MAX_HALF / VLM_WARP)            /* of a lane */

typedef struct {
    float           *rows;             /* [n][(heads + 2 kv.heads) hd] of this part */
    const float     *inv_freq;
    const uint8_t   *axis;
    const int32_t   *pos;              /* [3][T] */
    const uint32_t  *seq, *start, *slot, *n_ctx;
    vlm_kv_t         kv;
    uint32_t         layer, heads, first, T;       /* first: row of this part */
    vlm_bf16_t      *q;                /* [T][heads hd] */
    vlm_norm_t       q_norm, k_norm;   /* gain NULL: none */
    unsigned        *ticket;           /* [heads + kv.heads], 0 before and after */
} text_t;

typedef struct {                       /* of a lane's pairs: lane, lane + VLM_WARP */
    float  sine[PAIRS], cosine[PAIRS];
} angles_t;

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


/* The gain of head h, or NULL: it has no norm. */
static __device__ __forceinline__ const float *
gain_of(const text_t &a, uint32_t h)
{
    return h < a.heads ? a.q_norm.gain : h < a.heads + a.kv.heads ? a.k_norm.gain : nullptr;
}


/* ---- a head in memory, by a warp ---------------------------------------------------------- */

static __device__ __forceinline__ angles_t
angles_of(const text_t &a, uint32_t t)
{
    angles_t        v;
    uint32_t        i;
    const uint32_t  lane = threadIdx.x % VLM_WARP, half = a.kv.head_dim / 2;

#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        i = lane + VLM_WARP * j;
        v.sine[j] = v.cosine[j] = 0;

        if (i < half) {
            angle_of(a, t, i, &v.sine[j], &v.cosine[j]);
        }
    }

    return v;
}


/* The lane's values of a head, normed. */
static __device__ __forceinline__ void
norm_head(const float *gain, float eps, uint32_t half, float2 (&v)[PAIRS])
{
    float           sum, r;
    uint32_t        i;
    const uint32_t  lane = threadIdx.x % VLM_WARP;

    sum = 0;

#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        sum = fmaf(v[j].x, v[j].x, sum);
        sum = fmaf(v[j].y, v[j].y, sum);
    }

    r = 1 / sqrtf(vlm_warp_sum(sum) / static_cast<float>(2 * half) + eps);

#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        i = lane + VLM_WARP * j;

        if (i < half) {
            v[j] = make_float2(v[j].x * r * gain[i], v[j].y * r * gain[i + half]);
        }
    }
}


/* Head h of row t, whose values begin at from, to its place. */
static __device__ __forceinline__ void
put_head(const text_t &a, uint32_t t, uint32_t h, const float *from, const angles_t &by)
{
    float2          v[PAIRS];
    uint32_t        i;
    const float    *gain = gain_of(a, h);
    const uint32_t  lane = threadIdx.x % VLM_WARP, half = a.kv.head_dim / 2;

#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        i = lane + VLM_WARP * j;
        v[j] = i < half ? make_float2(vlm_load_fresh(from + i), vlm_load_fresh(from + i + half))
                        : make_float2(0, 0);
    }

    if (gain != nullptr) {
        norm_head(gain, h < a.heads ? a.q_norm.eps : a.k_norm.eps, half, v);
    }

#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
        i = lane + VLM_WARP * j;

        if (i < half) {
            put_pair(place_of(a, t, h), i, half,
                     h < a.heads + a.kv.heads ? turn(v[j].x, v[j].y, by.cosine[j], by.sine[j])
                                              : v[j]);
        }
    }
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


/*
 * Each thread has a pair of values and a row; parts are those of both tiles.  A head with a norm
 * goes to a.rows, any other to its place.
 */
static __device__ __forceinline__ void
put_unit(const vlm_product_t &p, const text_t &a, uint32_t head, uint32_t tile,
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

    v = vlm_finish(p, t, n, vlm_add_parts(parts, row, t));
    w = vlm_finish(p, t, n + half, vlm_add_parts(parts + VLM_FEW_PARTS, row, t));

    if (gain_of(a, head) != nullptr) {
        a.rows[static_cast<size_t>(t) * p.N + n] = v;
        a.rows[static_cast<size_t>(t) * p.N + n + half] = w;
        return;
    }

    if (head >= a.heads + a.kv.heads) {
        put_pair(place_of(a, t, head), i, half, make_float2(v, w));
        return;
    }

    angle_of(a, t, i, &sine, &cosine);
    put_pair(place_of(a, t, head), i, half, turn(v, w, cosine, sine));
}


/* A head with a norm, once all of it lies in a.rows: a warp has a row. */
static __device__ __forceinline__ void
put_normed(const vlm_product_t &p, const text_t &a, uint32_t head)
{
    uint32_t  t = threadIdx.x / VLM_WARP;

    if (t < p.T) {
        put_head(a, t, head, a.rows + static_cast<size_t>(t) * p.N + head * a.kv.head_dim,
                 angles_of(a, t));
    }
}


/* A block computes its units one after the other, each with all rows. */
template <bool INT8>
__global__ void __launch_bounds__(VLM_FEW_THREADS, VLM_FEW_BLOCKS)
qkv_few(vlm_product_t p, text_t a)
{
    uint32_t       unit, end, tile, head, i;
    constexpr int  FORM = INT8 ? VLM_FORM_INT8 : VLM_FORM_BF16;

    VLM_SHARED(float, parts, 2 * VLM_FEW_PARTS);
    VLM_SHARED(unsigned, number, 1);
    VLM_SHARED_DYNAMIC(room);

    unit = blockIdx.x * p.tiles;
    end = min(unit + p.tiles, p.N / (2 * VLM_CUDA_TILE));

    vlm_begin_few<FORM>(p, tile_of(a, unit, &head), room, parts);

    for ( /* void */ ; unit < end; unit++) {
        tile = tile_of(a, unit, &head);

#pragma unroll 1
        for (i = 0; i < 2; i++) {
            vlm_sum_tile<FORM>(p, tile + i * (a.kv.head_dim / 2 / VLM_CUDA_TILE),
                               parts + i * VLM_FEW_PARTS);
        }

        __syncthreads();

        put_unit(p, a, head, tile, parts);

        if (gain_of(a, head) != nullptr
            && vlm_come_last(a.ticket + head, a.kv.head_dim / (2 * VLM_CUDA_TILE), number))
        {
            put_normed(p, a, head);
        }

        __syncthreads();               /* the parts are no longer needed */
    }
}


/* ---- many rows, and pictures -------------------------------------------------------------- */

__global__ void __launch_bounds__(THREADS)
append(text_t a)
{
    uint32_t        h;
    const float    *row;
    const uint32_t  heads = a.heads + 2 * a.kv.heads, t = a.first + blockIdx.x;
    const angles_t  by = angles_of(a, t);

    row = a.rows + static_cast<size_t>(blockIdx.x) * heads * a.kv.head_dim;

    for (h = threadIdx.x / VLM_WARP; h < heads; h += THREADS / VLM_WARP) {
        put_head(a, t, h, row + h * a.kv.head_dim, by);
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
    const vlm_norm_t     none = { VLM_NORM_RMS, nullptr, 0, nullptr };
    const vlm_linear_t  *w = how->w;

    a.rows = d->scratch.qkv;
    a.q_norm = how->q_norm == nullptr ? none : *how->q_norm;
    a.k_norm = how->k_norm == nullptr ? none : *how->k_norm;
    a.ticket = d->scratch.head_ticket;
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
        launch_few(d, w->type, vlm_product_of(d, w, how->norm, x, nullptr, b->T, { 0, nullptr }),
                   a);
        return;
    }

    for ( /* void */ ; a.first < b->T; a.first += n) {
        n = min(b->T - a.first, vlm_product_rows(d, w));
        vlm_product(d, w, how->norm, x + static_cast<size_t>(a.first) * w->K, nullptr, n,
                    { a.first, nullptr }, VLM_OUT_F32, d->scratch.qkv);
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

        vlm_product(d, w, how->norm, x + static_cast<size_t>(p) * w->K, nullptr, n,
                    { p, nullptr }, VLM_OUT_F32, d->scratch.qkv);
        VLM_LAUNCH(d, vlm_cost(6.0 * n * w->N, 0), part, n, THREADS, 0, a);
    }
}
