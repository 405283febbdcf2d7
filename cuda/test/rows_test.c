/* Rows in and out of a device: packed weights, embeddings, norms. */

#include "pair.h"

#include "format/bf16.h"

static const vlm_type_t  types[] = { VLM_INT8, VLM_BF16 };


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_INT8, 256, 256, 4, 64, 256, 256, 4 };

    (void) state;

    return pair_open(VLM_INT8, &need);
}


/* Ids of every row of a table, and every fifth row a picture's. */
static vlm_batch_t
rows_of(side_t *s, uint32_t T, uint32_t V, uint32_t n_features)
{
    uint32_t     t, *token, *source;
    vlm_batch_t  b;

    memset(&b, 0, sizeof(b));
    token = malloc(T * sizeof(uint32_t));
    source = malloc(T * sizeof(uint32_t));

    for (t = 0; t < T; t++) {
        token[t] = V - 1 - t % V;
        source[t] = t % 5 == 4 ? (t * 3) % n_features : VLM_NONE;
    }

    b.T = T;
    b.token = put_bytes(s, token, T * sizeof(uint32_t));
    b.source = put_bytes(s, source, T * sizeof(uint32_t));
    free(token);
    free(source);

    return b;
}


static void
embed_on(side_t *s, vlm_type_t type, uint32_t V, uint32_t D, vlm_kind_t kind, uint32_t T,
         float *out)
{
    float         *rows, *features, *x;
    vlm_batch_t    b;
    vlm_linear_t   table;

    rows = f32_values(V, D, kind, V * 100 + D);
    features = bf16_values(7, D, kind, 3);
    table = put_matrix(s, type, VLM_STORE, V, D, rows, NULL);
    b = rows_of(s, T, V, 7);
    x = take_bytes(s, (uint64_t) T * D * sizeof(float));

    s->ops->embed(s->d, &table, put_floats(s, features, 7 * D, ACT), &b, x);
    get_floats(s, out, x, (size_t) T * D, F32);

    free(rows);
    free(features);
}


/* Packing loses no bits that the type can hold, so the values are the same. */
static void
each_row_of_a_table_comes_back_as_it_was_packed(void **state)
{
    char                   what[96];
    float                 *want, *got;
    uint32_t               i, j, k, T, V, D;
    static const uint32_t  sizes[][2] = {
        { 1, 1 }, { 15, 63 }, { 16, 64 }, { 17, 65 }, { 130, 97 }, { 65, 130 }
    };

    (void) state;

    for (i = 0; i < COUNT(sizes) * COUNT(types) * VLM_KINDS; i++) {
        V = sizes[i / 2 % COUNT(sizes)][0];
        D = sizes[i / 2 % COUNT(sizes)][1];
        k = i / 2 / COUNT(sizes);
        T = V + 9;
        want = malloc((size_t) T * D * sizeof(float));
        got = malloc((size_t) T * D * sizeof(float));

        pair_reset();
        embed_on(&host, types[i % 2], V, D, k, T, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            card.used = 0;
            pair_reset();
            embed_on(&card, types[i % 2], V, D, k, T, got);
            (void) snprintf(what, sizeof(what), "%s, V %u, D %u, kind %u",
                            vlm_weights_name(types[i % 2]), V, D, k);
            check_same_bits(got, want, (size_t) T * D, what);
        }

        free(want);
        free(got);
    }
}


static void
norm_on(side_t *s, const float *x, const float *gain, uint32_t T, uint32_t n, float *out)
{
    void        *y;
    vlm_norm_t   norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };

    y = take_bytes(s, s->ops->basic->act_bytes((uint64_t) T * n));
    norm.gain = put_floats(s, gain, n, F32);
    s->ops->norm(s->d, &norm, put_floats(s, x, (size_t) T * n, F32), T, n, y);
    get_floats(s, out, y, (size_t) T * n, ACT);
}


static void
a_norm_is_its_definition_rounded_to_bf16(void **state)
{
    char                   what[96];
    float                 *x, *gain, *want, *got, *again;
    uint32_t               i, j, n, kind;
    const uint32_t         T = 9;
    static const uint32_t  lengths[] = { 1, 2, 31, 63, 64, 65, 257, 1280, 1283 };

    (void) state;

    for (i = 0; i < COUNT(lengths) * VLM_KINDS; i++) {
        n = lengths[i / VLM_KINDS];
        kind = i % VLM_KINDS;
        x = f32_values(T, n, kind, i + 1);
        gain = f32_values(1, n, VLM_RANDOM, i + 77);
        want = malloc(3 * T * n * sizeof(float));
        got = want + T * n;
        again = got + T * n;
        (void) snprintf(what, sizeof(what), "n %u, kind %u", n, kind);

        pair_reset();
        norm_on(&host, x, gain, T, n, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            pair_reset();
            norm_on(&card, x, gain, T, n, j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, T * n, what);
            }
        }

        check_near(got, want, NULL, 1e-30f, 0x1.02p-8f, T * n, what);

        free(x);
        free(gain);
        free(want);
    }
}


static void
a_value_that_is_no_number_stays_none(void **state)
{
    float  x[3 * 70], gain[70], got[3 * 70];

    (void) state;

    vlm_parity_fill(x, 3, 70, VLM_RANDOM, 1);
    vlm_parity_fill(gain, 1, 70, VLM_RANDOM, 2);
    x[70 + 69] = NAN;

    pair_reset();
    norm_on(&card, x, gain, 3, 70, got);
    assert_true(isfinite(got[69]) && isnan(got[70]) && isnan(got[139]) && isfinite(got[140]));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_row_of_a_table_comes_back_as_it_was_packed),
        cmocka_unit_test(a_norm_is_its_definition_rounded_to_bf16),
        cmocka_unit_test(a_value_that_is_no_number_stays_none)
    };

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
