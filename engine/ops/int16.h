/*
 * Attention in int16 for vectors of any width: included by avx2/, avxvnni/ and
 * avx512/int16.c, which define a vector of floats (vec_t, WIDTH of them), one of as many integers
 * (int_t), the number of vectors in a tile (COLUMN), and their few operations.
 *
 * Up to ROWS queries go over the keys together, block by block.  A vector has one value of each of
 * WIDTH rows, in everything but keys and values, which are read as they lie: a pair of 16-bit
 * numbers at a time for all rows.  So no step crosses a vector, and everything that belongs to a
 * block stays in a near cache.  The bits equal plain/int16.c's.
 */

#include "base/size.h"
#include "ops/plain/int16.h"

#define ROWS   VLM_INT16_ROWS
#define KEYS   VLM_INT16_KEYS
#define LANES  VLM_INT16_LANES
#define TILE   4                       /* keys of a tile of scores, values of a tile of outputs */
#define HALF   8
#define FEW    8                       /* rows that come one after the other: few16.h */
#define LINE   16                      /* floats of a cache line */

typedef struct {                       /* rows that attend to the first keys of one cache */
    uint32_t        n;
    const int16_t  *q[ROWS];
    float          *o[ROWS];
    uint32_t        keys[ROWS];        /* the row's own */
    uint32_t        most, least;       /* of all */
    const int16_t  *k, *v;             /* key 0; or NULL: */
    const int8_t   *k8, *v8;           /* the same in int8 */
    const float    *ks, *vs;           /* their scales */
    size_t          step;              /* elements from key to key */
    uint32_t        hd, wide;          /* a multiple of HALF; of VLM_INT16_WIDE */
    float           scale, slope;      /* of scores in powers of two; slope 0: no ALiBi */

    int16_t        *block;             /* [KEYS][hd] keys or values that came in int8 */
    int16_t        *queries;           /* [ROWS][hd] that came in f32 */
    int32_t        *tile;              /* [wide / 2][ROWS] pairs of queries */
    float          *scores;            /* [KEYS][ROWS], then weights */
    int32_t        *parts;             /* [KEYS / 2][ROWS] pairs of weights */
    int32_t        *values;            /* [KEYS / 2][wide] pairs of values */
    float          *out;               /* [wide][ROWS] */
    float          *lanes;             /* [LANES][ROWS] */
    float          *qs, *seen;         /* [ROWS] scales of queries and scores; keys as f32 */
    float          *max, *sum;         /* [ROWS] until this block */
    float          *top;               /* [ROWS] of this block: its maximum */
    float          *old, *part_scale;  /* [ROWS] of this block: what the earlier ones count */
} vlm_int16_job_t;


/* 2^x of a score less the maximum, as in plain/int16.c. */
static inline vec_t
vec_exp2(vec_t x)
{
    vec_t  t, f, p;

    x = vec_max(vec_set(-100), x);     /* the second if one is not a number */
    t = vec_add(x, vec_set(VLM_ROUNDER));
    f = vec_sub(x, vec_sub(t, vec_set(VLM_ROUNDER)));

    p = vec_fma(vec_set(VLM_EXP2_E), f, vec_set(VLM_EXP2_D));
    p = vec_fma(p, f, vec_set(VLM_EXP2_C));
    p = vec_fma(p, f, vec_set(VLM_EXP2_B));
    p = vec_fma(p, f, vec_set(VLM_EXP2_A));
    p = vec_fma(p, f, vec_set(1));

    return int_as_vec(int_add(vec_as_int(p), int_shift(vec_as_int(t), 23)));
}


/* WIDTH pairs of a query from pair d on; beyond its end, zeros. */
static inline vec_t
load_pairs(const vlm_int16_job_t *j, uint32_t r, uint32_t d)
{
    int16_t  end[2 * WIDTH] = { 0 };

    if (2 * (d + WIDTH) <= j->hd) {
        return vec_load((const float *) (j->q[r] + 2 * d));
    }

    memcpy(end, j->q[r] + 2 * d, (j->hd - 2 * d) * sizeof(int16_t));

    return vec_load((const float *) end);
}


/* Queries as [hd / 2][ROWS] pairs; beyond the last row, zeros.  Outputs will be written. */
static void
turn_queries(const vlm_int16_job_t *j)
{
    vec_t     x[WIDTH];
    uint32_t  i, d, r;

    for (r = 0; r < j->n; r++) {
        for (d = 0; d < j->hd; d += LINE) {
            __builtin_prefetch(j->o[r] + d, 1);
        }
    }

    for (r = 0; r < j->n; r += WIDTH) {
        for (d = 0; d < j->hd / 2; d += WIDTH) {
            for (i = 0; i < WIDTH; i++) {
                x[i] = r + i < j->n ? load_pairs(j, r + i, d) : vec_zero();
            }

            vec_turn(x);

            for (i = 0; i < WIDTH; i++) {
                vec_store((float *) j->tile + (size_t) (d + i) * ROWS + r, x[i]);
            }
        }
    }
}


/*
 * Sums of n products of pairs: x is `vecs` vectors that lie ROWS apart from one to the next, y one
 * number each that lie `step` apart.  sum [TILE][COLUMN WIDTH].
 */
static inline __attribute__((always_inline)) void
dot_tile(const int32_t *x, const pair_t *const y[TILE], size_t step, uint32_t n, int32_t *sum,
         int vecs)
{
    int       m, i;
    int_t     all[TILE][COLUMN], of[COLUMN], one;
    size_t    at;
    uint32_t  d;

#ifdef DOT_TILE
    if (vecs == COLUMN) {
        DOT_TILE(x, y, step, n, sum);
        return;
    }
#endif

    for (m = 0; m < TILE; m++) {
        for (i = 0; i < vecs; i++) {
            all[m][i] = int_zero();
        }
    }

    for (d = 0, at = 0; d < n; d++, x += ROWS, at += step) {
        for (i = 0; i < vecs; i++) {
            of[i] = int_load(x + i * WIDTH);
        }

        for (m = 0; m < TILE; m++) {
            one = int_set(y[m][at]);

            for (i = 0; i < vecs; i++) {
                all[m][i] = int_dot(all[m][i], one, of[i]);
            }
        }
    }

    for (m = 0; m < TILE; m++) {
        for (i = 0; i < vecs; i++) {
            int_store(sum + (m * COLUMN + i) * WIDTH, all[m][i]);
        }
    }
}


/* Sums become scores of key `key` of the block that begins with `first`, and of those after it. */
static inline __attribute__((always_inline)) void
keep_scores(const vlm_int16_job_t *j, const int32_t *sum, uint32_t first, uint32_t key, uint32_t r,
            int vecs)
{
    int       m, i, all;
    vec_t     top, seen, qs, score, more, ks[TILE], slope = vec_set(j->slope);
    float    *to = j->scores + (size_t) key * ROWS + r;
    uint32_t  at;

    all = first + key + TILE <= j->least && j->slope == 0;

    for (m = 0; m < TILE; m++) {
        at = first + key + m;
        ks[m] = vec_set(j->ks[at < j->most ? at : j->most - 1]);
    }

    for (i = 0; i < vecs; i++, r += WIDTH, to += WIDTH) {
        top = vec_load(j->top + r);
        seen = vec_load(j->seen + r);
        qs = vec_load(j->qs + r);

        for (m = 0; m < TILE; m++) {
            score = vec_mul(int_to_vec(int_load(sum + (m * COLUMN + i) * WIDTH)), qs);
            score = vec_mul(score, ks[m]);

            if (all) {
                vec_store(to + m * ROWS, score);
                top = vec_max(score, top);
                continue;
            }

            at = first + key + m;

            if (j->slope != 0) {
                score = vec_fma(slope, vec_sub(vec_set((float) at + 1), seen), score);
            }

            vec_store(to + m * ROWS, score);
            more = vec_max(score, top);
            top = vec_above(seen, (float) at, more, top);
        }

        vec_store(j->top + r, top);
    }
}


static inline __attribute__((always_inline)) void
score_tile(const vlm_int16_job_t *j, const pair_t *const k[TILE], uint32_t first, uint32_t key,
           uint32_t r, int vecs)
{
    int32_t  sum[TILE * COLUMN * WIDTH] __attribute__((aligned(64)));

    dot_tile(j->tile + r, k, 1, j->hd / 2, sum, vecs);
    keep_scores(j, sum, first, key, r, vecs);
}


/* A block's n keys or values, as int16: int8 is widened to it. */
static const int16_t *
block_of(const vlm_int16_job_t *j, const int16_t *x, const int8_t *x8, uint32_t first, uint32_t n)
{
    size_t  i;

    if (x != NULL) {
        return x + first * j->step;
    }

    x8 += first * j->step;             /* a cache's rows lie without gaps */

    for (i = 0; i < (size_t) n * j->hd; i++) {
        j->block[i] = x8[i];
    }

    return j->block;
}


/* Scores of a block's n keys.  Beyond the last key of all, they are that key's again. */
static void
score_block(const vlm_int16_job_t *j, const int16_t *keys, uint32_t first, uint32_t n)
{
    uint32_t        i, r, at, key;
    const pair_t   *k[TILE];

    for (r = 0; r < j->n; r++) {
        j->top[r] = -INFINITY;
    }

    for (key = 0; key < n; key += TILE) {
        for (i = 0; i < TILE; i++) {
            at = key + i < n ? key + i : n - 1;
            k[i] = (const pair_t *) (keys + at * j->step);
        }

        for (r = 0; j->n > r + (COLUMN - 1) * WIDTH; r += COLUMN * WIDTH) {
            score_tile(j, k, first, key, r, COLUMN);
        }

        for ( /* void */ ; r < j->n; r += WIDTH) {
            score_tile(j, k, first, key, r, 1);
        }
    }
}


/* Row vector r's scores of n keys become weights; returns the largest with its value's scale. */
static inline vec_t
weigh_keys(const vlm_int16_job_t *j, uint32_t first, uint32_t n, uint32_t r)
{
    int        all;
    vec_t      max, seen, e;
    float     *scores, *lane;
    int_t      top;
    uint32_t   key;

    all = first + n <= j->least;
    max = vec_load(j->max + r);
    seen = vec_load(j->seen + r);
    scores = j->scores + r;
    top = int_zero();

    for (key = 0; key < LANES; key++) {
        vec_store(j->lanes + key * ROWS + r, vec_zero());
    }

    for (key = 0; key < n; key++, scores += ROWS) {
        e = vec_exp2(vec_sub(vec_load(scores), max));

        if (!all) {
            e = vec_above(seen, (float) (first + key), e, vec_zero());
        }

        lane = j->lanes + key % LANES * ROWS + r;
        vec_store(lane, vec_add(vec_load(lane), e));

        e = vec_mul(e, vec_set(j->vs[first + key]));

        if (!all) {
            e = vec_above(seen, (float) (first + key), e, vec_zero());
        }

        vec_store(scores, e);
        top = int_max(top, vec_as_int(e));
    }

    if (n % 2 != 0) {
        vec_store(scores, vec_zero());
    }

    return int_as_vec(top);
}


/* The sum of all keys' weights. */
static inline vec_t
sum_lanes(const vlm_int16_job_t *j, uint32_t r)
{
    vec_t     lane[LANES];
    uint32_t  i, n;

    for (i = 0; i < LANES; i++) {
        lane[i] = vec_load(j->lanes + i * ROWS + r);
    }

    for (n = LANES / 2; n > 0; n /= 2) {
        for (i = 0; i < n; i++) {
            lane[i] = vec_add(lane[i], lane[i + n]);
        }
    }

    return lane[0];
}


/* Scores of a block become weights, and these int16. */
static void
weigh_block(const vlm_int16_job_t *j, uint32_t first, uint32_t n)
{
    vec_t     max, old, top, inverse, least = vec_set(VLM_INT16_LEAST);
    int_t     low, high;
    float    *scores;
    uint32_t  r, key;

    for (r = 0; r < j->n; r += WIDTH) {
        old = vec_load(j->max + r);
        max = vec_max(vec_load(j->top + r), old);
        old = vec_exp2(vec_sub(old, max));
        vec_store(j->max + r, max);
        vec_store(j->old + r, old);

        top = weigh_keys(j, first, n, r);
        vec_store(j->sum + r, vec_fma(vec_load(j->sum + r), old, sum_lanes(j, r)));

        inverse = vec_less(top, least, vec_zero(), vec_div(vec_set(VLM_INT16_PART), top));
        vec_store(j->part_scale + r, vec_less(top, least, vec_zero(),
                                              vec_mul(top, vec_set(1.0f / VLM_INT16_PART))));
        scores = j->scores + r;

        for (key = 0; key < n; key += 2, scores += 2 * ROWS) {
            low = vec_to_int(vec_mul(vec_load(scores), inverse));
            high = vec_to_int(vec_mul(vec_load(scores + ROWS), inverse));
            int_store(j->parts + key / 2 * ROWS + r, int_or(low, int_shift(high, 16)));
        }
    }
}


/* Values of n keys as pairs of two keys; a single one at the end has a zero beside it. */
static void
pair_values(const vlm_int16_job_t *j, const int16_t *values, uint32_t n)
{
    uint32_t        key, d;
    int32_t        *to;
    const int16_t  *low, *high;

    for (key = 0; key < n; key += 2) {
        to = j->values + (size_t) key / 2 * j->wide;
        low = values + key * j->step;
        high = key + 1 < n ? low + j->step : low;  /* whose weight is zero */

        d = 0;

#ifdef PAIR_WIDE
        for ( /* void */ ; d + PAIR_WIDE <= j->hd; d += PAIR_WIDE) {
            pair_wide(low + d, high + d, to + d);
        }
#endif

        for ( /* void */ ; d < j->hd; d += HALF) {
            pair_eight(low + d, high + d, to + d);
        }
    }
}


/* TILE values of `vecs` vectors of outputs from value d and row r on go on with n keys. */
static inline __attribute__((always_inline)) void
sum_tile(const vlm_int16_job_t *j, uint32_t first, uint32_t n, uint32_t d, uint32_t r, int vecs)
{
    int            m, i;
    vec_t          old, part_scale, was, more;
    float         *out = j->out + (size_t) d * ROWS + r;
    int32_t        sum[TILE * COLUMN * WIDTH] __attribute__((aligned(64)));
    const pair_t  *values[TILE];

    for (m = 0; m < TILE; m++) {
        values[m] = j->values + d + m;
    }

    dot_tile(j->parts + r, values, j->wide, (n + 1) / 2, sum, vecs);

    for (i = 0; i < vecs; i++, r += WIDTH, out += WIDTH) {
        old = vec_load(j->old + r);
        part_scale = vec_load(j->part_scale + r);

        for (m = 0; m < TILE; m++) {
            more = int_to_vec(int_load(sum + (m * COLUMN + i) * WIDTH));
            was = first == 0 ? vec_zero() : vec_load(out + m * ROWS);
            vec_store(out + m * ROWS, vec_fma(more, part_scale, vec_mul(was, old)));
        }
    }
}


static void
sum_block(const vlm_int16_job_t *j, uint32_t first, uint32_t n)
{
    uint32_t  d, r;

    for (d = 0; d < j->hd; d += TILE) {
        for (r = 0; j->n > r + (COLUMN - 1) * WIDTH; r += COLUMN * WIDTH) {
            sum_tile(j, first, n, d, r, COLUMN);
        }

        for ( /* void */ ; r < j->n; r += WIDTH) {
            sum_tile(j, first, n, d, r, 1);
        }
    }
}


/* Outputs over the sums of weights, back in rows. */
static void
finish_rows(const vlm_int16_job_t *j)
{
    vec_t     x[WIDTH], sum;
    uint32_t  r, d, i;

    for (r = 0; r < j->n; r += WIDTH) {
        sum = vec_div(vec_set(1), vec_load(j->sum + r));

        for (d = 0; d < j->hd; d += WIDTH) {
            for (i = 0; i < WIDTH; i++) {
                x[i] = vec_mul(vec_load(j->out + (size_t) (d + i) * ROWS + r), sum);
            }

            vec_turn(x);

            for (i = 0; i < WIDTH && r + i < j->n; i++) {
                if (j->hd - d < WIDTH) {
                    vec_store_half(j->o[r + i] + d, x[i]);
                } else {
                    vec_store(j->o[r + i] + d, x[i]);
                }
            }
        }
    }
}


#include "ops/few16.h"


/* All blocks of keys. */
static void
attend_many(vlm_int16_job_t *j)
{
    uint32_t  r, n, first;

    turn_queries(j);

    for (r = 0; r < ROWS; r++) {
        j->seen[r] = r < j->n ? (float) j->keys[r] : 0;
        j->max[r] = -INFINITY;
        j->sum[r] = 0;
    }

    for (first = 0; first < j->most; first += KEYS) {
        n = j->most - first < KEYS ? j->most - first : KEYS;
        score_block(j, block_of(j, j->k, j->k8, first, n), first, n);
        weigh_block(j, first, n);
        pair_values(j, block_of(j, j->v, j->v8, first, n), n);
        sum_block(j, first, n);
    }

    finish_rows(j);
}


/* Does what has been added, and begins again. */
static void
attend_rows(vlm_int16_job_t *j)
{
    if (j->n == 0) {
        return;
    }

    if (few_rows(j)) {
        attend_few(j);
    } else {
        attend_many(j);
    }

    j->n = 0;
    j->most = 0;
    j->least = UINT32_MAX;
}


static void
add_row(vlm_int16_job_t *j, const int16_t *q, float scale, float *o, uint32_t keys)
{
    if (j->n == ROWS) {
        attend_rows(j);
    }

    j->q[j->n] = q;
    j->qs[j->n] = scale * j->scale;
    j->o[j->n] = o;
    j->keys[j->n++] = keys;
    j->most = keys > j->most ? keys : j->most;
    j->least = keys < j->least ? keys : j->least;
}


static void
place_job(vlm_int16_job_t *j, uint32_t head_dim, float *at)
{
    memset(j, 0, sizeof(*j));
    j->least = UINT32_MAX;
    j->hd = head_dim;
    j->wide = (uint32_t) vlm_round(head_dim, VLM_INT16_WIDE);

    j->out = at;
    j->tile = (int32_t *) (at += j->wide * ROWS);
    j->values = (int32_t *) (at += j->wide / 2 * ROWS);
    j->scores = at += j->wide * KEYS / 2;
    j->parts = (int32_t *) (at += KEYS * ROWS);
    j->lanes = at += KEYS / 2 * ROWS;
    j->qs = at += LANES * ROWS;
    j->seen = at += ROWS;
    j->max = at += ROWS;
    j->sum = at += ROWS;
    j->top = at += ROWS;
    j->old = at += ROWS;
    j->part_scale = at += ROWS;
    j->block = (int16_t *) (at += ROWS);
    j->queries = (int16_t *) (at += j->wide * KEYS / 2);
}


float
VLM_ISA(vlm_int16_row)(const float *x, uint32_t n, float most, int16_t *q)
{
    return vlm_int16_of(x, n, most, q);
}


void
VLM_ISA(vlm_segments_int16)(const vlm_segments16_args_t *a, uint32_t begin, uint32_t end,
                            uint32_t head, float *scratch)
{
    size_t           at, first;
    uint32_t         p, s;
    const uint32_t  *border = a->segments->border;
    vlm_int16_job_t  j;

    if (a->a->head_dim % HALF != 0) {
        vlm_segments_int16_plain(a, begin, end, head, scratch);
        return;
    }

    place_job(&j, a->a->head_dim, scratch);
    j.step = j.hd;
    j.scale = a->a->scale * VLM_LOG2E;
    first = (size_t) head * a->segments->P;

    for (p = begin; p < end; p++) {
        s = vlm_segment_of(border, a->segments->n, p);

        if (p == border[s]) {
            attend_rows(&j);
        }

        at = first + border[s];
        j.k = a->k.x + at * j.hd;
        j.v = a->v.x + at * j.hd;
        j.ks = a->k.scale + at;
        j.vs = a->v.scale + at;
        add_row(&j, a->q.x + (first + p) * j.hd, a->q.scale[first + p],
                a->o + ((size_t) p * a->a->heads + head) * j.hd, border[s + 1] - border[s]);
    }

    attend_rows(&j);
}


/* Keys and values from an element of the cache on. */
static void
keep_keys(vlm_int16_job_t *j, const vlm_kv_t *kv, size_t at)
{
    if (kv->type == VLM_INT8) {
        j->k8 = (const int8_t *) kv->k + at;
        j->v8 = (const int8_t *) kv->v + at;
        return;
    }

    j->k = (const int16_t *) kv->k + at;
    j->v = (const int16_t *) kv->v + at;
}


void
VLM_ISA(vlm_attend_int16)(const vlm_attend_args_t *a, uint32_t begin, uint32_t end,
                         uint32_t kv_head, float *scratch)
{
    size_t           at;
    float            scale, most = vlm_int16_query(a->kv->head_dim);
    int16_t         *q;
    uint32_t         t, h, group;
    const vlm_kv_t  *kv = a->kv;
    vlm_int16_job_t  j;

    if (kv->head_dim % HALF != 0) {
        vlm_attend_int16_plain(a, begin, end, kv_head, scratch);
        return;
    }

    place_job(&j, kv->head_dim, scratch);
    j.step = j.hd;
    j.scale = a->a->scale * VLM_LOG2E;
    j.slope = a->a->slope == NULL ? 0 : a->a->slope[kv_head] * VLM_LOG2E;
    group = a->a->heads / kv->heads;

    for (t = begin; t < end; t++) {
        if (t > begin && a->batch->seq[t - 1] != a->batch->seq[t]) {
            attend_rows(&j);
        }

        at = vlm_kv_row(a, t, kv_head);
        keep_keys(&j, kv, at * j.hd);
        j.ks = kv->k_scale + at;
        j.vs = kv->v_scale + at;

        for (h = kv_head * group; h < (kv_head + 1) * group; h++) {
            if (j.n == ROWS) {
                attend_rows(&j);       /* the queries' room is free */
            }

            at = ((size_t) t * a->a->heads + h) * j.hd;
            q = j.queries + j.n * j.hd;
            scale = vlm_int16_of(a->q + at, j.hd, most, q);
            add_row(&j, q, scale, a->o + at, vlm_kv_seen(a->batch, t));
        }
    }

    attend_rows(&j);
}
