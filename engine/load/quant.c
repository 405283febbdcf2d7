/* The tensors of quantised checkpoints: see quant.h. */

#include "load/quant.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "load/checkpoint.h"

#define MAX_NAME  512

typedef struct {
    vlm_checkpoint_t   *c;
    const vlm_quant_t  *q;
    char                stem[MAX_NAME];    /* of the matrix at hand: its name without ".weight" */
} fold_t;


/* ---- shapes -------------------------------------------------------------- */

static int
has_shape(const vlm_tensor_t *t, uint64_t a, uint64_t b)
{
    uint32_t  i;
    uint64_t  dims[2] = { 1, 1 };

    for (i = 0; i < t->n_dims; i++) {
        if (i < 2) {
            dims[i] = t->dims[i];
        } else if (t->dims[i] != 1) {
            return 0;
        }
    }

    return dims[0] == a && dims[1] == b;
}


static int
refuse_shape(const vlm_made_t *m, vlm_made_part_t part, const char *dtype, uint64_t a, uint64_t b,
             const char *name, vlm_err_t *err)
{
    static const char *const  what[] = { "values", "scales", "zero points", "order" };

    const vlm_tensor_t  *t = &m->part[part];

    return vlm_fail(err, VLM_EMODEL, "%s: its %s are %s in %u dimensions, %" PRIu64 " bytes; its "
                    "form has %s [%" PRIu64 ", %" PRIu64 "]", name, what[part],
                    t->data == NULL ? "missing" : t->dtype, t->n_dims, t->bytes, dtype, a, b);
}


int
vlm_made_check(const vlm_made_t *m, vlm_made_part_t part, const char *dtype, uint64_t a, uint64_t b,
               const char *name, vlm_err_t *err)
{
    const vlm_tensor_t  *t = &m->part[part];

    if (t->data == NULL || strcmp(t->dtype, dtype) != 0 || !has_shape(t, a, b)) {
        return refuse_shape(m, part, dtype, a, b, name, err);
    }

    return 0;
}


int
vlm_made_check_scales(const vlm_made_t *m, uint64_t a, uint64_t b, const char *name, vlm_err_t *err)
{
    const vlm_tensor_t  *t = &m->part[VLM_SCALES];

    if (t->data == NULL || t->format == NULL || !has_shape(t, a, b)) {
        return refuse_shape(m, VLM_SCALES, "F32, F16 or BF16", a, b, name, err);
    }

    return 0;
}


void
vlm_made_cover(vlm_made_t *m)
{
    m->rows = m->rows != 0 ? m->rows : m->N;
    m->rows += m->rows == 0;
    m->columns = m->columns != 0 ? m->columns : m->K;
    m->columns += m->columns == 0;
    m->grid = m->K / m->columns + (m->K % m->columns != 0);
}


/* ---- folding ------------------------------------------------------------- */

static const vlm_tensor_t *
part_of(const fold_t *f, const char *suffix)
{
    char  name[MAX_NAME];

    if (suffix == NULL
        || snprintf(name, sizeof(name), "%s%s", f->stem, suffix) >= (int) sizeof(name))
    {
        return NULL;
    }

    return vlm_checkpoint_part(f->c, name);
}


/* GPTQ's packer writes a bias for every matrix: zeros add nothing where a model has none. */
static void
spare_bias(const fold_t *f)
{
    char                 name[MAX_NAME];
    uint64_t             i;
    const vlm_tensor_t  *t;

    (void) snprintf(name, sizeof(name), "%.500s.bias", f->stem);
    t = vlm_checkpoint_look(f->c, name);

    for (i = 0; t != NULL && i < t->bytes; i++) {
        if (t->data[i] != 0) {
            return;
        }
    }

    if (t != NULL) {
        vlm_checkpoint_spare(f->c, name);
    }
}


static int
fold_one(fold_t *f, vlm_err_t *err)
{
    int                      rc;
    char                     name[MAX_NAME];
    uint32_t                 i;
    uint64_t                 dims[2];
    vlm_made_t              *m;
    const vlm_tensor_t      *t;
    const vlm_quant_t       *q = f->q;
    const vlm_quant_form_t  *form = q->form;

    m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a matrix");
    }

    m->lossy = 1;
    m->bits = q->bits;
    m->less = q->less;
    m->divisor = q->divisor;
    m->rows = q->rows;
    m->columns = q->columns;

    for (i = 0; i < VLM_MADE_PARTS; i++) {
        t = part_of(f, form->suffix[i]);
        t = t == NULL && i == VLM_SCALES ? part_of(f, form->other) : t;

        if (t != NULL) {
            m->part[i] = *t;
            m->part[i].name = NULL;
        }
    }

    for (i = 0; i < sizeof(form->spare) / sizeof(form->spare[0]); i++) {
        (void) part_of(f, form->spare[i]);
    }

    spare_bias(f);
    (void) snprintf(name, sizeof(name), "%.500s.weight", f->stem);

    rc = form->make(m, vlm_printable(name), err);
    dims[0] = m->N;
    dims[1] = m->K;

    if (rc == 0) {
        rc = vlm_checkpoint_make(f->c, name, m, dims, 2, err);
    }

    if (rc != 0) {
        free(m);
    }

    return rc;
}


/* 1: the tensor has the values of a matrix of this form, whose name is then f->stem. */
static int
is_values(fold_t *f, const vlm_tensor_t *t)
{
    size_t       n, end;
    const char  *suffix = f->q->form->suffix[VLM_VALUES];

    n = strlen(t->name);
    end = strlen(suffix);

    if (n < end || n - end >= sizeof(f->stem) || strcmp(t->name + n - end, suffix) != 0
        || (strcmp(suffix, ".weight") == 0 && vlm_format_scaled(t->dtype) == NULL))
    {
        return 0;
    }

    memcpy(f->stem, t->name, n - end);
    f->stem[n - end] = '\0';

    return 1;
}


int
vlm_quant_fold(vlm_checkpoint_t *c, const vlm_quant_t *q, vlm_err_t *err)
{
    fold_t               f = { .c = c, .q = q };
    uint32_t             i, n;
    const vlm_tensor_t  *t;

    if (q->form == NULL) {
        return 0;
    }

    n = vlm_checkpoint_count(c);

    for (i = 0; i < n; i++) {
        t = vlm_checkpoint_tensor(c, i);

        if (t != NULL && is_values(&f, t) && fold_one(&f, err) != 0) {
            return -1;
        }
    }

    return 0;
}
