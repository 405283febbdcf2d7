/* Weight rows to int4, and panels of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/int4.h"
#include "format/panel.h"

#define MOST  700


/* Nearly normal: sums of uniform ones. */
static void
fill(float *x, uint32_t n, uint32_t seed)
{
    uint32_t  i, k;
    uint64_t  state = seed;

    for (i = 0; i < n; i++) {
        for (x[i] = 0, k = 0; k < 12; k++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            x[i] += (float) (state >> 40) / 0x1p24f - 0.5f;
        }
    }
}


static void
values_differ_by_less_than_a_hundredth_of_a_rows_power(void **state)
{
    float     x[MOST], scale;
    double    power, off, d;
    int8_t    v[MOST + VLM_BLOCK];
    uint8_t   row[MOST];
    uint32_t  i, n;

    (void) state;

    for (n = 64; n <= MOST; n += 37) {
        fill(x, n, n);
        vlm_int4_quantise(x, n, row, &scale);
        vlm_int4_values(row, (n + VLM_BLOCK - 1) / VLM_BLOCK, v);

        for (power = off = 0, i = 0; i < n; i++) {
            d = (double) x[i] - (double) scale * v[i];
            power += (double) x[i] * x[i];
            off += d * d;
        }

        assert_true(off < 0.01 * power);
    }
}


/* Rows of 16 evenly spaced values that int8 has exactly, int4 has exactly, too. */
static void
a_group_of_sixteen_even_values_is_exact(void **state)
{
    float     x[128], scale;
    int8_t    v[128];
    uint8_t   row[2 * VLM_INT4_GROUP];
    uint32_t  i;

    (void) state;

    for (i = 0; i < 64; i++) {
        x[i] = (float) (-100 + 7 * (int) (i * 5 % 16));
        x[64 + i] = i == 0 ? 127 : 112;
    }

    vlm_int4_quantise(x, 128, row, &scale);
    vlm_int4_values(row, 2, v);
    assert_true(scale == 1);

    for (i = 0; i < 128; i++) {
        assert_int_equal(v[i], (int) x[i]);
    }
}


static void
zeros_are_zeros_and_what_is_not_finite_has_no_scale(void **state)
{
    float     x[100] = { 0 }, scale, bad[] = { NAN, INFINITY, -INFINITY };
    int8_t    v[128];
    uint8_t   row[2 * VLM_INT4_GROUP];
    uint32_t  i, k;

    (void) state;

    for (k = 0; k < 4; k++) {
        x[70] = k == 0 ? 1e-39f : bad[k - 1];
        vlm_int4_quantise(x, 100, row, &scale);
        vlm_int4_values(row, 2, v);
        assert_true(k == 0 ? isfinite(scale) : isnan(scale));

        for (i = 0; i < 100; i++) {
            assert_int_equal(v[i], 0);
        }
    }
}


/* As matrix.c does it. */
static void
a_row_may_be_quantised_in_its_own_memory(void **state)
{
    float    x[333], own[333], a, b;
    uint8_t  row[6 * VLM_INT4_GROUP];

    (void) state;

    fill(x, 333, 5);
    memcpy(own, x, sizeof(own));
    vlm_int4_quantise(x, 333, row, &a);
    vlm_int4_quantise(own, 333, own, &b);
    assert_true(a == b);
    assert_memory_equal(own, row, sizeof(row));
}


static void
rows_come_back_from_a_panel_and_what_is_beyond_them_is_zero(void **state)
{
    float     x[MOST], scale, out[MOST];
    int8_t    v[MOST + VLM_BLOCK];
    uint8_t  *rows, *back, *panel;
    uint32_t  i, k, n, K, bytes;

    (void) state;

    for (K = 1; K <= MOST; K += 63) {
        for (n = 1; n <= VLM_PANEL; n += 21) {
            bytes = (uint32_t) vlm_int4_row_bytes(K);
            rows = calloc(n, bytes);
            back = calloc(n, bytes);
            panel = malloc(vlm_int4_panel_bytes(K));

            for (i = 0; i < n; i++) {
                fill(x, K, i);
                vlm_int4_quantise(x, K, rows + (size_t) i * bytes, &scale);
            }

            vlm_int4_pack(panel, rows, n, K, VLM_FLIP);
            vlm_int4_unpack(back, panel, n, K, 0);
            assert_memory_equal(back, rows, (size_t) n * bytes);

            for (i = 0; i < VLM_PANEL; i++) {
                vlm_int4_unpack_row(panel, i, K, out);
                memset(v, 0, sizeof(v));

                if (i < n) {
                    vlm_int4_values(rows + (size_t) i * bytes, bytes / VLM_INT4_GROUP, v);
                }

                for (k = 0; k < K; k++) {
                    assert_true(out[k] == v[k]);
                }
            }

            free(rows);
            free(back);
            free(panel);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(values_differ_by_less_than_a_hundredth_of_a_rows_power),
        cmocka_unit_test(a_group_of_sixteen_even_values_is_exact),
        cmocka_unit_test(zeros_are_zeros_and_what_is_not_finite_has_no_scale),
        cmocka_unit_test(a_row_may_be_quantised_in_its_own_memory),
        cmocka_unit_test(rows_come_back_from_a_panel_and_what_is_beyond_them_is_zero)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
