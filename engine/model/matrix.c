/*
 * Loads one weight matrix: see the header.
 *
 * Threads share panels of 64 rows: each is read as f32, turned and quantised if the form of the
 * weights is quantised and the file has another, and put into the device's order.
 *
 * A matrix whose rows are turned needs all rows of a column at once: threads share slabs of
 * columns, first for the largest value of each row, then again for the rounded values of a group of
 * panels.  So no more than GROUP bytes of it and a slab of each thread are in memory.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "format/panel.h"
#include "format/turn.h"
#include "model/matrix.h"

#define CHUNK    (8u << 20)            /* bytes of the cache file that are quantised together */
#define GROUP    (16u << 20)           /* the same of a matrix whose rows are turned */
#define COLUMNS  128                   /* of a matrix whose rows are turned, in a thread's hand */

typedef struct {                       /* for the threads */
    const vlm_loader_t  *l;
    const vlm_source_t  *s;
    uint32_t             first;        /* panel in l->panels, or of l->group */
    uint32_t             n;            /* panels of l->group */
} vlm_panels_job_t;


uint32_t
vlm_matrix_order(const vlm_ops_t *ops, const vlm_device_t *d)
{
    return ops->basic->order == NULL ? VLM_NONE : ops->basic->order(d);
}


/* Rows of one part in a piece of a matrix. */
typedef struct {
    const vlm_tensor_t  *part;
    uint64_t  row;                     /* of the part */
    uint32_t  n, at, step;             /* their number, the place of the first, to the next */
} vlm_run_t;


/* How many runs of rows a matrix is made of; each may have rows in a piece, or none. */
static uint32_t
n_runs(const vlm_source_t *s)
{
    return s->order == VLM_BY_HEAD ? 3 * s->heads : s->n_parts;
}


/* Run k's share of the rows [first, first + n) of the matrix. */
static vlm_run_t
find_run(const vlm_source_t *s, uint32_t k, uint32_t first, uint32_t n)
{
    uint32_t   i;
    uint64_t   begin, end, from;
    vlm_run_t  r = { s->part[0], 0, 0, 0, 1 };

    if (s->order == VLM_IN_TURN) {
        r.part = s->part[k];
        r.step = s->n_parts;
        r.at = (k + r.step - first % r.step) % r.step;
        r.row = (first + r.at) / r.step;
        r.n = r.at < n ? (n - r.at + r.step - 1) / r.step : 0;

        return r;
    }

    if (s->order == VLM_BY_HEAD) {
        end = s->part[0]->dims[0] / (3 * s->heads);
        from = vlm_head_run(s->heads, end, k);
        begin = k * end;
        end += begin;

    } else {
        for (begin = 0, i = 0; i < k; i++) {
            begin += s->part[i]->dims[0];
        }

        r.part = s->part[k];
        from = 0;
        end = begin + r.part->dims[0];
    }

    if (begin < first + n && end > first) {
        r.row = begin < first ? first - begin : 0;
        r.at = begin < first ? 0 : (uint32_t) (begin - first);
        r.n = (uint32_t) ((end < first + n ? end : first + n) - (begin + r.row));
        r.row += from;
    }

    return r;
}


void
vlm_matrix_rows(const vlm_source_t *s, uint32_t first, uint32_t n, float *rows)
{
    uint32_t   k, K;
    vlm_run_t  r;

    K = s->w->K;

    for (k = 0; k < n_runs(s); k++) {
        r = find_run(s, k, first, n);

        if (r.n > 0) {
            vlm_tensor_rows(r.part, r.row, r.n, rows + (size_t) r.at * K, (size_t) r.step * K);
        }
    }
}


void
vlm_matrix_turn_row(const vlm_turned_t *t, uint32_t K, float *row, float *work, float *offset)
{
    double    sum;
    uint32_t  k;

    if (t->shift != NULL) {
        for (sum = 0, k = 0; k < K; k++) {
            sum += (double) row[k] * t->shift[k % t->period];
        }

        *offset = (float) sum;
    }

    for (k = 0; t->gain != NULL && k < K; k++) {
        row[k] *= t->gain[k % t->period];
    }

    for (k = 0; t->reads != NULL && k < K; k += t->reads->n) {
        vlm_turn_row(t->reads, row + k, work);
    }
}


static void
multiply(float *row, uint32_t n, float factor)
{
    uint32_t  k;

    for (k = 0; factor != 1 && k < n; k++) {
        row[k] *= factor;
    }
}


/*
 * Reads rows and quantises them, in place: a quantised row lies before the f32 that is read next.
 * Rows that a file has in this form already keep their bits.
 */
static void
read_quantised(const vlm_source_t *s, const vlm_format_t *f, uint32_t first, uint32_t n, void *rows,
               float *scale, float *offset)
{
    float      *row;
    uint8_t     taken[VLM_PANEL] = { 0 };
    uint32_t    i, k, run, K;
    vlm_run_t   r;

    K = s->w->K;

    for (run = 0; run < n_runs(s); run++) {
        r = find_run(s, run, first, n);
        row = (float *) rows + (size_t) r.at * K;

        if (r.n == 0) {
            continue;
        }

        if (vlm_tensor_own(r.part) != f) {
            vlm_tensor_rows(r.part, r.row, r.n, row, (size_t) r.step * K);
            continue;
        }

        for (k = 0; k < r.n; k++) {
            i = r.at + k * r.step;
            taken[i] = 1;
            vlm_tensor_take(r.part, r.row + k, (float *) rows + (size_t) i * K,
                            scale + vlm_format_scales(f, i));
        }
    }

    for (i = 0; i < n; i++) {
        row = (float *) rows + (size_t) i * K;

        if (taken[i]) {
            memmove((uint8_t *) rows + i * vlm_format_row(f, K), row, vlm_format_row(f, K));
        } else {
            multiply(row, K, s->turned.rows == NULL ? 1 : s->turned.rows[first + i]);
            vlm_matrix_turn_row(&s->turned, K, row, (float *) rows + (size_t) VLM_PANEL * K,
                                offset + i);
            f->quantise(row, K, (uint8_t *) rows + i * vlm_format_row(f, K),
                        scale + vlm_format_scales(f, i));
        }
    }
}


static uint32_t
rows_of(const vlm_linear_t *w, uint32_t panel)
{
    return w->N - panel * VLM_PANEL < VLM_PANEL ? w->N - panel * VLM_PANEL : VLM_PANEL;
}


static void *
thread_rows(const vlm_loader_t *l, uint32_t thread, uint32_t K)
{
    return (float *) l->rows + (size_t) thread * (VLM_PANEL + 1) * K;
}


/* ---- rows that are turned ------------------------------------------------ */

/* Columns [first, first + n) of all rows, turned, in the thread's slab. */
static float *
turn_slab(const vlm_loader_t *l, const vlm_source_t *s, uint32_t first, uint32_t n, uint32_t thread)
{
    float               *slab, *row, *whole;
    uint32_t             i, k, K;
    const vlm_turn_t    *t = s->turned.writes;
    const vlm_tensor_t  *from = s->part[0];

    K = s->w->K;
    slab = l->slab + (size_t) thread * (t->n + t->odd) * COLUMNS;
    whole = thread_rows(l, thread, K);

    for (i = 0; i < t->n; i++) {
        row = slab + (size_t) i * n;

        if (from->made == NULL) {
            vlm_tensor_f32(from, (uint64_t) i * K + first, n, row);
        } else {
            vlm_tensor_rows(from, i, 1, whole, K);
            memcpy(row, whole + first, n * sizeof(float));
        }

        for (k = 0; s->turned.columns != NULL && k < n; k++) {
            row[k] *= s->turned.columns[first + k];
        }

        if (s->turned.blocks) {
            vlm_turn_blocks(row, n, row);
        }
    }

    vlm_turn_columns(t, slab, n, slab + (size_t) t->n * n);

    return slab;
}


static uint32_t
slabs_of(uint32_t K)
{
    return (K + COLUMNS - 1) / COLUMNS;
}


static uint32_t
columns_of(uint32_t K, uint32_t slab)
{
    return K - slab * COLUMNS < COLUMNS ? K - slab * COLUMNS : COLUMNS;
}


static void
measure_slabs(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float                   *slab, *largest;
    uint32_t                 i, c, n;
    const vlm_panels_job_t  *j = arg;
    const vlm_linear_t      *w = j->s->w;
    const vlm_format_t      *f = vlm_format_of(w->type);

    largest = j->l->largest + (size_t) thread * w->N;

    for (c = begin; c < end; c++) {
        n = columns_of(w->K, c);
        slab = turn_slab(j->l, j->s, c * COLUMNS, n, thread);

        for (i = 0; i < w->N; i++) {
            largest[i] = f->largest(slab + (size_t) i * n, n, largest[i]);
        }
    }
}


/* Quantises the rows of j->n panels from j->first on, into l->group. */
static void
round_slabs(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float                   *slab;
    uint32_t                 i, c, n, first, last;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    const vlm_linear_t      *w = j->s->w;
    const vlm_format_t      *f = vlm_format_of(w->type);

    first = j->first * VLM_PANEL;
    last = first + j->n * VLM_PANEL < w->N ? first + j->n * VLM_PANEL : w->N;

    for (c = begin; c < end; c++) {
        n = columns_of(w->K, c);
        slab = turn_slab(l, j->s, c * COLUMNS, n, thread);

        for (i = first; i < last; i++) {
            f->round(slab + (size_t) i * n, n, l->largest[i],
                     l->group + (i - first) * vlm_format_row(f, w->K)
                     + vlm_format_row(f, c * COLUMNS));
        }
    }
}


/* The scales of all rows, from the largest values of each thread's columns. */
static void
measure(const vlm_loader_t *l, const vlm_source_t *s)
{
    float              *other;
    uint32_t            i, k, n, N;
    vlm_panels_job_t    j = { l, s, 0, 0 };
    const vlm_format_t *f = vlm_format_of(s->w->type);

    N = s->w->N;
    n = vlm_threads_count(l->threads);
    memset(l->largest, 0, (size_t) n * N * sizeof(float));
    vlm_threads_run(l->threads, slabs_of(s->w->K), 1, measure_slabs, &j);

    for (i = 0; i < N; i++) {
        for (k = 1; k < n; k++) {
            other = l->largest + (size_t) k * N;
            l->largest[i] = other[i] > l->largest[i] ? other[i] : l->largest[i];
        }

        l->scale[i] = f->scale(l->largest[i]);
    }
}


/* The rows of a panel, quantised; *scale is set to theirs. */
static void *
quantised_panel(const vlm_panels_job_t *j, uint32_t p, uint32_t thread, const float **scale)
{
    void                *rows;
    const vlm_loader_t  *l = j->l;
    const vlm_linear_t  *w = j->s->w;
    const vlm_format_t  *f = vlm_format_of(w->type);

    *scale = l->scale + p * VLM_PANEL;

    if (j->s->turned.writes != NULL) {
        return l->group + (p - j->first) * VLM_PANEL * vlm_format_row(f, w->K);
    }

    rows = thread_rows(l, thread, w->K);
    read_quantised(j->s, f, p * VLM_PANEL, rows_of(w, p), rows, l->scale + p * VLM_PANEL,
                   l->offset + p * VLM_PANEL);

    return rows;
}


/* ---- panels -------------------------------------------------------------- */

/* The rows of a panel in f32, turned for what they read: such a form may be in a turned model. */
static void *
plain_panel(const vlm_panels_job_t *j, uint32_t p, uint32_t thread)
{
    float               *rows, *row;
    uint32_t             i;
    const vlm_loader_t  *l = j->l;
    const vlm_linear_t  *w = j->s->w;
    const vlm_turned_t  *t = &j->s->turned;

    rows = thread_rows(l, thread, w->K);
    vlm_matrix_rows(j->s, p * VLM_PANEL, rows_of(w, p), rows);

    for (i = 0; i < rows_of(w, p); i++) {
        row = rows + (size_t) i * w->K;
        multiply(row, w->K, t->rows == NULL ? 1 : t->rows[p * VLM_PANEL + i]);
        vlm_matrix_turn_row(t, w->K, row, rows + (size_t) VLM_PANEL * w->K,
                            l->offset + p * VLM_PANEL + i);
    }

    return rows;
}


static void
load_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    void                    *rows;
    uint32_t                 i, p, n;
    const float             *scale;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    vlm_linear_t            *w = j->s->w;

    for (i = begin; i < end; i++) {
        p = j->first + i;
        n = rows_of(w, p);

        if (vlm_format_of(w->type)->quantise == NULL) {
            rows = plain_panel(j, p, thread);
        } else {
            rows = quantised_panel(j, p, thread, &scale);
            l->ops->basic->put(l->device, w->scale + p * VLM_PANEL, scale, n * sizeof(float));
        }

        l->ops->basic->pack(l->device, w, p * VLM_PANEL, n, rows);
    }
}


/* The same from the cache file. */
static void
unpack_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    void                    *rows;
    uint32_t                 p, n;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    vlm_linear_t            *w = j->s->w;

    rows = thread_rows(l, thread, w->K);

    for (p = begin; p < end; p++) {
        n = rows_of(w, p);
        vlm_format_of(w->type)->unpack(rows, vlm_packed_panel(l->packed, p), n, w->K,
                                       l->packed->flip);
        l->ops->basic->pack(l->device, w, p * VLM_PANEL, n, rows);
    }
}


/* The panels stay where they are; reading them checks their sum and brings them into memory. */
static void
touch_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    uint32_t                 p;
    const vlm_panels_job_t  *j = arg;

    (void) thread;

    for (p = begin; p < end; p++) {
        (void) vlm_packed_panel(j->l->packed, p);
    }
}


/* Quantises panels [begin, end) behind j->first, for the cache file. */
static void
make_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    void                    *rows;
    uint32_t                 i, p, K;
    const float             *scale;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    const vlm_format_t      *f = vlm_format_of(j->s->w->type);

    K = j->s->w->K;

    for (i = begin; i < end; i++) {
        p = j->first + i;
        rows = quantised_panel(j, p, thread, &scale);
        f->pack(l->panels + i * f->panel_bytes(K), rows, rows_of(j->s->w, p), K, l->packed->flip);
    }
}


static int
grow(void **p, uint64_t *room, uint64_t bytes, vlm_err_t *err)
{
    if (bytes <= *room) {
        return 0;
    }

    free(*p);
    *p = aligned_alloc(VLM_ALIGN, vlm_round(bytes, VLM_ALIGN));
    *room = *p == NULL ? 0 : bytes;

    return *p != NULL ? 0 : vlm_fail(err, VLM_EMEMORY, "no memory to read %" PRIu64
                                     " bytes of weights", bytes);
}


/* Buffers for a matrix of which `most` panels are made together; 0: they are made already. */
static int
grow_all(vlm_loader_t *l, const vlm_source_t *s, uint32_t most, vlm_err_t *err)
{
    uint32_t             i;
    uint64_t             threads, row, vector;
    const vlm_turn_t    *t = most == 0 ? NULL : s->turned.writes;
    const vlm_linear_t  *w = s->w;
    const vlm_format_t  *f = vlm_format_of(w->type);

    threads = vlm_threads_count(l->threads);
    row = vlm_mul(w->K, sizeof(float));
    vector = vlm_mul(w->N, sizeof(float));

    if (grow(&l->rows, &l->rows_room, vlm_mul(vlm_mul(threads, VLM_PANEL + 1), row), err) != 0
        || grow((void **) &l->scale, &l->scale_room, vector, err) != 0
        || grow((void **) &l->offset, &l->offset_room, vector, err) != 0
        || grow((void **) &l->factor, &l->factor_room, vector, err) != 0)
    {
        return -1;
    }

    memset(l->offset, 0, vector);

    for (i = 0; i < w->N; i++) {
        l->factor[i] = s->turned.rows == NULL ? 1 : s->turned.rows[i];
    }

    if (t == NULL) {
        return 0;
    }

    return grow((void **) &l->largest, &l->largest_room, vlm_mul(threads, vector), err) != 0
           || grow((void **) &l->slab, &l->slab_room,
                   vlm_mul(vlm_mul(threads, vlm_add(t->n, t->odd)), COLUMNS * sizeof(float)),
                   err) != 0
           || grow((void **) &l->group, &l->group_room,
                   vlm_mul(vlm_mul(most, VLM_PANEL), vlm_format_row(f, w->K)), err) != 0 ? -1 : 0;
}


/* Panels of a matrix that are made together. */
static uint32_t
most_panels(const vlm_source_t *s)
{
    uint32_t             all;
    uint64_t             bytes, most;
    const vlm_format_t  *f = vlm_format_of(s->w->type);

    all = (s->w->N + VLM_PANEL - 1) / VLM_PANEL;
    bytes = vlm_mul(VLM_PANEL, vlm_format_row(f, s->w->K));
    most = (s->turned.writes == NULL ? CHUNK : GROUP) / bytes + 1;

    return most < all ? (uint32_t) most : all;
}


/* From the checkpoint to the device. */
static int
load_all(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err)
{
    uint32_t          panels, most;
    vlm_panels_job_t  j = { l, s, 0, 0 };

    panels = (s->w->N + VLM_PANEL - 1) / VLM_PANEL;
    most = most_panels(s);

    if (grow_all(l, s, most, err) != 0) {
        return -1;
    }

    if (s->turned.writes == NULL) {
        vlm_threads_run(l->threads, panels, 1, load_panels, &j);
        return 0;
    }

    measure(l, s);

    for (j.first = 0; j.first < panels; j.first += j.n) {
        j.n = panels - j.first < most ? panels - j.first : most;
        vlm_threads_run(l->threads, slabs_of(s->w->K), 1, round_slabs, &j);
        vlm_threads_run(l->threads, j.n, 1, load_panels, &j);
    }

    return 0;
}


int
vlm_matrix_load(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err)
{
    int               stays;
    uint32_t          panels;
    vlm_linear_t     *w = s->w;
    vlm_panels_job_t  j = { l, s, 0, 0 };

    if (l->packed == NULL) {
        return load_all(l, s, err);
    }

    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;
    stays = l->packed->stays;

    if (grow_all(l, s, 0, err) != 0 || vlm_packed_begin(l->packed, w->type, w->N, w->K, err) != 0) {
        return -1;
    }

    if (stays) {
        w->w = vlm_packed_panels(l->packed);
        w->scale = vlm_packed_scale(l->packed);
    } else {
        l->ops->basic->put(l->device, w->scale, vlm_packed_scale(l->packed), w->N * sizeof(float));
    }

    memcpy(l->offset, vlm_packed_offset(l->packed), w->N * sizeof(float));
    memcpy(l->factor, vlm_packed_factor(l->packed), w->N * sizeof(float));
    vlm_threads_run(l->threads, panels, 1, stays ? touch_panels : unpack_panels, &j);

    if (vlm_packed_end(l->packed, err) != 0) {
        return -1;
    }

    if (!stays) {
        vlm_packed_done(l->packed);
    }

    return 0;
}


int
vlm_matrix_keep(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err)
{
    uint32_t             panels, most;
    uint64_t             bytes;
    const vlm_linear_t  *w = s->w;
    vlm_panels_job_t     j = { l, s, 0, 0 };

    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;
    bytes = vlm_format_of(w->type)->panel_bytes(w->K);
    most = most_panels(s);

    if (grow_all(l, s, most, err) != 0
        || grow((void **) &l->panels, &l->panels_room, vlm_mul(most, bytes), err) != 0
        || vlm_packed_begin(l->packed, w->type, w->N, w->K, err) != 0)
    {
        return -1;
    }

    if (s->turned.writes != NULL) {
        measure(l, s);
    }

    for (j.first = 0; j.first < panels; j.first += j.n) {
        j.n = panels - j.first < most ? panels - j.first : most;

        if (s->turned.writes != NULL) {
            vlm_threads_run(l->threads, slabs_of(w->K), 1, round_slabs, &j);
        }

        vlm_threads_run(l->threads, j.n, 1, make_panels, &j);
        vlm_packed_add(l->packed, j.first, j.n, l->panels);

        if (l->packed->failed) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s", l->packed->temporary,
                            strerror(l->packed->failed));
        }
    }

    vlm_packed_add_scale(l->packed, l->scale, l->offset, l->factor);

    return vlm_packed_end(l->packed, err);
}


void
vlm_loader_free(vlm_loader_t *l)
{
    free(l->rows);
    free(l->panels);
    free(l->scale);
    free(l->offset);
    free(l->factor);
    free(l->largest);
    free(l->slab);
    free(l->group);
}
