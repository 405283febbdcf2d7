/*
 * The CPU device: no result depends on the set of operations, on the number of threads, or on the
 * other rows of the call.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "ops/parity.h"

/* Letters as in ops.h; no macros, they are members as well. */
enum {
    T = 300,                           /* more than the device takes at once */
    D = 96, HEADS = 4, KV = 2, HD = 24, F = 130, V = 210,
    P = 280, E = 48, DV = 12,
    SLOTS = 3,
    ROOM = 320                         /* context */
};

typedef struct {
    const vlm_ops_t  *ops;
    vlm_device_t     *d;
    vlm_kernels_t     k;
    vlm_kv_t          kv;
} device_t;

/* The results of all operations, one after the other. */
typedef struct {
    size_t     n;
    float     *at;
    float      all[400000];
} results_t;

static float     x[T * D], gain[D], ones[E], pixels_x[P * E], bias[512];
static uint8_t   pixels[P * E];
static uint32_t  token[T], source[T], seq[T], start[3] = { 0, 290, T }, slot[2] = { 2, 0 };
static uint32_t  n_ctx[2] = { 5, 13 }, logit_row[3] = { 3, 289, 299 }, row[P], column[P];
static int32_t   pos[3 * T];

static results_t  first, other;


static int
make_inputs(void **state)
{
    uint32_t  t;

    (void) state;

    vlm_parity_fill(x, T, D, VLM_RANDOM, 1);
    vlm_parity_fill(gain, 1, D, VLM_RANDOM, 2);
    vlm_parity_fill(pixels_x, P, E, VLM_RANDOM, 3);
    vlm_parity_fill(bias, 1, 512, VLM_RANDOM, 4);

    for (t = 0; t < T; t++) {
        token[t] = t * 7 % V;
        source[t] = t % 50 == 3 ? t / 50 : VLM_NONE;
        seq[t] = t >= start[1];
        pos[t] = (int32_t) t;
        pos[T + t] = (int32_t) (t * 3 % 101);
        pos[2 * T + t] = (int32_t) (t * 5 % 97);
    }

    for (t = 0; t < P; t++) {
        row[t] = t / 20;
        column[t] = t % 20;
    }

    for (t = 0; t < P * E; t++) {
        pixels[t] = (uint8_t) (t * 31 >> 3);
    }

    for (t = 0; t < E; t++) {
        ones[t] = 1;
    }

    return 0;
}


static int
open_device(device_t *v, const char *ops, uint32_t threads, vlm_type_t type)
{
    uint64_t            bytes;
    vlm_err_t           err = { VLM_OK, "" };
    vlm_need_t          need = { type, 256, 512, HEADS, HD, ROOM, V, SLOTS, 0 };
    const vlm_basic_t  *basic;

    memset(v, 0, sizeof(*v));
    v->d = vlm_cpu_open(ops, threads, &v->ops, &err);

    if (v->d == NULL) {
        assert_int_equal(err.code, VLM_EINPUT);
        return -1;
    }

    vlm_kernels_plain(&v->k);

#if defined(__x86_64__)
    if (strcmp(ops, "avx2") == 0 || strcmp(ops, "avxvnni") == 0) {
        vlm_kernels_avx2(&v->k);
    } else if (strcmp(ops, "avx512") == 0 || strcmp(ops, "amx") == 0) {
        vlm_kernels_avx512(&v->k);
    }
#endif

    basic = v->ops->basic;
    basic->set_scratch(v->d, &need, basic->reserve(v->d, basic->scratch_bytes(v->d, &need), &err));

    v->kv = (vlm_kv_t) { type == VLM_F32 ? VLM_F32 : VLM_BF16, 1, SLOTS, KV, ROOM, HD, NULL, NULL,
                         NULL, NULL };
    bytes = (uint64_t) SLOTS * KV * ROOM * HD * vlm_type_bytes(v->kv.type);
    v->kv.k = basic->reserve(v->d, bytes, &err);
    v->kv.v = basic->reserve(v->d, bytes, &err);
    assert_int_equal(err.code, VLM_OK);

    return 0;
}


static vlm_linear_t
matrix(const device_t *v, vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N, uint32_t K)
{
    float        *rows;
    vlm_linear_t  w;

    rows = malloc((size_t) N * K * sizeof(float));
    vlm_parity_fill(rows, N, K, VLM_RANDOM, N * 1000 + K);
    vlm_packed_open(&w, &v->k, type, epilogue, N, K, rows, bias);
    free(rows);

    return w;
}


static void
begin(results_t *r)
{
    r->n = 0;
    r->at = r->all;
}


/* Room for n results of an operation. */
static float *
take(results_t *r, size_t n)
{
    float  *p;

    p = r->all + r->n;
    r->n += n;
    assert_true(r->n <= sizeof(r->all) / sizeof(r->all[0]));
    memset(p, 0, n * sizeof(float));

    return p;
}


static vlm_batch_t
batch(void)
{
    vlm_batch_t  b;

    memset(&b, 0, sizeof(b));
    b.T = T;
    b.S = 2;
    b.R = 3;
    b.token = token;
    b.source = source;
    b.pos = pos;
    b.seq = seq;
    b.start = start;
    b.slot = slot;
    b.n_ctx = n_ctx;
    b.logit_row = logit_row;

    return b;
}


static void
run_text(const device_t *v, vlm_type_t type, results_t *r)
{
    float          features[6 * D], *y, *q;
    uint8_t        axis[HD / 2];
    float          inv_freq[HD / 2];
    uint32_t       i;
    vlm_rope_t     rope = { inv_freq, axis };
    vlm_norm_t     norm = { VLM_NORM_RMS, gain, 1e-6f, NULL };
    vlm_batch_t    b = batch();
    vlm_linear_t   table, w, o, up, down;
    vlm_qkv_t      qkv = { &w, &norm, &rope, HEADS, NULL, NULL };
    vlm_attend_t   attend = { HEADS, HD, vlm_head_scale(HD), NULL };

    for (i = 0; i < HD / 2; i++) {
        axis[i] = (uint8_t) (i / 4);
        inv_freq[i] = powf(10000, -2.0f * (float) i / HD);
    }

    vlm_parity_fill(features, 6, D, VLM_RANDOM, 9);

    table = matrix(v, type, VLM_STORE, V, D);
    w = matrix(v, type, VLM_STORE, (HEADS + 2 * KV) * HD, D);
    o = matrix(v, type, VLM_ADD, D, HEADS * HD);
    up = matrix(v, type, VLM_SILU_MUL, 2 * F, D);
    down = matrix(v, type, VLM_ADD, D, F);

    y = take(r, T * D);
    v->ops->embed(v->d, &table, features, &b, y);
    v->ops->norm(v->d, &norm, x, T, D, take(r, T * D));

    q = take(r, T * HEADS * HD);
    v->ops->qkv(v->d, &qkv, x, &b, &v->kv, 0, q);
    v->ops->attend(v->d, &attend, q, &b, &v->kv, 0, take(r, T * HEADS * HD));
    v->ops->linear(v->d, &o, NULL, q, T, y);
    q = take(r, T * F);
    v->ops->linear(v->d, &up, &norm, y, T, q);
    v->ops->linear(v->d, &down, NULL, q, T, y);
    v->ops->head(v->d, &table, &norm, y, &b, take(r, 3 * V));

    vlm_packed_close(&table);
    vlm_packed_close(&w);
    vlm_packed_close(&o);
    vlm_packed_close(&up);
    vlm_packed_close(&down);
}


static void
run_vision(const device_t *v, vlm_type_t type, results_t *r)
{
    float                 inv_freq[DV / 4] = { 1, 0.1f, 0.01f }, *q, *k, *u;
    vlm_linear_t          patch, w;
    const uint32_t        border[] = { 0, 1, 71, 200, P };
    const vlm_norm_t      norm = { VLM_NORM_RMS, ones, 1e-6f, NULL };
    const vlm_rope_t      rope = { inv_freq, NULL };
    const vlm_qkv_t       qkv = { &w, &norm, &rope, E / DV, NULL, NULL };
    const vlm_attend_t    attend = { E / DV, DV, vlm_head_scale(DV), NULL };
    const vlm_patches_t   patches = { P, row, column, P / 20, 20 };
    const vlm_segments_t  segments = { border, 4, P, P };

    patch = matrix(v, VLM_F32, VLM_STORE, E, E);
    w = matrix(v, type, VLM_STORE, 3 * E, E);

    v->ops->patch_embed(v->d, &patch, pixels, P, take(r, P * E));

    q = take(r, P * E);
    k = take(r, P * E);
    u = take(r, P * E);
    v->ops->qkv_2d(v->d, &qkv, pixels_x, &patches, q, k, u);
    v->ops->attend_segments(v->d, &attend, q, k, u, &segments, take(r, P * E));

    vlm_packed_close(&patch);
    vlm_packed_close(&w);
}


static void
run_sample(const device_t *v, results_t *r)
{
    float        logits[3 * V], *logprob;
    uint32_t     i, seen[SLOTS * 7] = { 0 }, picked[3];
    vlm_pick_t   pick[3];
    vlm_batch_t  b = batch();

    vlm_parity_fill(logits, 3, V, VLM_RANDOM, 33);

    for (i = 0; i < 3; i++) {
        pick[i] = (vlm_pick_t) { (float) i, 0.9f, 1.2f, 40, 5 + i, i, i };
    }

    b.pick = pick;
    logprob = take(r, 6);
    v->ops->sample(v->d, logits, V, V - 10, &b, seen, 7, picked, logprob);

    for (i = 0; i < 3; i++) {
        assert_true(picked[i] < V - 10);
        assert_int_equal(seen[i * 7 + picked[i] / 32], 1u << picked[i] % 32);
        logprob[3 + i] = (float) picked[i];
    }
}


/* Runs every operation of the device; -1: this processor does not run it. */
static int
run_all(const char *ops, uint32_t threads, vlm_type_t type, results_t *r)
{
    device_t  v;

    begin(r);

    if (open_device(&v, ops, threads, type) != 0) {
        return -1;
    }

    run_text(&v, type, r);
    run_vision(&v, type, r);
    run_sample(&v, r);
    v.ops->basic->close(v.d);

    return 0;
}


static void
all_give_the_same(vlm_type_t type)
{
    size_t             at;
    uint32_t           i, j;
    const uint32_t     threads[] = { 1, 2, 5 };
    const char *const  ops[] = { "plain", "avx2", "avxvnni", "avx512", "amx" };

    assert_int_equal(run_all("plain", 1, type, &first), 0);

    for (i = 0; i < 5; i++) {
        for (j = 0; j < 3; j++) {
            if (run_all(ops[i], threads[j], type, &other) != 0) {
                continue;
            }

            assert_int_equal(other.n, first.n);
            at = vlm_differs(other.all, first.all, first.n);

            if (at < first.n) {
                fail_msg("%s, %u threads: result %zu of %zu is %.9g, not %.9g", ops[i],
                         threads[j], at, first.n, (double) other.all[at], (double) first.all[at]);
            }
        }
    }
}


static void
f32_has_the_same_bits_with_every_set_and_any_number_of_threads(void **state)
{
    (void) state;
    all_give_the_same(VLM_F32);
}


static void
bf16_has_the_same_bits_with_every_set_and_any_number_of_threads(void **state)
{
    (void) state;
    all_give_the_same(VLM_BF16);
}


static void
int8_has_the_same_bits_with_every_set_and_any_number_of_threads(void **state)
{
    (void) state;
    all_give_the_same(VLM_INT8);
}


/* One head of hd turned by pairs (i, i + hd / 2), in double. */
static void
turn(double *head, uint32_t hd, const double *angle)
{
    double    a, b;
    uint32_t  i;

    for (i = 0; i < hd / 2; i++) {
        a = head[i];
        b = head[i + hd / 2];
        head[i] = a * cos(angle[i]) - b * sin(angle[i]);
        head[i + hd / 2] = b * cos(angle[i]) + a * sin(angle[i]);
    }
}


/* Row n of a matrix times row t of in, normalised, in double; weights are what matrix() makes. */
static double
exact_row(const float *rows, uint32_t n, uint32_t K, const float *in, const float *by)
{
    double    sum, dot;
    uint32_t  k;

    for (sum = 0, k = 0; k < K; k++) {
        sum += (double) in[k] * in[k];
    }

    for (dot = bias[n], k = 0; k < K; k++) {
        dot += (double) rows[(size_t) n * K + k] * in[k] / sqrt(sum / K + 1e-6) * by[k];
    }

    return dot;
}


static void
queries_and_keys_turn_with_time_row_and_column_and_land_in_their_slot(void **state)
{
    float        *q, *rows, got;
    double        head[HD], angle[HD / 2];
    size_t        at;
    uint8_t       axis[HD / 2];
    float         inv_freq[HD / 2];
    device_t      v;
    uint32_t      i, h, t, N;
    vlm_rope_t    rope = { inv_freq, axis };
    vlm_norm_t    norm = { VLM_NORM_RMS, gain, 1e-6f, NULL };
    vlm_batch_t   b = batch();
    vlm_linear_t  w;
    vlm_qkv_t     qkv = { &w, &norm, &rope, HEADS, NULL, NULL };

    (void) state;

    N = (HEADS + 2 * KV) * HD;
    rows = malloc((size_t) N * D * sizeof(float));
    q = malloc(T * HEADS * HD * sizeof(float));
    vlm_parity_fill(rows, N, D, VLM_RANDOM, N * 1000 + D);

    for (i = 0; i < HD / 2; i++) {
        axis[i] = (uint8_t) (i / 4);
        inv_freq[i] = powf(10000, -2.0f * (float) i / HD);
    }

    assert_int_equal(open_device(&v, "plain", 2, VLM_F32), 0);
    w = matrix(&v, VLM_F32, VLM_STORE, N, D);
    v.ops->qkv(v.d, &qkv, x, &b, &v.kv, 0, q);

    for (t = 0; t < T; t += 23) {
        for (i = 0; i < HD / 2; i++) {
            angle[i] = (double) pos[axis[i] * T + t] * inv_freq[i];
        }

        for (h = 0; h < HEADS + 2 * KV; h++) {
            for (i = 0; i < HD; i++) {
                head[i] = exact_row(rows, h * HD + i, D, x + t * D, gain);
            }

            if (h < HEADS + KV) {
                turn(head, HD, angle);
            }

            at = (((size_t) slot[seq[t]] * KV + (h - HEADS) % KV) * ROOM + n_ctx[seq[t]]
                  + t - start[seq[t]]) * HD;

            for (i = 0; i < HD; i++) {
                got = h < HEADS        ? q[(t * HEADS + h) * HD + i]
                      : h < HEADS + KV ? ((float *) v.kv.k)[at + i]
                                       : ((float *) v.kv.v)[at + i];

                /* An angle of some hundred radians is rounded to f32 before its sine is taken. */

                if (!(fabs((double) got - head[i]) < 2e-4)) {
                    fail_msg("row %u, head %u, value %u is %g, not %g", t, h, i, (double) got,
                             head[i]);
                }
            }
        }
    }

    vlm_packed_close(&w);
    v.ops->basic->close(v.d);
    free(rows);
    free(q);
}


static void
patches_turn_by_row_and_column(void **state)
{
    float               *q, *k, *u, *rows, inv_freq[DV / 4] = { 1, 0.1f, 0.01f }, got;
    double               head[DV], angle[DV / 2];
    device_t             v;
    uint32_t             i, h, p;
    vlm_linear_t         w;
    const uint32_t       heads = E / DV;
    const vlm_norm_t     norm = { VLM_NORM_RMS, ones, 1e-6f, NULL };
    const vlm_rope_t     rope = { inv_freq, NULL };
    const vlm_qkv_t      qkv = { &w, &norm, &rope, heads, NULL, NULL };
    const vlm_patches_t  patches = { P, row, column, P / 20, 20 };

    (void) state;

    rows = malloc(3 * E * E * sizeof(float));
    q = malloc(3 * P * E * sizeof(float));
    k = q + P * E;
    u = k + P * E;
    vlm_parity_fill(rows, 3 * E, E, VLM_RANDOM, 3 * E * 1000 + E);

    assert_int_equal(open_device(&v, "plain", 2, VLM_F32), 0);
    w = matrix(&v, VLM_F32, VLM_STORE, 3 * E, E);
    v.ops->qkv_2d(v.d, &qkv, pixels_x, &patches, q, k, u);

    for (p = 0; p < P; p += 13) {
        for (i = 0; i < DV / 4; i++) {
            angle[i] = row[p] * (double) inv_freq[i];
            angle[DV / 4 + i] = column[p] * (double) inv_freq[i];
        }

        for (h = 0; h < 3 * heads; h++) {
            for (i = 0; i < DV; i++) {
                head[i] = exact_row(rows, h * DV + i, E, pixels_x + p * E, ones);
            }

            if (h < 2 * heads) {
                turn(head, DV, angle);
            }

            for (i = 0; i < DV; i++) {
                got = q[(size_t) h / heads * P * E + p * E + h % heads * DV + i];
                assert_true(fabs((double) got - head[i]) < 5e-5);
            }
        }
    }

    vlm_packed_close(&w);
    v.ops->basic->close(v.d);
    free(rows);
    free(q);
}


static void
an_unknown_set_is_refused_with_the_known_ones(void **state)
{
    vlm_err_t         err = { VLM_OK, "" };
    const vlm_ops_t  *table;

    (void) state;

    assert_null(vlm_cpu_open("sse", 1, &table, &err));
    assert_int_equal(err.code, VLM_EINPUT);
    assert_non_null(strstr(err.text, "ops=sse"));
    assert_non_null(strstr(err.text, "plain"));
}


static void
memory_is_zeroed_and_a_lack_of_it_is_reported(void **state)
{
    char              text[64];
    uint8_t          *p;
    uint32_t          i;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_device_t     *d;
    const vlm_ops_t  *table;

    (void) state;

    d = vlm_cpu_open("plain", 2, &table, &err);
    table->basic->describe(d, text, sizeof(text));
    assert_string_equal(text, "cpu, plain, 2 threads");

    p = table->basic->reserve(d, 5000, &err);
    assert_non_null(p);

    for (i = 0; i < 5000; i++) {
        assert_int_equal(p[i], 0);
    }

    assert_null(table->basic->reserve(d, UINT64_MAX, &err));
    assert_int_equal(err.code, VLM_EMEMORY);

    err.code = VLM_OK;
    assert_null(table->basic->reserve(d, (uint64_t) 1 << 60, &err));
    assert_int_equal(err.code, VLM_EMEMORY);
    assert_non_null(strstr(err.text, "1152921504606846976"));

    table->basic->close(d);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(f32_has_the_same_bits_with_every_set_and_any_number_of_threads),
        cmocka_unit_test(bf16_has_the_same_bits_with_every_set_and_any_number_of_threads),
        cmocka_unit_test(int8_has_the_same_bits_with_every_set_and_any_number_of_threads),
        cmocka_unit_test(queries_and_keys_turn_with_time_row_and_column_and_land_in_their_slot),
        cmocka_unit_test(patches_turn_by_row_and_column),
        cmocka_unit_test(an_unknown_set_is_refused_with_the_known_ones),
        cmocka_unit_test(memory_is_zeroed_and_a_lack_of_it_is_reported)
    };

    return cmocka_run_group_tests(tests, make_inputs, NULL);
}
