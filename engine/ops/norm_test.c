/*
 * The norm of a row and its step to int8: every set against the definition, and the definition
 * against double precision.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/fixture.h"

#define TILES  17                      /* rows: a whole tile and one more */


static void
a_norm_has_the_same_bits_in_every_set_and_is_what_double_precision_says(void **state)
{
    float                 *x, *gain, *want, *got;
    double                 sum, r;
    uint32_t               i, j, k, n, kind;
    vlm_norm_t             norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    static const uint32_t  lengths[] = { 1, 2, 15, 16, 17, 64, 100, 317, 1280, 2048 };

    (void) state;

    for (i = 0; i < COUNT(lengths) * VLM_KINDS; i++) {
        n = lengths[i / VLM_KINDS];
        kind = i % VLM_KINDS;
        x = floats(n, kind, 100 + i);
        gain = floats(n, VLM_RANDOM, 200 + i);
        want = floats(n, VLM_ZEROS, 0);
        got = floats(n, VLM_ZEROS, 0);

        norm.gain = gain;
        plain.norm(&norm, x, n, want);

        for (j = 0; j < n_faster; j++) {
            faster[j].norm(&norm, x, n, got);
            check_bits(got, want, n, faster[j].name);
        }

        for (sum = 0, k = 0; k < n; k++) {
            sum += (double) x[k] * x[k];
        }

        r = 1 / sqrt(sum / n + 1e-6);

        for (k = 0; k < n; k++) {
            check_near(want[k], x[k] * r * gain[k], (n / 16 + 8) * EPS * fabs(x[k] * r * gain[k]),
                       "norm", k);
        }

        free(x);
        free(gain);
        free(want);
        free(got);
    }
}


typedef struct {
    int8_t   q[10 * VLM_BLOCK];
    float    s[10];                    /* of pieces */
    int32_t  sum[10];
} quantized_t;


static void
check_quantized(const float *x, uint32_t n, const quantized_t *z)
{
    double    max;
    int32_t   sum;
    uint32_t  i, at, end;

    for (i = 0; i < vlm_pieces(n); i++) {
        for (max = 0, at = i * VLM_PIECE; at < n && at < (i + 1) * VLM_PIECE; at++) {
            max = fmax(max, fabs((double) x[at]));
        }

        check_near(z->s[i], max / 127, EPS * max, "scale", i);
        end = vlm_blocks(n) * VLM_BLOCK;
        end = end < (i + 1) * VLM_PIECE ? end : (i + 1) * VLM_PIECE;

        for (sum = 0, at = i * VLM_PIECE; at < end; at++) {
            sum += z->q[at];

            if (at >= n || max == 0) {
                assert_int_equal(z->q[at], 0);
            } else {
                check_near(z->q[at], x[at] * 127 / max, 0.50002, "step", at);
            }
        }

        assert_int_equal(sum, z->sum[i]);
    }
}


static void
the_step_to_int8_is_the_same_in_every_set_and_rounds_to_the_nearest(void **state)
{
    float                 *x;
    uint32_t               i, j, n;
    quantized_t            want, got;
    static const uint32_t  lengths[] = { 1, 2, 63, 64, 65, 100, 128, 317, 588 };

    (void) state;

    for (i = 0; i < COUNT(lengths) * VLM_KINDS; i++) {
        n = lengths[i / VLM_KINDS];
        x = floats(n, i % VLM_KINDS, 300 + i);

        memset(&want, 0, sizeof(want));
        plain.quantize(x, n, want.q, want.s, want.sum);
        check_quantized(x, n, &want);

        for (j = 0; j < n_faster; j++) {
            memset(&got, 0, sizeof(got));
            faster[j].quantize(x, n, got.q, got.s, got.sum);
            assert_memory_equal(&got, &want, sizeof(got));
        }

        free(x);
    }
}


static void
halves_are_rounded_to_even(void **state)
{
    int8_t    q[VLM_BLOCK];
    float     x[8] = { 127, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 126.5f }, s;
    int32_t   sum;

    (void) state;

    plain.quantize(x, 8, q, &s, &sum);

    assert_true(s == 1);
    assert_int_equal(q[1], 0);
    assert_int_equal(q[2], 2);
    assert_int_equal(q[3], 2);
    assert_int_equal(q[4], 0);
    assert_int_equal(q[5], -2);
    assert_int_equal(q[6], -2);
    assert_int_equal(q[7], 126);
    assert_int_equal(sum, 127 + 2 + 2 - 2 - 2 + 126);
}


/*
 * A value that is not a number must neither vanish on its way through int8, nor spread: of T rows,
 * one has it.
 */
static void
check_not_a_number(const vlm_kernels_t *k, uint32_t T, uint32_t row, uint32_t at, float bad)
{
    float              weights[100], x[TILES * 100], y[TILES];
    uint32_t           i;
    vlm_linear_t       w;
    vlm_activations_t  a;

    for (i = 0; i < 100; i++) {
        weights[i] = 1 + (float) i;
    }

    for (i = 0; i < T; i++) {
        memcpy(x + 100 * (size_t) i, weights, sizeof(weights));
    }

    x[100 * (size_t) row + at] = bad;

    vlm_packed_open(&w, k, VLM_INT8, VLM_STORE, 1, 100, weights, NULL);
    vlm_activations_open(&a, k, x, T, 100);
    vlm_product(k, &w, &a, 0, T, y);

    for (i = 0; i < T; i++) {
        assert_true(isnan(y[i]) ? i == row : i != row);
    }

    vlm_activations_close(&a);
    vlm_packed_close(&w);
}


static void
a_value_that_is_not_a_number_stays_visible_through_int8(void **state)
{
    float                 bad[] = { NAN, -NAN, INFINITY, -INFINITY };
    uint32_t              i, j;
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    for (i = 0; i < 4 * (1 + n_faster); i++) {
        for (j = 0; j < 100; j += 33) {
            check_not_a_number(sets[i / 4], 1, 0, j, bad[i % 4]);
            check_not_a_number(sets[i / 4], TILES, 0, j, bad[i % 4]);
            check_not_a_number(sets[i / 4], TILES, TILES - 1, j, bad[i % 4]);
        }
    }
}


/* 127 / max would overflow: such a block counts as zeros. */
static void
numbers_too_small_for_a_scale_become_zeros(void **state)
{
    int8_t                q[VLM_BLOCK];
    float                 x[3], s;
    int32_t               sum;
    uint32_t              i;
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    for (i = 0; i < 1 + n_faster; i++) {
        x[0] = 1e-40f;
        x[1] = -3e-38f;
        x[2] = 0;
        sets[i]->quantize(x, 3, q, &s, &sum);
        assert_true(isfinite(s));
        assert_int_equal(q[0], 0);
        assert_int_equal(q[1], 0);
        assert_int_equal(q[2], 0);
        assert_int_equal(sum, 0);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_norm_has_the_same_bits_in_every_set_and_is_what_double_precision_says),
        cmocka_unit_test(the_step_to_int8_is_the_same_in_every_set_and_rounds_to_the_nearest),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(a_value_that_is_not_a_number_stays_visible_through_int8),
        cmocka_unit_test(numbers_too_small_for_a_scale_become_zeros)
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
