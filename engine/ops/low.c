/* The linears of rows with adapters: see the header. */

#include "ops/low.h"

#define PAIR   2                       /* panels that are read together */
#define GROUP  8                       /* rows of a that are an item */
#define MANY   8                       /* rows for which b is made f32 once */

typedef struct {                       /* rows of b of some panels as f32, for all rows of a call */
    const vlm_low_t  *low;             /* the adapter of these rows, or NULL */
    const float      *b;               /* [r and a shift][width] */
    uint32_t          width;
} wide_t;


uint64_t
vlm_low_floats(uint32_t rows)
{
    return vlm_mul(vlm_add(rows, VLM_MAX_RANK + 1), PAIR * VLM_PANEL);
}


/* The addition of row t of a call, or NULL; *scale is the row's. */
static const vlm_low_t *
find_low(const vlm_lows_t *lows, uint32_t t, float *scale)
{
    uint32_t               place;
    const vlm_low_rows_t  *rows = lows->rows;

    place = rows->place == NULL ? rows->all : rows->place[t];
    *scale = rows->place == NULL ? rows->all_scale : rows->scale[t];

    return place == VLM_NONE || lows->place[place].r == 0 ? NULL : &lows->place[place];
}


static const vlm_low_t *
low_of(const vlm_low_job_t *j, uint32_t t, float *scale)
{
    return find_low(j->args.w->low, j->row_of == NULL ? j->first + t : j->row_of[t], scale);
}


int
vlm_low_wanted(const vlm_low_job_t *j)
{
    float     scale;
    uint32_t  t;

    if (j->args.w->low == NULL || !j->args.w->low->rows->any) {
        return 0;
    }

    for (t = 0; t < j->args.T; t++) {
        if (low_of(j, t, &scale) != NULL) {
            return 1;
        }
    }

    return 0;
}


static uint32_t
groups_of(const vlm_low_job_t *j)
{
    return (j->rank + GROUP - 1) / GROUP;
}


uint32_t
vlm_low_items(const vlm_low_job_t *j)
{
    return j->args.T * j->args.w->low->parts * groups_of(j);
}


void
vlm_low_inputs(void *job, uint32_t begin, uint32_t end, uint32_t thread)
{
    float                 s, *z;
    uint32_t              i, t, p, k, first, n, K;
    vlm_low_job_t        *j = job;
    const vlm_low_t      *low;
    const vlm_lows_t     *lows = j->args.w->low;

    (void) thread;

    K = j->args.w->K;

    for (i = begin; i < end; i++) {
        t = i / (lows->parts * groups_of(j));
        p = i / groups_of(j) % lows->parts;
        first = i % groups_of(j) * GROUP;
        low = low_of(j, t, &s);

        if (low == NULL || first >= low->r) {
            continue;
        }

        n = low->r - first < GROUP ? low->r - first : GROUP;
        z = j->z + ((size_t) t * VLM_LOW_PARTS + p) * j->rank + first;
        first += p * low->r;

        j->k->low_down(lows->type, (const uint8_t *) low->a
                                   + (size_t) first * K * vlm_type_bytes(lows->type),
                       n, K, j->rows + (size_t) t * K, z);

        for (k = 0; k < n; k++) {
            z[k] = low->scale[p] * s * (z[k] + low->c[first + k]);
        }
    }
}


/* Makes b of the first adapter's f32, if there are many rows: they are of one prompt. */
static wide_t
widen(const vlm_low_job_t *j, uint32_t n0, uint32_t width, float *to)
{
    float              s;
    uint32_t           i, k, t, N = j->args.w->N;
    wide_t             w = { NULL, to, width };
    const uint16_t    *from;
    const vlm_lows_t  *lows = j->args.w->low;

    for (t = 0; t < j->args.T && w.low == NULL; t++) {
        w.low = low_of(j, t, &s);
    }

    if (j->args.T < MANY || lows->type != VLM_BF16 || w.low == NULL) {
        w.low = NULL;
        return w;
    }

    for (i = 0; i < w.low->r + (uint32_t) w.low->shift; i++, to += width) {
        from = (const uint16_t *) w.low->b + (size_t) i * N + n0;

        for (k = 0; k < width; k++) {
            to[k] = vlm_bf16_f32(from[k]);
        }
    }

    return w;
}


/* Adds to sums [n] of rows n0, n0 + 1, ... of the matrix, of which wide has those from `first` on;
   of a shift, z is its factor. */
static void
add_rows(const vlm_low_job_t *j, const vlm_low_t *low, float s, uint32_t row, uint32_t r,
         const float *z, uint32_t n0, uint32_t n, float *sums, const wide_t *wide, uint32_t first)
{
    float              one[VLM_LOW_PARTS];
    uint32_t           p, begin, last, rank, N = j->args.w->N;
    const uint8_t     *b;
    const vlm_lows_t  *lows = j->args.w->low;

    rank = z == NULL ? 1 : j->rank;

    for (p = 0; z == NULL && p < lows->parts; p++) {
        one[p] = low->scale[p] * s;
    }

    z = z == NULL ? one : z;

    for (begin = n0, p = 0; begin < n0 + n; begin = last) {
        while (!lows->in_turn && lows->end[p] <= begin) {
            p++;
        }

        last = lows->in_turn || lows->end[p] > n0 + n ? n0 + n : lows->end[p];

        if (wide->low == low) {
            j->k->low_up(VLM_F32, wide->b + (size_t) row * wide->width + (begin - first), r,
                         wide->width, last - begin, z + p * rank, lows->in_turn ? 2 : 1, rank,
                         sums + (begin - n0));
            continue;
        }

        b = (const uint8_t *) low->b + ((size_t) row * N + begin) * vlm_type_bytes(lows->type);

        j->k->low_up(lows->type, b, r, N, last - begin, z + p * rank, lows->in_turn ? 2 : 1, rank,
                     sums + (begin - n0));
    }
}


/* The end of rows [0, T) of a few panels, of which sums has those of `width` outputs a row. */
static void
finish(const vlm_low_job_t *j, uint32_t n0, uint32_t width, float *sums, const wide_t *wide)
{
    float             *y, s;
    size_t             out;
    uint32_t           t, at, n;
    vlm_linear_t       bare = *j->args.w;
    const vlm_low_t   *low;

    bare.scale = NULL;                 /* sums have it */
    out = vlm_linear_out(&bare);

    for (t = 0; t < j->args.T; t++, sums += width) {
        low = low_of(j, t, &s);
        y = j->args.y + t * out;

        for (at = 0; at < width; at += n) {
            n = width - at < VLM_PANEL ? width - at : VLM_PANEL;

            if (low != NULL) {
                add_rows(j, low, s, 0, low->r, j->z + (size_t) t * VLM_LOW_PARTS * j->rank,
                         n0 + at, n, sums + at, wide, n0);
            }

            if (low != NULL && low->shift) {
                add_rows(j, low, s, low->r, 1, NULL, n0 + at, n, sums + at, wide, n0);
            }

            j->k->epilogue(&bare, n0 + at, n, sums + at, y);
        }
    }
}


void
vlm_low_panels(void *job, uint32_t begin, uint32_t end, uint32_t thread)
{
    float              *sums;
    wide_t              wide;
    uint32_t            p, n0;
    vlm_linear_t        part;
    vlm_low_job_t      *j = job;
    vlm_linear_args_t   args = j->args;
    const vlm_linear_t *w = j->args.w;

    sums = j->room + thread * vlm_low_floats(j->chunk);
    args.w = &part;
    args.y = sums;

    for (p = begin; p < end; p += PAIR) {
        n0 = p * VLM_PANEL;
        part = *w;
        part.N = (end - p < PAIR ? end - p : PAIR) * VLM_PANEL;
        part.N = w->N - n0 < part.N ? w->N - n0 : part.N;
        part.w = (uint8_t *) w->w + j->k->packed_bytes(w->type, n0, w->K);
        part.scale = w->scale == NULL ? NULL : w->scale + n0;
        part.bias = NULL;
        part.epilogue = VLM_STORE;
        part.low = NULL;

        j->k->linear(&args, 0, (part.N + VLM_PANEL - 1) / VLM_PANEL);
        wide = widen(j, n0, part.N, sums + (size_t) j->chunk * PAIR * VLM_PANEL);
        finish(j, n0, part.N, sums, &wide);
    }
}


void
vlm_low_embed(const vlm_kernels_t *k, const vlm_linear_t *table, uint32_t t, uint32_t token,
              float *x)
{
    float               s, z[VLM_MAX_RANK];
    uint32_t            i, n;
    const uint8_t      *a, *b;
    const vlm_low_t    *low;
    const vlm_lows_t   *lows = table->low;

    low = lows == NULL || !lows->rows->any ? NULL : find_low(lows, t, &s);
    if (low == NULL) {
        return;
    }

    a = (const uint8_t *) low->a + (size_t) token * low->r * vlm_type_bytes(lows->type);

    for (i = 0; i < low->r; i++) {
        z[i] = lows->type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) a)[i])
                                      : ((const float *) a)[i];
        z[i] *= low->scale[0] * s;
    }

    for (i = 0; i < table->K; i += n) {
        n = table->K - i < VLM_PANEL ? table->K - i : VLM_PANEL;
        b = (const uint8_t *) low->b + (size_t) i * vlm_type_bytes(lows->type);
        k->low_up(lows->type, b, low->r, table->K, n, z, 1, 0, x + i);
    }
}
