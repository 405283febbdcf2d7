/*
 * Loads one weight matrix: see the header.
 *
 * Threads share panels of 64 rows: each is read as f32, quantised if the form of the weights is
 * quantised, and put into the device's order.
 */

#include <inttypes.h>
#include <stdlib.h>

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
    return ops->house->order == NULL ? VLM_NONE : ops->house->order(d);
}


/* Reads f32 rows of a panel; row n of the matrix is row n of one part, or of the parts in turn. */
static void
read_rows(const vlm_source_t *s, uint32_t first, uint32_t n, float *rows)
{
    uint32_t  i, part, K;
    uint64_t  row;

    K = s->w->K;

    for (i = 0; i < n; i++) {
        row = first + i;
        part = 0;

        if (s->order == VLM_IN_TURN) {
            part = row % s->n_parts;
            row /= s->n_parts;

        } else {
            while (row >= s->part[part]->dims[0]) {
                row -= s->part[part++]->dims[0];
            }
        }

        vlm_tensor_f32(s->part[part], row * K, K, rows + (size_t) i * K);
    }
}


/* In place: a quantised row lies before the f32 that is read next. */
static void
quantise_rows(const vlm_format_t *f, void *rows, uint32_t n, uint32_t K, float *scale)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        f->quantise((const float *) rows + (size_t) i * K, K,
                    (uint8_t *) rows + i * vlm_format_row(f, K), scale + vlm_format_scales(f, i));
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
        read_rows(j->s, p * VLM_PANEL, n, rows);

        if (f->quantise != NULL) {
            quantise_rows(f, rows, n, w->K, scale);
            l->ops->house->put(l->device, w->scale + p * VLM_PANEL, scale, n * sizeof(float));
        }

        l->ops->house->pack(l->device, w, p * VLM_PANEL, n, rows);
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
        l->ops->house->pack(l->device, w, p * VLM_PANEL, n, rows);
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
        read_rows(j->s, p * VLM_PANEL, n, rows);
        quantise_rows(f, rows, n, K, l->scale + p * VLM_PANEL);
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
        l->ops->house->put(l->device, w->scale, vlm_packed_scale(l->packed), w->N * sizeof(float));
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
