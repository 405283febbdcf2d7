/* Turns against matrices in double precision that are written here a second time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/turn.h"
#include "ops/fixture.h"

static const uint32_t  widths[] = { 1, 2, 3, 6, 24, 28, 36, 63, 64, 72, 144, 192, 256, 1152 };


static void
open_turn(vlm_turn_t *t, uint32_t n, int means)
{
    assert_true(vlm_turn_of(t, n));
    assert_int_equal(t->two * t->odd, n);
    t->sign = malloc(((means ? 2 : 1) * (size_t) n + t->odd * t->odd) * sizeof(float));
    t->small = t->sign + n;
    t->mirror = means ? t->small + t->odd * t->odd : NULL;
    vlm_turn_fill(t);
}


/* Value (i, j) of R, from the signs alone: C x H, and the reflection as a sum over a row. */
static double
spread_at(const vlm_turn_t *t, uint32_t i, uint32_t j)
{
    double  angle;

    angle = 2 * acos(-1) * (i / t->two) * (j / t->two) / t->odd;

    return (cos(angle) + sin(angle)) / sqrt((double) t->n)
           * (__builtin_popcount(i % t->two & j % t->two) % 2 == 0 ? 1 : -1)
           * (t->sign[j] < 0 ? -1 : 1);
}


/* R in double [n][n]. */
static double *
matrix_of(const vlm_turn_t *t)
{
    double    *r, *v, sum, square;
    uint32_t   i, j, n = t->n;

    r = malloc((size_t) n * n * sizeof(double));
    v = malloc(n * sizeof(double));

    for (square = 0, i = 0; i < n; i++) {
        for (sum = 0, j = 0; j < n; j++) {
            r[(size_t) i * n + j] = spread_at(t, i, j);
            sum += r[(size_t) i * n + j] / sqrt((double) n);
        }

        v[i] = sum - 1 / sqrt((double) n);
        square += v[i] * v[i];
    }

    for (j = 0; t->mirror != NULL && square > 1e-12 && j < n; j++) {
        for (sum = 0, i = 0; i < n; i++) {
            sum += v[i] * r[(size_t) i * n + j];
        }

        for (i = 0; i < n; i++) {
            r[(size_t) i * n + j] -= 2 * v[i] * sum / square;
        }
    }

    free(v);

    return r;
}


static void
a_row_is_turned_as_its_matrix_says_and_back(void **state)
{
    float       *x, *y, *work;
    double      *r, want;
    uint32_t     w, means, i, j, n;
    vlm_turn_t   t;

    (void) state;

    for (w = 0; w < 2 * COUNT(widths); w++) {
        n = widths[w / 2];
        means = w % 2;
        open_turn(&t, n, (int) means);
        r = matrix_of(&t);
        x = floats(n, VLM_RANDOM, w);
        y = floats(n, VLM_RANDOM, w);
        work = malloc(n * sizeof(float));
        vlm_turn_row(&t, y, work);

        for (i = 0; i < n; i++) {
            for (want = 0, j = 0; j < n; j++) {
                want += r[(size_t) i * n + j] * x[j];
            }

            check_near(y[i], want, 4e-6, means ? "mirrored" : "turned", n * 10000 + i);
        }

        vlm_turn_back(&t, y, work);

        for (i = 0; i < n; i++) {
            check_near(y[i], x[i], 4e-6, "back", n * 10000 + i);
        }

        for (i = 0; i < n; i++) {
            y[i] = 3;
        }

        vlm_turn_row(&t, y, work);

        for (i = 0; means && i < n; i++) {
            check_near(y[i], 3, 1e-5, "equal values", n * 10000 + i);
        }

        free(r);
        free(x);
        free(y);
        free(work);
        free(t.sign);
    }
}


/* Without signs, a row of equal values would become one value. */
static void
about_half_of_the_signs_are_negative(void **state)
{
    uint32_t    i, negative;
    vlm_turn_t  t;

    (void) state;

    open_turn(&t, 1152, 0);

    for (negative = i = 0; i < t.n; i++) {
        negative += t.sign[i] < 0;
        assert_true(fabsf(t.sign[i]) == vlm_turn_factor(t.two));
    }

    assert_in_range(negative, t.n * 4 / 10, t.n * 6 / 10);
    free(t.sign);
}


/* x [n][c] is R times what is in its columns. */
static void
columns_are_turned_as_rows_are(void **state)
{
    float       *x, *y, *row, *work;
    uint32_t     w, c, i, j, n;
    vlm_turn_t   t;

    (void) state;

    for (w = 0; w < 2 * COUNT(widths); w++) {
        n = widths[w / 2];
        c = 1 + w * 5;
        open_turn(&t, n, w % 2);
        x = floats((size_t) n * c, VLM_RANDOM, w);
        y = floats((size_t) n * c, VLM_RANDOM, w);
        row = malloc(2 * n * sizeof(float));
        work = malloc((size_t) t.odd * c * sizeof(float));
        vlm_turn_columns(&t, y, c, work);

        for (j = 0; j < c; j++) {
            for (i = 0; i < n; i++) {
                row[i] = x[(size_t) i * c + j];
            }

            vlm_turn_row(&t, row, row + n);

            for (i = 0; i < n; i++) {
                check_near(y[(size_t) i * c + j], row[i], 4e-6, "column", n * 10000 + i);
            }
        }

        free(x);
        free(y);
        free(row);
        free(work);
        free(t.sign);
    }
}


/* The rest of a row has a matrix for each power of two in it. */
static void
blocks_are_turned_each_by_its_matrix_and_twice_by_none(void **state)
{
    float     *x, *y;
    double     want;
    uint32_t   K, k, j, from, size;

    (void) state;

    for (K = 1; K < 300; K += 1 + K / 9) {
        x = floats(K, VLM_RANDOM, K);
        y = floats(K, VLM_RANDOM, K + 1);
        vlm_turn_blocks(x, K, y);

        for (k = 0, from = 0; from < K; from += size) {
            size = K - from >= VLM_BLOCK ? VLM_BLOCK : 1u << (31 - __builtin_clz(K - from));

            if (K - from < VLM_BLOCK) {
                j = from / VLM_BLOCK * VLM_BLOCK;
                assert_int_equal(vlm_turn_size(K - j, from - j), size);
            }

            for (k = 0; k < size; k++) {
                for (want = 0, j = 0; j < size; j++) {
                    want += (__builtin_popcount(k & j) % 2 == 0 ? x[from + j] : -x[from + j])
                            / sqrt((double) size);
                }

                check_near(y[from + k], want, 2e-6, "blocks", K * 1000 + from + k);
            }
        }

        vlm_turn_blocks(y, K, y);

        for (k = 0; k < K; k++) {
            check_near(y[k], x[k], 2e-6, "twice", K * 1000 + k);
        }

        free(x);
        free(y);
    }
}


static void
widths_with_a_large_odd_part_are_not_turned(void **state)
{
    vlm_turn_t  t;

    (void) state;

    assert_int_equal(vlm_turn_of(&t, 63 * 128), 1);
    assert_int_equal(vlm_turn_of(&t, 65), 0);
    assert_int_equal(vlm_turn_of(&t, 4098), 0);
    assert_int_equal(vlm_turn_of(&t, 0), 0);
}


/* ---- the operations of the CPU ------------------------------------------- */

enum { N = 144, ROWS = 5 };

/* A product whose blocks are turned, a norm and a head of a turned stream: ROWS rows each. */
static void
run_set(const char *set, uint32_t threads, float out[3 * ROWS * N], int *there)
{
    float             *rows, *x, *gain, *shift;
    uint32_t           i, which[ROWS] = { 4, 3, 2, 1, 0 };
    vlm_err_t          err = { VLM_OK, "" };
    vlm_need_t         need = { VLM_INT8, N, N, 8, 64, 64, N, ROWS, 0 };
    vlm_norm_t         norm = { VLM_NORM_LAYER, NULL, 1e-6f, NULL };
    vlm_turn_t         t;
    vlm_batch_t        b;
    vlm_device_t      *d;
    vlm_linear_t       w;
    vlm_kernels_t      k;
    const vlm_ops_t   *ops;

    d = vlm_cpu_open(set, threads, &ops, &err);
    *there = d != NULL;

    if (d == NULL) {
        return;
    }

    ops->basic->set_scratch(d, &need, ops->basic->reserve(d, ops->basic->scratch_bytes(d, &need),
                                                          &err));
    k = plain;

    for (i = 0; i < n_faster; i++) {
        k = strcmp(faster[i].name, set) == 0 ? faster[i] : k;
    }

    open_turn(&t, N, 1);
    rows = floats(N * N, VLM_RANDOM, 1);
    x = floats(ROWS * N, VLM_RANDOM, 2);
    norm.gain = gain = floats(N, VLM_RANDOM, 3);
    norm.shift = shift = floats(N, VLM_RANDOM, 4);
    memset(&b, 0, sizeof(b));
    b.R = ROWS;
    b.logit_row = which;
    vlm_packed_open(&w, &k, VLM_INT8, VLM_STORE, N, N, rows, NULL);

    w.blocks = 1;
    ops->linear(d, &w, NULL, x, ROWS, out);
    w.blocks = 0;
    w.turn = &t;
    ops->head(d, &w, &norm, x, &b, out + ROWS * N);
    memcpy(out + 2 * ROWS * N, x, ROWS * N * sizeof(float));
    ops->norm_stream(d, &norm, &t, out + 2 * ROWS * N, ROWS, N);

    ops->basic->close(d);
    vlm_packed_close(&w);
    free(t.sign);
    free(rows);
    free(x);
    free(gain);
    free(shift);
}


static void
every_set_and_number_of_threads_gives_the_same_bits(void **state)
{
    int      there;
    float    want[3 * ROWS * N], got[3 * ROWS * N];
    size_t   i;

    static const char *const  sets[] = { "plain", "avx2", "avxvnni", "avx512", "amx", "neon",
                                              "i8mm" };

    (void) state;
    run_set("plain", 1, want, &there);

    for (i = 0; i < 2 * COUNT(sets); i++) {
        run_set(sets[i / 2], 1 + i % 2 * 2, got, &there);

        if (there && memcmp(got, want, sizeof(want)) != 0) {
            fail_msg("%s: value %zu differs", sets[i / 2], vlm_differs(got, want, 3 * ROWS * N));
        }
    }
}


/* In double: back, gain and shift, and turned again. */
static void
a_norm_of_a_turned_stream_is_the_turned_norm_of_the_stream(void **state)
{
    int          there;
    float        out[3 * ROWS * N], *x, *gain, *shift, row[N], work[N];
    double       mean, square;
    uint32_t     r, i;
    vlm_turn_t   t;

    (void) state;
    run_set("plain", 1, out, &there);
    open_turn(&t, N, 1);
    x = floats(ROWS * N, VLM_RANDOM, 2);
    gain = floats(N, VLM_RANDOM, 3);
    shift = floats(N, VLM_RANDOM, 4);

    for (r = 0; r < ROWS; r++) {
        memcpy(row, x + r * N, sizeof(row));
        vlm_turn_back(&t, row, work);

        for (mean = square = 0, i = 0; i < N; i++) {
            mean += (double) row[i] / N;
        }

        for (i = 0; i < N; i++) {
            square += (row[i] - mean) * (row[i] - mean) / N;
        }

        for (i = 0; i < N; i++) {
            row[i] = (float) ((row[i] - mean) / sqrt(square + 1e-6) * gain[i] + shift[i]);
        }

        vlm_turn_row(&t, row, work);

        for (i = 0; i < N; i++) {
            check_near(out[(2 * ROWS + r) * N + i], row[i], 1e-5, "norm", r * N + i);
        }
    }

    free(x);
    free(gain);
    free(shift);
    free(t.sign);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_row_is_turned_as_its_matrix_says_and_back),
        cmocka_unit_test(about_half_of_the_signs_are_negative),
        cmocka_unit_test(columns_are_turned_as_rows_are),
        cmocka_unit_test(blocks_are_turned_each_by_its_matrix_and_twice_by_none),
        cmocka_unit_test(widths_with_a_large_odd_part_are_not_turned),
        cmocka_unit_test(every_set_and_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_norm_of_a_turned_stream_is_the_turned_norm_of_the_stream)
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
