/*
 * The sums that adapters add to products of every kind of matrix, to logits and to table rows.
 *
 * The base's weights are small here, so that its own errors are, and what adapters add is not.  A
 * result may differ from the definition by the order of sums and by bf16 where it is stored.
 */

#include "pair.h"

#include "format/bf16.h"

#if defined(VLM_EMU) && VLM_EMU < 800
#define OPENED_FOR  VLM_INT8
#else
#define OPENED_FOR  VLM_BF16
#endif

#define MAX_T   70
#define MAX_K   1283
#define MAX_N   260
#define PLACES  6
#define OF      0x1.1p-8f              /* bf16's half unit, and a little */

static const uint32_t  ranks[PLACES] = { 1, 3, 0, 8, 16, 64 };

/* Adapters on one side. */
typedef struct {
    vlm_low_t       low[PLACES];
    vlm_lows_t      lows;
    vlm_low_rows_t  rows;
    uint32_t        place[MAX_T];
    float           scale[MAX_T];
} adapters_t;

typedef struct {
    vlm_type_t       type;
    vlm_epilogue_t   epilogue;
    uint32_t         N, K, T, parts;
    int              blocks;
    int              norm;             /* 0: none, 1: RMS, 2: LAYER */
} case_t;


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_BF16, MAX_K, 256, 4, 64, 256, MAX_N, MAX_T, 64 };

    (void) state;

    return pair_open(OPENED_FOR, &need, &need);
}


/* Row t of the call has none, or place t % 6, and another scale. */
static uint32_t
place_of(uint32_t t)
{
    return t % 4 == 1 ? VLM_NONE : (t * 5 + t / 4) % PLACES;
}


static void *
put_bf16(side_t *s, size_t n, float factor, uint64_t seed)
{
    void      *at;
    float     *x = f32_values(1, (uint32_t) n, VLM_RANDOM, seed);
    size_t     i;
    uint16_t  *b = malloc(n * sizeof(uint16_t));

    for (i = 0; i < n; i++) {
        b[i] = vlm_f32_bf16(x[i] * factor);
    }

    at = put_bytes(s, b, n * sizeof(uint16_t));
    free(x);
    free(b);

    return at;
}


/* Parts are 1, or 3 one behind the other, or 2 in turn. */
static void
open_adapters(adapters_t *a, side_t *s, uint32_t parts, uint32_t N, uint32_t a_columns,
              uint32_t b_columns, uint32_t first)
{
    float     *c;
    uint32_t   i, t;

    memset(a, 0, sizeof(*a));
    a->lows = (vlm_lows_t) { .type = VLM_BF16, .parts = parts, .places = PLACES,
                             .end = { parts == 3 ? N / 3 : N, N - N / 5, N },
                             .in_turn = parts == 2, .place = a->low, .rows = &a->rows,
                             .stride = sizeof(vlm_low_t) };

    for (i = 0; i < PLACES; i++) {
        c = f32_values(1, parts * (ranks[i] + 1), VLM_RANDOM, 90 + i);
        a->low[i] = (vlm_low_t) {
            ranks[i], put_bf16(s, (size_t) parts * (ranks[i] + 1) * a_columns, 1 / 16.f, 10 + i),
            put_bf16(s, (size_t) (ranks[i] + 1) * b_columns, 1 / 2.f, 20 + i),
            put_bytes(s, c, parts * (ranks[i] + 1) * sizeof(float)), i == 1, { 0.5f, 2, 0.75f }
        };
        free(c);
    }

    for (t = 0; t + first < MAX_T; t++) {
        a->place[t] = place_of(t + first);
        a->scale[t] = 0.5f + (float) ((t + first) % 3);
    }

    a->lows.there = put_bytes(s, a->low, sizeof(a->low));
    a->rows = (vlm_low_rows_t) { 1, a->place, a->scale, 0, 0,
                                 put_bytes(s, a->place, sizeof(a->place)),
                                 put_bytes(s, a->scale, sizeof(a->scale)) };
}


static size_t
outputs(const case_t *c)
{
    return c->epilogue == VLM_SILU_MUL ? c->N / 2 : c->N;
}


/* Rows [first, first + T) of the case, with adapters or without. */
static void
run_on(side_t *s, const case_t *c, int adapted, uint32_t first, uint32_t T, float *out)
{
    void          *y, *at;
    float         *w, *x, *gain, *bias, *before;
    form_t         form = c->epilogue == VLM_ADD ? F32 : ACT;
    uint32_t       i;
    adapters_t     a;
    vlm_norm_t     norm = { c->norm == 2 ? VLM_NORM_LAYER : VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_linear_t   m;

    pair_reset();
    w = bf16_values(c->N, c->K, VLM_RANDOM, 1);
    x = bf16_values(c->T, c->K, VLM_RANDOM, 2);
    gain = f32_values(2, c->K, VLM_RANDOM, 3);
    bias = f32_values(1, c->N, VLM_RANDOM, 5);
    before = bf16_values(c->T, (uint32_t) outputs(c), VLM_RANDOM, 4);

    for (i = 0; i < c->N * c->K; i++) {
        w[i] *= 0x1p-10f;
    }

    m = put_matrix(s, c->type, c->epilogue, c->N, c->K, w, bias);
    m.blocks = c->blocks;
    open_adapters(&a, s, c->parts, c->N, c->K, c->N, first);
    m.low = adapted ? &a.lows : NULL;

    norm.gain = put_floats(s, gain, c->K, F32);
    norm.shift = put_floats(s, gain + c->K, c->K, F32);
    at = put_floats(s, x + (size_t) first * c->K, (size_t) T * c->K, c->norm ? F32 : ACT);
    y = put_floats(s, before + first * outputs(c), T * outputs(c), form);

    s->ops->linear(s->d, &m, c->norm ? &norm : NULL, at, T, y);
    get_floats(s, out, y, T * outputs(c), form);

    free(w);
    free(x);
    free(gain);
    free(bias);
    free(before);
}


/* The bits of rows without an adapter, and of each row alone and among few others. */
static void
check_rows(const case_t *c, const float *got, const char *what)
{
    float     *other = malloc(MAX_T * outputs(c) * sizeof(float));
    uint32_t   t;
    size_t     n = outputs(c);

    run_on(&card, c, 0, 0, c->T, other);

    for (t = 0; t < c->T; t++) {
        if (place_of(t) == VLM_NONE || ranks[place_of(t)] == 0) {
            check_same_bits(got + t * n, other + t * n, n, what);
        } else {
            assert_true(n < 8 || vlm_differs(got + t * n, other + t * n, n) < n);
        }
    }

    for (t = 0; t < c->T; t += 1 + c->T / 3) {
        run_on(&card, c, 1, t, c->T - t < 3 ? c->T - t : 3, other);
        check_same_bits(other, got + t * n, n * (c->T - t < 3 ? c->T - t : 3), what);
    }

    free(other);
}


static void
check(const case_t *c)
{
    char       what[128];
    float     *want, *got, *again;
    size_t     n = c->T * outputs(c);
    uint32_t   i;

    (void) snprintf(what, sizeof(what), "%s, epilogue %d, N %u, K %u, T %u, %u parts, norm %d%s",
                    vlm_weights_name(c->type), (int) c->epilogue, c->N, c->K, c->T, c->parts,
                    c->norm, c->blocks ? ", blocks" : "");
    want = malloc(3 * n * sizeof(float));
    got = want + n;
    again = got + n;

    run_on(&host, c, 1, 0, c->T, want);

    for (i = 0; i < SEEDS; i++) {
        use_seed(i);
        run_on(&card, c, 1, 0, c->T, i == 0 ? got : again);

        if (i > 0) {
            check_same_bits(again, got, n, what);
        }
    }

    check_near(got, want, NULL, 1e-3f, OF, n, what);
    check_rows(c, got, what);
    free(want);
}


static void
products_of_rows_with_different_adapters_are_the_definitions(void **state)
{
    uint32_t      i;
    const case_t  cases[] = {
        { VLM_INT8, VLM_STORE, 130, 256, 1, 1, 0, 0 },
        { VLM_INT8, VLM_STORE, 192, 100, 8, 3, 0, 1 },
        { VLM_BF16, VLM_STORE, 257, 64, 9, 3, 0, 2 }, { VLM_BF16, VLM_ADD, 33, 333, 12, 1, 0, 0 },
        { VLM_INT8, VLM_ADD, 7, 1283, 3, 1, 1, 0 }, { VLM_INT8, VLM_ADD, 96, 320, 11, 1, 1, 1 },
        { VLM_INT8, VLM_SILU_MUL, 200, 72, 8, 2, 0, 1 },
        { VLM_BF16, VLM_SILU_MUL, 128, 130, MAX_T, 2, 0, 1 },
        { VLM_INT8, VLM_GELU, 99, 80, 2, 1, 0, 2 }, { VLM_INT8, VLM_GELU_TANH, 70, 15, 65, 1, 0, 2 }
    };

    (void) state;

    for (i = 0; i < COUNT(cases); i++) {
        check(&cases[i]);
    }
}


/* Logits, or rows of a table, on one side. */
static void
run_batch(side_t *s, const vlm_linear_t *m, const vlm_norm_t *norm, vlm_batch_t *b, const float *x,
          float *out)
{
    void           *y, *at;
    uint32_t        t, ids[4][MAX_T];
    const size_t    n = norm == NULL ? b->T * m->K : b->R * m->N;

    for (t = 0; t < MAX_T; t++) {
        ids[0][t] = (t * 7 + 3) % m->N;            /* tokens */
        ids[1][t] = t % 5 == 4 ? t % 3 : VLM_NONE; /* and pictures */
        ids[2][t] = t * 11 % MAX_T;                /* rows that want logits, one of them twice */
        ids[2][t] = t == 3 ? ids[2][2] : ids[2][t];
    }

    b->token = put_bytes(s, ids[0], sizeof(ids[0]));
    b->source = put_bytes(s, ids[1], sizeof(ids[1]));
    b->logit_row = put_bytes(s, ids[2], sizeof(ids[2]));
    at = put_floats(s, x, (size_t) MAX_T * m->K, norm == NULL ? ACT : F32);
    y = take_bytes(s, n * sizeof(float));

    if (norm == NULL) {
        s->ops->embed(s->d, m, at, b, y);
    } else {
        s->ops->head(s->d, m, norm, at, b, y);
    }

    get_floats(s, out, y, n, F32);
}


static void
check_batch(int head, vlm_type_t type, uint32_t N, uint32_t K, uint32_t n)
{
    float         *w, *x, *gain, *got[2];
    side_t        *s;
    uint32_t       i, k;
    adapters_t     a;
    vlm_norm_t     norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_batch_t    b = { .T = head ? MAX_T : n, .R = head ? n : 0 };
    vlm_linear_t   m;

    w = bf16_values(N, K, VLM_RANDOM, 1);
    x = bf16_values(MAX_T, K, VLM_RANDOM, 2);
    gain = f32_values(1, K, VLM_RANDOM, 3);

    for (k = 0; k < N * K; k++) {
        w[k] *= 0x1p-10f;
    }

    for (i = 0; i < 2; i++) {
        s = i ? &card : &host;
        pair_reset();
        m = put_matrix(s, type, VLM_STORE, N, K, w, NULL);
        open_adapters(&a, s, 1, N, head ? K : N, head ? N : K, 0);
        m.low = &a.lows;
        norm.gain = put_floats(s, gain, K, F32);
        got[i] = malloc(n * (size_t) (head ? N : K) * sizeof(float));
        run_batch(s, &m, head ? &norm : NULL, &b, x, got[i]);
    }

    check_near(got[1], got[0], NULL, head ? 1e-3f : 1e-5f, 1e-5f, n * (size_t) (head ? N : K),
               head ? "logits" : "rows of a table");
    free(got[0]);
    free(got[1]);
    free(w);
    free(x);
    free(gain);
}


static void
logits_have_the_adapters_of_the_rows_that_were_asked_for(void **state)
{
    (void) state;
    check_batch(1, VLM_INT8, 97, 150, 9);
    check_batch(1, VLM_BF16, MAX_N, 64, 4);
}


/* A row of a picture has no token, and nothing is added to it. */
static void
rows_of_a_table_have_the_adapters_of_their_rows(void **state)
{
    (void) state;
    check_batch(0, VLM_INT8, 130, 97, MAX_T);
    check_batch(0, VLM_BF16, 33, 256, 7);
}


/* A picture's rows have one adapter, and the device's memory has no list of them. */
static void
all_rows_may_have_one_adapter(void **state)
{
    float         *want, *got, *w, *x;
    void          *y;
    side_t        *s;
    uint32_t       i;
    adapters_t     a;
    vlm_linear_t   m;

    (void) state;

    want = malloc(2 * 20 * 64 * sizeof(float));
    got = want + 20 * 64;
    w = bf16_values(64, 96, VLM_ZEROS, 1);
    x = bf16_values(20, 96, VLM_RANDOM, 2);

    for (i = 0; i < 2; i++) {
        s = i ? &card : &host;
        pair_reset();
        m = put_matrix(s, VLM_INT8, VLM_STORE, 64, 96, w, NULL);
        open_adapters(&a, s, 1, 64, 96, 64, 0);
        a.rows = (vlm_low_rows_t) { 1, NULL, NULL, 4, 1.5f, NULL, NULL };
        m.low = &a.lows;
        y = take_bytes(s, 20 * 64 * sizeof(float));
        s->ops->linear(s->d, &m, NULL, put_floats(s, x, 20 * 96, ACT), 20, y);
        get_floats(s, i ? got : want, y, 20 * 64, ACT);
    }

    check_near(got, want, NULL, 1e-3f, OF, 20 * 64, "an adapter of all rows");
    free(want);
    free(w);
    free(x);
}


int
main(int argc, char **argv)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(products_of_rows_with_different_adapters_are_the_definitions),
        cmocka_unit_test(logits_have_the_adapters_of_the_rows_that_were_asked_for),
        cmocka_unit_test(rows_of_a_table_have_the_adapters_of_their_rows),
        cmocka_unit_test(all_rows_may_have_one_adapter)
    };

    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
