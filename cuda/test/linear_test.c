/*
 * Products: linear with its epilogues, and head.
 *
 * A result may differ from the definition by the order of sums, by bf16 where activations are
 * stored, and, after a norm, by a few values that round to a neighbouring int8.
 */

#include "pair.h"

#include "format/bf16.h"
#include "format/int4.h"

/* An emulated sm_75 multiplies bf16, although a device of sm_75 cannot be opened for bf16. */
#if defined(VLM_EMU) && VLM_EMU < 800
#define OPENED_FOR  VLM_INT8
#else
#define OPENED_FOR  VLM_BF16
#endif

#define MAX_T  70
#define LONG   7300                    /* inputs: 8 such rows are more than a block has room for */
#define FLIPS  3                       /* values of a row that may be off by one in int8 */

typedef enum { NO_NORM, RMS, LAYER } normed_t;

typedef struct {
    vlm_type_t       type;
    vlm_epilogue_t   epilogue;
    vlm_kind_t       kind;
    uint32_t         N, K, T, out;     /* out: outputs of a row */
    normed_t         norm;             /* x is f32 with a gain, and a shift */
    float           *rows, *bias, *x, *gain, *shift, *before;
    float           *bound;            /* [T][out] */
    void            *q;                /* quantised rows, for all runs; or NULL */
    float           *scale;            /* [N], theirs */
    char             name[128];
} case_t;

static const char *const  epilogues[] = { "store", "add", "silu_mul", "gelu", "gelu_tanh" };
static const char *const  norms[] = { "", ", norm", ", norm with a mean" };


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_BF16, LONG, 256, 4, 64, 256, 256, MAX_T, 0 };

    (void) state;

    return pair_open(OPENED_FOR, &need, &need);
}


/* Row t of x as the definition multiplies it: normed in double. */
static void
normed_row(const case_t *c, uint32_t t, double *to)
{
    double        mean, sum;
    uint32_t      k;
    const float  *x = c->x + (size_t) t * c->K;

    for (mean = 0, k = 0; c->norm == LAYER && k < c->K; k++) {
        mean += (double) x[k] / c->K;
    }

    for (sum = 0, k = 0; k < c->K; k++) {
        sum += (x[k] - mean) * (x[k] - mean);
    }

    for (k = 0; k < c->K; k++) {
        to[k] = c->norm ? (x[k] - mean) / sqrt(sum / c->K + 1e-6) * c->gain[k] : x[k];
        to[k] += c->norm == LAYER ? c->shift[k] : 0;
    }
}


/* Bound of the error of the sum for weight row n; v has the values of the input row. */
static double
sum_bound(const case_t *c, uint32_t n, const double *v, double *sum)
{
    double        sizes, most_w, most_v, dot, off;
    uint32_t      k;
    const float  *w = c->rows + (size_t) n * c->K;

    sizes = most_w = most_v = dot = 0;

    for (k = 0; k < c->K; k++) {
        sizes += fabs(w[k] * v[k]);
        dot += w[k] * v[k];
        most_w = fmax(most_w, fabs((double) w[k]));
        most_v = fmax(most_v, fabs(v[k]));
    }

    *sum = fabs(dot) + fabs((double) (c->bias == NULL ? 0 : c->bias[n])) + sizes / 64;
    off = c->K * 0x1p-23 * sizes + 1e-30;

    if (c->norm) {
        off += c->type != VLM_BF16 ? FLIPS * most_w * most_v / 127 : 0x1p-8 * sizes;
    }

    return off;
}


static void
make_bounds(case_t *c)
{
    double    v[LONG], off, up_off, sum, up;
    uint32_t  t, n, o;

    for (t = 0; t < c->T; t++) {
        normed_row(c, t, v);

        for (o = 0; o < c->out; o++) {
            n = c->epilogue == VLM_SILU_MUL ? 2 * o : o;
            off = sum_bound(c, n, v, &sum);

            if (c->epilogue == VLM_SILU_MUL) {
                up_off = sum_bound(c, n + 1, v, &up);
                off = 1.1 * off * (up + up_off) + up_off * (sum + off) + 0x1p-20 * sum * up;
            } else if (c->epilogue == VLM_GELU || c->epilogue == VLM_GELU_TANH) {
                off = 1.2 * off + 0x1p-20 * (1 + sum);
            } else if (c->epilogue == VLM_ADD) {
                off += 0x1p-22 * (1 + sum);
            }

            c->bound[(size_t) t * c->out + o] = (float) off;
        }
    }
}


static case_t
open_case(vlm_type_t type, vlm_epilogue_t epilogue, vlm_kind_t kind, uint32_t N, uint32_t K,
          uint32_t T, normed_t norm)
{
    case_t    c;
    uint32_t  i;
    uint64_t  seed;

    memset(&c, 0, sizeof(c));
    seed = N * 1000 + K * 10 + kind;
    c.type = type;
    c.epilogue = epilogue;
    c.kind = kind;
    c.N = N;
    c.K = K;
    c.T = T;
    c.norm = norm;
    c.out = epilogue == VLM_SILU_MUL ? N / 2 : N;
    c.rows = f32_values(N, K, VLM_RANDOM, seed);
    c.bias = (N + K + epilogue) % 2 == 0 ? f32_values(1, N, VLM_RANDOM, seed + 1) : NULL;
    c.x = norm ? f32_values(T, K, kind, seed + 2) : bf16_values(T, K, kind, seed + 2);
    c.gain = f32_values(1, K, VLM_RANDOM, seed + 3);
    c.shift = f32_values(1, K, VLM_RANDOM, seed + 5);
    c.before = f32_values(T, c.out, VLM_RANDOM, seed + 4);
    c.bound = malloc((size_t) T * c.out * sizeof(float));

    (void) snprintf(c.name, sizeof(c.name), "%s %s, kind %d, N %u, K %u, T %u%s%s",
                    vlm_weights_name(type), epilogues[epilogue], (int) kind, N, K, T,
                    c.bias == NULL ? "" : ", bias", norms[norm]);

    for (i = 0; norm == LAYER && i < T * K; i++) {
        c.x[i] += 3;
    }

    make_bounds(&c);

    return c;
}


static void
close_case(case_t *c)
{
    free(c->rows);
    free(c->bias);
    free(c->x);
    free(c->gain);
    free(c->shift);
    free(c->before);
    free(c->bound);
    free(c->q);
    free(c->scale);
}


/* Rows [first, first + T). */
static void
run_on(side_t *s, const case_t *c, uint32_t first, uint32_t T, float *out)
{
    void          *x, *y;
    form_t         form;
    vlm_norm_t     norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_linear_t   w;

    pair_reset();
    form = c->epilogue == VLM_ADD ? F32 : ACT;

    if (c->q == NULL) {
        w = put_matrix(s, c->type, c->epilogue, c->N, c->K, c->rows, c->bias);
    } else {
        w = put_quantised(s, c->type, c->epilogue, c->N, c->K, c->q, c->scale, c->bias);
    }

    x = put_floats(s, c->x + (size_t) first * c->K, (size_t) T * c->K, c->norm ? F32 : ACT);
    y = put_floats(s, c->before + (size_t) first * c->out, (size_t) T * c->out, form);

    norm.gain = c->norm ? put_floats(s, c->gain, c->K, F32) : NULL;

    if (c->norm == LAYER) {
        norm.kind = VLM_NORM_LAYER;
        norm.shift = put_floats(s, c->shift, c->K, F32);
    }

    s->ops->linear(s->d, &w, c->norm ? &norm : NULL, x, T, y);
    get_floats(s, out, y, (size_t) T * c->out, form);
}


/* Storing as bf16 adds an error of half a unit. */
static void
add_rounding(const case_t *c, const float *want)
{
    size_t  i;

    for (i = 0; c->epilogue != VLM_ADD && i < (size_t) c->T * c->out; i++) {
        c->bound[i] += fabsf(want[i]) * 0x1.02p-8f + c->bound[i] * 0x1p-7f;
    }
}


static void
compare(case_t *c)
{
    float     *want, *got, *again;
    size_t     n;
    uint32_t   i;

    n = (size_t) c->T * c->out;
    want = malloc(3 * n * sizeof(float));
    got = want + n;
    again = got + n;

    c->scale = malloc(c->N * sizeof(float));
    c->q = vlm_quantised_rows(c->type, c->N, c->K, c->rows, c->scale);
    run_on(&host, c, 0, c->T, want);
    add_rounding(c, want);

    for (i = 0; i < SEEDS; i++) {
        use_seed(i);
        run_on(&card, c, 0, c->T, i == 0 ? got : again);

        if (i > 0) {
            check_same_bits(again, got, n, c->name);
        }
    }

    check_near(got, want, c->bound, 0, 0, n, c->name);
    free(want);
}


/* Number i of 4 epilogues, the last of which is one form of GELU or the other. */
static vlm_epilogue_t
epilogue_of(uint32_t i, int tanh)
{
    return i == VLM_GELU && tanh ? VLM_GELU_TANH : (vlm_epilogue_t) i;
}


static void
each_shape(vlm_type_t type)
{
    case_t                 c;
    uint32_t               i, e, kind, N;
    static const uint32_t  T[] = { 1, 2, 8, 9, 65 };
    static const uint32_t  shapes[][2] = {
        { 1, 1 }, { 2, 63 }, { 17, 64 }, { 63, 65 }, { 65, 130 }, { 34, 577 }, { 130, 317 },
        { 16, 1283 }
    };

    for (i = 0; i < COUNT(shapes) * COUNT(T); i++) {
        for (e = 0; e < 4; e++) {
            kind = (i + e) % VLM_KINDS;
            N = shapes[i / COUNT(T)][0];
            N += e == VLM_SILU_MUL ? N % 2 : 0;
            c = open_case(type, epilogue_of(e, i % 2), kind, N, shapes[i / COUNT(T)][1],
                          T[i % COUNT(T)], (i + e) % 3);
            compare(&c);
            close_case(&c);
        }
    }
}


static void
a_product_with_int8_weights_is_its_definition(void **state)
{
    (void) state;
    each_shape(VLM_INT8);
}


static void
a_product_with_int4_weights_is_its_definition(void **state)
{
    (void) state;
    each_shape(VLM_INT4);
}


/* y [T][N] of a matrix on the card. */
static void
multiply_on_card(const vlm_linear_t *w, const case_t *c, float *y)
{
    void        *x, *to;
    vlm_norm_t   norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };

    norm.gain = put_floats(&card, c->gain, c->K, F32);
    x = put_floats(&card, c->x, (size_t) c->T * c->K, F32);
    to = put_floats(&card, c->before, (size_t) c->T * c->N, F32);
    card.ops->linear(card.d, w, &norm, x, c->T, to);
    get_floats(&card, y, to, (size_t) c->T * c->N, F32);
}


/* int4 is int8 of few values (format/int4.h), whatever the step and the base. */
static void
a_product_with_int4_weights_has_the_bits_of_int8_with_the_same_values(void **state)
{
    case_t         c;
    float         *scale, *y[2];
    size_t         bytes, k;
    int8_t        *values;
    uint8_t       *rows;
    uint32_t       i, n, blocks;
    vlm_linear_t   w;

    static const uint32_t  T[] = { 1, 7, 8, 9, MAX_T };
    static const uint32_t  shapes[][2] = { { 5, 64 }, { 70, 320 }, { 128, 1000 }, { 33, LONG } };

    (void) state;

    for (i = 0; i < COUNT(shapes) * COUNT(T); i++) {
        c = open_case(VLM_INT4, VLM_ADD, VLM_RANDOM, shapes[i / COUNT(T)][0],
                      shapes[i / COUNT(T)][1], T[i % COUNT(T)], RMS);
        blocks = (c.K + VLM_BLOCK - 1) / VLM_BLOCK;
        bytes = vlm_int4_row_bytes(c.K);
        rows = malloc(c.N * bytes);
        values = malloc((size_t) c.N * blocks * VLM_BLOCK);
        scale = malloc(c.N * sizeof(float));
        y[0] = malloc(2 * (size_t) c.T * c.N * sizeof(float));
        y[1] = y[0] + (size_t) c.T * c.N;

        for (k = 0; k < c.N * bytes; k++) {
            rows[k] = (uint8_t) ((k * 2654435761u + i) >> 13);

            if (k % VLM_INT4_GROUP == VLM_INT4_GROUP - 2) {
                rows[k] = rows[k] % 17;            /* a step; of any base, all bytes may come */
            }
        }

        for (n = 0; n < c.N; n++) {
            vlm_int4_values(rows + n * bytes, blocks, values + (size_t) n * blocks * VLM_BLOCK);
            memmove(values + (size_t) n * c.K, values + (size_t) n * blocks * VLM_BLOCK, c.K);
            scale[n] = 0.001f * (float) (n + 1);
        }

        pair_reset();
        w = put_quantised(&card, VLM_INT4, VLM_ADD, c.N, c.K, rows, scale, c.bias);
        multiply_on_card(&w, &c, y[0]);

        pair_reset();
        w = put_quantised(&card, VLM_INT8, VLM_ADD, c.N, c.K, values, scale, c.bias);
        multiply_on_card(&w, &c, y[1]);

        check_same_bits(y[0], y[1], (size_t) c.T * c.N, c.name);
        free(rows);
        free(values);
        free(scale);
        free(y[0]);
        close_case(&c);
    }
}


static void
a_product_with_bf16_weights_is_its_definition(void **state)
{
    (void) state;
    each_shape(VLM_BF16);
}


static void
every_kind_of_number_comes_through_every_epilogue(void **state)
{
    case_t    c;
    uint32_t  i;

    (void) state;

    for (i = 0; i < VLM_KINDS * 4 * 4; i++) {
        c = open_case(i % 2 ? VLM_INT8 : VLM_BF16, epilogue_of(i / 4 % 4, i % 4 / 2), i / 16, 66,
                      131, i % 4 < 2 ? 3 : 11, i / 2 % 3);
        compare(&c);
        close_case(&c);
    }
}


static void
a_row_has_the_same_bits_alone_among_few_and_among_many(void **state)
{
    float      all[MAX_T * 130], one[MAX_T * 130];
    case_t     c;
    uint32_t   i, t, n;

    (void) state;

    for (i = 0; i < 4; i++) {
        c = open_case(i % 2 ? VLM_INT8 : VLM_BF16, i / 2 ? VLM_SILU_MUL : VLM_ADD, VLM_RANDOM, 130,
                      1100, MAX_T, i % 2 + i / 2);
        run_on(&card, &c, 0, MAX_T, all);

        for (t = 0; t < MAX_T; t += 13) {
            for (n = 1; n <= 9 && t + n <= MAX_T; n += 4) {
                run_on(&card, &c, t, n, one);
                check_same_bits(one, all + (size_t) t * c.out, (size_t) n * c.out, c.name);
            }
        }

        close_case(&c);
    }
}


/*
 * A block has 64 rows if a launch has two blocks for each processor, else 32: so have 70 and 33
 * rows here on a device of two processors, which the emulator is, and on one of 132.
 */
static void
rows_have_the_same_bits_in_blocks_of_all_and_of_half_of_them(void **state)
{
    float           *all, *one;
    case_t           c;
    uint32_t         i, N;
    const uint32_t   T = 70, processors[] = { 2, 132 };

    (void) state;

    for (i = 0; i < COUNT(processors); i++) {
        N = (processors[i] + 1) * 64;
        c = open_case(VLM_INT8, VLM_STORE, VLM_RANDOM, N, 330, T, NO_NORM);
        all = malloc((size_t) T * N * sizeof(float));
        one = malloc((size_t) T * N * sizeof(float));

        run_on(&card, &c, 0, T, all);
        run_on(&card, &c, 0, 33, one);
        check_same_bits(one, all, (size_t) 33 * N, c.name);

        free(one);
        free(all);
        close_case(&c);
    }
}


/* All values of a piece are 127 or -127, with one sign: the sum is as far from 0 as any can be. */
static void
the_largest_sums_of_a_piece_are_exact(void **state)
{
    float     want[9 * 21], got[9 * 21];
    case_t    c;
    uint32_t  i;

    (void) state;

    c = open_case(VLM_INT8, VLM_STORE, VLM_RANDOM, 21, 512, 9, NO_NORM);

    for (i = 0; i < 21 * 512; i++) {
        c.rows[i] = i / 512 % 2 ? -1 : 1;
    }

    for (i = 0; i < 9 * 512; i++) {
        c.x[i] = 1;
    }

    for (i = 0; i < COUNT(want); i++) {
        want[i] = i % 21 % 2 ? -512 : 512;
    }

    run_on(&card, &c, 0, 9, got);
    check_near(got, want, NULL, 0, 0, COUNT(want), c.name);
    run_on(&card, &c, 0, 3, got);
    check_near(got, want, NULL, 0, 0, 3 * 21, c.name);
    close_case(&c);
}


/* The multiplying blocks prepare 1 and 2 rows themselves; 8 and 9 rows have a separate launch. */
static void
long_rows_have_the_same_bits_wherever_they_were_prepared(void **state)
{
    float      all[9 * 150], one[8 * 150];
    case_t     c;
    uint32_t   i, n;

    (void) state;

    for (i = 0; i < 4; i++) {
        c = open_case(i % 2 ? VLM_INT8 : VLM_BF16, VLM_ADD, VLM_RANDOM, 150, LONG, 9,
                      i / 2 + i % 2);
        run_on(&card, &c, 0, 9, all);

        for (n = 1; n <= 8; n += n == 1 ? 1 : 6) {
            use_seed(n);
            run_on(&card, &c, 1, n, one);
            check_same_bits(one, all + c.out, (size_t) n * c.out, c.name);
        }

        close_case(&c);
    }
}


/* There are more rows than one pass of the device takes. */
static void
more_rows_than_a_pass_takes_are_processed_in_parts(void **state)
{
    float     *all, part[5 * 3];
    case_t     c;
    uint32_t   T;

    (void) state;

    T = VLM_CUDA_ROWS + 5;
    c = open_case(VLM_INT8, VLM_STORE, VLM_RANDOM, 3, 10, T, RMS);
    all = malloc((size_t) T * c.out * sizeof(float));

    run_on(&card, &c, 0, T, all);
    run_on(&card, &c, VLM_CUDA_ROWS, 5, part);
    check_same_bits(part, all + VLM_CUDA_ROWS * 3, COUNT(part), c.name);

    free(all);
    close_case(&c);
}


static void
logits_are_of_the_rows_that_were_asked_for(void **state)
{
    float           want[5 * 97], got[5 * 97];
    uint32_t        i;
    const side_t   *sides[] = { &host, &card };
    case_t          c;
    vlm_norm_t      norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_batch_t     b;
    vlm_linear_t    w;
    const uint32_t  rows[] = { 8, 0, 3, 3, 7 };

    (void) state;

    for (i = 0; i < 4; i++) {
        side_t  *s = (side_t *) sides[i % 2];
        float   *y;

        c = open_case(i / 2 ? VLM_INT8 : VLM_BF16, VLM_STORE, VLM_RANDOM, 97, 150, 9, RMS);
        pair_reset();
        memset(&b, 0, sizeof(b));
        b.R = 5;
        b.logit_row = put_bytes(s, rows, sizeof(rows));
        w = put_matrix(s, c.type, VLM_STORE, 97, 150, c.rows, NULL);
        y = take_bytes(s, sizeof(got));
        norm.gain = put_floats(s, c.gain, 150, F32);
        s->ops->head(s->d, &w, &norm, put_floats(s, c.x, 9 * 150, F32), &b, y);
        get_floats(s, i % 2 ? got : want, y, COUNT(got), F32);

        if (i % 2) {
            check_near(got, want, NULL, i / 2 ? 0.02f : 0.06f, 0, COUNT(got), "logits");
            check_same_bits(got + 2 * 97, got + 3 * 97, 97, "the same row twice");
        }

        close_case(&c);
    }
}


/* An input that is not a number makes all outputs of its row, and only those, not a number. */
static void
a_value_that_is_no_number_is_seen_in_every_output_of_its_row(void **state)
{
    float     got[12 * 33];
    case_t    c;
    uint32_t  i, t;

    (void) state;

    for (i = 0; i < 8; i++) {
        c = open_case(i % 2 ? VLM_INT8 : VLM_BF16, VLM_STORE, VLM_RANDOM, 33, 70,
                      i / 2 % 2 ? 12 : 2, i < 4 ? RMS : LAYER);
        c.x[70 + 69] = i % 4 < 2 ? NAN : INFINITY;
        run_on(&card, &c, 0, c.T, got);

        for (t = 0; t < c.T * 33; t++) {
            assert_int_equal(isfinite(got[t]), t / 33 != 1);
        }

        close_case(&c);
    }
}


/* An argument PATTERN runs only the tests whose names match it. */
int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_product_with_int8_weights_is_its_definition),
        cmocka_unit_test(a_product_with_int4_weights_is_its_definition),
        cmocka_unit_test(a_product_with_int4_weights_has_the_bits_of_int8_with_the_same_values),
        cmocka_unit_test(a_product_with_bf16_weights_is_its_definition),
        cmocka_unit_test(every_kind_of_number_comes_through_every_epilogue),
        cmocka_unit_test(a_row_has_the_same_bits_alone_among_few_and_among_many),
        cmocka_unit_test(rows_have_the_same_bits_in_blocks_of_all_and_of_half_of_them),
        cmocka_unit_test(the_largest_sums_of_a_piece_are_exact),
        cmocka_unit_test(long_rows_have_the_same_bits_wherever_they_were_prepared),
        cmocka_unit_test(more_rows_than_a_pass_takes_are_processed_in_parts),
        cmocka_unit_test(logits_are_of_the_rows_that_were_asked_for),
        cmocka_unit_test(a_value_that_is_no_number_is_seen_in_every_output_of_its_row)
    };

    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
