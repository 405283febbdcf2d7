/*
 * Measures the limits of this machine: its read bandwidth and its rates of arithmetic.
 *
 * The loops run in the engine's threads, with ranges and memory allocated as the engine's products
 * have them.  The arithmetic uses registers only, and the unit of the given set of kernels.
 */

#define _GNU_SOURCE

#include <immintrin.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bench.h"
#include "ops/avxvnni/vex.h"
#include "run/measure.h"

#define PIECES      4                  /* of a range for each thread */
#define TURNS       4000000            /* of an arithmetic loop: some milliseconds */
#define TILE_TURNS  400000

#define ARCH_REQ_XCOMP_PERM  0x1023    /* arch_prctl(): permission for tiles */
#define XFEATURE_XTILEDATA   18

clockid_t  bench_clock = CLOCK_MONOTONIC;

struct bench_limits_s {
    vlm_threads_t  *threads;
    const char     *set;
    uint8_t        *memory;
    uint64_t        bytes;             /* a multiple of pieces x 512 */
    uint32_t        pieces;
    uint64_t        sink;
};

typedef struct {
    void    (*loop)(uint64_t turns);
    uint64_t  turns;
    double    per_turn;                /* operations */
} work_t;


bench_limits_t *
bench_limits_open(const char *set, uint32_t threads, uint64_t bytes)
{
    vlm_err_t        err;
    bench_limits_t  *l;

    l = calloc(1, sizeof(*l));
    if (l == NULL || (l->threads = vlm_threads_open(threads, &err)) == NULL) {
        free(l);
        return NULL;
    }

    if (strcmp(set, "amx") == 0) {
        (void) syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA);
    }

    l->set = set;
    l->pieces = threads * PIECES;
    l->bytes = bytes / (l->pieces * 512) * (l->pieces * 512);
    l->memory = mmap(NULL, l->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (l->memory == MAP_FAILED) {
        vlm_threads_close(l->threads);
        free(l);
        return NULL;
    }

    (void) madvise(l->memory, l->bytes, MADV_HUGEPAGE);
    memset(l->memory, 1, l->bytes);

    return l;
}


void
bench_limits_close(bench_limits_t *l)
{
    (void) munmap(l->memory, l->bytes);
    vlm_threads_close(l->threads);
    free(l);
}


/* ---- reading ------------------------------------------------------------------------------ */

static void
read_pieces(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    uint64_t         piece;
    const uint8_t   *p;
    bench_limits_t  *l = arg;

    (void) thread;

    piece = l->bytes / l->pieces;
    p = l->memory + begin * piece;
    piece *= end - begin;

    __atomic_fetch_xor(&l->sink, vlm_measure_range(p, piece), __ATOMIC_RELAXED);
}


double
bench_read_rate(bench_limits_t *l)
{
    double  start;

    start = bench_now();
    vlm_threads_run(l->threads, l->pieces, 1, read_pieces, l);

    return (double) l->bytes / (bench_now() - start);
}


/* ---- arithmetic --------------------------------------------------------------------------- */

/* Twelve independent sums, more than the latency of an instruction in cycles. */
#define TWELVE(f)  f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)

#define VNNI(i)   "vpdpbusd %%zmm30, %%zmm31, %%zmm" #i "\n\t"
#define VNNI8(i)  VLM_VEX "vpdpbusd %%ymm14, %%ymm15, %%ymm" #i "\n\t"
#define FMA16(i)  "vfmadd231ps %%zmm30, %%zmm31, %%zmm" #i "\n\t"
#define FMA8(i)   "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n\t"
#define MADD(i)   "vpmaddubsw %%ymm14, %%ymm15, %%ymm13\n\tvpmaddwd %%ymm14, %%ymm13, %%ymm13\n\t" \
                  "vpaddd %%ymm13, %%ymm" #i ", %%ymm" #i "\n\t"
#define LOW       "ymm0", "ymm1", "ymm2", "ymm3", "ymm4", "ymm5", "ymm6", "ymm7", "ymm8", "ymm9", \
                  "ymm10", "ymm11", "ymm12", "ymm13", "ymm14", "ymm15"

__attribute__((target("avx512f,avx512vnni"))) static void
loop_vnni(uint64_t turns)
{
    __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n\tvpxord %%zmm31, %%zmm31, %%zmm31"
                     ::: "zmm30", "zmm31");

    for ( /* void */ ; turns > 0; turns--) {
        __asm__ volatile(TWELVE(VNNI) ::: LOW);
    }
}


__attribute__((target("avx512f"))) static void
loop_f32_512(uint64_t turns)
{
    __asm__ volatile("vpxord %%zmm30, %%zmm30, %%zmm30\n\tvpxord %%zmm31, %%zmm31, %%zmm31"
                     ::: "zmm30", "zmm31");

    for ( /* void */ ; turns > 0; turns--) {
        __asm__ volatile(TWELVE(FMA16) ::: LOW);
    }
}


__attribute__((target("avx2,fma"))) static void
loop_f32_256(uint64_t turns)
{
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15"
                     ::: "ymm14", "ymm15");

    for ( /* void */ ; turns > 0; turns--) {
        __asm__ volatile(TWELVE(FMA8) ::: LOW);
    }
}


__attribute__((target("avx2"))) static void
loop_madd(uint64_t turns)
{
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15"
                     ::: "ymm14", "ymm15");

    for ( /* void */ ; turns > 0; turns--) {
        __asm__ volatile(TWELVE(MADD) ::: LOW);
    }
}


__attribute__((target("avx2,avxvnni"))) static void
loop_vnni_256(uint64_t turns)
{
    __asm__ volatile("vpxor %%ymm14, %%ymm14, %%ymm14\n\tvpxor %%ymm15, %%ymm15, %%ymm15"
                     ::: "ymm14", "ymm15");

    for ( /* void */ ; turns > 0; turns--) {
        __asm__ volatile(TWELVE(VNNI8) ::: LOW);
    }
}


/* Four tiles of sums from two tiles of rows and two of weights, as in the engine's product. */
__attribute__((target("amx-tile,amx-int8"))) static void
loop_tiles(uint64_t turns)
{
    static const uint8_t  config[64] __attribute__((aligned(64))) = {
        1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        16, 16, 16, 16, 16, 16, 16, 16, 0, 0, 0, 0, 0, 0, 0, 0
    };

    _tile_loadconfig(config);
    _tile_zero(4);
    _tile_zero(5);
    _tile_zero(6);
    _tile_zero(7);

    for ( /* void */ ; turns > 0; turns--) {
        _tile_dpbsud(0, 4, 6);
        _tile_dpbsud(1, 4, 7);
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
    }

    _tile_release();
}


static void
work_pieces(void *arg, uint32_t begin, uint32_t end, uint32_t thread)
{
    work_t  *w = arg;

    (void) thread;

    w->loop(w->turns * (end - begin));
}


static double
rate_of(bench_limits_t *l, work_t *w)
{
    double    start;

    start = bench_now();
    vlm_threads_run(l->threads, l->pieces, 1, work_pieces, w);

    return w->per_turn * (double) w->turns * l->pieces / (bench_now() - start);
}


double
bench_int8_rate(bench_limits_t *l)
{
    work_t  none = { NULL, 0, 0 };
    work_t  vnni = { loop_vnni, TURNS, 12 * 64 * 2 };
    work_t  vnni_256 = { loop_vnni_256, TURNS, 12 * 32 * 2 };
    work_t  madd = { loop_madd, TURNS, 12 * 32 * 2 };
    work_t  tiles = { loop_tiles, TILE_TURNS, 4 * 16 * 16 * 64 * 2 };
    work_t *w;

    w = strcmp(l->set, "amx") == 0 ? &tiles : strcmp(l->set, "avx512") == 0 ? &vnni
        : strcmp(l->set, "avxvnni") == 0 ? &vnni_256 : strcmp(l->set, "avx2") == 0 ? &madd : &none;

    return w->loop == NULL ? 0 : rate_of(l, w);
}


double
bench_f32_rate(bench_limits_t *l)
{
    work_t  wide = { loop_f32_512, TURNS, 12 * 16 * 2 };
    work_t  narrow = { loop_f32_256, TURNS, 12 * 8 * 2 };

    if (strcmp(l->set, "plain") == 0) {
        return 0;
    }

    return rate_of(l, strncmp(l->set, "avx", 3) == 0 && strcmp(l->set, "avx512") != 0 ? &narrow : &wide);
}
