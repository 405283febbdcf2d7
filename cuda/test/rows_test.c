/* Rows in and out of a device: packed weights, embeddings, features and places added, norms. */

#include "pair.h"

#include "format/bf16.h"

static const vlm_type_t  types[] = { VLM_INT8, VLM_BF16 };


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_INT8, 256, 256, 4, 64, 256, 256, 4, 0 };

    (void) state;

    return pair_open(VLM_INT8, &need, &need);
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
features_on(side_t *s, uint32_t T, uint32_t D, float *out)
{
    float        *features, *before, *x;
    vlm_batch_t   b;

    pair_reset();
    features = bf16_values(7, D, VLM_RANDOM, D);
    before = f32_values(T, D, VLM_RANDOM, D + 1);
    b = rows_of(s, T, 2, 7);
    x = put_floats(s, before, (size_t) T * D, F32);

    s->ops->add_features(s->d, put_floats(s, features, 7 * D, ACT), &b, D, x);
    get_floats(s, out, x, (size_t) T * D, F32);

    free(features);
    free(before);
}


/* Rows 4, 9, ... are of pictures, some of them of the same cell. */
static void
features_are_added_with_the_definitions_bits_to_the_rows_of_pictures(void **state)
{
    float                 *want, *got;
    uint32_t               i, T, D;
    static const uint32_t  sizes[][2] = { { 4, 33 }, { 5, 1 }, { 41, 130 }, { 50, 64 } };

    (void) state;

    for (i = 0; i < COUNT(sizes) * SEEDS; i++) {
        T = sizes[i / SEEDS][0];
        D = sizes[i / SEEDS][1];
        want = malloc(2 * (size_t) T * D * sizeof(float));
        got = want + (size_t) T * D;
        use_seed(i % SEEDS);
        features_on(&host, T, D, want);
        features_on(&card, T, D, got);
        check_same_bits(got, want, (size_t) T * D, "features");
        free(want);
    }
}


typedef struct {
    uint32_t  rows, columns, side, E;
} grid_t;


static void
places_on(side_t *s, const grid_t *g, float *out)
{
    float          *at, *before, *x;
    uint32_t        i, P, *place;
    vlm_places_t    places = { NULL, g->side };
    vlm_patches_t   patches = { g->rows * g->columns, NULL, NULL, g->rows, g->columns };

    pair_reset();
    P = patches.P;
    at = f32_values(g->side * g->side, g->E, VLM_RANDOM, g->side);
    before = f32_values(P, g->E, VLM_RANDOM, g->side + 1);
    place = malloc(2 * P * sizeof(uint32_t));

    for (i = 0; i < P; i++) {          /* from the last patch to the first */
        place[i] = (P - 1 - i) / g->columns;
        place[P + i] = (P - 1 - i) % g->columns;
    }

    places.at = put_floats(s, at, (size_t) g->side * g->side * g->E, F32);
    patches.row = put_bytes(s, place, P * sizeof(uint32_t));
    patches.column = put_bytes(s, place + P, P * sizeof(uint32_t));
    x = put_floats(s, before, (size_t) P * g->E, F32);

    s->ops->add_places(s->d, &places, &patches, g->E, x);
    get_floats(s, out, x, (size_t) P * g->E, F32);

    free(at);
    free(before);
    free(place);
}


static void
places_are_stretched_over_a_picture_with_the_definitions_bits(void **state)
{
    float                *want, *got;
    size_t                n;
    uint32_t              i;
    const grid_t         *g;
    static const grid_t   grids[] = {
        { 1, 1, 7, 37 }, { 7, 7, 7, 5 }, { 2, 30, 48, 144 }, { 26, 4, 7, 72 }, { 1, 9, 4, 130 },
        { 5, 3, 1, 16 }, { 3, 2, 2, 1 }
    };

    (void) state;

    for (i = 0; i < COUNT(grids) * SEEDS; i++) {
        g = &grids[i / SEEDS];
        n = (size_t) g->rows * g->columns * g->E;
        want = malloc(2 * n * sizeof(float));
        got = want + n;
        use_seed(i % SEEDS);
        places_on(&host, g, want);
        places_on(&card, g, got);
        check_same_bits(got, want, n, "places");
        free(want);
    }
}


/* shift NULL: the norm takes off no mean. */
static void
norm_on(side_t *s, const float *x, const float *gain, const float *shift, uint32_t T, uint32_t n,
        float *out)
{
    void        *y;
    vlm_norm_t   norm = { VLM_NORM_RMS, NULL, 1e-6f, NULL };

    y = take_bytes(s, s->ops->basic->act_bytes((uint64_t) T * n));
    norm.gain = put_floats(s, gain, n, F32);

    if (shift != NULL) {
        norm.kind = VLM_NORM_LAYER;
        norm.shift = put_floats(s, shift, n, F32);
    }

    s->ops->norm(s->d, &norm, put_floats(s, x, (size_t) T * n, F32), T, n, y);
    get_floats(s, out, y, (size_t) T * n, ACT);
}


static void
a_norm_is_its_definition_rounded_to_bf16(void **state)
{
    char                   what[96];
    float                 *x, *gain, *shift, *want, *got, *again;
    uint32_t               i, j, n, kind, layer;
    const uint32_t         T = 9;
    static const uint32_t  lengths[] = { 1, 2, 31, 63, 64, 65, 257, 1280, 1283 };

    (void) state;

    for (i = 0; i < COUNT(lengths) * VLM_KINDS * 2; i++) {
        n = lengths[i / 2 / VLM_KINDS];
        kind = i / 2 % VLM_KINDS;
        layer = i % 2;
        x = f32_values(T, n, kind, i + 1);
        gain = f32_values(1, n, VLM_RANDOM, i + 77);
        shift = f32_values(1, n, VLM_RANDOM, i + 78);
        want = malloc(3 * T * n * sizeof(float));
        got = want + T * n;
        again = got + T * n;
        (void) snprintf(what, sizeof(what), "n %u, kind %u, mean %u", n, kind, layer);

        for (j = 0; layer && j < T * n; j++) {
            x[j] += 3;
        }

        pair_reset();
        norm_on(&host, x, gain, layer ? shift : NULL, T, n, want);

        for (j = 0; j < SEEDS; j++) {
            use_seed(j);
            pair_reset();
            norm_on(&card, x, gain, layer ? shift : NULL, T, n, j == 0 ? got : again);

            if (j > 0) {
                check_same_bits(again, got, T * n, what);
            }
        }

        /* A mean is as exact as its sum, and a sum with the shift may cancel. */

        check_near(got, want, NULL, layer ? 2e-5f : 1e-30f, 0x1.02p-8f, T * n, what);

        free(x);
        free(gain);
        free(shift);
        free(want);
    }
}


static void
a_value_that_is_no_number_stays_none(void **state)
{
    float     x[3 * 70], gain[70], got[3 * 70];
    uint32_t  layer;

    (void) state;

    vlm_parity_fill(x, 3, 70, VLM_RANDOM, 1);
    vlm_parity_fill(gain, 1, 70, VLM_RANDOM, 2);
    x[70 + 69] = NAN;

    for (layer = 0; layer <= 1; layer++) {
        pair_reset();
        norm_on(&card, x, gain, layer ? gain : NULL, 3, 70, got);
        assert_true(isfinite(got[69]) && isnan(got[70]) && isnan(got[139]) && isfinite(got[140]));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_row_of_a_table_comes_back_as_it_was_packed),
        cmocka_unit_test(features_are_added_with_the_definitions_bits_to_the_rows_of_pictures),
        cmocka_unit_test(places_are_stretched_over_a_picture_with_the_definitions_bits),
        cmocka_unit_test(a_norm_is_its_definition_rounded_to_bf16),
        cmocka_unit_test(a_value_that_is_no_number_stays_none)
    };

    return cmocka_run_group_tests(tests, open_pair, pair_close);
}
