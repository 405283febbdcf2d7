/*
 * Products with a weight matrix, and its packing: every set against the definition, and the
 * definition against sums in double precision that are written here a second time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "format/int4.h"
#include "format/int8.h"
#include "ops/fixture.h"

#define MAX_T  9

#if defined(__x86_64__)
void vlm_linear_amx_emu(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
void vlm_linear_avxvnni_emu(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);
#endif

static const char *const  type_names[] = { "f32", "f16", "bf16", "int8", "int4" };

typedef struct {
    vlm_type_t       type;
    vlm_epilogue_t   epilogue;
    vlm_kind_t       kind;
    uint32_t         N, K;
    float           *rows;             /* [N][K] */
    void            *q;                /* quantised rows, or NULL */
    float           *scale;            /* [N], of quantised rows */
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
    s->scale = vlm_takes_int8(type) ? malloc(N * sizeof(float)) : NULL;
    s->q = vlm_quantised_rows(type, N, K, s->rows, s->scale);
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
    free(s->q);
    free(s->scale);
    free(s->x);
    free(s->bias);
}


/* A shape's matrix and rows as a set has them: packed once for products of many numbers of rows. */
typedef struct {
    const vlm_kernels_t  *k;
    vlm_linear_t          w;
    vlm_activations_t     a;
} packed_t;


static void
open_packed(packed_t *p, const shape_t *s, const vlm_kernels_t *k)
{
    p->k = k;
    vlm_packed_rows(&p->w, k, s->type, s->epilogue, s->N, s->K,
                    s->q == NULL ? (const void *) s->rows : s->q, s->scale, s->bias);
    vlm_activations_open(&p->a, k, s->x, s->T, s->K);
}


static void
close_packed(packed_t *p)
{
    free(p->w.w);
    vlm_activations_close(&p->a);
}


/* y of rows [first, first + T), which for VLM_ADD begin as something. */
static float *
multiply_packed(const packed_t *p, const shape_t *s, uint32_t first, uint32_t T)
{
    float   *y;
    size_t   out;

    out = vlm_linear_out(&p->w);
    y = floats(s->T * out, VLM_RANDOM, 5);
    memmove(y, y + first * out, T * out * sizeof(float));
    vlm_product(p->k, &p->w, &p->a, first, T, y);

    return y;
}


static float *
multiply(const shape_t *s, const vlm_kernels_t *k, uint32_t first, uint32_t T)
{
    float     *y;
    packed_t   p;

    open_packed(&p, s, k);
    y = multiply_packed(&p, s, first, T);
    close_packed(&p);

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
    packed_t  p;
    uint32_t  i, T;

    out = outputs(s);
    want = multiply(s, &plain, 0, MAX_T);

    for (i = 0; i < n_faster; i++) {
        open_packed(&p, s, &faster[i]);

        for (T = 1; T <= MAX_T; T++) {
            got = multiply_packed(&p, s, 0, T);
            (void) snprintf(what, sizeof(what), "%s, %s, T %u", faster[i].name, s->name, T);
            check_bits(got, want, T * out, what);
            free(got);
        }

        close_packed(&p);
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

                    if (type == VLM_INT4 && (n + k + epilogue + kind) % 4 != 0) {
                        continue;      /* its rows are slow to quantise */
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


static void
a_product_with_int4_weights_has_the_same_bits_in_every_set(void **state)
{
    (void) state;
    each_shape(compare_sets, VLM_INT4);
}


/* Rows that fill tiles or do not, blocks that fill a piece of a panel (four) or do not. */
static void
compare_many_rows(vlm_type_t type)
{
    char                   what[256];
    float                 *want, *got;
    shape_t                s;
    packed_t               p;
    uint32_t               i, n, t, kind, epilogue;
    static const uint32_t  T[] = { 11, 12, 16, 17, 23, 24, 25, 27, 31, 33, 48, 255, 257, 300 };
    static const uint32_t  N[] = { 2, 64, 130 };
    static const uint32_t  K[] = { 3, 64, 65, 192, 256, 317, 320, 448, 1100 };

    for (n = 0; n < COUNT(N) * COUNT(K) * VLM_KINDS; n++) {
        if (type == VLM_INT4 && n % 5 != 0) {
            continue;
        }

        kind = n % VLM_KINDS;
        epilogue = (n / VLM_KINDS + kind) % (VLM_GELU_TANH + 1);
        open_rows(&s, type, epilogue, kind, N[n / VLM_KINDS / COUNT(K)],
                  K[n / VLM_KINDS % COUNT(K)], 300);
        want = multiply(&s, &plain, 0, 300);

        for (i = 0; i < n_faster; i++) {
            open_packed(&p, &s, &faster[i]);

            for (t = 0; t < COUNT(T); t++) {
                got = multiply_packed(&p, &s, 0, T[t]);
                (void) snprintf(what, sizeof(what), "%s, %s, T %u", faster[i].name, s.name, T[t]);
                check_bits(got, want, T[t] * outputs(&s), what);
                free(got);
            }

            close_packed(&p);
        }

        free(want);
        close_shape(&s);
    }
}


static void
many_rows_of_int8_have_the_same_bits_in_every_set(void **state)
{
    (void) state;
    compare_many_rows(VLM_INT8);
}


static void
many_rows_of_int4_have_the_same_bits_in_every_set(void **state)
{
    (void) state;
    compare_many_rows(VLM_INT4);
}


static void
rows_of_int4_of_very_many_values_have_the_same_bits_in_every_set(void **state)
{
    shape_t  s;

    (void) state;
    open_shape(&s, VLM_INT4, VLM_STORE, VLM_MAXIMA, 2, 33000);
    compare_sets(&s);
    close_shape(&s);
}


/* Rows of more than 4,096 values go over a panel 96 at a time. */
static void
many_rows_of_very_many_values_have_the_same_bits_in_every_set(void **state)
{
    char                   what[256];
    float                 *want, *got;
    shape_t                s;
    uint32_t               i, t;
    const vlm_type_t       types[] = { VLM_INT8, VLM_INT4 };
    static const uint32_t  T[] = { 60, 97, 200 };

    (void) state;

    for (t = 0; t < COUNT(T) * COUNT(types); t++) {
        open_rows(&s, types[t % 2], VLM_ADD, VLM_RANDOM, 130, 4200, T[t / 2]);
        want = multiply(&s, &plain, 0, s.T);

        for (i = 0; i < n_faster; i++) {
            got = multiply(&s, &faster[i], 0, s.T);
            (void) snprintf(what, sizeof(what), "%s, %s, T %u", faster[i].name,
                            types[t % 2] == VLM_INT8 ? "int8" : "int4", s.T);
            check_bits(got, want, s.T * outputs(&s), what);
            free(got);
        }

        free(want);
        close_shape(&s);
    }
}


/*
 * Only quantised checkpoints have -128.  Weights and rows are at the ends of their ranges, of one
 * sign and of both, so that sums of pairs and sums over a piece are the largest.
 */
static void
weights_of_minus_128_have_the_same_bits_in_every_set(void **state)
{
    char                   what[256];
    float                 *want, *got;
    int8_t                *q;
    shape_t                s;
    packed_t               p;
    uint32_t               i, n, k;
    static const uint32_t  T[] = { 1, 2, 5, 16, 24, 29, 48 };

    (void) state;
    open_rows(&s, VLM_INT8, VLM_STORE, VLM_MAXIMA, 130, 1100, 48);
    q = s.q;

    for (n = 0; n < s.N; n++) {
        for (k = 0; k < s.K; k++) {
            q[n * s.K + k] = n % 3 == 0 || q[n * s.K + k] < 0 ? -128 : n % 3 == 1 ? 127 : 0;
        }
    }

    for (n = 0; n < s.T; n++) {
        for (k = 0; k < s.K; k++) {
            s.x[n * s.K + k] *= n % 4 == 0 && s.x[n * s.K + k] < 0 ? -1     /* all are 127, */
                                : n % 4 == 1 && s.x[n * s.K + k] > 0 ? -1 : 1;       /* or -127 */
        }
    }

    want = multiply(&s, &plain, 0, s.T);

    for (i = 0; i < n_faster; i++) {
        open_packed(&p, &s, &faster[i]);

        for (n = 0; n < COUNT(T); n++) {
            got = multiply_packed(&p, &s, 0, T[n]);
            (void) snprintf(what, sizeof(what), "%s, -128, T %u", faster[i].name, T[n]);
            check_bits(got, want, T[n] * outputs(&s), what);
            free(got);
        }

        close_packed(&p);
    }

    free(want);
    close_shape(&s);
}


/* Row by row, among neighbours of zeros, and as part of all rows. */
static void
compare_alone(const shape_t *s)
{
    char                  what[256];
    float                *all, *one, *x;
    size_t                out;
    shape_t               other;
    packed_t              p;
    uint32_t              i, t;
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    out = outputs(s);

    for (i = 0; i < 1 + n_faster; i++) {
        open_packed(&p, s, sets[i]);
        all = multiply_packed(&p, s, 0, s->T);

        for (t = 0; t < s->T; t++) {
            (void) snprintf(what, sizeof(what), "%s, %s, row %u alone", sets[i]->name, s->name, t);
            one = multiply_packed(&p, s, t, 1);
            check_bits(one, all + t * out, out, what);
            free(one);
        }

        close_packed(&p);

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
    const vlm_type_t      types[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT4 };
    const vlm_epilogue_t  epilogues[] = { VLM_STORE, VLM_ADD, VLM_SILU_MUL, VLM_GELU,
                                        VLM_GELU_TANH };

    (void) state;

    for (i = 0; i < 20; i++) {
        open_rows(&s, types[i % 4], epilogues[i / 4], VLM_RANDOM, 130, 317, 33);
        compare_alone(&s);
        close_shape(&s);
    }
}


/* A sum in double, the sum of its terms' sizes, and how far f32 may be off. */
typedef struct {
    double  sum, off;
} exact_t;


/* A row's integers, q [K], and their scale; 1: the form has none. */
static float
integers_of(vlm_type_t type, const float *row, uint32_t K, int8_t *q)
{
    float     scale;
    int8_t   *values;
    uint8_t  *packed;

    if (!vlm_takes_int8(type)) {
        return 1;
    }

    if (type == VLM_INT8) {
        return vlm_quant_row(row, K, q);
    }

    packed = malloc(vlm_int4_row_bytes(K));
    values = malloc((size_t) vlm_blocks(K) * VLM_BLOCK);
    vlm_int4_quantise(row, K, packed, &scale);
    vlm_int4_values(packed, vlm_blocks(K), values);
    memcpy(q, values, K);
    free(packed);
    free(values);

    return scale;
}


static double
weight_of(const shape_t *s, uint32_t n, uint32_t k, const int8_t *q)
{
    float  w;

    w = s->rows[(size_t) n * s->K + k];

    return vlm_takes_int8(s->type) ? q[k] : s->type == VLM_BF16 ? vlm_bf16_f32(vlm_f32_bf16(w)) : w;
}


/* The product of weight row n and activation row t, without its epilogue. */
static exact_t
exact_sum(const shape_t *s, const vlm_activations_t *a, uint32_t t, uint32_t n)
{
    double    x, w, scale, sizes;
    int8_t   *q;
    size_t    values, pieces;
    exact_t   e;
    uint32_t  k;

    values = (size_t) vlm_blocks(s->K) * VLM_BLOCK;
    pieces = vlm_pieces(s->K);
    q = malloc(s->K);
    scale = integers_of(s->type, s->rows + (size_t) n * s->K, s->K, q);
    e.sum = sizes = 0;

    for (k = 0; k < s->K; k++) {
        x = !vlm_takes_int8(s->type) ? (double) a->x[(size_t) t * s->K + k]
                                : (double) a->s[t * pieces + k / VLM_PIECE]
                                  * a->q[t * values + k];
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
    const vlm_type_t       types[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT4 };
    static const uint32_t  N[] = { 1, 2, 65, 130 }, K[] = { 1, 65, 100, 317 };

    (void) state;

    for (i = 0; i < COUNT(N) * COUNT(types); i++) {
        for (epilogue = VLM_STORE; epilogue <= VLM_GELU_TANH; epilogue++) {
            for (kind = 0; kind < VLM_KINDS; kind++) {
                if (epilogue == VLM_SILU_MUL && N[i / 4] % 2 != 0) {
                    continue;
                }

                open_shape(&s, types[i % 4], epilogue, kind, N[i / 4], K[(i + kind) % 4]);
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
    const vlm_type_t      types[] = { VLM_F32, VLM_BF16, VLM_INT8, VLM_INT4 };
    const vlm_kernels_t  *sets[1 + MAX_SETS] = { &plain, &faster[0], &faster[1], &faster[2],
                                                &faster[3] };

    (void) state;

    rows = vlm_aligned((size_t) N * K * sizeof(float));
    out = malloc(K * sizeof(float));
    q = malloc(K);
    vlm_parity_fill(rows, N, K, VLM_RANDOM, 11);

    for (i = 0; i < 4 * (1 + n_faster); i++) {
        vlm_packed_open(&w, sets[i / 4], types[i % 4], VLM_STORE, N, K, rows, NULL);

        for (n = 0; n < N; n++) {
            sets[i / 4]->unpack_row(&w, n, out);
            (void) integers_of(types[i % 4], rows + (size_t) n * K, K, q);

            for (k = 0; k < K; k++) {
                j = n * K + k;
                want = i % 4 >= 2                 ? q[k]
                       : types[i % 4] == VLM_BF16 ? vlm_bf16_f32(vlm_f32_bf16(rows[j]))
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


/* With AVX-512 alone, the products of the other processors are those of their emulated sets. */
static int
find_all_sets(void **state)
{
    (void) find_sets(state);

#if defined(__x86_64__)
    if (n_faster == 2 && strcmp(faster[1].name, "avx512") == 0) {
        faster[2] = faster[0];
        faster[2].name = "avxvnni, emulated";
        faster[2].linear = vlm_linear_avxvnni_emu;
        faster[3] = faster[1];
        faster[3].name = "amx, emulated";
        faster[3].linear = vlm_linear_amx_emu;
        n_faster = 4;
    }
#endif

    return 0;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_product_with_f32_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(a_product_with_bf16_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(a_product_with_int8_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(a_product_with_int4_weights_has_the_same_bits_in_every_set),
        cmocka_unit_test(many_rows_of_int4_have_the_same_bits_in_every_set),
        cmocka_unit_test(rows_of_int4_of_very_many_values_have_the_same_bits_in_every_set),
        cmocka_unit_test(many_rows_of_int8_have_the_same_bits_in_every_set),
        cmocka_unit_test(many_rows_of_very_many_values_have_the_same_bits_in_every_set),
        cmocka_unit_test(weights_of_minus_128_have_the_same_bits_in_every_set),
        cmocka_unit_test(a_row_does_not_depend_on_how_many_it_stands_among_nor_on_which),
        cmocka_unit_test(the_definition_of_a_product_is_what_double_precision_says),
        cmocka_unit_test(a_packed_row_comes_back_as_it_was),
        cmocka_unit_test(a_matrix_packed_panel_by_panel_is_the_same_as_packed_at_once)
    };

    return cmocka_run_group_tests(tests, find_all_sets, NULL);
}
