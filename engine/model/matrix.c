/*
 * Loads one weight matrix: see the header.
 *
 * Threads share panels of 64 rows: each is read as f32, quantised if the form of the weights is
 * quantised and the file has another, and put into the device's order.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "format/panel.h"
#include "model/matrix.h"

#define CHUNK  (8u << 20)              /* bytes of the cache file that are quantised together */

typedef struct {                       /* for the threads */
    const vlm_loader_t  *l;
    const vlm_source_t  *s;
    uint32_t             first;        /* panel in l->panels */
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


static void
read_rows(const vlm_source_t *s, uint32_t first, uint32_t n, float *rows)
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


/*
 * Reads rows and quantises them, in place: a quantised row lies before the f32 that is read next.
 * Rows that a file has in this form already keep their bits.
 */
static void
read_quantised(const vlm_source_t *s, const vlm_format_t *f, uint32_t first, uint32_t n, void *rows,
               float *scale)
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
    return (float *) l->rows + (size_t) thread * VLM_PANEL * K;
}


static void
load_panels(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    void                    *rows;
    float                    scale[VLM_PANEL];
    uint32_t                 p, n;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    vlm_linear_t            *w = j->s->w;
    const vlm_format_t      *f = vlm_format_of(w->type);

    rows = thread_rows(l, thread, w->K);

    for (p = begin; p < end; p++) {
        n = rows_of(w, p);

        if (f->quantise == NULL) {
            read_rows(j->s, p * VLM_PANEL, n, rows);
        } else {
            read_quantised(j->s, f, p * VLM_PANEL, n, rows, scale);
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
    uint32_t                 i, p, n, K;
    const vlm_panels_job_t  *j = arg;
    const vlm_loader_t      *l = j->l;
    const vlm_format_t      *f = vlm_format_of(j->s->w->type);

    K = j->s->w->K;
    rows = thread_rows(l, thread, K);

    for (i = begin; i < end; i++) {
        p = j->first + i;
        n = rows_of(j->s->w, p);
        read_quantised(j->s, f, p * VLM_PANEL, n, rows, l->scale + p * VLM_PANEL);
        f->pack(l->panels + i * f->panel_bytes(K), rows, n, K, l->packed->flip);
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


static int
grow_rows(vlm_loader_t *l, uint32_t K, vlm_err_t *err)
{
    return grow(&l->rows, &l->rows_room, vlm_mul(vlm_mul(vlm_threads_count(l->threads), VLM_PANEL),
                                                 vlm_mul(K, sizeof(float))), err);
}


int
vlm_matrix_load(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err)
{
    int               stays;
    uint32_t          panels;
    vlm_linear_t     *w = s->w;
    vlm_panels_job_t  j = { l, s, 0 };

    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;
    stays = l->packed != NULL && l->packed->stays;

    if (!stays && grow_rows(l, w->K, err) != 0) {
        return -1;
    }

    if (l->packed == NULL) {
        vlm_threads_run(l->threads, panels, 1, load_panels, &j);
        return 0;
    }

    if (vlm_packed_begin(l->packed, w->N, w->K, err) != 0) {
        return -1;
    }

    if (stays) {
        w->w = vlm_packed_panels(l->packed);
        w->scale = vlm_packed_scale(l->packed);
    } else {
        l->ops->basic->put(l->device, w->scale, vlm_packed_scale(l->packed), w->N * sizeof(float));
    }

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
    uint32_t             n, panels, most;
    uint64_t             bytes;
    const vlm_linear_t  *w = s->w;
    vlm_panels_job_t     j = { l, s, 0 };

    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;
    bytes = vlm_format_of(w->type)->panel_bytes(w->K);
    most = (uint32_t) (CHUNK / bytes) + 1;

    if (grow_rows(l, w->K, err) != 0
        || grow((void **) &l->panels, &l->panels_room, vlm_mul(most, bytes), err) != 0
        || grow((void **) &l->scale, &l->scale_room, vlm_mul(w->N, sizeof(float)), err) != 0
        || vlm_packed_begin(l->packed, w->N, w->K, err) != 0)
    {
        return -1;
    }

    for (j.first = 0; j.first < panels; j.first += n) {
        n = panels - j.first < most ? panels - j.first : most;
        vlm_threads_run(l->threads, n, 1, make_panels, &j);
        vlm_packed_add(l->packed, j.first, n, l->panels);

        if (l->packed->failed) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s", l->packed->temporary,
                            strerror(l->packed->failed));
        }
    }

    vlm_packed_add_scale(l->packed, l->scale);

    return vlm_packed_end(l->packed, err);
}


void
vlm_loader_free(vlm_loader_t *l)
{
    free(l->rows);
    free(l->panels);
    free(l->scale);
}
