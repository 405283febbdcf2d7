/* The linears of rows with adapters: see the header. */

#include "ops/low.h"


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
    return find_low(j->w->low, j->row_of == NULL ? j->first + t : j->row_of[t], scale);
}


/* A tile with room for a row of this adapter. */
static vlm_low_tile_t *
find_tile(vlm_low_job_t *j, const vlm_low_t *low)
{
    uint32_t         i;
    vlm_low_tile_t  *tile;

    for (i = j->n; i > 0; i--) {
        tile = &j->tile[i - 1];

        if (tile->low == low && tile->n < VLM_LOW_ROWS) {
            return tile;
        }
    }

    tile = &j->tile[j->n++];
    tile->low = low;
    tile->n = 0;

    return tile;
}


int
vlm_low_begin(vlm_low_job_t *j)
{
    float             scale;
    uint32_t          t, n, groups;
    vlm_low_tile_t   *tile;
    const vlm_low_t  *low;

    if (!j->w->low->rows->any) {
        return 0;
    }

    j->n = j->groups = 0;

    for (n = 0, t = 0; t < j->T; t++) {
        low = low_of(j, t, &scale);

        if (low != NULL) {
            tile = find_tile(j, low);
            tile->row[tile->n++] = t;
            groups = (low->r + VLM_LOW_GROUP - 1) / VLM_LOW_GROUP;
            j->groups = groups > j->groups ? groups : j->groups;
            n++;
        }
    }

    j->all = n == j->T;

    return n > 0;
}


uint32_t
vlm_low_items(const vlm_low_job_t *j)
{
    return j->n * j->w->low->parts * j->groups;
}


/* Rows first .. first + n of part p of a, times the rows of a tile. */
static void
multiply_group(const vlm_low_job_t *j, const vlm_low_tile_t *tile, uint32_t p, uint32_t first,
               uint32_t n)
{
    float              y[VLM_LOW_ROWS][VLM_LOW_GROUP], s, *z;
    uint32_t           t, i, K = j->w->K;
    vlm_low_down_t     d;
    const float       *x[VLM_LOW_ROWS];
    const vlm_low_t   *low = tile->low;
    const vlm_lows_t  *lows = j->w->low;

    for (t = 0; t < tile->n; t++) {
        x[t] = j->x + (size_t) tile->row[t] * K;
    }

    d.type = lows->type;
    d.packed = lows->packed;
    d.a = (const uint8_t *) low->a
          + ((size_t) p * low->r + first) * K * vlm_type_bytes(lows->type);
    d.n = n;
    d.K = K;
    j->k->low_down(&d, x, tile->n, y);

    for (t = 0; t < tile->n; t++) {
        (void) low_of(j, tile->row[t], &s);
        z = j->z + (size_t) tile->row[t] * VLM_LOW_PARTS * j->rank;
        s *= low->scale[p];

        for (i = 0; i < n; i++) {
            z[lows->in_turn ? (first + i) * 2 + p : p * j->rank + first + i]
                = s * (y[t][i] + low->c[p * low->r + first + i]);
        }
    }
}


void
vlm_low_inputs(void *job, uint32_t begin, uint32_t end, uint32_t thread)
{
    uint32_t               i, p, first, parts;
    vlm_low_job_t         *j = job;
    const vlm_low_tile_t  *tile;

    (void) thread;

    parts = j->w->low->parts;

    for (i = begin; i < end; i++) {
        tile = &j->tile[i / (parts * j->groups)];
        p = i / j->groups % parts;
        first = i % j->groups * VLM_LOW_GROUP;

        if (first < tile->low->r) {
            multiply_group(j, tile, p, first, tile->low->r - first < VLM_LOW_GROUP
                                              ? tile->low->r - first : VLM_LOW_GROUP);
        }
    }
}


/* Rows of b from `row` on, r of them, which are for the same outputs of some rows. */
typedef struct {
    const vlm_low_t  *low;
    uint32_t          row, r;
    uint32_t          n0, n;           /* outputs, within a panel */
    uint32_t          m;               /* rows */
    const float      *z[VLM_LOW_ROWS];
    uint32_t          parts;           /* values of z from part to part */
    float            *y[VLM_LOW_ROWS];
    const float      *scale;           /* [n], or NULL */
} add_t;


/* Value n of row i of b. */
static const void *
b_at(const vlm_lows_t *lows, const vlm_low_t *low, uint32_t N, uint32_t i, uint32_t n)
{
    size_t  at;

    at = lows->packed ? vlm_low_b_at(low->r + (uint32_t) low->shift, N, i, n) : (size_t) i * N + n;

    return (const uint8_t *) low->b + at * vlm_type_bytes(lows->type);
}


/* A range of outputs for each part that the panel has. */
static void
add_product(const vlm_low_job_t *j, const add_t *a)
{
    float             *y[VLM_LOW_ROWS];
    uint32_t           p, t, begin, end, rows, bytes;
    vlm_low_up_t       u;
    const float       *z[VLM_LOW_ROWS];
    const vlm_lows_t  *lows = j->w->low;

    rows = a->low->r + (uint32_t) a->low->shift;
    bytes = vlm_type_bytes(lows->type);
    u.type = lows->type;
    u.r = a->r;
    u.step = lows->packed ? a->n : j->w->N;
    u.in_turn = lows->in_turn;
    u.ahead = 2 * VLM_PANEL * bytes * (lows->packed ? rows : 1);

    for (p = 0, begin = a->n0; begin < a->n0 + a->n; begin = end) {
        while (!lows->in_turn && lows->end[p] <= begin) {
            p++;
        }

        end = lows->in_turn || lows->end[p] > a->n0 + a->n ? a->n0 + a->n : lows->end[p];
        u.n = end - begin;
        u.b = b_at(lows, a->low, j->w->N, a->row, begin);
        u.scale = a->scale == NULL ? NULL : a->scale + (begin - a->n0);

        for (t = 0; t < a->m; t++) {
            z[t] = a->z[t] + p * a->parts;
            y[t] = a->y[t] + (begin - a->n0);
        }

        j->k->low_up(&u, z, y, a->m);
    }
}


/* The same of the last row of b, which is a shift: its factor is the row's scale. */
static void
add_shift(const vlm_low_job_t *j, add_t *a, const uint32_t row[VLM_LOW_ROWS])
{
    float     one[VLM_LOW_ROWS][VLM_LOW_PARTS], s;
    uint32_t  i, p;

    for (i = 0; i < a->m; i++) {
        (void) low_of(j, row[i], &s);
        a->z[i] = one[i];

        for (p = 0; p < j->w->low->parts; p++) {
            one[i][p] = a->low->scale[p] * s;
        }
    }

    a->row = a->low->r;
    a->r = a->parts = 1;
    a->scale = NULL;
    add_product(j, a);
}


/* Adds the part of a tile's adapter to those of its rows that are among [t, t + rows). */
static void
add_tile(const vlm_low_job_t *j, const vlm_low_tile_t *tile, uint32_t n0, uint32_t n, uint32_t t,
         uint32_t rows, float y[][VLM_PANEL])
{
    add_t     a = { .low = tile->low, .r = tile->low->r, .n0 = n0, .n = n, .parts = j->rank };
    uint32_t  i, row[VLM_LOW_ROWS];

    for (i = 0; i < tile->n; i++) {
        if (tile->row[i] < t || tile->row[i] - t >= rows) {
            continue;
        }

        row[a.m] = tile->row[i];
        a.z[a.m] = j->z + (size_t) tile->row[i] * VLM_LOW_PARTS * j->rank;
        a.y[a.m++] = y[tile->row[i] - t];
    }

    if (a.m == 0) {
        return;
    }

    a.scale = j->w->scale == NULL ? NULL : j->w->scale + n0;
    add_product(j, &a);

    if (a.low->shift) {
        add_shift(j, &a, row);
    }
}


void
vlm_low_end(const vlm_linear_args_t *a, uint32_t p, uint32_t t, uint32_t panels, uint32_t rows,
            float y[][VLM_PANEL])
{
    float                 s;
    size_t                out;
    uint32_t              i, n0, n;
    vlm_linear_t          bare = *a->w;
    const vlm_low_job_t  *j = a->low;

    bare.scale = NULL;                 /* the sums of rows with adapters have it */
    out = vlm_linear_out(a->w);

    for ( /* void */ ; panels > 0; panels--, p++, y += rows) {
        n0 = p * VLM_PANEL;
        n = a->w->N - n0 < VLM_PANEL ? a->w->N - n0 : VLM_PANEL;

        for (i = 0; i < j->n; i++) {
            add_tile(j, &j->tile[i], n0, n, t, rows, y);
        }

        for (i = 0; i < rows; i++) {
            j->k->epilogue(j->all || low_of(j, t + i, &s) != NULL ? &bare : a->w, n0, n, 1,
                           y + i, a->y + (t + i) * out);
        }
    }
}


void
vlm_low_embed(const vlm_kernels_t *k, const vlm_linear_t *table, uint32_t t, uint32_t token,
              float *x)
{
    float               s, z[VLM_MAX_RANK], *y;
    uint32_t            i;
    vlm_low_up_t        u = { .ahead = 0 };
    const float        *in = z;
    const uint8_t      *a;
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

    u.type = lows->type;
    u.r = low->r;

    for (i = 0; i < table->K; i += u.n) {
        u.n = table->K - i < VLM_PANEL ? table->K - i : VLM_PANEL;
        u.step = lows->packed ? u.n : table->K;
        u.b = b_at(lows, low, table->K, 0, i);
        y = x + i;
        k->low_up(&u, &in, &y, 1);
    }
}
