/*
 * Measures the operations of the CPU device at the 3B's shapes, each against its limit.
 *
 *   build/bench-kernels [--ops SET] [--threads N] [--rounds N] [--what matrices|attention|int4]
 *
 * With --threads 1 the time is the thread's processor time, so other load hardly affects it.
 *
 * The limit of one row times matrices is the read bandwidth, in memory larger than any cache; that
 * of 16 rows and of a slice is the int8 rate; that of attention is the rate of f32 multiply-adds.
 * Each limit is measured in the same run, before its operation.
 *
 * int4 is measured in int8's rate: both multiply the same rows, one after the other in each round,
 * and the limit is that of the bytes that they read.
 */

#include <string.h>

#include "bench.h"
#include "base/cgroup.h"
#include "base/size.h"
#include "format/int4.h"
#include "ops/ops.h"

#define ROWS       256                 /* of a slice */
#define FEW        16                  /* rows of a product that arithmetic bounds */
#define COPIES     6                   /* of a layer's matrices: more than a cache holds */
#define KEYS       4096
#define HEADS      16
#define KV_HEADS   2
#define HEAD_DIM   128
#define VISION_DIM 80
#define PATCHES    3072
#define WINDOW     64
#define INT4_BITS  4.25

typedef struct {
    const char      *name;
    vlm_epilogue_t   epilogue;
    uint32_t         N, K;
    int              has_gain;
    vlm_linear_t     w[COPIES];
    vlm_linear_t     w4[COPIES];       /* of int4 */
} matrix_t;

typedef struct {
    const vlm_ops_t  *ops;
    vlm_device_t     *device;
    bench_limits_t   *limits;
    const char       *set;
    uint32_t          rounds;
    int               matrices, attention, int4;   /* measure these */
    float            *x, *y, *gain;    /* [PATCHES][3 x 1280] and more, for all operations */
    uint32_t         *ids;
    vlm_kv_t          kv[2];             /* in int16, and in int8 */
} bench_t;

static matrix_t  matrices[] = {
    { "qkv", VLM_STORE, 2560, 2048, 1, { { 0 } }, { { 0 } } },
    { "o", VLM_ADD, 2048, 2048, 0, { { 0 } }, { { 0 } } },
    { "gate_up", VLM_SILU_MUL, 22016, 2048, 1, { { 0 } }, { { 0 } } },
    { "down", VLM_ADD, 2048, 11008, 0, { { 0 } }, { { 0 } } },
    { "vision_qkv", VLM_STORE, 3840, 1280, 1, { { 0 } }, { { 0 } } },
    { "vision_gate_up", VLM_SILU_MUL, 6840, 1280, 1, { { 0 } }, { { 0 } } },
    { "vision_down", VLM_ADD, 1280, 3420, 0, { { 0 } }, { { 0 } } }
};

#define MATRICES  (sizeof(matrices) / sizeof(matrices[0]))
#define TEXT      4                    /* the first four are the language model's */
#define GAINS     32768                /* of norms, and scales of rows */

/* Rows that int4 is measured with: sequences, and a slice of a prompt. */
static const uint32_t  counts[] = { 1, 2, 4, 8, 16, ROWS };

#define COUNTS  (sizeof(counts) / sizeof(counts[0]))


/* Copies of a matrix of random values, with rows of so many bytes. */
static int
make_copies(bench_t *b, const matrix_t *m, vlm_type_t type, uint64_t row, vlm_linear_t *w,
            vlm_err_t *err)
{
    size_t     i;
    uint8_t   *rows, *place;
    uint32_t   c, state;
    uint64_t   bytes;

    bytes = b->ops->basic->packed_bytes(b->device, type, m->N, m->K);
    place = b->ops->basic->reserve(b->device, COPIES * bytes, err);
    rows = malloc(m->N * row);

    if (rows == NULL || place == NULL) {
        free(rows);
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u x %u weights", m->N, m->K);
    }

    for (state = 1, i = 0; i < m->N * row; i++) {
        state = state * 1664525 + 1013904223;
        rows[i] = (uint8_t) ((state >> 24) == 128 ? 0 : state >> 24);
    }

    for (c = 0; c < COPIES; c++) {
        w[c].type = type;
        w[c].epilogue = m->epilogue;
        w[c].N = m->N;
        w[c].K = m->K;
        w[c].scale = b->gain;          /* all ones: the values do not affect the time */
        w[c].w = place + c * bytes;

        b->ops->basic->pack(b->device, &w[c], 0, m->N, rows);
    }

    free(rows);

    return 0;
}


static int
make_matrix(bench_t *b, uint32_t i, vlm_err_t *err)
{
    matrix_t  *m = &matrices[i];

    return make_copies(b, m, VLM_INT8, m->K, m->w, err) != 0
           || (b->int4 && i < TEXT
               && make_copies(b, m, VLM_INT4, vlm_int4_row_bytes(m->K), m->w4, err) != 0) ? -1 : 0;
}


static void
print(const bench_t *b, const char *name, const char *unit, bench_rounds_t *r)
{
    char  text[96];

    (void) snprintf(text, sizeof(text), "%s_%s", name, b->set);
    bench_print(text, unit, r, 0);
}


/* Multiplies T rows by every copy; returns the seconds of one copy. */
static double
time_matrix(bench_t *b, const matrix_t *m, const vlm_linear_t *w, uint32_t T)
{
    double      start;
    uint32_t    c;
    vlm_norm_t  norm = { VLM_NORM_RMS, b->gain, 1e-6f, NULL };

    start = bench_now();

    for (c = 0; c < COPIES; c++) {
        b->ops->linear(b->device, &w[c], m->has_gain ? &norm : NULL, b->x, T, b->y);
    }

    return (bench_now() - start) / COPIES;
}


/* Operations of T rows in a second, against the int8 rate. */
static void
add_rate(bench_t *b, const matrix_t *m, uint32_t T, bench_rounds_t *to)
{
    double  ops = 2.0 * T * m->N * m->K;

    bench_add(to, ops / time_matrix(b, m, m->w, T) / 1e9, bench_int8_rate(b->limits) / 1e9);
}


static void
measure_matrices(bench_t *b)
{
    char             name[96];
    double           values;
    uint32_t         i, r;
    const matrix_t  *m;
    bench_rounds_t   one[MATRICES], few[MATRICES], slice[MATRICES];

    memset(one, 0, sizeof(one));
    memset(few, 0, sizeof(few));
    memset(slice, 0, sizeof(slice));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < MATRICES; i++) {
            m = &matrices[i];

            if (i < TEXT) {
                values = (double) m->N * m->K;
                bench_add(&one[i], values / time_matrix(b, m, m->w, 1) / 1e9,
                          bench_read_rate(b->limits) / 1e9);
                add_rate(b, m, FEW, &few[i]);
            }

            add_rate(b, m, ROWS, &slice[i]);
        }
    }

    for (i = 0; i < MATRICES; i++) {
        if (i < TEXT) {
            (void) snprintf(name, sizeof(name), "kernel_%s_1", matrices[i].name);
            print(b, name, "GB/s", &one[i]);
            (void) snprintf(name, sizeof(name), "kernel_%s_%u", matrices[i].name, FEW);
            print(b, name, "Gop/s", &few[i]);
        }

        (void) snprintf(name, sizeof(name), "kernel_%s_%u", matrices[i].name, ROWS);
        print(b, name, "Gop/s", &slice[i]);
    }
}


static void
measure_int4(bench_t *b)
{
    char                   name[96];
    double                 seconds;
    uint32_t               i, j, r;
    bench_rounds_t         times[TEXT][COUNTS];

    memset(times, 0, sizeof(times));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < TEXT * COUNTS; i++) {
            j = i % COUNTS;
            seconds = time_matrix(b, &matrices[i / COUNTS], matrices[i / COUNTS].w, counts[j]);
            seconds /= time_matrix(b, &matrices[i / COUNTS], matrices[i / COUNTS].w4, counts[j]);
            bench_add(&times[i / COUNTS][j], seconds, 8 / INT4_BITS);
        }
    }

    for (i = 0; i < TEXT * COUNTS; i++) {
        (void) snprintf(name, sizeof(name), "int4_%s_%u", matrices[i / COUNTS].name,
                        counts[i % COUNTS]);
        print(b, name, "x", &times[i / COUNTS][i % COUNTS]);
    }
}


/* One sequence with n_ctx rows reads T more. */
static double
time_attend(bench_t *b, const vlm_kv_t *kv, uint32_t n_ctx, uint32_t T)
{
    double        start;
    uint32_t      t, *seq, *few;
    vlm_batch_t   batch;
    vlm_attend_t  attend = { HEADS, HEAD_DIM, vlm_head_scale(HEAD_DIM), NULL };

    memset(&batch, 0, sizeof(batch));
    seq = b->ids;
    few = b->ids + ROWS;               /* start [2], slot, n_ctx */

    for (t = 0; t < T; t++) {
        seq[t] = 0;
    }

    few[0] = 0;
    few[1] = T;
    few[2] = 0;
    few[3] = n_ctx;

    batch.T = T;
    batch.S = 1;
    batch.max_rows = T;
    batch.max_ctx = n_ctx + T;
    batch.seq = seq;
    batch.start = few;
    batch.slot = few + 2;
    batch.n_ctx = few + 3;

    start = bench_now();
    b->ops->attend(b->device, &attend, b->x, &batch, kv, 0, b->y);

    return bench_now() - start;
}


static double
time_segments(bench_t *b, uint32_t segment)
{
    double          start;
    float          *q, *k, *v;
    uint32_t        i, n;
    vlm_attend_t    attend = { HEADS, VISION_DIM, vlm_head_scale(VISION_DIM), NULL };
    vlm_segments_t  s = { b->ids, 0, PATCHES, segment };

    for (n = 0, i = 0; i <= PATCHES; i += segment) {
        b->ids[n++] = i;
    }

    q = b->x;
    k = q + (size_t) PATCHES * HEADS * VISION_DIM;
    v = k + (size_t) PATCHES * HEADS * VISION_DIM;

    start = bench_now();
    s.n = n - 1;
    b->ops->attend_segments(b->device, &attend, q, k, v, &s, b->y);

    return bench_now() - start;
}


static void
measure_attention(bench_t *b)
{
    double          ops;
    uint32_t        r;
    uint32_t        i;
    bench_rounds_t  one[2], slice[2], windows, whole;

    memset(one, 0, sizeof(one));
    memset(slice, 0, sizeof(slice));
    memset(&windows, 0, sizeof(windows));
    memset(&whole, 0, sizeof(whole));

    for (r = 0; r < b->rounds; r++) {
        for (i = 0; i < 2; i++) {
            ops = 4.0 * HEADS * HEAD_DIM * KEYS;
            bench_add(&one[i], ops / time_attend(b, &b->kv[i], KEYS - 1, 1) / 1e9,
                      bench_f32_rate(b->limits) / 1e9);

            ops = 4.0 * HEADS * HEAD_DIM * ROWS * (ROWS + 0.5 * ROWS);
            bench_add(&slice[i], ops / time_attend(b, &b->kv[i], ROWS, ROWS) / 1e9,
                      bench_f32_rate(b->limits) / 1e9);
        }

        ops = 4.0 * HEADS * VISION_DIM * PATCHES;
        bench_add(&windows, ops * WINDOW / time_segments(b, WINDOW) / 1e9,
                  bench_f32_rate(b->limits) / 1e9);
        bench_add(&whole, ops * PATCHES / time_segments(b, PATCHES) / 1e9,
                  bench_f32_rate(b->limits) / 1e9);
    }

    print(b, "kernel_attend_1_of_4096", "Gop/s", &one[0]);
    print(b, "kernel_attend_256_of_512", "Gop/s", &slice[0]);
    print(b, "kernel_attend_int8_1_of_4096", "Gop/s", &one[1]);
    print(b, "kernel_attend_int8_256_of_512", "Gop/s", &slice[1]);
    print(b, "kernel_attend_windows", "Gop/s", &windows);
    print(b, "kernel_attend_picture", "Gop/s", &whole);
}


static int
open_bench(bench_t *b, vlm_err_t *err)
{
    size_t      i, values;
    void       *scratch;
    uint32_t    m;
    uint64_t    matrix;
    vlm_need_t  need = { VLM_INT8, 11008, 3840, HEADS, HEAD_DIM, KEYS, 1, 1, 0 };

    values = (size_t) PATCHES * 3 * HEADS * VISION_DIM;
    matrix = vlm_mul((uint64_t) KEYS * KV_HEADS, HEAD_DIM);
    b->kv[0] = (vlm_kv_t) { VLM_INT16, 1, 1, KV_HEADS, KEYS, HEAD_DIM, NULL, NULL, NULL, NULL };

    /* One block, because a device has few: the matrices have eleven. */
    b->x = b->ops->basic->reserve(b->device, (2 * values + GAINS) * sizeof(float), err);
    b->ids = b->ops->basic->reserve(b->device, 16384 * sizeof(uint32_t), err);
    b->kv[0].k = b->ops->basic->reserve(b->device, 4 * matrix, err);
    scratch = b->ops->basic->reserve(b->device, b->ops->basic->scratch_bytes(b->device, &need), err);

    if (b->x == NULL || b->ids == NULL || b->kv[0].k == NULL || scratch == NULL) {
        return -1;
    }

    b->y = b->x + values;
    b->gain = b->y + values;
    b->kv[0].v = (uint16_t *) b->kv[0].k + matrix;
    b->kv[0].k_scale = b->kv[0].v_scale = b->gain;
    b->kv[1] = b->kv[0];
    b->kv[1].type = VLM_INT8;
    b->ops->basic->set_scratch(b->device, &need, scratch);

    for (i = 0; i < values; i++) {
        b->x[i] = (float) ((int) (i * 7919 % 2001) - 1000) / 1000;
    }

    for (i = 0; i < GAINS; i++) {
        b->gain[i] = 1;
    }

    for (m = 0; m < MATRICES && (b->matrices || (b->int4 && m < TEXT)); m++) {
        if (make_matrix(b, m, err) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
read_options(bench_t *b, const char **set, uint32_t *threads, int argc, char **argv)
{
    int  i;

    b->rounds = 5;
    b->matrices = b->attention = b->int4 = 1;
    *threads = vlm_processors();

    if (argc % 2 == 0) {
        return -1;
    }

    for (i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--ops") == 0) {
            *set = argv[i + 1];
        } else if (strcmp(argv[i], "--threads") == 0) {
            *threads = (uint32_t) strtoul(argv[i + 1], NULL, 10);
            bench_clock = *threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            b->rounds = (uint32_t) strtoul(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--what") == 0) {
            b->matrices = strcmp(argv[i + 1], "matrices") == 0;
            b->attention = strcmp(argv[i + 1], "attention") == 0;
            b->int4 = strcmp(argv[i + 1], "int4") == 0;
        } else {
            return -1;
        }
    }

    if (!b->matrices && !b->attention && !b->int4) {
        return -1;
    }

    return b->rounds >= 1 && b->rounds <= BENCH_ROUNDS ? 0 : -1;
}


int
main(int argc, char **argv)
{
    char         text[64], *comma;
    bench_t      b = { 0 };
    vlm_err_t    err = { VLM_OK, "" };
    uint32_t     threads;
    const char  *set = NULL;

    if (read_options(&b, &set, &threads, argc, argv) != 0) {
        fputs("usage: bench-kernels [--ops SET] [--threads N] [--rounds N]"
              " [--what matrices|attention|int4]\n", stderr);
        return 2;
    }

    b.device = vlm_cpu_open(set, threads, &b.ops, &err);

    if (b.device == NULL || open_bench(&b, &err) != 0) {
        fprintf(stderr, "bench-kernels: %s\n", err.text);
        return 1;
    }

    /* "cpu, avx512, 2 threads" */

    b.ops->basic->describe(b.device, text, sizeof(text));
    comma = strchr(text + 5, ',');
    *comma = '\0';
    b.set = text + 5;
    b.limits = bench_limits_open(b.set, threads, (uint64_t) 1 << 30);

    if (b.limits == NULL) {
        fputs("bench-kernels: no memory for measuring the machine\n", stderr);
        return 1;
    }

    if (b.matrices) {
        measure_matrices(&b);
    }

    if (b.int4) {
        measure_int4(&b);
    }

    if (b.attention) {
        measure_attention(&b);
    }

    bench_limits_close(b.limits);
    b.ops->basic->close(b.device);

    return 0;
}
