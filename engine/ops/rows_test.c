/*
 * Operations on rows against sums in double precision that are written here a second time: the norm
 * with a mean, the GELU by tanh, norms of heads, learned positions, and features that are added.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "ops/fixture.h"

static const char *const  sets[] = { "plain", "avx2", "avxvnni", "avx512", "amx" };


/* A device of a set; NULL: this processor does not run it. */
static vlm_device_t *
open_set(const char *set, uint32_t threads, const vlm_ops_t **ops)
{
    vlm_err_t           err = { VLM_OK, "" };
    vlm_need_t          need = { VLM_F32, 256, 512, 8, 64, 64, 64, 4, 0 };
    vlm_device_t       *d;
    const vlm_basic_t  *basic;

    d = vlm_cpu_open(set, threads, ops, &err);

    if (d != NULL) {
        basic = (*ops)->basic;
        basic->set_scratch(d, &need, basic->reserve(d, basic->scratch_bytes(d, &need), &err));
        assert_int_equal(err.code, VLM_OK);
    }

    return d;
}


/* Runs fn for each set and two numbers of threads: the bits must be those of the definitions. */
typedef float *(*run_fn)(vlm_device_t *d, const vlm_ops_t *ops, size_t *n);

static float *
same_in_every_set(run_fn fn, size_t *n)
{
    float            *want, *got;
    size_t            i;
    vlm_device_t     *d;
    const vlm_ops_t  *ops;

    want = NULL;

    for (i = 0; i < 2 * COUNT(sets); i++) {
        d = open_set(sets[i / 2], 1 + 2 * (i % 2), &ops);

        if (d == NULL) {
            continue;
        }

        got = fn(d, ops, n);
        ops->basic->close(d);

        if (want == NULL) {
            want = got;
            continue;
        }

        if (memcmp(got, want, *n * sizeof(float)) != 0) {
            fail_msg("%s: value %zu differs", sets[i / 2], vlm_differs(got, want, *n));
        }

        free(got);
    }

    return want;
}


/* ---- the norm with a mean ------------------------------------------------ */

#define ROWS   11
#define WIDTH  317

static float *
run_norm(vlm_device_t *d, const vlm_ops_t *ops, size_t *n)
{
    float      *x, *gain, *shift, *y;
    uint32_t    i;
    vlm_norm_t  norm = { VLM_NORM_LAYER, NULL, 1e-6f, NULL };

    x = floats(ROWS * WIDTH, VLM_RANDOM, 1);
    norm.gain = gain = floats(WIDTH, VLM_RANDOM, 2);
    norm.shift = shift = floats(WIDTH, VLM_RANDOM, 3);
    *n = ROWS * WIDTH;
    y = floats(*n, VLM_RANDOM, 4);

    for (i = 0; i < WIDTH; i++) {
        x[i] += 1000;                  /* a mean far from zero */
        x[WIDTH + i] = 7;              /* no deviation at all */
    }

    ops->norm(d, &norm, x, ROWS, WIDTH, y);
    free(x);
    free(gain);
    free(shift);

    return y;
}


static void
a_norm_with_a_mean_is_what_double_says_with_the_same_bits_in_every_set(void **state)
{
    float     *x, *gain, *shift, *y, v;
    double     mean, square, want;
    size_t     n;
    uint32_t   t, i;

    (void) state;

    y = same_in_every_set(run_norm, &n);
    x = floats(n, VLM_RANDOM, 1);
    gain = floats(WIDTH, VLM_RANDOM, 2);
    shift = floats(WIDTH, VLM_RANDOM, 3);

    for (t = 0; t < ROWS; t++) {
        for (mean = square = 0, i = 0; i < WIDTH; i++) {
            v = t == 1 ? 7 : x[t * WIDTH + i];
            x[t * WIDTH + i] = t == 0 ? v + 1000 : v;
            mean += (double) x[t * WIDTH + i] / WIDTH;
        }

        for (i = 0; i < WIDTH; i++) {
            square += (x[t * WIDTH + i] - mean) * (x[t * WIDTH + i] - mean) / WIDTH;
        }

        for (i = 0; i < WIDTH; i++) {
            want = (x[t * WIDTH + i] - mean) / sqrt(square + 1e-6) * gain[i] + shift[i];
            check_near(y[t * WIDTH + i], want, t == 0 ? 1e-3 : 4e-6, "norm", t * WIDTH + i);
        }
    }

    free(x);
    free(gain);
    free(shift);
    free(y);
}


/* ---- the GELU by tanh ---------------------------------------------------- */

static void
the_gelu_by_tanh_is_what_double_says_from_end_to_end(void **state)
{
    float         y, acc[1][VLM_PANEL], x;
    double        u;
    vlm_linear_t  w;

    (void) state;

    memset(&w, 0, sizeof(w));
    w.epilogue = VLM_GELU_TANH;

    for (x = -30; x <= 30; x += 0.01f) {
        acc[0][0] = x;
        vlm_epilogue_plain(&w, 0, 1, 1, acc, &y);
        u = sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * pow(x, 3));
        check_near(y, 0.5 * x * (1 + tanh(u)), 8 * EPS * (0.01 + fabs((double) y)) + 1e-9, "gelu",
                   0);
    }

    acc[0][0] = -1e30f;                      /* its cube is infinite */
    vlm_epilogue_plain(&w, 0, 1, 1, acc, &y);
    assert_true(fabsf(y) < 1e-6f);
    acc[0][0] = 1e30f;
    vlm_epilogue_plain(&w, 0, 1, 1, acc, &y);
    assert_true(y == 1e30f);
    acc[0][0] = NAN;
    vlm_epilogue_plain(&w, 0, 1, 1, acc, &y);
    assert_true(isnan(y));
}


/* ---- norms of heads ------------------------------------------------------ */

enum { T = 5, D = 20, HEADS = 4, KV = 2, HD = 24, ROOM = 32 };

static float  x[T * D], gain[D], q_gain[HD], k_gain[HD], weights[(HEADS + 2 * KV) * HD * D];


/* Queries [T][HEADS][HD], then keys and values [ROOM][HD] of both heads. */
static float *
run_qkv(vlm_device_t *d, const vlm_ops_t *ops, size_t *n)
{
    float          *y, inv_freq[HD / 2];
    uint8_t         axis[HD / 2];
    int32_t         pos[3 * T];
    uint32_t        i, seq[T] = { 0 }, start[2] = { 0, T }, slot = 0, n_ctx = 3;
    vlm_kv_t        kv = { VLM_F32, 1, 1, KV, ROOM, HD, NULL, NULL, NULL, NULL };
    vlm_rope_t      rope = { inv_freq, axis };
    vlm_norm_t      norm = { VLM_NORM_RMS, gain, 1e-6f, NULL };
    vlm_norm_t      q_norm = { VLM_NORM_RMS, q_gain, 1e-6f, NULL };
    vlm_norm_t      k_norm = { VLM_NORM_RMS, k_gain, 1e-6f, NULL };
    vlm_batch_t     b;
    vlm_linear_t    w;
    vlm_kernels_t   k;
    vlm_qkv_t       qkv = { &w, &norm, &rope, HEADS, &q_norm, &k_norm };

    vlm_parity_fill(x, T, D, VLM_RANDOM, 11);
    vlm_parity_fill(gain, 1, D, VLM_RANDOM, 12);
    vlm_parity_fill(q_gain, 1, HD, VLM_RANDOM, 13);
    vlm_parity_fill(k_gain, 1, HD, VLM_RANDOM, 14);
    vlm_parity_fill(weights, (HEADS + 2 * KV) * HD, D, VLM_RANDOM, 15);

    for (i = 0; i < HD / 2; i++) {
        axis[i] = (uint8_t) (i % 3);
        inv_freq[i] = powf(10000, -2.0f * (float) i / HD);
    }

    for (i = 0; i < 3 * T; i++) {
        pos[i] = (int32_t) (i * 7 % 13);
    }

    memset(&b, 0, sizeof(b));
    b.T = T;
    b.S = 1;
    b.pos = pos;
    b.seq = seq;
    b.start = start;
    b.slot = &slot;
    b.n_ctx = &n_ctx;

    *n = T * HEADS * HD + 2 * KV * ROOM * HD;
    y = floats(*n, VLM_ZEROS, 16);
    memset(y, 0, *n * sizeof(float));
    kv.k = y + T * HEADS * HD;
    kv.v = (float *) kv.k + KV * ROOM * HD;

    /* Each set packs as the one that the device's name says, or as the next smaller one. */

    vlm_kernels_plain(&k);

#if defined(__x86_64__)
    {
        char  name[128];

        ops->basic->describe(d, name, sizeof(name));

        if (strstr(name, "avx512") != NULL || strstr(name, "amx") != NULL) {
            vlm_kernels_avx512(&k);
        } else if (strstr(name, "avx") != NULL) {
            vlm_kernels_avx2(&k);
        }
    }
#endif

    vlm_packed_open(&w, &k, VLM_F32, VLM_STORE, (HEADS + 2 * KV) * HD, D, weights, NULL);
    ops->qkv(d, &qkv, x, &b, &kv, 0, y);
    vlm_packed_close(&w);

    return y;
}


static void
each_head_of_queries_and_keys_is_normed_before_it_turns_and_values_are_not(void **state)
{
    float     *y, got;
    double     head[HD], turned[HD], sum, r, angle;
    size_t     n, at;
    uint32_t   t, h, i, k;

    (void) state;

    y = same_in_every_set(run_qkv, &n);

    for (t = 0; t < T; t++) {
        for (sum = 0, k = 0; k < D; k++) {
            sum += (double) x[t * D + k] * x[t * D + k];
        }

        r = 1 / sqrt(sum / D + 1e-6);

        for (h = 0; h < HEADS + 2 * KV; h++) {
            for (sum = 0, i = 0; i < HD; i++) {
                for (head[i] = 0, k = 0; k < D; k++) {
                    head[i] += weights[(h * HD + i) * D + k] * x[t * D + k] * r * gain[k];
                }

                sum += head[i] * head[i];
            }

            for (i = 0; i < HD && h < HEADS + KV; i++) {
                head[i] *= (h < HEADS ? q_gain[i] : k_gain[i]) / sqrt(sum / HD + 1e-6);
            }

            memcpy(turned, head, sizeof(head));

            for (i = 0; i < HD / 2 && h < HEADS + KV; i++) {
                angle = (i % 3 * T + t) * 7 % 13 * pow(10000, -2.0 * i / HD);
                turned[i] = head[i] * cos(angle) - head[i + HD / 2] * sin(angle);
                turned[i + HD / 2] = head[i + HD / 2] * cos(angle) + head[i] * sin(angle);
            }

            at = h < HEADS ? (t * HEADS + h) * HD
                 : T * HEADS * HD + ((h - HEADS) * ROOM + 3 + t) * HD;

            for (i = 0; i < HD; i++) {
                got = y[at + i];
                check_near(got, turned[i], 1e-5, "head", h * HD + i);
            }
        }
    }

    free(y);
}


/* ---- learned positions --------------------------------------------------- */

#define SIDE   7
#define E      37

static uint32_t  grid[2];              /* rows and columns of a picture */


static float *
run_places(vlm_device_t *d, const vlm_ops_t *ops, size_t *n)
{
    float          *y;
    uint32_t        i, P, *row, *column;
    vlm_places_t    places = { floats(SIDE * SIDE * E, VLM_RANDOM, 21), SIDE };
    vlm_patches_t   patches;

    P = grid[0] * grid[1];
    row = malloc(P * sizeof(*row));
    column = malloc(P * sizeof(*column));

    for (i = 0; i < P; i++) {          /* from the last patch to the first */
        row[i] = (P - 1 - i) / grid[1];
        column[i] = (P - 1 - i) % grid[1];
    }

    patches = (vlm_patches_t) { P, row, column, grid[0], grid[1] };
    *n = (size_t) P * E;
    y = floats(*n, VLM_RANDOM, 22);
    ops->add_places(d, &places, &patches, E, y);
    free(places.at);
    free(row);
    free(column);

    return y;
}


/* Corners of the picture are corners of the grid; between them, the four nearest places by area. */
static void
places_are_stretched_over_a_picture_of_any_grid_corner_to_corner(void **state)
{
    float     *places, *before, *y;
    double     at[2], part[2], want;
    size_t     n;
    uint32_t   g, i, e, k, low[2], high[2];
    static const uint32_t  grids[][2] = { { 1, 1 }, { 2, 2 }, { 7, 7 }, { 2, 30 }, { 26, 4 },
                                          { 1, 9 } };

    (void) state;

    places = floats(SIDE * SIDE * E, VLM_RANDOM, 21);

    for (g = 0; g < COUNT(grids); g++) {
        memcpy(grid, grids[g], sizeof(grid));
        y = same_in_every_set(run_places, &n);
        before = floats(n, VLM_RANDOM, 22);

        for (i = 0; i < n / E; i++) {
            for (k = 0; k < 2; k++) {
                at[k] = k == 0 ? (n / E - 1 - i) / grid[1] : (n / E - 1 - i) % grid[1];
                at[k] = grid[k] == 1 ? 0 : at[k] * (SIDE - 1) / (grid[k] - 1);
                low[k] = (uint32_t) floor(at[k] + 1e-9);
                high[k] = low[k] + 1 < SIDE ? low[k] + 1 : SIDE - 1;
                part[k] = at[k] - low[k];
            }

            for (e = 0; e < E; e++) {
                want = before[i * E + e]
                       + (1 - part[0]) * (1 - part[1]) * places[(low[0] * SIDE + low[1]) * E + e]
                       + (1 - part[0]) * part[1] * places[(low[0] * SIDE + high[1]) * E + e]
                       + part[0] * (1 - part[1]) * places[(high[0] * SIDE + low[1]) * E + e]
                       + part[0] * part[1] * places[(high[0] * SIDE + high[1]) * E + e];
                check_near(y[i * E + e], want, 1e-6, "place", i * E + e);
            }
        }

        free(before);
        free(y);
    }

    free(places);
}


/* ---- features ------------------------------------------------------------ */

static float *
run_features(vlm_device_t *d, const vlm_ops_t *ops, size_t *n)
{
    float           *y, *features;
    vlm_batch_t      b;
    static uint32_t  source[] = { VLM_NONE, 3, VLM_NONE, 0, 3 };

    memset(&b, 0, sizeof(b));
    b.T = 5;
    b.source = source;
    b.pictures = 3;
    features = floats(4 * E, VLM_RANDOM, 31);
    *n = 5 * E;
    y = floats(*n, VLM_RANDOM, 32);
    ops->add_features(d, features, &b, E, y);
    free(features);

    return y;
}


static void
features_are_added_to_the_rows_of_pictures_alone(void **state)
{
    float     *before, *features, *y;
    size_t     n;
    uint32_t   i;

    (void) state;

    y = same_in_every_set(run_features, &n);
    before = floats(n, VLM_RANDOM, 32);
    features = floats(4 * E, VLM_RANDOM, 31);

    for (i = 0; i < E; i++) {
        assert_true(y[i] == before[i]);
        assert_true(y[E + i] == before[E + i] + features[3 * E + i]);
        assert_true(y[2 * E + i] == before[2 * E + i]);
        assert_true(y[3 * E + i] == before[3 * E + i] + features[i]);
        assert_true(y[4 * E + i] == before[4 * E + i] + features[3 * E + i]);
    }

    free(before);
    free(features);
    free(y);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_norm_with_a_mean_is_what_double_says_with_the_same_bits_in_every_set),
        cmocka_unit_test(the_gelu_by_tanh_is_what_double_says_from_end_to_end),
        cmocka_unit_test(each_head_of_queries_and_keys_is_normed_before_it_turns_and_values_are_not),
        cmocka_unit_test(places_are_stretched_over_a_picture_of_any_grid_corner_to_corner),
        cmocka_unit_test(features_are_added_to_the_rows_of_pictures_alone)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
