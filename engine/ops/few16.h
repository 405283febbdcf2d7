/*
 * Attention of a few rows to a cache in int16 or int8: included by int16.h, whose definitions it
 * shares.  A step of answers has so many rows for one cache: those of a group, of one sequence.
 *
 * int16.h has a value of each of WIDTH rows in a vector, most of which few rows would leave empty.
 * Here a vector has values of one key or output, or one number of each of WIDTH keys, and rows come
 * one after the other.  Sums are integers, and what is f32 has the order of plain/int16.c, so the
 * bits are the same.
 */

typedef struct {                       /* one row's block */
    int16_t  part[KEYS];               /* its weights, and zeros for keys that it does not see */
    float    old, part_scale;
} few_t;


/* Whole vectors of pairs make a head, and there are not more rows than pay. */
static inline int
few_rows(const vlm_int16_job_t *j)
{
    return j->n <= FEW && j->hd % (2 * WIDTH) == 0;
}


/* Scores of a row with n keys of a block; keys [KEYS][hd] are zeros after the last one. */
static void
few_scores(const vlm_int16_job_t *j, const int16_t *keys, uint32_t first, uint32_t n, uint32_t r,
           float *scores)
{
    vec_t           x, slope = vec_set(j->slope);
    int_t           sum[WIDTH], q;
    float           scale[KEYS] = { 0 }, at[WIDTH];
    uint32_t        key, d, i;
    const int16_t  *k;

    memcpy(scale, j->ks + first, n * sizeof(float));

    for (key = 0; key < n; key += WIDTH) {
        for (i = 0; i < WIDTH; i++) {
            sum[i] = int_zero();
            at[i] = (float) (first + key + i) + 1;
        }

        for (d = 0; d < j->hd; d += 2 * WIDTH) {
            q = int_load(j->q[r] + d);
            k = keys + (size_t) key * j->hd + d;

            for (i = 0; i < WIDTH; i++, k += j->hd) {
                sum[i] = int_dot(sum[i], int_load(k), q);
            }
        }

        x = vec_mul(int_to_vec(int_sums(sum)), vec_set(j->qs[r]));
        x = vec_mul(x, vec_load(scale + key));

        if (j->slope != 0) {
            x = vec_fma(slope, vec_sub(vec_load(at), vec_set((float) j->keys[r])), x);
        }

        vec_store(scores + key, x);
    }
}


/* The largest of n scores and of those before. */
static inline float
few_largest(const float *scores, uint32_t n, float max)
{
    vec_t     top = vec_set(max);
    float     lane[WIDTH];
    uint32_t  i;

    for (i = 0; i + WIDTH <= n; i += WIDTH) {
        top = vec_max(vec_load(scores + i), top);
    }

    for ( /* void */ ; i < n; i++) {
        max = scores[i] > max ? scores[i] : max;
    }

    vec_store(lane, top);

    for (i = 0; i < WIDTH; i++) {
        max = lane[i] > max ? lane[i] : max;
    }

    return max;
}


/* n scores become weights, which are summed; then they are multiplied by their values' scales. */
static inline float
few_weights(const float *vs, uint32_t n, float max, float *weight, float *sum)
{
    vec_t     top = vec_set(max), x;
    float     lane[LANES] = { 0 }, scale[KEYS] = { 0 }, largest;
    uint32_t  i, k, bits, most;

    for (i = 0; i < n; i += WIDTH) {
        vec_store(weight + i, vec_exp2(vec_sub(vec_load(weight + i), top)));
    }

    memset(weight + n, 0, (KEYS - n) * sizeof(float));
    memcpy(scale, vs, n * sizeof(float));

    for (most = 0, i = 0; i < n; i += LANES) {
        for (k = 0; k < LANES; k += WIDTH) {
            x = vec_load(weight + i + k);
            vec_store(lane + k, vec_add(vec_load(lane + k), x));
            vec_store(weight + i + k, vec_mul(x, vec_load(scale + i + k)));
        }
    }

    for (i = 0; i < n; i++) {
        memcpy(&bits, &weight[i], sizeof(bits));
        most = bits > most ? bits : most;
    }

    for (i = LANES / 2; i > 0; i /= 2) {
        for (k = 0; k < i; k++) {
            lane[k] += lane[k + i];
        }
    }

    *sum = lane[0];
    memcpy(&largest, &most, sizeof(largest));

    return largest;
}


/* A row's scores become its weights of the block, in int16. */
static void
few_weigh(const vlm_int16_job_t *j, uint32_t first, uint32_t n, uint32_t r, float *scores, few_t *w)
{
    vec_t     inverse;
    float     max, most, more, old[WIDTH];
    int32_t   part[WIDTH];
    uint32_t  i, k;

    max = few_largest(scores, n, j->max[r]);
    vec_store(old, vec_exp2(vec_set(j->max[r] - max)));
    w->old = old[0];
    j->max[r] = max;

    most = few_weights(j->vs + first, n, max, scores, &more);
    j->sum[r] = fmaf(j->sum[r], w->old, more);
    inverse = vec_set(most < VLM_INT16_LEAST ? 0 : VLM_INT16_PART / most);
    w->part_scale = most < VLM_INT16_LEAST ? 0 : most * (1.0f / VLM_INT16_PART);

    for (i = 0; i < KEYS; i += WIDTH) {
        int_store(part, vec_to_int(vec_mul(vec_load(scores + i), inverse)));

        for (k = 0; k < WIDTH; k++) {
            w->part[i + k] = (int16_t) part[k];
        }
    }
}


/* `vecs` vectors of outputs from value d on, of one row or two. */
static inline __attribute__((always_inline)) void
few_strip(const vlm_int16_job_t *j, const few_t *w, uint32_t r, uint32_t n, uint32_t d, int rows,
          int vecs)
{
    int             m, i;
    int_t           sum[2][FEW_STRIP], value;
    float          *o;
    uint32_t        p;
    const int32_t  *values = j->values + d;

    for (m = 0; m < rows; m++) {
        for (i = 0; i < vecs; i++) {
            sum[m][i] = int_zero();
        }
    }

    for (p = 0; p < (n + 1) / 2; p++, values += j->wide) {
        for (i = 0; i < vecs; i++) {
            value = int_load(values + i * WIDTH);

            for (m = 0; m < rows; m++) {
                sum[m][i] = int_dot(sum[m][i], int_set(((const pair_t *) w[r + m].part)[p]), value);
            }
        }
    }

    for (m = 0; m < rows; m++) {
        o = j->o[r + m] + d;

        for (i = 0; i < vecs; i++, o += WIDTH) {
            vec_store(o, vec_fma(int_to_vec(sum[m][i]), vec_set(w[r + m].part_scale),
                                 vec_mul(vec_load(o), vec_set(w[r + m].old))));
        }
    }
}


static inline __attribute__((always_inline)) void
few_outputs(const vlm_int16_job_t *j, const few_t *w, uint32_t r, uint32_t n, int rows)
{
    uint32_t  d;

    for (d = 0; d + FEW_STRIP * WIDTH <= j->hd; d += FEW_STRIP * WIDTH) {
        few_strip(j, w, r, n, d, rows, FEW_STRIP);
    }

    for ( /* void */ ; d < j->hd; d += 2 * WIDTH) {
        few_strip(j, w, r, n, d, rows, 2);
    }
}


/* A block's n keys, and zeros after the last one: the cache may end there. */
static const int16_t *
few_keys(const vlm_int16_job_t *j, uint32_t first, uint32_t n)
{
    if (j->k != NULL && n == KEYS) {
        return j->k + first * j->step;
    }

    if (j->k != NULL) {
        memcpy(j->block, j->k + first * j->step, (size_t) n * j->hd * sizeof(int16_t));
    } else {
        (void) block_of(j, NULL, j->k8, first, n);
    }

    memset(j->block + (size_t) n * j->hd, 0, (KEYS - n) * j->hd * sizeof(int16_t));

    return j->block;
}


/* One block of n keys for all rows. */
static void
few_block(const vlm_int16_job_t *j, uint32_t first, uint32_t n)
{
    few_t           w[FEW];
    float           scores[KEYS];
    uint32_t        r, seen;
    const int16_t  *keys;

    keys = few_keys(j, first, n);

    for (r = 0; r < j->n; r++) {
        if (j->keys[r] <= first) {
            memset(&w[r], 0, sizeof(w[r]));
            w[r].old = 1;              /* the row sees none of them */
            continue;
        }

        seen = j->keys[r] - first < n ? j->keys[r] - first : n;
        few_scores(j, keys, first, seen, r, scores);
        few_weigh(j, first, seen, r, scores, &w[r]);
    }

    pair_values(j, block_of(j, j->v, j->v8, first, n), n);

    for (r = 0; r + 2 <= j->n; r += 2) {
        few_outputs(j, w, r, n, 2);
    }

    if (r < j->n) {
        few_outputs(j, w, r, n, 1);
    }
}


static void
attend_few(vlm_int16_job_t *j)
{
    uint32_t  r, i, n, first;

    for (r = 0; r < j->n; r++) {
        j->max[r] = -INFINITY;
        j->sum[r] = 0;
        memset(j->o[r], 0, j->hd * sizeof(float));
    }

    for (first = 0; first < j->most; first += n) {
        n = j->most - first < KEYS ? j->most - first : KEYS;
        few_block(j, first, n);
    }

    for (r = 0; r < j->n; r++) {
        for (i = 0; i < j->hd; i++) {
            j->o[r][i] *= 1 / j->sum[r];
        }
    }
}
