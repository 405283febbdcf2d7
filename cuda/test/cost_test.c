/*
 * By its estimated cost, no launch takes longer than cost.h's bound, and neither do the launches
 * between two checks for cancellation: layers of published shapes, on devices of several speeds.
 * The emulated device counts launches here and does not run them, so addresses may be arbitrary.
 */

#include "pair.h"

#include "cost.h"
#include "emu/control.h"

#define MEBI_PIXELS(n, patch)  ((uint32_t) (((uint64_t) (n) << 20) / ((patch) * (patch))))

typedef struct {
    uint32_t  D, heads, kv_heads, hd, F, V;
    int       deep;                    /* Qwen3-VL: heads have norms, layers add features */
} shape_t;

static const shape_t  shapes[] = {
    { 2048, 16, 2, 128, 11008, 151936, 0 },        /* 3B */
    { 3584, 28, 4, 128, 18944, 152064, 0 },        /* 7B */
    { 4096, 32, 8, 128, 12288, 151936, 1 }         /* 3-8B */
};

static const vlm_type_t  types[] = { VLM_INT8, VLM_BF16 };

/* The vision encoders of the first two models, and of the third. */
typedef struct {
    uint32_t         patch, E, heads, hd, F, places;
    vlm_epilogue_t   up;
    vlm_norm_kind_t  norm;
} encoder_t;

static const encoder_t  encoders[] = {
    { 14, 1280, 16, 80, 3420, 0, VLM_SILU_MUL, VLM_NORM_RMS },
    { 16, 1152, 16, 72, 4304, 48, VLM_GELU_TANH, VLM_NORM_LAYER }
};


/* An adapter of the highest rank, which all rows have. */
static const vlm_low_t       adapter = { .r = VLM_MAX_RANK };
static const vlm_low_rows_t  all_rows = { .any = 1 };
static const vlm_lows_t      adapted = { .type = VLM_BF16, .parts = VLM_LOW_PARTS, .places = 1,
                                         .place = &adapter, .rows = &all_rows };

static const vlm_lows_t     *low;      /* of every matrix, or NULL */


static int
open_pair(void **state)
{
    vlm_need_t  need = { VLM_INT8, 256, 2048, 16, 128, 800, 256, 4, 0 };

    (void) state;

    return pair_open(VLM_INT8, &need, &need);
}


/* The RTX 4050 for laptops has 20 multiprocessors. */
static int
open_20_processors(void **state)
{
    int  rc;

    vlm_emu_set(VLM_EMU_SMS, 20);
    rc = open_pair(state);
    vlm_emu_set(VLM_EMU_SMS, 2);

    return rc;
}


/* The memory of the operations has its true size: by it rows are cut, too. */
static int
open_adapted(void **state)
{
    vlm_need_t  small = { VLM_INT8, 256, 2048, 16, 128, 800, 256, 4, 0 };
    vlm_need_t  need = { VLM_INT8, 18944, 6144, 32, 128, 800, 152064, 4, VLM_MAX_RANK };

    (void) state;
    low = &adapted;

    return pair_open(VLM_INT8, &small, &need);
}


static int
close_adapted(void **state)
{
    low = NULL;

    return pair_close(state);
}


static int
count_check(void *data)
{
    (*(uint32_t *) data)++;

    return 0;
}


static vlm_linear_t
matrix(vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N, uint32_t K)
{
    vlm_linear_t  w = { .type = type, .epilogue = epilogue, .N = N, .K = K, .w = card.base,
                        .scale = (float *) card.base, .low = low };

    return w;
}


static void
product(vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N, uint32_t K, uint32_t T)
{
    vlm_linear_t  w = matrix(type, epilogue, N, K);

    card.ops->linear(card.d, &w, NULL, card.base, T, card.base);
}


static void
begin(uint32_t *checks)
{
    *checks = 0;
    card.ops->basic->sync(card.d, NULL);
    vlm_emu_set(VLM_EMU_IDLE, 1);
    card.ops->basic->ask(card.d, count_check, checks);
}


static void
check(const char *what, uint32_t a, uint32_t b)
{
    vlm_emu_counts_t  c;

    card.ops->basic->ask(card.d, NULL, NULL);
    vlm_emu_count(&c);
    vlm_emu_set(VLM_EMU_IDLE, 0);

    if (!(c.longest > 0 && c.longest <= VLM_BOUND_US)) {
        fail_msg("%s, %u, %u: a launch of %.0f us", what, a, b, c.longest);
    }

    if (!(c.between <= VLM_BOUND_US * 1.000001)) {
        fail_msg("%s, %u, %u: %.0f us between two checks", what, a, b, c.between);
    }
}


/* Layers and the head, for S sequences of rows rows each; context rows are cached after them. */
static void
text(const shape_t *m, vlm_type_t type, uint32_t layers, uint32_t S, uint32_t rows,
     uint32_t context)
{
    uint32_t      i;
    float        *x = (float *) card.base;
    uint32_t     *ids = (uint32_t *) card.base;
    vlm_batch_t   b = { S * rows, S, S, rows, context, ids, ids, (int32_t *) ids, ids, ids, ids,
                        ids, ids, NULL, 0 };
    vlm_kv_t      kv = { VLM_BF16, layers, S, m->kv_heads, context, m->hd, x, x, NULL,
                           NULL };
    vlm_rope_t    rope = { x, card.base };
    vlm_norm_t    norm = { VLM_NORM_RMS, x, 0, NULL };
    vlm_linear_t  w = matrix(type, VLM_STORE, (m->heads + 2 * m->kv_heads) * m->hd, m->D);
    vlm_qkv_t     qkv = { &w, &norm, &rope, m->heads, m->deep ? &norm : NULL,
                          m->deep ? &norm : NULL };
    vlm_attend_t  attend = { m->heads, m->hd, vlm_head_scale(m->hd), NULL };
    vlm_linear_t  head = matrix(type, VLM_STORE, m->V, m->D);

    for (i = 0; i < layers; i++) {
        card.ops->qkv(card.d, &qkv, x, &b, &kv, 0, x);
        card.ops->attend(card.d, &attend, x, &b, &kv, 0, x);
        product(type, VLM_ADD, m->D, m->heads * m->hd, b.T);
        product(type, VLM_SILU_MUL, 2 * m->F, m->D, b.T);
        product(type, VLM_ADD, m->D, m->F, b.T);

        if (m->deep && rows > 1) {
            card.ops->add_features(card.d, x, &b, m->D, x);
        }
    }

    card.ops->head(card.d, &head, &norm, x, &b, x);
}


static void
a_prompt_and_a_step_of_any_context_stay_within_the_bound(void **state)
{
    uint32_t  i, j, rows, context, S, n, most;

    (void) state;

    for (most = 0, i = 0; i < COUNT(shapes) * COUNT(types); i++) {
        for (context = 4096; context <= 131072; context *= 2) {
            for (rows = 16; rows <= 1024; rows *= 4) {
                begin(&n);
                text(&shapes[i / 2], types[i % 2], 2, 1, rows, context);
                most = n > most ? n : most;
                check("a prompt", rows, context);
            }

            for (j = 0, S = 1; j < 4; j++, S *= 8) {
                begin(&n);
                text(&shapes[i / 2], types[i % 2], 2, S, 1, context);
                most = n > most ? n : most;
                check("a step", S, context);
            }
        }
    }

    assert_true(most > 10);
}


/* All operations on a picture, with one block of each kind of attention. */
static void
picture(const encoder_t *e, vlm_type_t type, uint32_t P)
{
    float          *x = (float *) card.base;
    uint32_t        i, p, n, cell = 4 * e->E, *ids = (uint32_t *) card.base;
    vlm_linear_t    patch = matrix(VLM_F32, VLM_STORE, e->E, 3 * e->patch * e->patch);
    vlm_linear_t    w = matrix(type, VLM_STORE, 3 * e->E, e->E);
    vlm_norm_t      norm = { e->norm, x, 0, e->norm == VLM_NORM_LAYER ? x : NULL };
    vlm_rope_t      rope = { x, NULL };
    vlm_qkv_t       qkv = { &w, &norm, &rope, e->heads, NULL, NULL };
    vlm_attend_t    attend = { e->heads, e->hd, vlm_head_scale(e->hd), NULL };
    vlm_places_t    places = { x, e->places };
    vlm_patches_t   patches = { P, ids, ids, 0, 0 };
    vlm_segments_t  segments[] = { { ids, P / 64 + 1, P, 64 }, { ids, 1, P, P } };

    card.ops->patch_embed(card.d, &patch, card.base, P, x);

    if (e->places > 0) {
        card.ops->add_places(card.d, &places, &patches, e->E, x);
    }

    for (i = 0; i < 2; i++) {
        card.ops->qkv_2d(card.d, &qkv, x, &patches, x, x, x);
        card.ops->attend_segments(card.d, &attend, x, x, x, &segments[i], x);
        product(type, VLM_ADD, e->E, e->E, P);

        for (p = 0; p < P; p += n) {
            n = P - p < 1024 ? P - p : 1024;
            product(type, e->up, e->up == VLM_SILU_MUL ? 2 * e->F : e->F, e->E, n);
            product(type, VLM_ADD, e->E, e->F, n);
        }
    }

    card.ops->norm(card.d, &norm, x, P, e->E, x);
    product(type, VLM_GELU, cell, cell, P / 4);
    product(type, VLM_STORE, shapes[1].D, cell, P / 4);
}


/* Sizes up to the upper limit of max_pixels. */
static void
a_picture_of_any_size_stays_within_the_bound(void **state)
{
    uint32_t          i, j, n, P;
    const encoder_t  *e;

    static const uint32_t  patches[] = { 16, 256, 5120 }, mebipixels[] = { 4, 12, 64 };

    (void) state;

    for (i = 0; i < COUNT(types) * COUNT(encoders); i++) {
        e = &encoders[i / 2];

        for (j = 0; j < COUNT(patches) + COUNT(mebipixels); j++) {
            P = j < COUNT(patches) ? patches[j]
                                   : MEBI_PIXELS(mebipixels[j - COUNT(patches)], e->patch);
            begin(&n);
            picture(e, types[i % 2], P);
            check("a picture", P, types[i % 2]);
            assert_true(j < COUNT(patches) || n > 10);
        }
    }
}


/* On a device without tensor cores for bf16, another kernel attends to patches. */
static void
a_picture_on_sm_75_stays_within_the_bound(void **state)
{
    uint32_t  n;

    (void) state;

    begin(&n);
    picture(&encoders[0], VLM_INT8, MEBI_PIXELS(12, 14));
    check("a picture", MEBI_PIXELS(12, 14), 75);
    assert_true(n > 50);
}


/* Number of checks within a picture, on a device that is that many times slower. */
static uint32_t
checks_of(uint32_t slow)
{
    void      *state = NULL;
    uint32_t   n;

    vlm_emu_set(VLM_EMU_SLOW, slow);
    (void) open_pair(&state);
    vlm_emu_set(VLM_EMU_SLOW, 1);

    begin(&n);
    picture(&encoders[0], VLM_INT8, MEBI_PIXELS(4, 14));
    check("a picture", MEBI_PIXELS(4, 14), slow);
    (void) pair_close(&state);

    return n;
}


static void
a_device_of_a_quarter_of_the_speed_checks_four_times_as_often(void **state)
{
    uint32_t  n, of_slow;

    (void) state;

    n = checks_of(1);
    of_slow = checks_of(4);

    assert_true(n > 20);
    assert_true(of_slow > 3 * n && of_slow < 5 * n);
}


/* One block for each of two heads takes the same time on a device with more processors. */
static void
processors_without_a_block_count(void **state)
{
    int               i;
    void             *none = NULL;
    uint32_t          n;
    vlm_attend_t      attend = { 2, 80, vlm_head_scale(80), NULL };
    vlm_segments_t    segments = { NULL, 1, 64, 64 };
    vlm_emu_counts_t  c[2];

    (void) state;

    for (i = 0; i < 2; i++) {
        (void) (i ? open_20_processors(&none) : open_pair(&none));
        begin(&n);
        segments.border = (uint32_t *) card.base;
        card.ops->attend_segments(card.d, &attend, card.base, card.base, card.base, &segments,
                                  card.base);
        vlm_emu_count(&c[i]);
        check("a tile", 2, 64);
        (void) pair_close(&none);
    }

    assert_true(c[1].longest > 9.9 * c[0].longest && c[1].longest < 10.1 * c[0].longest);
}


/* 28 layers, 14 GB: graphs of at most 50 ms, with a check between any two that exceed the bound. */
static void
a_captured_step_stays_within_the_bound(void **state)
{
    uint32_t          n;
    vlm_emu_counts_t  before, after;

    (void) state;

    assert_int_equal(card.ops->basic->record(card.d), 1);
    text(&shapes[1], VLM_BF16, 28, 1, 1, 4096);
    card.ops->basic->keep(card.d, 0);
    assert_int_equal(card.ops->basic->sync(card.d, NULL), 0);

    begin(&n);
    vlm_emu_count(&before);
    assert_int_equal(card.ops->basic->replay(card.d, 0), 1);
    vlm_emu_count(&after);
    check("a step", 1, 4096);

    assert_true(after.graphs > 2 && after.graphs == after.launches - before.launches);
    assert_true(n + 1 >= after.graphs);
}


/* Such a step is launched kernel by kernel, with a check before each launch. */
static void
a_step_of_too_many_graphs_is_not_captured(void **state)
{
    char              text_of[256];
    vlm_emu_counts_t  c;

    (void) state;

    assert_int_equal(card.ops->basic->record(card.d), 1);
    text(&shapes[1], VLM_BF16, 28, 1, 1, 4096);
    card.ops->basic->keep(card.d, 0);
    assert_int_equal(card.ops->basic->sync(card.d, NULL), 0);
    assert_int_equal(card.ops->basic->replay(card.d, 0), 0);
    vlm_emu_count(&c);
    assert_int_equal(c.graphs, 0);
    card.ops->basic->describe(card.d, text_of, sizeof(text_of));
    assert_non_null(strstr(text_of, ", no graphs"));
    assert_int_equal(card.ops->basic->record(card.d), 0);
}


static void
a_launch_has_as_many_units_as_fit_and_at_least_one(void **state)
{
    (void) state;

    assert_int_equal(vlm_cost_fit(30, 10, 10), 3);
    assert_int_equal(vlm_cost_fit(30, 10, 2), 2);
    assert_int_equal(vlm_cost_fit(30, 90, 10), 1);
    assert_int_equal(vlm_cost_fit(30, 0, 10), 10);
    assert_true(vlm_cost(1, 0) == VLM_BYTE);
    assert_true(vlm_cost(1, 2 * VLM_BYTE) == 2 * VLM_BYTE);
}


static int
open_turing(void **state)
{
    vlm_emu_set(VLM_EMU_ARCH, 75);

    return open_pair(state);
}


static int
open_slow(void **state)
{
    int  rc;

    vlm_emu_set(VLM_EMU_SLOW, 8);
    rc = open_pair(state);
    vlm_emu_set(VLM_EMU_SLOW, 1);

    return rc;
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(a_prompt_and_a_step_of_any_context_stay_within_the_bound,
                                        open_pair, pair_close),
        cmocka_unit_test_setup_teardown(a_prompt_and_a_step_of_any_context_stay_within_the_bound,
                                        open_20_processors, pair_close),
        cmocka_unit_test_setup_teardown(a_prompt_and_a_step_of_any_context_stay_within_the_bound,
                                        open_adapted, close_adapted),
        cmocka_unit_test_setup_teardown(a_picture_of_any_size_stays_within_the_bound,
                                        open_pair, pair_close),
        cmocka_unit_test_setup_teardown(a_picture_of_any_size_stays_within_the_bound,
                                        open_adapted, close_adapted),
        cmocka_unit_test(a_device_of_a_quarter_of_the_speed_checks_four_times_as_often),
        cmocka_unit_test(processors_without_a_block_count),
        cmocka_unit_test_setup_teardown(a_captured_step_stays_within_the_bound, open_pair,
                                        pair_close),
        cmocka_unit_test_setup_teardown(a_step_of_too_many_graphs_is_not_captured, open_slow,
                                        pair_close),
        cmocka_unit_test_setup_teardown(a_launch_has_as_many_units_as_fit_and_at_least_one,
                                        open_pair, pair_close),
        cmocka_unit_test_setup_teardown(a_picture_on_sm_75_stays_within_the_bound, open_turing,
                                        pair_close)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
