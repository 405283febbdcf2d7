/*
 * Compares the products of adapters in every set with the definition, and the definition with sums
 * that are written here a second time.  Rows without an adapter keep their bits.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/fixture.h"
#include "ops/low.h"

#define MIXED   9                      /* rows with different adapters and without one */
#define MOST    29                     /* that have the same one: more than a tile */
#define PLACES  3
#define RANK    22

typedef struct {
    uint32_t        T, N, K;
    const uint32_t *place;             /* [T] */
    const float    *scale;             /* [T] */
    float          *rows;              /* [N][K] */
    float          *x;                 /* [T][K] */
    float          *bias;              /* [N] */
    void           *a[PLACES], *b[PLACES];
    float          *c[PLACES];
    vlm_low_t       low[PLACES];
    vlm_lows_t      lows;
    vlm_low_rows_t  which;
} case_t;

static const uint32_t  mixed[MIXED] = { VLM_NONE, 1, 0, 2, 0, VLM_NONE, 1, 0, 1 };
static const float     mixed_scale[MIXED] = { 9, 1, 1, 1, 0.5f, 9, 4, 2, 1 };
static uint32_t        same[MOST];     /* all have adapter 1 */
static float           same_scale[MOST];
static const uint32_t  rank[PLACES] = { 3, RANK, 0 };


/* Values in the form of the type. */
static void *
values(vlm_type_t type, size_t n, uint64_t seed)
{
    float     *x = floats(n, VLM_RANDOM, seed);
    size_t     i;
    uint16_t   h;

    for (i = 0; type == VLM_BF16 && i < n; i++) {
        h = vlm_f32_bf16(x[i]);
        memcpy((char *) x + i * sizeof(h), &h, sizeof(h));
    }

    return x;
}


/* parts: 1; 3 behind each other, the first of which end within a panel; or 2 in turn.  T of rows
   that have the same adapter, or 0. */
static void
open_case(case_t *c, vlm_type_t type, uint32_t parts, uint32_t N, uint32_t K, uint32_t T)
{
    uint32_t  i;

    memset(c, 0, sizeof(*c));

    for (i = 0; i < T; i++) {
        same[i] = 1;
        same_scale[i] = 1 / (float) (i + 1);
    }

    c->T = T == 0 ? MIXED : T;
    c->place = T == 0 ? mixed : same;
    c->scale = T == 0 ? mixed_scale : same_scale;
    c->N = N;
    c->K = K;
    c->rows = floats((size_t) N * K, VLM_RANDOM, N);
    c->x = floats((size_t) c->T * K, VLM_RANDOM, K);
    c->bias = floats(N, VLM_RANDOM, 3);
    c->lows.type = type;
    c->lows.parts = parts;
    c->lows.places = PLACES;
    c->lows.in_turn = parts == 2;
    c->lows.packed = T != 7 && N != 130;           /* some cases are in the other order */
    c->lows.end[0] = parts == 3 ? N / 3 : N;
    c->lows.end[1] = N - N / 5;
    c->lows.end[2] = N;
    c->lows.place = c->low;
    c->lows.rows = &c->which;
    c->which = (vlm_low_rows_t) { .any = 1, .place = c->place, .scale = c->scale };

    for (i = 0; i < PLACES; i++) {
        c->a[i] = values(type, (size_t) parts * (rank[i] + 1) * K, 10 + i);
        c->b[i] = values(type, (size_t) (rank[i] + 1) * N, 20 + i);
        c->c[i] = floats(parts * (rank[i] + 1), VLM_RANDOM, 30 + i);
        c->low[i] = (vlm_low_t) { rank[i], c->a[i], c->b[i], c->c[i], i == 1, { 0.5f, 2, 0.75f } };
    }
}


static void
close_case(case_t *c)
{
    uint32_t  i;

    free(c->rows);
    free(c->x);
    free(c->bias);

    for (i = 0; i < PLACES; i++) {
        free(c->a[i]);
        free(c->b[i]);
        free(c->c[i]);
    }
}


/* All rows by the two steps of low.h, in pieces as threads take them. */
static float *
with_adapters(const case_t *c, const vlm_kernels_t *k, vlm_linear_t *w, const vlm_activations_t *x)
{
    float              *y;
    uint32_t            p, panels, T = c->T;
    vlm_low_tile_t      tile[MOST];
    vlm_low_job_t       j = { k, w, c->x, T, 0, NULL, RANK, NULL, tile, 0, 0, 0 };
    vlm_linear_args_t   args = { w, T, x->x, x->q, x->s, x->sum, NULL, &j };

    args.y = y = floats(T * vlm_linear_out(w), VLM_RANDOM, 5);
    j.z = vlm_aligned(T * VLM_LOW_PARTS * RANK * sizeof(float));

    assert_true(vlm_low_begin(&j));
    panels = (w->N + VLM_PANEL - 1) / VLM_PANEL;

    for (p = 0; p < vlm_low_items(&j); p++) {
        vlm_low_inputs(&j, p, p + 1, 0);
    }

    for (p = 0; p < panels; p += 3) {
        k->linear(&args, p, p + 3 < panels ? p + 3 : panels);
    }

    free(j.z);

    return y;
}


static float
number(vlm_type_t type, const void *from, size_t i)
{
    return type == VLM_BF16 ? vlm_bf16_f32(((const uint16_t *) from)[i])
                            : ((const float *) from)[i];
}


/* Row i of part p of A times x: sixteen sums, which are added by halves. */
static float
dot(const case_t *c, const vlm_low_t *low, uint32_t p, uint32_t i, const float *x)
{
    float     sum[16] = { 0 };
    size_t    at = (size_t) p * low->r * c->K;
    uint32_t  k, half;

    for (k = 0; k < c->K; k++) {
        sum[k % 16] = fmaf(number(c->lows.type, low->a,
                                  at + (c->lows.packed ? vlm_low_a_at(low->r, c->K, i, k)
                                                       : (size_t) i * c->K + k)),
                           x[k], sum[k % 16]);
    }

    for (half = 8; half > 0; half /= 2) {
        for (k = 0; k < half; k++) {
            sum[k] += sum[k + half];
        }
    }

    return sum[0];
}


/* Value n of row i of B. */
static float
value_b(const case_t *c, const vlm_low_t *low, uint32_t i, uint32_t n)
{
    return number(c->lows.type, low->b,
                  c->lows.packed ? vlm_low_b_at(low->r + (uint32_t) low->shift, c->N, i, n)
                                 : (size_t) i * c->N + n);
}


/* Returns the sum `to` of row n and activation row t with the adapter's products. */
static float
added(const case_t *c, uint32_t t, uint32_t n, float to)
{
    float             sum, z;
    uint32_t          i, p;
    const vlm_low_t  *low = &c->low[c->place[t]];

    p = c->lows.in_turn ? n % 2 : c->lows.parts == 1 || n < c->lows.end[0] ? 0
                                  : n < c->lows.end[1] ? 1 : 2;

    for (sum = 0, i = 0; i < low->r; i++) {
        z = low->scale[p] * c->scale[t]
            * (dot(c, low, p, i, c->x + (size_t) t * c->K) + low->c[p * low->r + i]);
        sum = fmaf(value_b(c, low, i, n), z, sum);
    }

    to += sum;

    return low->shift ? to + fmaf(value_b(c, low, low->r, n), low->scale[p] * c->scale[t], 0) : to;
}


static void
check_definition(const case_t *c, const vlm_linear_t *w, const vlm_activations_t *x,
                 const float *got)
{
    float         *want, *sums, row[1][VLM_PANEL];
    uint32_t       t, n, n0, now, T = c->T;
    vlm_linear_t   bare = *w, end = *w;

    bare.epilogue = VLM_STORE;
    bare.bias = NULL;
    end.scale = NULL;

    sums = floats((size_t) T * c->N, VLM_RANDOM, 0);
    want = floats(T * vlm_linear_out(w), VLM_RANDOM, 5);
    vlm_product(&plain, &bare, x, 0, T, sums);

    for (t = 0; t < T; t++) {
        for (n = 0; n < c->N && c->place[t] != VLM_NONE && c->low[c->place[t]].r > 0; n++) {
            sums[(size_t) t * c->N + n] = added(c, t, n, sums[(size_t) t * c->N + n]);
        }

        for (n0 = 0; n0 < c->N; n0 += VLM_PANEL) {
            now = c->N - n0 < VLM_PANEL ? c->N - n0 : VLM_PANEL;
            memcpy(row[0], sums + (size_t) t * c->N + n0, now * sizeof(float));
            vlm_epilogue_plain(&end, n0, now, 1, row, want + t * vlm_linear_out(w));
        }
    }

    check_bits(got, want, T * vlm_linear_out(w), "an adapter's product");
    free(sums);
    free(want);
}


/* Rows 0, 3 and 5 of mixed ones: without an adapter, and with one that leaves the matrix alone. */
static void
check_others(const case_t *c, const vlm_linear_t *w, const vlm_activations_t *x, const float *got)
{
    float     *want;
    size_t     out;
    uint32_t   t, T = c->T;

    out = vlm_linear_out(w);
    want = floats(T * out, VLM_RANDOM, 5);
    vlm_product(&plain, w, x, 0, T, want);

    for (t = 0; t < T; t++) {
        if (c->place[t] == VLM_NONE || rank[c->place[t]] == 0) {
            check_bits(got + t * out, want + t * out, out, "a row without an adapter");
        } else {
            assert_true(vlm_differs(got + t * out, want + t * out, out) < out);
        }
    }

    free(want);
}


static void
check(vlm_type_t type, vlm_epilogue_t epilogue, uint32_t parts, uint32_t N, uint32_t K,
      uint32_t T)
{
    char                what[128];
    float              *want, *got;
    case_t              c;
    uint32_t            i;
    vlm_linear_t        w;
    vlm_activations_t   x;

    open_case(&c, type == VLM_F32 ? VLM_F32 : VLM_BF16, parts, N, K, T);
    vlm_packed_open(&w, &plain, type, epilogue, N, K, c.rows, N % 3 == 0 ? NULL : c.bias);
    vlm_activations_open(&x, &plain, c.x, c.T, K);
    w.low = &c.lows;
    want = with_adapters(&c, &plain, &w, &x);
    check_definition(&c, &w, &x, want);
    check_others(&c, &w, &x, want);
    vlm_packed_close(&w);

    for (i = 0; i < n_faster; i++) {
        vlm_packed_open(&w, &faster[i], type, epilogue, N, K, c.rows, N % 3 == 0 ? NULL : c.bias);
        w.low = &c.lows;
        got = with_adapters(&c, &faster[i], &w, &x);
        (void) snprintf(what, sizeof(what), "%s, type %d, epilogue %d, %u parts, N %u, K %u, "
                        "%u rows", faster[i].name, (int) type, (int) epilogue, parts, N, K, c.T);
        check_bits(got, want, c.T * vlm_linear_out(&w), what);
        free(got);
        vlm_packed_close(&w);
    }

    vlm_activations_close(&x);
    close_case(&c);
    free(want);
}


static void
adapters_add_what_the_definition_says_in_every_set(void **state)
{
    uint32_t    i, j;
    vlm_type_t  types[] = { VLM_F32, VLM_BF16, VLM_INT8 };
    const struct {
        vlm_epilogue_t  epilogue;
        uint32_t        parts, N, K;
    } cases[] = {
        { VLM_STORE, 1, 64, 64 }, { VLM_STORE, 3, 192, 100 }, { VLM_STORE, 3, 350, 64 },
        { VLM_ADD, 1, 130, 333 }, { VLM_ADD, 1, 7, 15 }, { VLM_SILU_MUL, 2, 200, 72 },
        { VLM_SILU_MUL, 2, 128, 256 }, { VLM_GELU, 1, 99, 80 }, { VLM_GELU_TANH, 1, 256, 40 }
    };

    (void) state;

    for (i = 0; i < COUNT(types); i++) {
        for (j = 0; j < COUNT(cases); j++) {
            check(types[i], cases[j].epilogue, cases[j].parts, cases[j].N, cases[j].K, 0);
        }
    }
}


/* Tiles have all numbers of rows, and the last group of A and panel of B what is left. */
static void
many_rows_have_one_adapter(void **state)
{
    uint32_t  T;

    (void) state;

    for (T = 1; T <= MOST; T++) {
        check(VLM_INT8, VLM_STORE, 1, 128, 70, T);
        check(VLM_INT8, VLM_SILU_MUL, 2, 192, 16 + T, T);
    }

    check(VLM_F32, VLM_STORE, 3, 192, 50, MOST);
    check(VLM_BF16, VLM_ADD, 1, 64, 50, MOST);
}


/* The definition's sums are those of exact numbers, within rounding. */
static void
sums_over_inputs_are_near_the_exact_ones(void **state)
{
    float     *a, y[1][VLM_LOW_GROUP];
    double     want, bound;
    size_t     at;
    uint32_t   i, k, K;
    const float *x;

    (void) state;

    for (K = 1; K < 300; K += 37) {
        a = floats(4 * K, VLM_RANDOM, K);
        x = floats(K, VLM_RANDOM, K + 1);
        plain.low_down(&(vlm_low_down_t) { VLM_F32, 1, a, 4, K }, &x, 1, y);

        for (i = 0; i < 4; i++) {
            for (want = bound = 0, k = 0; k < K; k++) {
                at = vlm_low_a_at(4, K, i, k);
                want += (double) a[at] * x[k];
                bound += fabs((double) a[at] * x[k]);
            }

            check_near(y[0][i], want, (K / 16 + 6) * EPS * bound * 2, "a sum", i);
        }

        free(a);
        free((void *) x);
    }
}


static void
a_tables_row_gets_the_product_of_its_tokens_column(void **state)
{
    float          got[2][100], sum, z;
    case_t         c;
    uint32_t       i, t, k, set;
    vlm_linear_t   table;
    const uint32_t token = 11;

    (void) state;

    /* The form of a table: N tokens, b [r][K]. */

    open_case(&c, VLM_BF16, 1, 100, 100, 0);
    memset(&table, 0, sizeof(table));
    table.N = table.K = 100;
    table.low = &c.lows;

    for (t = 0; t < c.T; t++) {
        for (set = 0; set <= n_faster; set++) {
            for (k = 0; k < 100; k++) {
                got[set > 0][k] = (float) k;
            }

            vlm_low_embed(set == 0 ? &plain : &faster[set - 1], &table, t, token, got[set > 0]);
            check_bits(got[set > 0], got[0], 100, "a table's row");
        }

        for (k = 0; k < 100; k++) {
            for (sum = 0, i = 0; mixed[t] != VLM_NONE && i < rank[mixed[t]]; i++) {
                z = number(VLM_BF16, c.a[mixed[t]], token * rank[mixed[t]] + i)
                    * (0.5f * mixed_scale[t]);
                sum = fmaf(number(VLM_BF16, c.b[mixed[t]],
                                  vlm_low_b_at(rank[mixed[t]] + (mixed[t] == 1), 100, i, k)),
                           z, sum);
            }

            assert_true(got[0][k] == (float) k + sum);
        }
    }

    close_case(&c);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(adapters_add_what_the_definition_says_in_every_set),
        cmocka_unit_test(many_rows_have_one_adapter),
        cmocka_unit_test(sums_over_inputs_are_near_the_exact_ones),
        cmocka_unit_test(a_tables_row_gets_the_product_of_its_tokens_column)
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
