/*
 * sample: a row of logits becomes a token, as ops/plain/sample.c defines it.
 *
 * A block of threads has one row.  Probabilities are whole numbers of 2^-43: their sums do not
 * depend on the order in which threads add, so that a draw is reproducible.  Nothing is sorted: top
 * k and top p need one border each, which is found digit by digit of the logits' bits.
 *
 * After the temperature, logits are at most 0, and a larger key (their bits without a sign) is a
 * smaller logit.
 */

#include "device.h"

#define THREADS  768
#define WARPS    (THREADS / VLM_WARP)
#define BATCH    8                     /* loads of a thread that are in flight together */
#define DIGITS   256
#define READS    16                    /* of a logit, about: two borders, of four digits each */
#define ONE      8796093022208.0f      /* 2^43; 2^20 of them fit into 64 bits */
#define FINITE   0x7f800000u           /* bits below are a number's */

typedef unsigned long long  sum_t;

typedef struct {
    float             *logits;         /* [R][V] */
    const vlm_pick_t  *pick;           /* [R] */
    uint32_t          *seen;           /* [slots][seen_words] */
    uint32_t          *token;          /* [R] */
    float             *logprob;        /* [R] */
    uint32_t           V, n_vocab, seen_words;
} args_t;

typedef struct {
    sum_t     histogram[DIGITS];
    sum_t     warp[WARPS];
    sum_t     sum;
    uint32_t  key, id;
    float     max[WARPS];
    uint32_t  at[WARPS];
} shared_t;

typedef struct {                       /* this thread's ids: first, first + 32, ... below end */
    float     *logits;
    uint32_t   first, end;
} ids_t;


/* Calls f(id, logit) for each of the thread's ids, from the first on. */
template <class F>
static __device__ __forceinline__ void
each(const ids_t &ids, F f)
{
    float     x[BATCH];
    uint32_t  i, j;

    for (i = ids.first; i < ids.end; i += BATCH * VLM_WARP) {

#pragma unroll
        for (j = 0; j < BATCH; j++) {
            x[j] = i + j * VLM_WARP < ids.end ? ids.logits[i + j * VLM_WARP] : 0;
        }

#pragma unroll
        for (j = 0; j < BATCH; j++) {
            if (i + j * VLM_WARP < ids.end) {
                f(i + j * VLM_WARP, x[j]);
            }
        }
    }
}


static __device__ __forceinline__ uint32_t
key_of(float logit)
{
    return __float_as_uint(logit) & 0x7fffffff;
}


static __device__ __forceinline__ sum_t
weight_of(float logit)
{
    return key_of(logit) >= FINITE ? 0 : static_cast<sum_t>(expf(logit) * ONE);
}


/* The sum over all threads, in all of them. */
static __device__ __forceinline__ sum_t
add_all(shared_t *sh, sum_t v)
{
    sum_t  all;

#pragma unroll
    for (int m = VLM_WARP / 2; m > 0; m /= 2) {
        v += __shfl_xor_sync(VLM_ALL, v, m);
    }

    __syncthreads();

    if (threadIdx.x % VLM_WARP == 0) {
        sh->warp[threadIdx.x / VLM_WARP] = v;
    }

    __syncthreads();

    for (all = 0, v = 0; v < WARPS; v++) {
        all += sh->warp[v];
    }

    return all;
}


/* ---- the largest -------------------------------------------------------------------------- */

static __device__ __forceinline__ void
take_larger(float *max, uint32_t *at, float other, uint32_t other_at)
{
    if (other > *max || (other == *max && other_at < *at)) {
        *max = other;
        *at = other_at;
    }
}


/* The largest logit and the first id that has it, in all threads. */
static __device__ __forceinline__ float
find_largest(shared_t *sh, float max, uint32_t at, uint32_t *id)
{
    float     other;
    uint32_t  i, other_at;

#pragma unroll
    for (int m = VLM_WARP / 2; m > 0; m /= 2) {
        other = __shfl_xor_sync(VLM_ALL, max, m);
        other_at = __shfl_xor_sync(VLM_ALL, at, m);
        take_larger(&max, &at, other, other_at);
    }

    if (threadIdx.x % VLM_WARP == 0) {
        sh->max[threadIdx.x / VLM_WARP] = max;
        sh->at[threadIdx.x / VLM_WARP] = at;
    }

    __syncthreads();

    for (i = 0; i < WARPS; i++) {
        take_larger(&max, &at, sh->max[i], sh->at[i]);
    }

    *id = at;

    return max;
}


/* Penalised where the sequence has the token; a 1 in *bad if one is not a number. */
static __device__ __forceinline__ float
penalize(const args_t &a, const ids_t &ids, const vlm_pick_t &pick, const uint32_t *seen,
         shared_t *sh, uint32_t *id, uint32_t *bad)
{
    float     max;
    uint32_t  at;

    max = -__uint_as_float(FINITE);
    at = UINT32_MAX;
    *bad = 0;

    each(ids, [&](uint32_t i, float x) {
        x = i < a.n_vocab ? x : -__uint_as_float(FINITE);
        *bad |= key_of(x) > FINITE;

        if (i < a.n_vocab && pick.repetition_penalty != 1 && (seen[i / 32] >> i % 32 & 1)) {
            x = x < 0 ? x * pick.repetition_penalty : x / pick.repetition_penalty;
        }

        ids.logits[i] = x;
        take_larger(&max, &at, x, i);
    });

    return find_largest(sh, max, at, id);
}


/* ---- borders ------------------------------------------------------------------------------ */

/*
 * Finds one more digit of the border: of the keys that begin as sh->key does, the largest come
 * first, and sh->sum is the weight that may still be dropped.  One warp does it, 8 digits a lane.
 */
static __device__ __forceinline__ void
next_digit(shared_t *sh, uint32_t shift)
{
    sum_t     mine, before, other;
    uint32_t  i, lane;

    lane = threadIdx.x;

    for (mine = 0, i = 0; i < DIGITS / VLM_WARP; i++) {
        mine += sh->histogram[DIGITS - 1 - lane * (DIGITS / VLM_WARP) - i];
    }

    before = mine;

#pragma unroll
    for (int m = 1; m < VLM_WARP; m *= 2) {
        other = __shfl_up_sync(VLM_ALL, before, m);
        before += static_cast<int>(lane) >= m ? other : 0;
    }

    before -= mine;
    other = sh->sum;
    __syncwarp();

    if (before > other || other >= before + mine) {
        return;                        /* another lane has the border */
    }

    for (i = DIGITS - 1 - lane * (DIGITS / VLM_WARP); other >= before + sh->histogram[i]; i--) {
        before += sh->histogram[i];
    }

    sh->sum = other - before;
    sh->key |= i << shift;
}


/*
 * Adds the weights, or the number, of keys that begin as sh->key does to the histogram of their
 * next digit.  Most logits share the first digit: a thread adds what follows each other with the
 * same digit in a register, because atomic additions to one place wait for each other.
 */
template <bool BY_WEIGHT>
static __device__ __forceinline__ void
count_digits(shared_t *sh, const ids_t &ids, uint32_t shift)
{
    sum_t           sum;
    uint32_t        digit;
    const uint32_t  begin = shift == 24 ? 0 : sh->key >> (shift + 8);

    sum = 0;
    digit = 0;

    each(ids, [&](uint32_t, float x) {
        sum_t           weight;
        const uint32_t  key = key_of(x);

        if (shift != 24 && key >> (shift + 8) != begin) {
            return;
        }

        weight = BY_WEIGHT ? weight_of(x) : 1;

        if ((key >> shift & (DIGITS - 1)) != digit) {
            (void) atomicAdd(&sh->histogram[digit], sum);
            digit = key >> shift & (DIGITS - 1);
            sum = 0;
        }

        sum += weight;
    });

    (void) atomicAdd(&sh->histogram[digit], sum);
}


/*
 * Finds the border: keys above it weigh no more than drop together, with those equal to it they
 * weigh more.  sh->key is the border, sh->sum the part of drop that is left for keys equal to it.
 * drop is less than the weight of all.
 */
template <bool BY_WEIGHT>
static __device__ __forceinline__ void
find_border(shared_t *sh, const ids_t &ids, sum_t drop)
{
    if (threadIdx.x == 0) {
        sh->key = 0;
        sh->sum = drop;
    }

    for (int shift = 24; shift >= 0; shift -= 8) {
        if (threadIdx.x < DIGITS) {
            sh->histogram[threadIdx.x] = 0;
        }

        __syncthreads();

        count_digits<BY_WEIGHT>(sh, ids, static_cast<uint32_t>(shift));

        __syncthreads();

        if (threadIdx.x < VLM_WARP) {
            next_digit(sh, static_cast<uint32_t>(shift));
        }

        __syncthreads();
    }
}


static __device__ __forceinline__ uint32_t
count_equals(shared_t *sh, const ids_t &ids, uint32_t key, uint32_t below)
{
    uint32_t  n = 0;

    each(ids, [&](uint32_t i, float x) { n += i < below && key_of(x) == key; });

    return static_cast<uint32_t>(add_all(sh, n));
}


/*
 * Of the tokens whose key equals the border, the first `keep` remain.  Returns the id from which on
 * the others are dropped.
 */
static __device__ __forceinline__ uint32_t
find_last(shared_t *sh, const ids_t &ids, uint32_t key, uint32_t keep, uint32_t V)
{
    uint32_t  low, high, mid;

    for (low = 0, high = V; low < high; /* void */) {
        mid = low + (high - low) / 2;

        if (count_equals(sh, ids, key, mid) >= keep) {
            high = mid;
        } else {
            low = mid + 1;
        }
    }

    return low;
}


static __device__ __forceinline__ void
keep_top_k(shared_t *sh, const ids_t &ids, uint32_t k, uint32_t V)
{
    uint32_t  border;

    if (k == 0 || k >= V) {
        return;
    }

    find_border<false>(sh, ids, V - k);
    border = sh->key;

    each(ids, [&](uint32_t i, float x) {
        if (key_of(x) > border) {
            ids.logits[i] = -__uint_as_float(FINITE);
        }
    });

    __syncthreads();
}


static __device__ __forceinline__ sum_t
add_weights(shared_t *sh, const ids_t &ids)
{
    sum_t  sum = 0;

    each(ids, [&](uint32_t, float x) { sum += weight_of(x); });

    return add_all(sh, sum);
}


static __device__ __forceinline__ void
keep_top_p(shared_t *sh, const ids_t &ids, float p, uint32_t V)
{
    sum_t     all, drop;
    uint32_t  border, n, go, last;

    if (p >= 1) {
        return;
    }

    all = add_weights(sh, ids);
    drop = static_cast<sum_t>((1 - static_cast<double>(p)) * static_cast<double>(all));
    find_border<true>(sh, ids, drop < all ? drop : all - 1);

    border = sh->key;
    drop = sh->sum;
    n = count_equals(sh, ids, border, V);
    go = static_cast<uint32_t>(drop / weight_of(-__uint_as_float(border)));
    last = go == 0 ? V : find_last(sh, ids, border, n - go, V);

    __syncthreads();

    each(ids, [&](uint32_t i, float x) {
        if (key_of(x) > border || (key_of(x) == border && i >= last)) {
            ids.logits[i] = -__uint_as_float(FINITE);
        }
    });

    __syncthreads();
}


/* ---- the draw ----------------------------------------------------------------------------- */

/* splitmix64 over (seed, step). */
static __device__ __forceinline__ double
uniform(uint64_t seed, uint32_t step)
{
    uint64_t  z;

    z = seed + (static_cast<uint64_t>(step) + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;

    return static_cast<double>(z >> 11) * 0x1p-53;
}


/* The id where sums of weights, in the order of ids, pass `left`; the warp has these ids. */
static __device__ __forceinline__ void
draw_in_warp(shared_t *sh, const ids_t &ids, uint32_t begin, sum_t left)
{
    float     x, next;
    sum_t     sum, other;
    uint32_t  i, lane, passed;

    lane = threadIdx.x % VLM_WARP;
    next = begin + lane < ids.end ? ids.logits[begin + lane] : -__uint_as_float(FINITE);

    for (i = begin; i < ids.end; i += VLM_WARP) {
        x = next;
        next = i + VLM_WARP + lane < ids.end ? ids.logits[i + VLM_WARP + lane]
                                             : -__uint_as_float(FINITE);
        sum = weight_of(x);

#pragma unroll
        for (int m = 1; m < VLM_WARP; m *= 2) {
            other = __shfl_up_sync(VLM_ALL, sum, m);
            sum += static_cast<int>(lane) >= m ? other : 0;
        }

        passed = __ballot_sync(VLM_ALL, sum > left);

        if (passed != 0) {
            if (lane == 0) {
                sh->id = i + static_cast<uint32_t>(__ffs(static_cast<int>(passed))) - 1;
            }
            return;
        }

        left -= __shfl_sync(VLM_ALL, sum, VLM_WARP - 1);
    }
}


/* Draws, with the result in all threads; all is the sum of the row's weights. */
static __device__ __forceinline__ uint32_t
draw(shared_t *sh, const ids_t &ids, const vlm_pick_t &pick, sum_t all)
{
    sum_t     left;
    uint32_t  w;

    left = static_cast<sum_t>(uniform(pick.seed, pick.step) * static_cast<double>(all));
    left = left < all ? left : all - 1;

    /* add_all() has left each warp's sum, and a warp's ids follow each other. */

    for (w = 0; left >= sh->warp[w]; w++) {
        left -= sh->warp[w];
    }

    if (w == threadIdx.x / VLM_WARP) {
        draw_in_warp(sh, ids, ids.first - threadIdx.x % VLM_WARP, left);
    }

    __syncthreads();

    return sh->id;
}


__global__ void __launch_bounds__(THREADS, 1)
sample(args_t a)
{
    float        max;
    sum_t        all;
    ids_t        ids;
    uint32_t     id, bad, share, *seen;
    vlm_pick_t   pick;
    shared_t    *sh;

    VLM_SHARED(shared_t, shared, 1);

    sh = shared;
    pick = a.pick[blockIdx.x];
    seen = a.seen + static_cast<size_t>(pick.seen) * a.seen_words;
    share = (a.V + THREADS - 1) / THREADS * VLM_WARP;
    ids.logits = a.logits + static_cast<size_t>(blockIdx.x) * a.V;
    ids.first = threadIdx.x / VLM_WARP * share + threadIdx.x % VLM_WARP;
    ids.end = min(a.V, threadIdx.x / VLM_WARP * share + share);

    max = penalize(a, ids, pick, seen, sh, &id, &bad);

    if (add_all(sh, bad) > 0 || key_of(max) >= FINITE) {
        if (threadIdx.x == 0) {
            a.token[blockIdx.x] = 0;
            a.logprob[blockIdx.x] = __uint_as_float(0x7fc00000u);
        }
        return;
    }

    each(ids, [&](uint32_t i, float x) {
        ids.logits[i] = (x - max) / (pick.temperature == 0 ? 1 : pick.temperature);
    });

    __syncthreads();

    if (pick.temperature != 0) {
        keep_top_k(sh, ids, pick.top_k, a.V);
        keep_top_p(sh, ids, pick.top_p, a.V);
    }

    all = add_weights(sh, ids);

    if (pick.temperature != 0) {
        id = draw(sh, ids, pick, all);
    }

    if (threadIdx.x == 0) {
        a.token[blockIdx.x] = id;
        a.logprob[blockIdx.x] = ids.logits[id] - logf(static_cast<float>(all) / ONE);
        seen[id / 32] |= 1u << id % 32;
    }
}


void
vlm_load_sample(vlm_device_t *d)
{
    VLM_LOAD(d, sample, 0);
}


void
vlm_cuda_sample(vlm_device_t *d, float *logits, uint32_t V, uint32_t n_vocab, const vlm_batch_t *b,
                uint32_t *seen, uint32_t seen_words, uint32_t *token, float *logprob)
{
    args_t  a;

    a.logits = logits;
    a.pick = b->pick;
    a.seen = seen;
    a.token = token;
    a.logprob = logprob;
    a.V = V;
    a.n_vocab = n_vocab;
    a.seen_words = seen_words;

    VLM_LAUNCH(d, vlm_cost(4.0 * READS * b->R * V, 0), sample, b->R, THREADS, 0, a);
}
