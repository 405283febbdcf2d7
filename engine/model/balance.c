/*
 * Brings the products between two matrices of a layer to one size, before they are turned and
 * rounded: those of `up` with silu(gate), which `down` reads, and the values that `o` reads, which
 * attention makes from rows of v.
 *
 * Both stay the same if a row of the first matrix is divided by a number and the columns of the
 * second that read it are multiplied by it; where that is a power of two, to the bit.  A turn of
 * blocks cannot do this: a large product and the small column that reads it are spread over one
 * block each, and then every value of both is rounded as coarsely as the largest.
 *
 * The errors of both roundings together are least where each product is to its columns as all
 * others are.  A product's size is taken to be that of its row.  The usual ratio of a layer, its
 * median, stays as it is, and so does a model without outliers.
 */

#include "model/bind.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS  128                   /* in a thread's hand */
#define MOST     15                    /* of an exponent, which bf16 products can have, too */

typedef struct {                       /* for the threads */
    const vlm_source_t    *s;          /* the first matrix */
    const float           *bias;       /* [N] its own, or NULL */
    const vlm_tensor_t    *reader;     /* [D][K] the second */
    const vlm_products_t  *p;
    uint32_t               K, D;
    double                *ratio;      /* [n]: squares of a product's size over its columns' */
    double                *column;     /* [K]: squares of these */
    float                 *scratch;    /* [threads][wide] */
    uint32_t               wide;       /* the longer row of the two */
} balance_t;


/* The row of the first matrix that makes product i; the product that column c of the second has. */
static uint32_t
row_of(const vlm_products_t *p, uint32_t i)
{
    return p->first + i * p->step;
}


static uint32_t
product_of(const vlm_products_t *p, uint32_t c)
{
    return c / (p->hd * p->group) * p->hd + c % p->hd;
}


/* The mean square of what a row makes of usual inputs, which a norm has made: 1 before its gain. */
static double
square_row(const balance_t *x, uint32_t i, float *row)
{
    float                v;
    double               sum;
    uint32_t             k;
    const vlm_turned_t  *t = &x->s->turned;

    vlm_matrix_rows(x->s, i, 1, row);
    v = x->bias == NULL ? 0 : x->bias[i];
    sum = (double) v * v;

    for (k = 0; k < x->s->w->K; k++) {
        v = t->gain == NULL ? row[k] : row[k] * t->gain[k % t->period];
        sum += (double) v * v;
    }

    return sum;
}


static void
measure_products(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float            *row;
    uint32_t          i;
    const balance_t  *x = arg;

    row = x->scratch + (size_t) thread * x->wide;

    for (i = begin; i < end; i++) {
        x->ratio[i] = square_row(x, row_of(x->p, i), row);
    }
}


/* begin and end: in COLUMNS. */
static void
measure_columns(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    float            *row;
    double           *sum;
    uint32_t          i, k, c, n;
    const balance_t  *x = arg;

    row = x->scratch + (size_t) thread * x->wide;

    for (c = begin * COLUMNS; c < end * COLUMNS && c < x->K; c += n) {
        n = x->K - c < COLUMNS ? x->K - c : COLUMNS;
        sum = x->column + c;
        memset(sum, 0, n * sizeof(double));

        for (i = 0; i < x->D; i++) {
            if (x->reader->made == NULL) {
                vlm_tensor_f32(x->reader, (uint64_t) i * x->K + c, n, row + c);
            } else {
                vlm_tensor_rows(x->reader, i, 1, row, x->K);
            }

            for (k = 0; k < n; k++) {
                sum[k] += (double) row[c + k] * row[c + k];
            }
        }
    }
}


static int
compare(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


/* 1: a row and its columns have a ratio: neither is zero, nor has what is not finite. */
static int
has_ratio(double r)
{
    return isfinite(r) && r > 0;
}


/* The median of those that are. */
static double
usual(const double *ratio, uint32_t n, double *sorted)
{
    uint32_t  i, m;

    for (m = 0, i = 0; i < n; i++) {
        if (has_ratio(ratio[i])) {
            sorted[m++] = ratio[i];
        }
    }

    qsort(sorted, m, sizeof(*sorted), compare);

    return m == 0 ? 1 : sorted[m / 2];
}


/* 2 to the nearest whole number to -log2(r) / 4, r being a ratio of squares. */
static float
factor_of(double r)
{
    int  e;

    if (!has_ratio(r)) {
        return 1;
    }

    (void) frexp(r, &e);               /* 2^(e - 1) <= r < 2^e */
    e = (e + 1 - ((e + 1) % 4 + 4) % 4) / 4;
    e = e > MOST ? MOST : e < -MOST ? -MOST : e;

    return (float) ldexp(1, -e);
}


/* The factors of the rows: to [N]. */
static void
find_factors(balance_t *x, vlm_threads_t *threads, double *work, float *to)
{
    double    middle, *squares = work;
    uint32_t  i, c;

    vlm_threads_run(threads, x->p->n, 16, measure_products, x);
    vlm_threads_run(threads, (x->K + COLUMNS - 1) / COLUMNS, 1, measure_columns, x);
    memset(squares, 0, x->p->n * sizeof(double));

    for (c = 0; c < x->K; c++) {
        squares[product_of(x->p, c)] += x->column[c];
    }

    for (i = 0; i < x->p->n; i++) {
        x->ratio[i] /= squares[i];
    }

    middle = usual(x->ratio, x->p->n, work);

    for (i = 0; i < x->s->w->N; i++) {
        to[i] = 1;
    }

    for (i = 0; i < x->p->n; i++) {
        to[row_of(x->p, i)] = factor_of(x->ratio[i] / middle);
    }
}


static int
measure(vlm_bind_t *b, balance_t *x, float *to)
{
    size_t  n = x->p->n;

    x->wide = x->s->w->K > x->K ? x->s->w->K : x->K;
    x->ratio = malloc((2 * n + x->K) * sizeof(double));
    x->scratch = malloc((size_t) vlm_threads_count(b->loader.threads) * x->wide * sizeof(float));

    if (x->ratio == NULL || x->scratch == NULL) {
        free(x->ratio);
        free(x->scratch);
        return vlm_fail(b->err, VLM_EMEMORY, "no memory for %u products", x->p->n);
    }

    x->column = x->ratio + 2 * n;
    find_factors(x, b->loader.threads, x->ratio + n, to);
    free(x->ratio);
    free(x->scratch);

    return 0;
}


/* ---- which products ------------------------------------------------------ */

/* The weight of the layer at an offset, or NULL. */
static const vlm_weight_t *
find_weight(const vlm_bind_t *b, size_t at)
{
    const vlm_weight_t  *w;

    for (w = b->stack->layer; w->kind != VLM_WEIGHT_END; w++) {
        if (w->kind == VLM_WEIGHT_MATRIX && w->at == at) {
            return w;
        }
    }

    return NULL;
}


/* n 0: between these matrices is more than a product. */
static vlm_products_t
products_of(const vlm_bind_t *b, const vlm_linear_t *w, size_t at, uint32_t K)
{
    vlm_products_t            p = { .columns = K, .hd = 1, .group = 1, .step = 1 };
    const vlm_text_config_t  *t = &b->m->config.text;

    if (at == offsetof(vlm_layer_t, qkv)) {
        if (b->stack == &b->m->config.family->text) {
            p.hd = t->head_dim;
            p.group = t->heads / t->kv_heads;
        }

        p.n = K / p.group;
        p.first = w->N - p.n;

    } else if (w->epilogue == VLM_SILU_MUL) {
        p.n = K;
        p.first = 1;
        p.step = 2;
    }

    return p;
}


/* Room for the factors of both matrices. */
static int
begin(vlm_bind_t *b, uint32_t N, uint32_t K)
{
    if (N + K > b->balance_room) {
        free(b->balance);
        b->balance = malloc(((size_t) N + K) * sizeof(float));
        b->balance_room = b->balance == NULL ? 0 : N + K;
    }

    return b->balance != NULL ? 0 : vlm_fail(b->err, VLM_EMEMORY, "no memory for %u products", K);
}


int
vlm_bind_balance(vlm_bind_t *b, vlm_source_t *s, const vlm_weight_t *from, const float *bias)
{
    uint64_t                dims[2];
    balance_t               x = { .s = s, .bias = bias, .p = &b->products };
    const vlm_weight_t     *reader;
    const vlm_turn_rule_t  *rule = b->m->turned ? vlm_turn_rule(b->scope, from->at) : NULL;

    if (rule != NULL && rule->fed) {
        s->turned.columns = b->products.n == 0 ? NULL : b->balance;
        return 0;
    }

    if (rule == NULL || rule->feeds == 0) {
        return 0;
    }

    b->products.n = 0;
    reader = find_weight(b, rule->feeds);

    if (reader == NULL) {
        return 0;
    }

    x.D = b->dim[reader->rows[0]];
    x.K = b->dim[reader->columns];
    b->products = products_of(b, s->w, from->at, x.K);

    if (b->products.n == 0) {
        return 0;
    }

    if (begin(b, s->w->N, x.K) != 0) {
        return -1;
    }

    s->turned.rows = b->balance + x.K;

    if (b->what == VLM_BIND_LOAD && b->loader.packed != NULL) {
        return 0;                      /* the cache file has them */
    }

    dims[0] = x.D;
    dims[1] = x.K;
    x.reader = vlm_bind_find(b, reader->name[0], "weight", dims, 2);

    return x.reader == NULL ? -1 : measure(b, &x, b->balance + x.K);
}


void
vlm_bind_balanced(vlm_bind_t *b, const vlm_source_t *s)
{
    float                 *rows;
    uint32_t               c;
    const vlm_products_t  *p = &b->products;

    if (s->turned.rows == NULL) {
        return;
    }

    rows = b->balance + p->columns;
    memcpy(rows, b->loader.factor, s->w->N * sizeof(float));

    for (c = 0; c < p->columns; c++) {
        b->balance[c] = 1 / rows[row_of(p, product_of(p, c))];
    }
}
