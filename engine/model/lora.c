/* The matrices and places of adapters: see the header. */

#include "model/lora.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "format/format.h"


/*
 * Adapters have the form of keys and values: f32 beside weights in f32; otherwise bf16 is enough,
 * which rounds far less than the matrices beside are rounded.
 */
int
vlm_lora_open(vlm_model_t *m, uint32_t places, uint32_t rank, int tower, vlm_err_t *err)
{
    vlm_lora_t  *x;

    if (places == 0) {
        return 0;
    }

    x = calloc(1, sizeof(*x));
    if (x == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for adapters");
    }

    m->lora = x;
    x->places = places;
    x->rank = rank;
    x->tower = tower;
    x->type = vlm_format_of(m->type)->kv;
    x->packed = m->ops != NULL && m->ops->basic->low_packed;
    x->heads = m->config.text.heads;
    x->room = vlm_model_matrices(&m->config) + 1;          /* a tied head is one more */
    x->matrix = calloc(x->room, sizeof(*x->matrix));

    return x->matrix != NULL ? 0 : vlm_fail(err, VLM_EMEMORY, "no memory for adapters");
}


void
vlm_lora_clear(vlm_lora_t *x)
{
    uint32_t  i;

    for (i = 0; i < x->n; i++) {
        free(x->matrix[i].low);
        free(x->matrix[i].gain);
        free(x->matrix[i].shift);
        free(x->matrix[i].factors);
        free(x->matrix[i].columns);
    }

    x->n = 0;
}


void
vlm_lora_close(vlm_lora_t *x)
{
    if (x == NULL) {
        return;
    }

    vlm_lora_clear(x);
    free(x->matrix);
    free(x);
}


static int
copy(float **to, const float *from, uint32_t n)
{
    *to = NULL;

    if (from == NULL) {
        return 0;
    }

    *to = malloc(n * sizeof(float));
    if (*to == NULL) {
        return -1;
    }

    memcpy(*to, from, n * sizeof(float));

    return 0;
}


int
vlm_lora_add(vlm_lora_t *x, const vlm_lora_matrix_t *matrix, const vlm_turned_t *t, vlm_err_t *err)
{
    uint32_t            i, end;
    vlm_lora_matrix_t  *to;

    if (x->n == x->room || (matrix->tower && !x->tower)) {
        return x->n == x->room ? vlm_fail(err, VLM_EMODEL, "more matrices than were counted") : 0;
    }

    to = &x->matrix[x->n++];
    *to = *matrix;
    to->low = calloc(x->places, sizeof(*to->low));

    if (copy(&to->gain, t->gain, to->period) != 0 || copy(&to->shift, t->shift, to->period) != 0
        || copy(&to->factors, t->rows, to->w->N) != 0
        || copy(&to->columns, t->columns, to->w->K) != 0 || to->low == NULL)
    {
        return vlm_fail(err, VLM_EMEMORY, "no memory for adapters");
    }

    to->lows.type = x->type;
    to->lows.places = x->places;
    to->lows.packed = x->packed;
    to->lows.in_turn = to->order == VLM_IN_TURN;
    to->lows.place = to->low;
    to->lows.rows = &x->rows;

    for (end = 0, i = 0; i < VLM_PARTS && to->rows[i] > 0; i++) {
        end += to->rows[i];
        to->lows.end[i] = end;
    }

    to->lows.parts = i;
    to->w->low = &to->lows;

    return 0;
}


/* Counts some elements in a place. */
static uint64_t
count(uint64_t *bytes, uint64_t n, uint64_t size)
{
    uint64_t  at = *bytes;

    *bytes = vlm_round(vlm_add(*bytes, vlm_mul(n, size)), VLM_ALIGN);

    return at;
}


/* A vector of a B's bias is one row more. */
void
vlm_lora_place(vlm_lora_t *x, vlm_arena_t *a)
{
    uint32_t            i;
    uint64_t            size;
    vlm_lora_matrix_t  *t;

    x->bytes = 0;
    size = vlm_format_row(vlm_format_of(x->type), 1);

    for (i = 0; i < x->n; i++) {
        t = &x->matrix[i];
        t->at = count(&x->bytes, 1, sizeof(vlm_low_t));
        t->a = count(&x->bytes, vlm_mul(vlm_mul(t->lows.parts, x->rank),
                                        t->table ? t->w->N : t->w->K), size);
        t->b = count(&x->bytes, vlm_mul(x->rank + 1, t->table ? t->w->K : t->w->N), size);
        t->c = count(&x->bytes, vlm_mul(t->lows.parts, x->rank), sizeof(float));
    }

    x->base = vlm_place(a, x->places, x->bytes);

    for (i = 0; i < x->n && x->base != NULL; i++) {
        x->matrix[i].lows.there = x->base + x->matrix[i].at;
        x->matrix[i].lows.stride = x->bytes;
    }
}


int
vlm_lora_put(vlm_model_t *m, vlm_lora_data_t *d, uint32_t place, uint64_t bytes)
{
    uint8_t             *to;
    uint64_t             n, size, a, b, c;
    vlm_low_t           *low;
    vlm_lora_t          *x = m->lora;
    const vlm_basic_t   *basic = m->ops->basic;
    vlm_lora_matrix_t   *t;

    size = vlm_format_row(vlm_format_of(x->type), 1);
    to = x->base + place * x->bytes;

    for (n = 0; d->next < x->n && n < bytes; d->next++) {
        t = &x->matrix[d->next];
        low = &t->low[place];
        *low = d->low[d->next];
        low->a = to + t->a;
        low->b = to + t->b;
        low->c = (float *) (to + t->c);
        basic->put(m->device, to + t->at, low, sizeof(*low));

        if (low->r == 0) {
            continue;
        }

        a = (uint64_t) t->lows.parts * low->r * (t->table ? t->w->N : t->w->K) * size;
        b = (uint64_t) (low->r + (uint32_t) low->shift) * (t->table ? t->w->K : t->w->N) * size;
        c = (uint64_t) t->lows.parts * low->r * sizeof(float);

        basic->put(m->device, low->a, d->data + t->a, a);
        basic->put(m->device, low->b, d->data + t->b, b);
        basic->put(m->device, low->c, d->data + t->c, c);
        n += a + b + c;
    }

    return d->next == x->n;
}


void
vlm_lora_data_free(vlm_lora_data_t *d)
{
    if (d == NULL) {
        return;
    }

    free(d->low);
    free(d->data);
    free(d);
}
