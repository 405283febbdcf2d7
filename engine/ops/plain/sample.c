/*
 * The definition of sampling, in the reference's order: repetition penalty over every id of the
 * sequence, temperature, top k, top p, softmax, one draw.  Ties are kept as in the reference: top k
 * keeps all that equal the k-th; top p removes from the smallest up.  The reference does not define
 * which of equal ones top p removes first; here the last id is removed first, so that the token
 * that greedy would pick stays.
 */

#include <math.h>

#include "ops/kernels.h"


static int
penalize(float *logits, uint32_t V, uint32_t n_vocab, const uint32_t *seen, float penalty)
{
    uint32_t  i;

    for (i = 0; i < V; i++) {
        if (i >= n_vocab) {
            logits[i] = -INFINITY;
            continue;
        }

        if (isnan(logits[i])) {
            return -1;
        }

        if (penalty != 1 && (seen[i / 32] >> (i % 32) & 1)) {
            logits[i] = logits[i] < 0 ? logits[i] * penalty : logits[i] / penalty;
        }
    }

    return 0;
}


/* The logits less their largest, so that no temperature is too low; -1: not finite. */
static int
temper(float *logits, uint32_t V, float temperature)
{
    float     max;
    uint32_t  i;

    max = -INFINITY;

    for (i = 0; i < V; i++) {
        max = logits[i] > max ? logits[i] : max;
    }

    if (!isfinite(max)) {
        return -1;
    }

    for (i = 0; i < V && temperature != 0; i++) {
        logits[i] = (logits[i] - max) / temperature;
    }

    return 0;
}


/* Of equal ones the last id is the smaller. */
static inline int
below(const vlm_candidate_t *a, const vlm_candidate_t *b)
{
    return a->logit != b->logit ? a->logit < b->logit : a->id > b->id;
}


static void
sift_down(vlm_candidate_t *heap, uint32_t n, uint32_t i)
{
    uint32_t         child;
    vlm_candidate_t  moved;

    moved = heap[i];

    for ( ;; ) {
        child = 2 * i + 1;
        if (child >= n) {
            break;
        }

        if (child + 1 < n && below(&heap[child + 1], &heap[child])) {
            child++;
        }

        if (!below(&heap[child], &moved)) {
            break;
        }

        heap[i] = heap[child];
        i = child;
    }

    heap[i] = moved;
}


/* A heap with the smallest on top. */
static void
make_heap(vlm_candidate_t *heap, uint32_t n)
{
    uint32_t  i;

    for (i = n / 2; i-- > 0; /* void */) {
        sift_down(heap, n, i);
    }
}


/* A heap of the k largest: its top is the threshold. */
static void
keep_top_k(float *logits, uint32_t V, uint32_t k, vlm_candidate_t *heap)
{
    float     bar;
    uint32_t  i;

    if (k == 0 || k >= V) {
        return;
    }

    for (i = 0; i < k; i++) {
        heap[i] = (vlm_candidate_t) { logits[i], i };
    }

    make_heap(heap, k);

    for (i = k; i < V; i++) {
        if (logits[i] > heap[0].logit) {
            heap[0] = (vlm_candidate_t) { logits[i], i };
            sift_down(heap, k, 0);
        }
    }

    bar = heap[0].logit;

    for (i = 0; i < V; i++) {
        if (logits[i] < bar) {
            logits[i] = -INFINITY;
        }
    }
}


/*
 * Removes from the smallest up those whose probabilities add up to at most 1 - p; the largest
 * stays.  Logits are at most 0, the largest is 0.  (No qsort(): libc's allocates.)
 */
static void
keep_top_p(float *logits, uint32_t V, float p, vlm_candidate_t *heap)
{
    double    sum, rest;
    uint32_t  i, n;

    if (p >= 1) {
        return;
    }

    for (sum = 0, n = 0, i = 0; i < V; i++) {
        if (logits[i] != -INFINITY) {
            heap[n++] = (vlm_candidate_t) { logits[i], i };
            sum += exp(logits[i]);
        }
    }

    make_heap(heap, n);

    for (rest = 0; n > 1; /* void */) {
        rest += exp(heap[0].logit) / sum;
        if (rest > 1 - (double) p) {
            break;
        }

        logits[heap[0].id] = -INFINITY;
        heap[0] = heap[--n];
        sift_down(heap, n, 0);
    }
}


int
vlm_sample_filter(float *logits, uint32_t V, uint32_t n_vocab, const uint32_t *seen,
                  const vlm_pick_t *pick, vlm_candidate_t *work)
{
    if (penalize(logits, V, n_vocab, seen, pick->repetition_penalty) != 0
        || temper(logits, V, pick->temperature) != 0)
    {
        return -1;
    }

    if (pick->temperature != 0) {
        keep_top_k(logits, V, pick->top_k, work);
        keep_top_p(logits, V, pick->top_p, work);
    }

    return 0;
}


/* splitmix64 over (seed, step): a draw depends on nothing else. */
static double
uniform(uint64_t seed, uint32_t step)
{
    uint64_t  z;

    z = seed + (step + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;

    return (double) (z >> 11) * 0x1p-53;
}


uint32_t
vlm_sample_pick(const float *logits, uint32_t V, const vlm_pick_t *pick, float *logprob)
{
    float     max;
    double    sum, left;
    uint32_t  i, id;

    id = 0;

    for (i = 1; i < V; i++) {
        id = logits[i] > logits[id] ? i : id;
    }

    max = logits[id];
    sum = 0;

    for (i = 0; i < V; i++) {
        sum += exp((double) logits[i] - max);
    }

    if (pick->temperature != 0) {
        left = uniform(pick->seed, pick->step) * sum;

        for (i = 0; i < V && left >= 0; i++) {
            if (logits[i] != -INFINITY) {
                id = i;
                left -= exp((double) logits[i] - max);
            }
        }
    }

    *logprob = (float) ((double) logits[id] - max - log(sum));

    return id;
}
