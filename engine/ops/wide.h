/*
 * Attention for vectors of any width: included by avx2/attend.c and avx512/attend.c, which define a
 * vector (vec_t, WIDTH floats), the number of vectors in a tile (STRIP, up to 4), and its few
 * operations.  A head has a multiple of 8 values: its last vector may be half of one.
 *
 * Several rows share the same keys: a block of keys is transposed, so that a vector has one value
 * of each of WIDTH keys, and widened to f32 once for all rows.  Scores and outputs are then summed
 * in the definition's order, and the bits equal the plain version's.
 */

#define BLOCK   VLM_ATTEND_KEYS        /* keys that are turned together */

#include "vlm.h"
#define VECS    (BLOCK / WIDTH)
#define HALF    8
#define TILE    4                      /* rows of a tile; STRIP vectors each stay in registers */

typedef struct {                       /* rows that attend to the first keys of one cache */
    uint32_t         n;
    const float     *q[VLM_ATTEND_ROWS];
    float           *o[VLM_ATTEND_ROWS];
    uint32_t         keys[VLM_ATTEND_ROWS];        /* the row's own */
    uint32_t         most;             /* of all */
    const void      *k, *v;            /* key 0 */
    vlm_type_t       type;
    size_t           step;             /* elements from key to key */
    uint32_t         hd;               /* a multiple of HALF */
    float            scale, slope;     /* slope 0: no ALiBi */
    float           *scores;           /* [n][width], a whole number of blocks each */
    size_t           width;
    float           *block;            /* [BLOCK][hd] */
} vlm_rows_job_t;


static inline vec_t
load_as_f32(const void *base, vlm_type_t type, size_t at)
{
    return type == VLM_F32 ? vec_load((const float *) base + at)
                           : vec_load_bf16((const uint16_t *) base + at);
}


/* The half vector that ends a key or a value, and zeros. */
static inline vec_t
load_half_as_f32(const void *base, vlm_type_t type, size_t at)
{
    return type == VLM_F32 ? vec_load_half((const float *) base + at)
                           : vec_load_half_bf16((const uint16_t *) base + at);
}


/* Keys [first, first + BLOCK) as [hd][BLOCK]; beyond the last, zeros. */
static void
turn_keys(const vlm_rows_job_t *j, uint32_t first)
{
    size_t    at;
    vec_t     r[WIDTH];
    uint32_t  i, n, d, key;

    for (key = 0; key < BLOCK; key += WIDTH) {
        for (d = 0; d < j->hd; d += WIDTH) {
            at = (first + key) * j->step + d;
            n = j->hd - d < WIDTH ? HALF : WIDTH;

            for (i = 0; i < WIDTH; i++, at += j->step) {
                r[i] = first + key + i >= j->most ? vec_zero()
                       : n < WIDTH ? load_half_as_f32(j->k, j->type, at)
                                   : load_as_f32(j->k, j->type, at);
            }

            vec_turn(r);

            for (i = 0; i < n; i++) {
                vec_store(j->block + (size_t) (d + i) * BLOCK + key, r[i]);
            }
        }
    }
}


/* Scores of `rows` rows from row r on, with `vecs` vectors of the block's keys. */
static inline __attribute__((always_inline)) void
score_tile(const vlm_rows_job_t *j, uint32_t r, uint32_t first, uint32_t vec, int rows, int vecs)
{
    int           m, i;
    vec_t         sum[TILE][4], key[4], x, scale;
    uint32_t      d;
    const float  *block = j->block + (size_t) vec * WIDTH;

    for (m = 0; m < rows; m++) {
        for (i = 0; i < vecs; i++) {
            sum[m][i] = vec_zero();
        }
    }

    for (d = 0; d < j->hd; d++, block += BLOCK) {
        for (i = 0; i < vecs; i++) {
            key[i] = vec_load(block + i * WIDTH);
        }

        for (m = 0; m < rows; m++) {
            x = vec_set(j->q[r + m][d]);

            for (i = 0; i < vecs; i++) {
                sum[m][i] = vec_fma(x, key[i], sum[m][i]);
            }
        }
    }

    scale = vec_set(j->scale);

    for (m = 0; m < rows; m++) {
        for (i = 0; i < vecs; i++) {
            vec_store(j->scores + (r + m) * j->width + first + (vec + i) * WIDTH,
                      vec_mul(scale, sum[m][i]));
        }
    }
}


static void
score_block(const vlm_rows_job_t *j, uint32_t first)
{
    uint32_t  r, vec;

    turn_keys(j, first);

    for (vec = 0; vec < VECS; vec += STRIP) {
        for (r = 0; r + TILE <= j->n; r += TILE) {
            score_tile(j, r, first, vec, TILE, STRIP);
        }

        for ( /* void */ ; r < j->n; r++) {
            score_tile(j, r, first, vec, 1, STRIP);
        }
    }
}


/* `vecs` vectors of the outputs of `rows` rows, from value d on, go on with n keys of the block. */
static inline __attribute__((always_inline)) void
output_tile(const vlm_rows_job_t *j, uint32_t r, uint32_t first, uint32_t n, uint32_t d, int rows,
            int vecs)
{
    int           m, i;
    vec_t         sum[TILE][4], value[4], w;
    uint32_t      key;
    const float  *block = j->block + d;

    for (m = 0; m < rows; m++) {
        for (i = 0; i < vecs; i++) {
            sum[m][i] = vec_load(j->o[r + m] + d + i * WIDTH);
        }
    }

    for (key = 0; key < n; key++, block += j->hd) {
        for (i = 0; i < vecs; i++) {
            value[i] = vec_load(block + i * WIDTH);
        }

        for (m = 0; m < rows; m++) {
            w = vec_set(j->scores[(r + m) * j->width + first + key]);

            for (i = 0; i < vecs; i++) {
                sum[m][i] = vec_fma(w, value[i], sum[m][i]);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        for (i = 0; i < vecs; i++) {
            vec_store(j->o[r + m] + d + i * WIDTH, sum[m][i]);
        }
    }
}


/* The same for the half vector that ends a head. */
static inline __attribute__((always_inline)) void
output_half(const vlm_rows_job_t *j, uint32_t r, uint32_t first, uint32_t n, uint32_t d, int rows)
{
    int           m;
    vec_t         sum[TILE], value;
    uint32_t      key;
    const float  *block = j->block + d;

    for (m = 0; m < rows; m++) {
        sum[m] = vec_load_half(j->o[r + m] + d);
    }

    for (key = 0; key < n; key++, block += j->hd) {
        value = vec_load_half(block);

        for (m = 0; m < rows; m++) {
            sum[m] = vec_fma(vec_set(j->scores[(r + m) * j->width + first + key]), value, sum[m]);
        }
    }

    for (m = 0; m < rows; m++) {
        vec_store_half(j->o[r + m] + d, sum[m]);
    }
}


/* All values of `rows` rows, in strips that are wide enough to hide how long a sum takes. */
static inline __attribute__((always_inline)) void
output_rows(const vlm_rows_job_t *j, uint32_t r, uint32_t first, uint32_t n, int rows)
{
    uint32_t  d, left, vecs;

    for (d = 0; d + WIDTH <= j->hd; d += vecs * WIDTH) {
        left = (j->hd - d) / WIDTH;
        vecs = left <= STRIP ? left : left == STRIP + 1 ? STRIP - 1 : STRIP;

        switch (vecs) {
        case 4:
            output_tile(j, r, first, n, d, rows, 4);
            break;
        case 3:
            output_tile(j, r, first, n, d, rows, 3);
            break;
        case 2:
            output_tile(j, r, first, n, d, rows, 2);
            break;
        default:
            output_tile(j, r, first, n, d, rows, 1);
        }
    }

    if (d < j->hd) {
        output_half(j, r, first, n, d, rows);
    }
}


static void
output_block(const vlm_rows_job_t *j, uint32_t first)
{
    uint32_t  r, d, key, n;

    n = j->most - first < BLOCK ? j->most - first : BLOCK;

    for (key = 0; key < n; key++) {
        for (d = 0; d + WIDTH <= j->hd; d += WIDTH) {
            vec_store(j->block + (size_t) key * j->hd + d,
                      load_as_f32(j->v, j->type, (first + key) * j->step + d));
        }

        if (d < j->hd) {
            vec_store_half(j->block + (size_t) key * j->hd + d,
                           load_half_as_f32(j->v, j->type, (first + key) * j->step + d));
        }
    }

    for (r = 0; r + TILE <= j->n; r += TILE) {
        output_rows(j, r, first, n, TILE);
    }

    for ( /* void */ ; r < j->n; r++) {
        output_rows(j, r, first, n, 1);
    }
}


/* A key that a row does not see has no weight: adding nothing changes no bits. */
static void
attend_rows(vlm_rows_job_t *j, float *scratch)
{
    float     sum[VLM_ATTEND_ROWS], *scores;
    uint32_t  r, i, first;

    if (j->n == 0) {
        return;
    }

    j->width = (size_t) vlm_round(j->most, BLOCK);
    j->block = scratch;
    j->scores = scratch + (size_t) BLOCK * j->hd;

    for (first = 0; first < j->most; first += BLOCK) {
        score_block(j, first);
    }

    for (r = 0; r < j->n; r++) {
        scores = j->scores + r * j->width;

        if (j->slope != 0) {
            vlm_alibi(scores, j->keys[r], j->slope);
        }

        sum[r] = vlm_softmax(scores, j->keys[r]);
        memset(scores + j->keys[r], 0, (j->most - j->keys[r]) * sizeof(float));
        memset(j->o[r], 0, j->hd * sizeof(float));
    }

    for (first = 0; first < j->most; first += BLOCK) {
        output_block(j, first);
    }

    for (r = 0; r < j->n; r++) {
        for (i = 0; i < j->hd; i++) {
            j->o[r][i] /= sum[r];
        }
    }

    j->n = 0;
    j->most = 0;
}


static void
add_row(vlm_rows_job_t *j, const float *q, float *o, uint32_t keys, float *scratch)
{
    if (j->n == VLM_ATTEND_ROWS) {
        attend_rows(j, scratch);
    }

    j->q[j->n] = q;
    j->o[j->n] = o;
    j->keys[j->n++] = keys;
    j->most = keys > j->most ? keys : j->most;
}


void
VLM_ISA(vlm_attend)(const vlm_attend_args_t *a, uint32_t begin, uint32_t end, uint32_t kv_head,
                    float *scratch)
{
    size_t              at, bytes;
    uint32_t            t, h, s, group;
    const vlm_kv_t     *kv = a->kv;
    const vlm_batch_t  *b = a->batch;
    vlm_rows_job_t      j;

    if (kv->head_dim % HALF != 0) {
        vlm_attend_plain(a, begin, end, kv_head, scratch);
        return;
    }

    memset(&j, 0, sizeof(j));
    j.type = kv->type;
    j.step = j.hd = kv->head_dim;
    j.scale = a->a->scale;
    j.slope = a->a->slope == NULL ? 0 : a->a->slope[kv_head];
    group = a->a->heads / kv->heads;
    bytes = kv->type == VLM_F32 ? sizeof(float) : sizeof(uint16_t);

    for (t = begin; t < end; t++) {
        s = b->seq[t];

        if (t > begin && b->seq[t - 1] != s) {
            attend_rows(&j, scratch);
        }

        at = (((size_t) a->layer * kv->slots + b->slot[s]) * kv->heads + kv_head) * kv->context;
        j.k = (const uint8_t *) kv->k + at * kv->head_dim * bytes;
        j.v = (const uint8_t *) kv->v + at * kv->head_dim * bytes;

        for (h = kv_head * group; h < (kv_head + 1) * group; h++) {
            at = ((size_t) t * a->a->heads + h) * kv->head_dim;
            add_row(&j, a->q + at, a->o + at, b->n_ctx[s] + (t - b->start[s]) + 1, scratch);
        }
    }

    attend_rows(&j, scratch);
}


void
VLM_ISA(vlm_attend_segments)(const vlm_segments_args_t *a, uint32_t begin, uint32_t end,
                             uint32_t head, float *scratch)
{
    size_t           E, at;
    uint32_t         p, s, first;
    const uint32_t  *border = a->segments->border;
    vlm_rows_job_t   j;

    if (a->a->head_dim % HALF != 0) {
        vlm_attend_segments_plain(a, begin, end, head, scratch);
        return;
    }

    memset(&j, 0, sizeof(j));
    E = (size_t) a->a->heads * a->a->head_dim;
    at = (size_t) head * a->a->head_dim;
    j.type = VLM_F32;
    j.step = E;
    j.hd = a->a->head_dim;
    j.scale = a->a->scale;

    for (p = begin; p < end; p++) {
        s = vlm_segment_of(border, a->segments->n, p);
        first = border[s];

        if (p == first) {
            attend_rows(&j, scratch);
        }

        j.k = a->k + first * E + at;
        j.v = a->v + first * E + at;
        add_row(&j, a->q + p * E + at, a->o + p * E + at, border[s + 1] - first, scratch);
    }

    attend_rows(&j, scratch);
}
