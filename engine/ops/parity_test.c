/*
 * The kernels of each instruction set against the definitions, and the definitions against sums
 * in double precision that are written here a second time.
 *
 * Sets are compared bit by bit: which processor computes an answer must not change it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "ops/parity.h"

#define MAX_T    9
#define TILES    17                    /* rows: a whole tile and one more */
#define MAX_SETS 4
#define EPS      0x1p-24               /* half a unit in the last place of 1 */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static vlm_kernels_t  plain, faster[MAX_SETS];
static uint32_t       n_faster;

static const char *const  type_names[] = { "f32", "f16", "bf16", "int8" };


static int
find_sets(void **state)
{
    (void) state;
    vlm_kernels_plain(&plain);

#if defined(__x86_64__)
    __builtin_cpu_init();

    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        vlm_kernels_avx2(&faster[n_faster++]);

        if (vlm_avxvnni_there()) {
            vlm_kernels_avx2(&faster[n_faster]);
            vlm_kernels_avxvnni(&faster[n_faster++]);
        }
    }

    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    {
        vlm_kernels_avx512(&faster[n_faster++]);

        if (vlm_amx_there()) {
            vlm_kernels_avx512(&faster[n_faster]);
            vlm_kernels_amx(&faster[n_faster++]);
        }
    }
#endif

    if (n_faster == 0) {
        print_message("# this processor runs the definitions alone\n");
    }

    return 0;
}


static float *
floats(size_t n, vlm_kind_t kind, uint64_t seed)
{
    float  *x;

    x = vlm_aligned(n * sizeof(float));
    assert_non_null(x);
    vlm_parity_fill(x, 1, (uint32_t) n, kind, seed);

    return x;
}


static void
check_bits(const float *got, const float *want, size_t n, const char *what)
{
    size_t  i;

    i = vlm_differs(got, want, n);

    if (i < n) {
        fail_msg("%s: value %zu of %zu is %.9g, not %.9g", what, i, n, (double) got[i],
                 (double) want[i]);
    }
}


static void
check_near(float got, double want, double bound, const char *what, size_t i)
{
    if (!(fabs(got - want) <= bound)) {
        fail_msg("%s: value %zu is %.9g, not %.9g: off by %g, allowed %g", what, i, (double) got,
                 want, fabs(got - want), bound);
    }
}


/* ---- linear -------------------------------------------------------------- */

typedef struct {
    vlm_type_t       type;
    vlm_epilogue_t   epilogue;
    vlm_kind_t       kind;
    uint32_t         N, K;
    float           *rows;             /* [N][K] */
    uint32_t         T;
    float           *x;                /* [T][K] */
    float           *bias;             /* [N] or NULL */
    char             name[128];
} shape_t;


static void
open_rows(shape_t *s, vlm_type_t type, vlm_epilogue_t epilogue, vlm_kind_t kind, uint32_t N,
          uint32_t K, uint32_t T)
{
    uint64_t  seed;

    seed = ((uint64_t) N << 32) + K * 16 + kind;

    s->type = type;
    s->epilogue = epilogue;
    s->kind = kind;
    s->N = N;
    s->K = K;
    s->rows = vlm_aligned((size_t) N * K * sizeof(float));
    s->T = T;
    s->x = vlm_aligned((size_t) T * K * sizeof(float));
    vlm_parity_fill(s->rows, N, K, kind, seed);
    vlm_parity_fill(s->x, T, K, kind, seed + 1);
    s->bias = (N + K + epilogue) % 2 == 0 ? floats(N, VLM_RANDOM, seed + 2) : NULL;

    (void) snprintf(s->name, sizeof(s->name), "%s, epilogue %d, kind %d, N %u, K %u%s",
                    type_names[type], (int) epilogue, (int) kind, N, K,
                    s->bias == NULL ? "" : ", bias");
}


static void
open_shape(shape_t *s, vlm_type_t type, vlm_epilogue_t epilogue, vlm_kind_t kind, uint32_t N,
           uint32_t K)
{
    open_rows(s, type, epilogue, kind, N, K, MAX_T);
}


static void
close_shape(shape_t *s)
{
    free(s->rows);
    free(s->x);
    free(s->bias);
}


/* y of rows [first, first + T), which for VLM_ADD begin as something. */
static float *
multiply(const shape_t *s, const vlm_kernels_t *k, uint32_t first, uint32_t T)
{
    float              *y;
    size_t              out;
    vlm_linear_t        w;
    vlm_activations_t   a;

    vlm_packed_open(&w, k, s->type, s->epilogue, s->N, s->K, s->rows, s->bias);
    vlm_activations_open(&a, k, s->x, s->T, s->K);

    out = vlm_linear_out(&w);
    y = floats(s->T * out, VLM_RANDOM, 5);
    memmove(y, y + first * out, T * out * sizeof(float));
    vlm_product(k, &w, &a, first, T, y);

    vlm_packed_close(&w);
    vlm_activations_close(&a);

    return y;
}


static size_t
outputs(const shape_t *s)
{
    return s->epilogue == VLM_SILU_MUL ? s->N / 2 : s->N;
}


/* All rows at once in the definition, then 1, 2, ... rows at once in the faster sets. */
static void
compare_sets(const shape_t *s)
{
    char      what[256];
    float    *want, *got;
    size_t    out;
    uint32_t  i, T;

    out = outputs(s);
    want = multiply(s, &plain, 0, MAX_T);

    for (i = 0; i < n_faster; i++) {
        for (T = 1; T <= MAX_T; T++) {
            got = multiply(s, &faster[i], 0, T);
            (void) snprintf(what, sizeof(what), "%s, %s, T %u", faster[i].name, s->name, T);
            check_bits(got, want, T * out, what);
            free(got);
        }
    }

    free(want);
}


typedef void (*shape_fn)(const shape_t *s);


static void
each_shape(shape_fn fn, vlm_type_t type)
{
    shape_t               s;
    uint32_t              n, k, epilogue, kind;
    static const uint32_t  N[] = { 1, 2, 63, 64, 65, 127, 130 };
    static const uint32_t  K[] = { 1, 3, 63, 64, 65, 100, 317, 588 };

    for (n = 0; n < COUNT(N); n++) {
        for (k = 0; k < COUNT(K); k++) {
            for (epilogue = VLM_STORE; epilogue <= VLM_GELU_TANH; epilogue++) {
                for (kind = 0; kind < VLM_KINDS; kind++) {
                    if (epilogue == VLM_SILU_MUL && N[n] % 2 != 0) {
                        continue;
                    }

                    open_shape(&s, type, epilogue, kind, N[n], K[k]);
                    fn(&s);
                    close_shape(&s);
                }
            }
        }
    }
}


static void
a_product_with_f32_weights_has_the_same_bits_in_every_set(void **state)
{
    (void) state;
    each_shape(compare_sets, VLM_F32);
}


static void
a_product_with_bf16_weights_has_the_same_bits_in_every_set(void **state)
{
    (void) state;
    each_shape(compare_sets, VLM_BF16);
}


static void
a_product_with_int8_weights_has_the_same_bits_in_every_set(void **state)
{
    (void) state;
    each_shape(compare_sets, VLM_INT8);
}


/* Rows that fill tiles or do not, blocks that fill a piece of a panel (four) or do not. */
static void
many_rows_of_int8_have_the_same_bits_in_every_set(void **state)
{
    char                   what[256];
    float                 *want, *got;
    shape_t                s;
    uint32_t               i, n, t, kind, epilogue;
    static const uint32_t  T[] = { 11, 12, 15, 16, 17, 31, 33, 48, 255, 257, 300 };
    static const uint32_t  N[] = { 2, 64, 130 };
    static const uint32_t  K[] = { 3, 64, 65, 192, 256, 317, 320, 448, 1100 };

    (void) state;

    for (n = 0; n < COUNT(N) * COUNT(K) * VLM_KINDS; n++) {
        kind = n % VLM_KINDS;
        epilogue = (n / VLM_KINDS + kind) % (VLM_GELU_TANH + 1);
        open_rows(&s, VLM_INT8, epilogue, kind, N[n / VLM_KINDS / COUNT(K)],
                  K[n / VLM_KINDS % COUNT(K)], 300);
        want = multiply(&s, &plain, 0, 300);

        for (i = 0; i < n_faster; i++) {
            for (t = 0; t < COUNT(T); t++) {
                got = multiply(&s, &faster[i], 0, T[t]);
                (void) snprintf(what, sizeof(what), "%s, %s, T %u", faster[i].name, s.name, T[t]);
                check_bits(got, want, T[t] * outputs(&s), what);
                free(got);
            }
        }

        free(want);
        close_shape(&s);
    }
}


/* Row by row, among neighbours of zeros, and as part of all rows. */
static void
compare_alone(const shape_t *s)
{
    char                  what[256];
    float                *all, *one, *x;
    size_t                out;
    shape_t               other;
    uint32_t              i, t;
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    out = outputs(s);

    for (i = 0; i < 1 + n_faster; i++) {
        all = multiply(s, sets[i], 0, s->T);

        for (t = 0; t < s->T; t++) {
            (void) snprintf(what, sizeof(what), "%s, %s, row %u alone", sets[i]->name, s->name, t);
            one = multiply(s, sets[i], t, 1);
            check_bits(one, all + t * out, out, what);
            free(one);
        }

        x = floats((size_t) s->T * s->K, VLM_MAXIMA, 7);
        memcpy(x + 4 * (size_t) s->K, s->x + 4 * (size_t) s->K, s->K * sizeof(float));
        other = *s;
        other.x = x;
        (void) snprintf(what, sizeof(what), "%s, %s, other neighbours", sets[i]->name, s->name);
        one = multiply(&other, sets[i], 0, s->T);
        check_bits(one + 4 * out, all + 4 * out, out, what);

        free(one);
        free(x);
        free(all);
    }
}


static void
a_row_does_not_depend_on_how_many_it_stands_among_nor_on_which(void **state)
{
    shape_t               s;
    uint32_t              i;
    const vlm_type_t      types[] = { VLM_F32, VLM_BF16, VLM_INT8 };
    const vlm_epilogue_t  epilogues[] = { VLM_STORE, VLM_ADD, VLM_SILU_MUL, VLM_GELU,
                                        VLM_GELU_TANH };

    (void) state;

    for (i = 0; i < 15; i++) {
        open_rows(&s, types[i % 3], epilogues[i / 3], VLM_RANDOM, 130, 317, 33);
        compare_alone(&s);
        close_shape(&s);
    }
}


/* A sum in double, the sum of its terms' sizes, and how far f32 may be off. */
typedef struct {
    double  sum, off;
} exact_t;


static double
weight_of(const shape_t *s, uint32_t n, uint32_t k, const int8_t *q)
{
    float  w;

    w = s->rows[(size_t) n * s->K + k];

    return s->type == VLM_INT8 ? q[k] : s->type == VLM_BF16 ? vlm_bf16_f32(vlm_f32_bf16(w)) : w;
}


/* The product of weight row n and activation row t, without its epilogue. */
static exact_t
exact_sum(const shape_t *s, const vlm_activations_t *a, uint32_t t, uint32_t n)
{
    double    x, w, scale, sizes;
    int8_t   *q;
    size_t    blocks;
    exact_t   e;
    uint32_t  k;

    blocks = vlm_blocks(s->K);
    q = malloc(s->K);
    scale = vlm_quant_row(s->rows + (size_t) n * s->K, s->K, q);
    scale = s->type == VLM_INT8 ? scale : 1;
    e.sum = sizes = 0;

    for (k = 0; k < s->K; k++) {
        x = s->type != VLM_INT8 ? (double) a->x[(size_t) t * s->K + k]
                                : (double) a->s[t * blocks + k / VLM_BLOCK]
                                  * a->q[t * blocks * VLM_BLOCK + k];
        w = weight_of(s, n, k, q) * scale;
        e.sum += w * x;
        sizes += fabs(w * x);
    }

    if (s->bias != NULL) {
        e.sum += s->bias[n];
        sizes += fabs((double) s->bias[n]);
    }

    e.off = (s->K + 4) * EPS * sizes + 1e-30;
    free(q);

    return e;
}


static exact_t
exact_output(const shape_t *s, const vlm_activations_t *a, uint32_t t, uint32_t n, double before)
{
    double   silu;
    exact_t  e, up;

    if (s->epilogue == VLM_SILU_MUL) {
        e = exact_sum(s, a, t, 2 * n);
        up = exact_sum(s, a, t, 2 * n + 1);
        silu = e.sum / (1 + exp(-e.sum));
        up.off = 1.1 * e.off * (fabs(up.sum) + up.off) + up.off * fabs(silu)
                 + 8 * EPS * fabs(silu * up.sum);
        up.sum *= silu;

        return up;
    }

    e = exact_sum(s, a, t, n);

    if (s->epilogue == VLM_ADD) {
        e.sum += before;
        e.off += 2 * EPS * (fabs(e.sum) + fabs(before));

    } else if (s->epilogue == VLM_GELU) {
        e.sum = 0.5 * e.sum * (1 + erf(e.sum / sqrt(2)));
        e.off = 1.2 * e.off + 8 * EPS * (1 + fabs(e.sum));

    } else if (s->epilogue == VLM_GELU_TANH) {
        e.sum *= 0.5 * (1 + tanh(sqrt(2 / 3.14159265358979323846)
                                 * (e.sum + 0.044715 * pow(e.sum, 3))));
        e.off = 1.2 * e.off + 8 * EPS * (1 + fabs(e.sum));
    }

    return e;
}


static void
compare_exact(const shape_t *s)
{
    float              *y, *before;
    size_t              out, i;
    exact_t             e;
    vlm_activations_t   a;

    out = outputs(s);
    y = multiply(s, &plain, 0, MAX_T);
    before = floats(MAX_T * out, VLM_RANDOM, 5);
    vlm_activations_open(&a, &plain, s->x, MAX_T, s->K);

    for (i = 0; i < MAX_T * out; i += 1 + i % 3) {
        e = exact_output(s, &a, (uint32_t) (i / out), (uint32_t) (i % out), before[i]);
        check_near(y[i], e.sum, e.off, s->name, i);
    }

    vlm_activations_close(&a);
    free(before);
    free(y);
}


static void
the_definition_of_a_product_is_what_double_precision_says(void **state)
{
    shape_t                s;
    uint32_t               i, kind, epilogue;
    const vlm_type_t       types[] = { VLM_F32, VLM_BF16, VLM_INT8 };
    static const uint32_t  N[] = { 1, 2, 65, 130 }, K[] = { 1, 65, 100, 317 };

    (void) state;

    for (i = 0; i < COUNT(N) * COUNT(types); i++) {
        for (epilogue = VLM_STORE; epilogue <= VLM_GELU_TANH; epilogue++) {
            for (kind = 0; kind < VLM_KINDS; kind++) {
                if (epilogue == VLM_SILU_MUL && N[i / 3] % 2 != 0) {
                    continue;
                }

                open_shape(&s, types[i % 3], epilogue, kind, N[i / 3], K[(i + kind) % 4]);
                compare_exact(&s);
                close_shape(&s);
            }
        }
    }
}


static void
a_packed_row_comes_back_as_it_was(void **state)
{
    float                *rows, *out, want;
    int8_t               *q;
    uint32_t              i, j, n, k;
    vlm_linear_t          w;
    const uint32_t        N = 130, K = 101;
    const vlm_type_t      types[] = { VLM_F32, VLM_BF16, VLM_INT8 };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    rows = vlm_aligned((size_t) N * K * sizeof(float));
    out = malloc(K * sizeof(float));
    q = malloc(K);
    vlm_parity_fill(rows, N, K, VLM_RANDOM, 11);

    for (i = 0; i < 3 * (1 + n_faster); i++) {
        vlm_packed_open(&w, sets[i / 3], types[i % 3], VLM_STORE, N, K, rows, NULL);

        for (n = 0; n < N; n++) {
            sets[i / 3]->unpack_row(&w, n, out);
            (void) vlm_quant_row(rows + (size_t) n * K, K, q);

            for (k = 0; k < K; k++) {
                j = n * K + k;
                want = types[i % 3] == VLM_INT8   ? q[k]
                       : types[i % 3] == VLM_BF16 ? vlm_bf16_f32(vlm_f32_bf16(rows[j]))
                                                  : rows[j];
                assert_true(out[k] == want);
            }
        }

        vlm_packed_close(&w);
    }

    free(rows);
    free(out);
    free(q);
}


/* Panels come one by one from several threads: row is a multiple of 64, the last one is short. */
static void
a_matrix_packed_panel_by_panel_is_the_same_as_packed_at_once(void **state)
{
    float                *rows;
    void                 *whole;
    uint32_t              i, j, row;
    uint64_t              bytes;
    vlm_linear_t          w;
    const uint32_t        N = 150, K = 67, order[] = { 128, 0, 64 };
    const vlm_type_t      types[] = { VLM_F32, VLM_BF16 };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    rows = vlm_aligned((size_t) N * K * sizeof(float));
    vlm_parity_fill(rows, N, K, VLM_RANDOM, 12);

    for (i = 0; i < 2 * (1 + n_faster); i++) {
        bytes = sets[i / 2]->packed_bytes(types[i % 2], N, K);
        vlm_packed_open(&w, sets[i / 2], types[i % 2], VLM_STORE, N, K, rows, NULL);
        whole = w.w;
        w.w = vlm_aligned(bytes);

        for (j = 0; j < 3; j++) {
            row = order[j];
            sets[i / 2]->pack(&w, row, N - row < 64 ? N - row : 64, rows + (size_t) row * K);
        }

        assert_memory_equal(w.w, whole, bytes);
        free(whole);
        vlm_packed_close(&w);
    }

    free(rows);
}


/* ---- one row: norm, and the step to int8 --------------------------------- */

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
    float    s[10];
    int32_t  sum[10];
} quantized_t;


static void
check_quantized(const float *x, uint32_t n, const quantized_t *z)
{
    double    max;
    int32_t   sum;
    uint32_t  b, k, at;

    for (b = 0; b < vlm_blocks(n); b++) {
        for (max = 0, k = 0; k < VLM_BLOCK && b * VLM_BLOCK + k < n; k++) {
            max = fmax(max, fabs((double) x[b * VLM_BLOCK + k]));
        }

        check_near(z->s[b], max / 127, EPS * max, "scale", b);

        for (sum = 0, k = 0; k < VLM_BLOCK; k++) {
            at = b * VLM_BLOCK + k;
            sum += z->q[at];

            if (at >= n || max == 0) {
                assert_int_equal(z->q[at], 0);
            } else {
                check_near(z->q[at], x[at] * 127 / max, 0.50002, "step", at);
            }
        }

        assert_int_equal(sum, z->sum[b]);
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


/* ---- attention ----------------------------------------------------------- */

typedef struct {
    uint32_t     heads, kv_heads, hd;
    vlm_type_t   type;
    uint32_t     S, T, rows[4], n_ctx[4], seq[64], start[5], slot[4];
    vlm_kv_t     kv;
    vlm_batch_t  b;
    float       *q, *k, *v;            /* k, v: [elements] as f32, rounded as the cache has them */
    size_t       elements;
} attend_t;

#define CONTEXT  96
#define LAYERS   2
#define SLOTS    5


static void *
cache_of(const float *x, size_t n, vlm_type_t type)
{
    void    *p;
    size_t   i;

    p = vlm_aligned(n * sizeof(float));

    if (type == VLM_F32) {
        memcpy(p, x, n * sizeof(float));
        return p;
    }

    for (i = 0; i < n; i++) {
        ((uint16_t *) p)[i] = vlm_f32_bf16(x[i]);
    }

    return p;
}


static void
open_attend(attend_t *a, uint32_t heads, uint32_t kv_heads, uint32_t hd, vlm_type_t type,
            vlm_kind_t kind)
{
    size_t                 i;
    uint32_t               s, t;
    static const uint32_t  rows[] = { 1, 17, 1, 3 }, n_ctx[] = { 0, 0, 70, 93 };
    static const uint32_t  slots[] = { 4, 0, 2, 1 };

    memset(a, 0, sizeof(*a));
    a->heads = heads;
    a->kv_heads = kv_heads;
    a->hd = hd;
    a->type = type;
    a->S = 4;

    for (s = 0; s < a->S; s++) {
        a->slot[s] = slots[s];
        a->n_ctx[s] = n_ctx[s];
        a->start[s] = a->T;

        for (t = 0; t < rows[s]; t++) {
            a->seq[a->T++] = s;
        }

        a->start[s + 1] = a->T;
    }

    a->elements = (size_t) LAYERS * SLOTS * kv_heads * CONTEXT * hd;
    a->q = floats((size_t) a->T * heads * hd, kind, hd);
    a->k = floats(a->elements, VLM_RANDOM, hd + 1);
    a->v = floats(a->elements, VLM_RANDOM, hd + 2);

    for (i = 0; i < a->elements && type == VLM_BF16; i++) {
        a->k[i] = vlm_bf16_f32(vlm_f32_bf16(a->k[i]));
        a->v[i] = vlm_bf16_f32(vlm_f32_bf16(a->v[i]));
    }

    a->kv = (vlm_kv_t) { type, LAYERS, SLOTS, kv_heads, CONTEXT, hd,
                         cache_of(a->k, a->elements, type), cache_of(a->v, a->elements, type) };
    a->b.T = a->T;
    a->b.S = a->S;
    a->b.seq = a->seq;
    a->b.start = a->start;
    a->b.slot = a->slot;
    a->b.n_ctx = a->n_ctx;
}


static void
close_attend(attend_t *a)
{
    free(a->q);
    free(a->k);
    free(a->v);
    free(a->kv.k);
    free(a->kv.v);
}


static float *
attend_with(const attend_t *a, const vlm_kernels_t *k, uint32_t piece)
{
    float              *o, *scratch;
    uint32_t            i, h;
    const vlm_attend_t  attend = { a->heads, a->hd, vlm_head_scale(a->hd) };
    vlm_attend_args_t   args = { &attend, a->q, &a->b, &a->kv, 1, NULL };

    o = vlm_aligned((size_t) a->T * a->heads * a->hd * sizeof(float));
    scratch = vlm_aligned(vlm_attend_floats(CONTEXT, a->hd) * sizeof(float));
    args.o = o;

    for (i = 0; i < a->T; i += piece) {
        for (h = 0; h < a->kv_heads; h++) {
            k->attend(&args, i, a->T - i < piece ? a->T : i + piece, h, scratch);
        }
    }

    free(scratch);

    return o;
}


/* softmax(q k / sqrt(hd)) v over n keys that lie step floats apart, in double. */
static void
exact_attention(const float *q, const float *k, const float *v, uint32_t n, size_t step,
                uint32_t hd, double *o)
{
    double    p[256], max, sum;
    uint32_t  i, j;

    max = -INFINITY;

    for (j = 0; j < n; j++) {
        for (p[j] = 0, i = 0; i < hd; i++) {
            p[j] += (double) q[i] * k[j * step + i];
        }

        p[j] /= sqrt(hd);
        max = fmax(max, p[j]);
    }

    for (sum = 0, j = 0; j < n; j++) {
        p[j] = exp(p[j] - max);
        sum += p[j];
    }

    for (i = 0; i < hd; i++) {
        for (o[i] = 0, j = 0; j < n; j++) {
            o[i] += p[j] / sum * v[j * step + i];
        }
    }
}


static void
compare_attend(const attend_t *a, const float *got)
{
    double    want[128];
    size_t    at;
    uint32_t  t, h, i, s;

    for (t = 0; t < a->T; t++) {
        for (h = 0; h < a->heads; h++) {
            s = a->seq[t];
            at = ((((size_t) SLOTS + a->slot[s]) * a->kv_heads + h / (a->heads / a->kv_heads))
                  * CONTEXT) * a->hd;

            exact_attention(a->q + ((size_t) t * a->heads + h) * a->hd, a->k + at, a->v + at,
                            a->n_ctx[s] + t - a->start[s] + 1, a->hd, a->hd, want);

            for (i = 0; i < a->hd; i++) {
                at = ((size_t) t * a->heads + h) * a->hd + i;
                check_near(got[at], want[i], 2e-5, "attend", at);
            }
        }
    }
}


static void
attention_has_the_same_bits_in_every_set_and_is_what_double_says(void **state)
{
    float     *want, *got;
    attend_t   a;
    uint32_t   i, j;
    const struct {
        uint32_t  heads, kv_heads, hd;
    } shapes[] = { { 1, 1, 2 }, { 4, 2, 16 }, { 6, 2, 18 }, { 8, 1, 64 }, { 4, 4, 80 },
                   { 7, 1, 128 }, { 3, 3, 31 * 2 }, { 2, 2, 72 }, { 2, 1, 8 } };

    (void) state;

    for (i = 0; i < 2 * COUNT(shapes); i++) {
        open_attend(&a, shapes[i / 2].heads, shapes[i / 2].kv_heads, shapes[i / 2].hd,
                    i % 2 == 0 ? VLM_F32 : VLM_BF16, VLM_RANDOM);

        want = attend_with(&a, &plain, UINT32_MAX / 2);
        compare_attend(&a, want);

        for (j = 0; j < n_faster; j++) {
            got = attend_with(&a, &faster[j], 5);
            check_bits(got, want, (size_t) a.T * a.heads * a.hd, faster[j].name);
            free(got);
        }

        free(want);
        close_attend(&a);
    }
}


static void
attention_with_huge_or_zero_scores_stays_finite(void **state)
{
    float                *o;
    size_t                k;
    attend_t              a;
    uint32_t              i, j;
    const vlm_kind_t      kinds[] = { VLM_ZEROS, VLM_MAXIMA, VLM_OUTLIER };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    for (i = 0; i < 3; i++) {
        open_attend(&a, 4, 2, 16, VLM_F32, kinds[i]);

        for (j = 0; j < 1 + n_faster; j++) {
            o = attend_with(&a, sets[j], 3);

            for (k = 0; k < (size_t) a.T * a.heads * a.hd; k++) {
                assert_true(fabs((double) o[k]) <= 1.0001);
            }

            free(o);
        }

        close_attend(&a);
    }
}


static float *
segments_with(const vlm_kernels_t *k, const float *qkv[3], const uint32_t *border, uint32_t n,
              uint32_t heads, uint32_t dv, uint32_t piece)
{
    float                *o, *scratch;
    uint32_t              i, h, all;
    const vlm_attend_t    attend = { heads, dv, vlm_head_scale(dv) };
    const vlm_segments_t  segments = { border, n, border[n], border[n] };
    vlm_segments_args_t   args = { &attend, qkv[0], qkv[1], qkv[2], &segments, NULL };

    all = border[n];
    o = vlm_aligned((size_t) all * heads * dv * sizeof(float));
    scratch = vlm_aligned(vlm_attend_floats(all, dv) * sizeof(float));
    args.o = o;

    for (i = 0; i < all; i += piece) {
        for (h = 0; h < heads; h++) {
            k->attend_segments(&args, i, all - i < piece ? all : i + piece, h, scratch);
        }
    }

    free(scratch);

    return o;
}


static void
compare_segments(const float *qkv[3], const uint32_t *border, uint32_t n, uint32_t heads,
                 uint32_t dv, const float *got)
{
    double    want[128];
    size_t    at, E;
    uint32_t  s, p, h, i;

    E = (size_t) heads * dv;

    for (s = 0; s < n; s++) {
        for (p = border[s]; p < border[s + 1]; p++) {
            for (h = 0; h < heads; h++) {
                at = border[s] * E + (size_t) h * dv;
                exact_attention(qkv[0] + p * E + (size_t) h * dv, qkv[1] + at, qkv[2] + at,
                                border[s + 1] - border[s], E, dv, want);

                for (i = 0; i < dv; i++) {
                    at = p * E + (size_t) h * dv + i;
                    check_near(got[at], want[i], 2e-5, "segments", at);
                }
            }
        }
    }
}


static void
segments_have_the_same_bits_in_every_set_and_are_what_double_says(void **state)
{
    float                 *want, *got;
    size_t                 n;
    uint32_t               i, j, k;
    const float           *qkv[3];
    static const uint32_t  borders[2][6] = { { 0, 1, 71, 72, 76, 100 }, { 0, 100 } };
    const struct {
        uint32_t  heads, dv;
    } shapes[] = { { 1, 4 }, { 2, 16 }, { 3, 20 }, { 2, 80 }, { 2, 72 }, { 3, 24 } };

    (void) state;

    for (i = 0; i < 2 * COUNT(shapes); i++) {
        n = (size_t) 100 * shapes[i / 2].heads * shapes[i / 2].dv;

        for (k = 0; k < 3; k++) {
            qkv[k] = floats(n, VLM_RANDOM, 900 + 3 * i + k);
        }

        k = i % 2 == 0 ? 5 : 1;
        want = segments_with(&plain, qkv, borders[i % 2], k, shapes[i / 2].heads,
                             shapes[i / 2].dv, UINT32_MAX / 2);
        compare_segments(qkv, borders[i % 2], k, shapes[i / 2].heads, shapes[i / 2].dv, want);

        for (j = 0; j < n_faster; j++) {
            got = segments_with(&faster[j], qkv, borders[i % 2], k, shapes[i / 2].heads,
                                shapes[i / 2].dv, 7);
            check_bits(got, want, n, faster[j].name);
            free(got);
        }

        free(want);

        for (k = 0; k < 3; k++) {
            free((float *) qkv[k]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_product_with_f32_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(a_product_with_bf16_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(a_product_with_int8_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(many_rows_of_int8_have_the_same_bits_in_every_set),
        cmocka_unit_test(a_row_does_not_depend_on_how_many_it_stands_among_nor_on_which),
        cmocka_unit_test(the_definition_of_a_product_is_what_double_precision_says),
        cmocka_unit_test(a_packed_row_comes_back_as_it_was),
        cmocka_unit_test(a_matrix_packed_panel_by_panel_is_the_same_as_packed_at_once),
        cmocka_unit_test(a_norm_has_the_same_bits_in_every_set_and_is_what_double_precision_says),
        cmocka_unit_test(the_step_to_int8_is_the_same_in_every_set_and_rounds_to_the_nearest),
        cmocka_unit_test(halves_are_rounded_to_even),
        cmocka_unit_test(a_value_that_is_not_a_number_stays_visible_through_int8),
        cmocka_unit_test(numbers_too_small_for_a_scale_become_zeros),
        cmocka_unit_test(attention_has_the_same_bits_in_every_set_and_is_what_double_says),
        cmocka_unit_test(attention_with_huge_or_zero_scores_stays_finite),
        cmocka_unit_test(segments_have_the_same_bits_in_every_set_and_are_what_double_says)
    };

    return cmocka_run_group_tests(tests, find_sets, NULL);
}
