/*
 * Turns: of the blocks before a product, and of a stream around a norm and around a head's.
 *
 * The matrix of the products is the identity, so that the results are the quantised rows.
 */

#include "pair.h"

#include "format/turn.h"

#define MAX_K  1283
#define MAX_T  20


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_INT8, MAX_K, MAX_K, 4, 64, 256, MAX_K, MAX_T, 0 };

    (void) state;

    return pair_open(VLM_INT8, &need, &need);
}


static float *
identity(uint32_t K)
{
    float     *rows;
    uint32_t   k;

    rows = calloc((size_t) K * K, sizeof(float));

    for (k = 0; k < K; k++) {
        rows[(size_t) k * K + k] = 1;
    }

    return rows;
}


static void
blocks_on(side_t *s, const float *rows, const float *x, uint32_t K, uint32_t T, float *out)
{
    void          *y;
    vlm_linear_t   w;

    pair_reset();
    memset(out, 0, (size_t) T * K * sizeof(float));
    w = put_matrix(s, VLM_INT8, VLM_ADD, K, K, rows, NULL);
    w.blocks = 1;
    y = put_floats(s, out, (size_t) T * K, F32);
    s->ops->linear(s->d, &w, NULL, put_floats(s, x, (size_t) T * K, ACT), T, y);
    get_floats(s, out, y, (size_t) T * K, F32);
}


static void
blocks_of_every_length_are_turned_with_the_definitions_bits(void **state)
{
    char                   what[64];
    float                 *rows, *x, *want, *got;
    uint32_t               i, j, kind, K, T;
    static const uint32_t  lengths[] = {
        1, 2, 3, 4, 5, 7, 8, 28, 31, 61, 63, 64, 65, 67, 92, 127, 128, 130, 257, 400
    };

    (void) state;

    for (i = 0; i < 2 * COUNT(lengths) * VLM_KINDS; i++) {
        K = lengths[i / 2 % COUNT(lengths)];
        T = i % 2 == 0 ? 3 : MAX_T;
        kind = i / 2 / COUNT(lengths);
        rows = identity(K);
        x = bf16_values(T, K, kind, i);
        want = malloc(2 * (size_t) T * K * sizeof(float));
        got = want + (size_t) T * K;
        (void) snprintf(what, sizeof(what), "K %u, T %u, kind %u", K, T, kind);

        blocks_on(&host, rows, x, K, T, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            blocks_on(&card, rows, x, K, T, got);
            check_same_bits(got, want, (size_t) T * K, what);
        }

        free(rows);
        free(x);
        free(want);
    }
}


static vlm_turn_t
put_turn(side_t *s, uint32_t n, int means)
{
    float       *room;
    vlm_turn_t   t;

    assert_true(vlm_turn_of(&t, n));
    room = malloc((2 * (size_t) n + t.odd * t.odd) * sizeof(float));
    t.sign = room;
    t.small = room + n;
    t.mirror = means ? t.small + t.odd * t.odd : NULL;
    vlm_turn_fill(&t);

    t.sign = put_floats(s, t.sign, n, F32);
    t.small = put_floats(s, t.small, t.odd * t.odd, F32);
    t.mirror = means ? put_floats(s, t.mirror, n, F32) : NULL;
    free(room);

    return t;
}


typedef struct {
    uint32_t      n, T;
    int           means, head;
    const float  *x, *gain, *shift, *rows;
} around_t;


static void
around_on(side_t *s, const around_t *a, float *out)
{
    float         *x, *logits;
    uint32_t       i, which[MAX_T];
    vlm_norm_t     norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };
    vlm_turn_t     turn;
    vlm_batch_t    b;
    vlm_linear_t   w;

    pair_reset();
    turn = put_turn(s, a->n, a->means);
    norm.kind = a->means ? VLM_NORM_LAYER : VLM_NORM_RMS;
    norm.gain = put_floats(s, a->gain, a->n, F32);
    norm.shift = a->means ? put_floats(s, a->shift, a->n, F32) : NULL;
    x = put_floats(s, a->x, (size_t) a->T * a->n, F32);

    if (!a->head) {
        s->ops->norm_stream(s->d, &norm, &turn, x, a->T, a->n);
        get_floats(s, out, x, (size_t) a->T * a->n, F32);
        return;
    }

    for (i = 0; i < a->T; i++) {
        which[i] = a->T - 1 - i;
    }

    memset(&b, 0, sizeof(b));
    b.R = a->T;
    b.logit_row = put_bytes(s, which, a->T * sizeof(uint32_t));
    w = put_matrix(s, VLM_INT8, VLM_STORE, a->n, a->n, a->rows, NULL);
    w.turn = &turn;
    logits = take_bytes(s, (uint64_t) a->T * a->n * sizeof(float));
    s->ops->head(s->d, &w, &norm, x, &b, logits);
    get_floats(s, out, logits, (size_t) a->T * a->n, F32);
}


static void
a_norm_and_a_head_of_a_turned_stream_are_the_definitions(void **state)
{
    char                   what[64];
    float                 *x, *gain, *shift, *rows, *want, *got, *again;
    uint32_t               i, j;
    around_t               a;
    static const uint32_t  widths[] = { 1, 2, 6, 28, 64, 72, 96, 240, 256, 640 };

    (void) state;

    for (i = 0; i < 4 * COUNT(widths); i++) {
        a = (around_t) { widths[i / 4], i % 3 == 0 ? MAX_T : 3, i / 2 % 2, i % 2, NULL, NULL, NULL,
                         NULL };
        a.x = x = f32_values(a.T, a.n, VLM_RANDOM, i + 1);
        a.gain = gain = f32_values(1, a.n, VLM_RANDOM, i + 77);
        a.shift = shift = f32_values(1, a.n, VLM_RANDOM, i + 78);
        a.rows = rows = identity(a.n);
        want = malloc(3 * (size_t) a.T * a.n * sizeof(float));
        got = want + (size_t) a.T * a.n;
        again = got + (size_t) a.T * a.n;
        (void) snprintf(what, sizeof(what), "n %u, T %u, mean %d, head %d", a.n, a.T, a.means,
                        a.head);

        around_on(&host, &a, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            around_on(&card, &a, j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, (size_t) a.T * a.n, what);
            }
        }

        /* A head's row is rounded to bf16 and int8: a step of 1 in 127 of the largest value. */

        check_near(got, want, NULL, a.head ? 0.04f : 2e-5f, a.head ? 0x1p-7f : 2e-5f,
                   (size_t) a.T * a.n, what);

        free(x);
        free(gain);
        free(shift);
        free(rows);
        free(want);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(blocks_of_every_length_are_turned_with_the_definitions_bits),
        cmocka_unit_test(a_norm_and_a_head_of_a_turned_stream_are_the_definitions)
    };

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
