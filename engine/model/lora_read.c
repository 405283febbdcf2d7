/*
 * Reads an adapter for a model: finds the tensors of each matrix, checks their shapes, turns them
 * as the matrix is turned (turn.c), and puts them into the order of a place.
 */

#include "model/lora.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"
#include "format/low.h"
#include "format/turn.h"
#include "load/checkpoint.h"
#include "model/bind.h"

typedef struct {                       /* of one part */
    const vlm_adapter_tensor_t  *a, *b, *shift;
} pair_t;

typedef struct {
    const vlm_model_t    *m;
    const vlm_lora_t     *x;
    vlm_adapter_file_t    f;
    vlm_lora_data_t      *d;
    pair_t              (*pair)[VLM_PARTS];        /* [n] */
    vlm_turn_t            text, encoder;           /* of a turned model */
    float                *work;        /* grown as needed */
    uint64_t              room;        /* bytes */
    const vlm_adapter_tensor_t  *held; /* whose bytes are in memory, or NULL */
    uint8_t              *bytes;       /* [held_room] */
    uint64_t              held_room;
    vlm_err_t            *err;
} reader_t;


/* ---- finding ------------------------------------------------------------- */

/* The matrix and the part of a module; NULL: none. */
static const vlm_lora_matrix_t *
find(const vlm_lora_t *x, const char *module, int table, uint32_t *part)
{
    uint32_t                  i;
    const vlm_lora_matrix_t  *t;

    for (i = 0; i < x->n; i++) {
        t = &x->matrix[i];

        for (*part = 0; *part < t->lows.parts; (*part)++) {
            if (t->table == table && strcmp(t->name[*part], module) == 0) {
                return t;
            }
        }
    }

    return NULL;
}


/* The module's weight that PEFT saves beside an adapter of an embedding or of the head. */
static int
is_base(const reader_t *r, const vlm_adapter_tensor_t *a)
{
    uint32_t                  part;
    const vlm_lora_matrix_t  *t;

    t = find(r->x, a->module, 1, &part);
    t = t == NULL ? find(r->x, a->module, 0, &part) : t;

    return t != NULL && a->t.n_dims == 2 && a->t.dims[0] == t->w->N && a->t.dims[1] == t->w->K;
}


static int
assign(reader_t *r)
{
    int                          table;
    uint32_t                     i, part, left;
    pair_t                      *p;
    const char                  *first;
    vlm_adapter_tensor_t        *a;
    const vlm_lora_matrix_t     *t;

    for (first = NULL, left = 0, i = 0; i < r->f.n; i++) {
        a = &r->f.tensor[i];
        table = a->kind == VLM_ADAPTER_TABLE_A || a->kind == VLM_ADAPTER_TABLE_B;

        if (a->kind == VLM_ADAPTER_BASE && is_base(r, a)) {
            continue;
        }

        t = a->kind == VLM_ADAPTER_BASE || a->kind == VLM_ADAPTER_OTHER
            ? NULL : find(r->x, a->module, table, &part);

        if (t == NULL) {
            first = left++ == 0 ? a->t.name : first;
            continue;
        }

        p = &r->pair[t - r->x->matrix][part];
        *(a->kind == VLM_ADAPTER_SHIFT ? &p->shift
          : a->kind == VLM_ADAPTER_B || a->kind == VLM_ADAPTER_TABLE_B ? &p->b : &p->a) = a;
    }

    return left == 0 ? 0
           : vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %u tensor%s of no matrix of this model%s"
                      ", the first is %s", r->f.name, left, left == 1 ? "" : "s",
                      r->x->tower || r->m->config.vision.depth == 0
                      ? "" : " (lora has tower=off)", vlm_printable(first));
}


/* ---- shapes -------------------------------------------------------------- */

/* For messages: without the beginning that all have. */
static const char *
short_name(const vlm_tensor_t *t)
{
    return t->name + (sizeof("base_model.model.") - 1);
}


static int
check_shape(const reader_t *r, const vlm_adapter_tensor_t *a, uint32_t n_dims, uint64_t n,
            uint64_t k)
{
    const vlm_tensor_t  *t = &a->t;

    if (t->format == NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %s has elements of type %s, which are "
                        "not read", r->f.name, vlm_printable(short_name(t)),
                        vlm_printable(t->dtype));
    }

    if (t->n_dims == n_dims && t->dims[0] == n && (n_dims == 1 || t->dims[1] == k)) {
        return 0;
    }

    if (n_dims == 1) {
        return vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %s is [%llu%s], expected [%llu]",
                        r->f.name, vlm_printable(short_name(t)), (unsigned long long) t->dims[0],
                        t->n_dims == 1 ? "" : ", ...", (unsigned long long) n);
    }

    return vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %s is [%llu%s%.0llu%s], expected "
                    "[%llu, %llu]", r->f.name, vlm_printable(short_name(t)),
                    (unsigned long long) t->dims[0], t->n_dims > 1 ? ", " : "",
                    t->n_dims > 1 ? (unsigned long long) t->dims[1] : 0,
                    t->n_dims > 2 ? ", ..." : "", (unsigned long long) n, (unsigned long long) k);
}


/* Both tensors of a part; *rank is its own. */
static int
check_pair(const reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, uint32_t *rank)
{
    uint64_t       n, k;
    const pair_t  *p = &r->pair[t - r->x->matrix][part];

    *rank = 0;

    if (p->a == NULL && p->b == NULL && p->shift == NULL) {
        return 0;
    }

    if (p->a == NULL || p->b == NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %s has no lora_%s", r->f.name,
                        t->name[part], p->a == NULL ? "A" : "B");
    }

    n = t->table ? t->w->K : t->rows[part];
    k = t->table ? t->w->N : t->w->K;

    if (p->a->t.n_dims != 2 || p->a->t.dims[0] == 0) {
        return check_shape(r, p->a, 2, r->x->rank, k) != 0 ? -1
               : vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": rank 0", r->f.name);
    }

    if (p->a->t.dims[0] > r->x->rank) {
        return vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": rank %llu, lora has rank=%u",
                        r->f.name, (unsigned long long) p->a->t.dims[0], r->x->rank);
    }

    *rank = (uint32_t) p->a->t.dims[0];

    return check_shape(r, p->a, 2, *rank, k) != 0 || check_shape(r, p->b, 2, n, *rank) != 0
           || (p->shift != NULL && check_shape(r, p->shift, 1, n, 0) != 0) ? -1 : 0;
}


/* ---- values -------------------------------------------------------------- */

static int
grow(reader_t *r, uint64_t floats)
{
    uint64_t  bytes = vlm_mul(floats, sizeof(float));

    if (bytes > r->room) {
        free(r->work);
        r->work = vlm_malloc(bytes);
        r->room = r->work == NULL ? 0 : bytes;
    }

    return r->work != NULL ? 0 : vlm_fail(r->err, VLM_EMEMORY, "no memory to read adapter \"%s\"",
                                          r->f.name);
}


/* The bytes of a tensor, which is read whole: its file may be cut or changed at any time. */
static int
hold(reader_t *r, const vlm_adapter_tensor_t *a)
{
    if (r->held == a) {
        return 0;
    }

    r->held = NULL;

    if (a->t.bytes > r->held_room) {
        free(r->bytes);
        r->bytes = vlm_malloc(a->t.bytes);
        r->held_room = r->bytes == NULL ? 0 : a->t.bytes;
    }

    if (r->bytes == NULL) {
        return vlm_fail(r->err, VLM_EMEMORY, "no memory to read adapter \"%s\"", r->f.name);
    }

    if (vlm_adapter_read(&r->f, &a->t, r->bytes, r->err) != 0) {
        return -1;
    }

    r->held = a;

    return 0;
}


static int
read_values(reader_t *r, const vlm_adapter_tensor_t *a, uint64_t first, uint64_t n, float *to)
{
    uint64_t  i;

    if (hold(r, a) != 0) {
        return -1;
    }

    a->t.format->read(r->bytes, first, n, to);

    for (i = 0; i < n && isfinite(to[i]); i++) { /* void */ }

    return i == n ? 0 : vlm_fail(r->err, VLM_EMODEL, "adapter \"%s\": %s holds a number that is "
                                 "not finite", r->f.name, vlm_printable(short_name(&a->t)));
}


static const vlm_turn_t *
turn_of(const reader_t *r, vlm_lora_turn_t t)
{
    return t == VLM_LORA_TEXT ? &r->text : t == VLM_LORA_ENCODER ? &r->encoder : NULL;
}


/* Row i of a part's `most` rows of A. */
static void
store_a(const reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, uint32_t most, uint32_t i,
        const float *row)
{
    size_t    first;
    uint32_t  k, n, K = t->w->K;

    first = (size_t) part * most * K;

    if (!r->x->packed) {
        vlm_format_put(r->x->type, r->d->data + t->a, first + (size_t) i * K, 1, row, K);
        return;
    }

    for (k = 0; k < K; k += n) {
        n = K - k < VLM_LOW_LANES ? K - k : VLM_LOW_LANES;
        vlm_format_put(r->x->type, r->d->data + t->a, first + vlm_low_a_at(most, K, i, k), 1,
                       row + k, n);
    }
}


/* Rows of A, which are turned as rows of the matrix are; and what a shift of its inputs adds. */
static int
read_a(reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, uint32_t rank, uint32_t most)
{
    float        *row, *work, *c;
    uint32_t      i, k, K = t->w->K;
    vlm_turned_t  turned = { .reads = turn_of(r, t->reads), .gain = t->gain, .shift = t->shift,
                             .shifts = t->shift != NULL, .period = t->period,
                             .blocks = t->blocks };

    if (grow(r, 2 * (uint64_t) K) != 0) {
        return -1;
    }

    row = r->work;
    work = row + K;

    for (i = 0; i < rank; i++) {
        c = (float *) (r->d->data + t->c) + (size_t) part * most + i;

        if (read_values(r, r->pair[t - r->x->matrix][part].a, (uint64_t) i * K, K, row) != 0) {
            return -1;
        }

        for (k = 0; t->columns != NULL && k < K; k++) {
            row[k] *= t->columns[k];
        }

        vlm_matrix_turn_row(&turned, K, row, work, c);

        if (turned.blocks) {
            vlm_turn_blocks(row, K, row);
        }

        store_a(r, t, part, most, i, row);
    }

    return 0;
}


/* Of a table, A becomes [V][r], whose rows are picked. */
static int
read_table(reader_t *r, const vlm_lora_matrix_t *t, uint32_t rank)
{
    uint32_t  i, V = t->w->N;

    if (grow(r, V) != 0) {
        return -1;
    }

    for (i = 0; i < rank; i++) {
        if (read_values(r, r->pair[t - r->x->matrix][0].a, (uint64_t) i * V, V, r->work) != 0) {
            return -1;
        }

        vlm_format_put(r->x->type, r->d->data + t->a, i, rank, r->work, V);
    }

    return 0;
}


/* Column `to` of B, or the bias, goes to a row of the place's, whose order is the matrix's. */
static void
store_b(const reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, uint32_t rows, uint32_t to,
        const float *from, uint32_t step)
{
    uint32_t  j, at, first, N, hd;

    N = t->table ? t->w->K : t->w->N;
    hd = t->order == VLM_BY_HEAD ? N / (3 * r->x->heads) : 0;
    first = part == 0 ? 0 : t->lows.end[part - 1];

    for (j = 0; j < (t->table ? N : t->rows[part]); j++) {
        at = vlm_row_place(t->order, t->lows.parts, part, first, j, r->x->heads, hd);
        vlm_format_put(r->x->type, r->d->data + t->b,
                       r->x->packed ? vlm_low_b_at(rows, N, to, at) : (size_t) to * N + at, 1,
                       from + (size_t) j * step, 1);
    }
}


/* The rows of a part of B [n][width] have the factors of the matrix's rows. */
static void
multiply_rows(const reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, float *b, uint32_t n,
              uint32_t width)
{
    uint32_t  i, j, at, first, hd;

    hd = t->order == VLM_BY_HEAD ? t->w->N / (3 * r->x->heads) : 0;

    first = part == 0 ? 0 : t->lows.end[part - 1];

    for (j = 0; t->factors != NULL && j < n; j++) {
        at = vlm_row_place(t->order, t->lows.parts, part, first, j, r->x->heads, hd);

        for (i = 0; i < width; i++) {
            b[(size_t) j * width + i] *= t->factors[at];
        }
    }
}


static int
read_b(reader_t *r, const vlm_lora_matrix_t *t, uint32_t part, uint32_t rank, uint32_t most)
{
    float             *work;
    uint32_t           i, rows, all;
    const pair_t      *p = &r->pair[t - r->x->matrix][part];
    const vlm_turn_t  *turn = turn_of(r, t->writes);

    rows = t->table ? t->w->K : t->rows[part];
    all = most + (uint32_t) r->d->low[t - r->x->matrix].shift;

    if (grow(r, ((uint64_t) rows + 2 + (turn == NULL ? 0 : turn->odd)) * (rank > 2 ? rank : 2))
        != 0
        || read_values(r, p->b, 0, (uint64_t) rows * rank, r->work) != 0)
    {
        return -1;
    }

    multiply_rows(r, t, part, r->work, rows, rank);

    if (turn != NULL) {
        vlm_turn_columns(turn, r->work, rank, r->work + (size_t) rows * rank);
    }

    for (i = 0; i < rank; i++) {
        store_b(r, t, part, all, i, r->work + i, rank);
    }

    if (p->shift == NULL) {
        return 0;
    }

    if (read_values(r, p->shift, 0, rows, r->work) != 0) {
        return -1;
    }

    multiply_rows(r, t, part, r->work, rows, 1);

    if (turn != NULL) {
        work = r->work + rows;
        vlm_turn_row(turn, r->work, work);
    }

    store_b(r, t, part, all, most, r->work, 1);

    return 0;
}


/* The name by which PEFT knows a part's module. */
static double
scale_of(const reader_t *r, const pair_t *p, uint32_t rank)
{
    char         module[VLM_ADAPTER_MODULE + 32];
    size_t       n;
    const char  *name, *end;

    name = short_name(&p->a->t);
    end = strstr(name, ".lora_");
    n = end == NULL ? strlen(name) : (size_t) (end - name);
    (void) snprintf(module, sizeof(module), "%.*s", (int) n, name);

    return vlm_adapter_scale(&r->f.config, module, rank);
}


static int
read_matrix(reader_t *r, uint32_t i)
{
    uint32_t                  p, most, rank[VLM_PARTS];
    vlm_low_t                *low = &r->d->low[i];
    const vlm_lora_matrix_t  *t = &r->x->matrix[i];

    for (most = 0, p = 0; p < t->lows.parts; p++) {
        rank[p] = r->pair[i][p].a == NULL ? 0 : (uint32_t) r->pair[i][p].a->t.dims[0];
        most = rank[p] > most ? rank[p] : most;
        low->shift |= r->pair[i][p].shift != NULL;
    }

    low->r = most;

    for (p = 0; p < t->lows.parts; p++) {
        if (rank[p] == 0) {
            continue;
        }

        low->scale[p] = (float) scale_of(r, &r->pair[i][p], rank[p]);
        r->d->tower |= t->tower;

        if ((t->table ? read_table(r, t, most) : read_a(r, t, p, rank[p], most)) != 0
            || read_b(r, t, p, rank[p], most) != 0)
        {
            return -1;
        }
    }

    return 0;
}


static int
read_all(reader_t *r)
{
    uint32_t             i;
    const vlm_config_t  *c = &r->m->config;

    r->d = calloc(1, sizeof(*r->d));

    if (r->d == NULL || (r->d->low = calloc(r->x->n, sizeof(*r->d->low))) == NULL
        || (r->d->data = calloc(1, r->x->bytes)) == NULL)
    {
        return vlm_fail(r->err, VLM_EMEMORY, "no memory to read adapter \"%s\"", r->f.name);
    }

    if (r->m->turned
        && (vlm_turn_open(&r->text, c->text.hidden, vlm_turn_has_means(&c->family->text), r->err)
            != 0
            || (c->vision.depth > 0
                && vlm_turn_open(&r->encoder, c->vision.hidden,
                                 vlm_turn_has_means(&c->family->encoder), r->err) != 0)))
    {
        return -1;
    }

    for (i = 0; i < r->x->n; i++) {
        if (read_matrix(r, i) != 0) {
            return -1;
        }
    }

    vlm_adapter_identity(&r->f, r->d->identity);

    return 0;
}


/* The files, and all that their tensors' names and shapes say. */
static int
open_files(reader_t *r, const char *name, const char *dir)
{
    uint32_t  i, p, rank;

    if (vlm_adapter_open(&r->f, name, dir, r->m->config.family, r->err) != 0) {
        return -1;
    }

    r->pair = calloc(r->x->n, sizeof(*r->pair));
    if (r->pair == NULL) {
        return vlm_fail(r->err, VLM_EMEMORY, "no memory to read adapter \"%s\"", r->f.name);
    }

    if (assign(r) != 0) {
        return -1;
    }

    for (i = 0; i < r->x->n; i++) {
        for (p = 0; p < r->x->matrix[i].lows.parts; p++) {
            if (check_pair(r, &r->x->matrix[i], p, &rank) != 0) {
                return -1;
            }
        }
    }

    return 0;
}


int
vlm_lora_check(const vlm_model_t *m, const char *name, const char *dir, vlm_err_t *err)
{
    int        rc;
    reader_t   r = { .m = m, .x = m->lora, .err = err };

    rc = open_files(&r, name, dir);
    free(r.pair);
    vlm_adapter_close(&r.f);

    return rc;
}


vlm_lora_data_t *
vlm_lora_read(const vlm_model_t *m, const char *name, const char *dir, vlm_err_t *err)
{
    reader_t   r = { .m = m, .x = m->lora, .err = err };

    if (open_files(&r, name, dir) != 0 || read_all(&r) != 0) {
        vlm_lora_data_free(r.d);
        r.d = NULL;
    }

    free(r.pair);
    free(r.work);
    free(r.bytes);
    vlm_turn_close(&r.text);
    vlm_turn_close(&r.encoder);
    vlm_adapter_close(&r.f);

    return r.d;
}
