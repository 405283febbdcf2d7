/*
 * Helpers shared by the tests of this folder: the kernels of the instruction sets that this
 * processor runs, random values, and checks with a message.
 *
 * Sets are compared bit by bit: which processor computes an answer must not change it.
 */

#ifndef VLM_OPS_FIXTURE_H
#define VLM_OPS_FIXTURE_H

#include <stdio.h>

#include "ops/parity.h"

#define MAX_SETS 4
#define EPS      0x1p-24               /* half a unit in the last place of 1 */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static vlm_kernels_t  plain, faster[MAX_SETS];
static uint32_t       n_faster;


static inline int
find_sets(void **state)
{
    (void) state;
    vlm_kernels_plain(&plain);

#if defined(__x86_64__)
    __builtin_cpu_init();

    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        vlm_kernels_avx2(&faster[n_faster++]);

        if (vlm_avxvnni_there()) {
            vlm_kernels_avx2(&faster[n_faster]);
            vlm_kernels_avxvnni(&faster[n_faster++]);
        }
    }

    if (__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    {
        vlm_kernels_avx512(&faster[n_faster++]);

        if (vlm_amx_there()) {
            vlm_kernels_avx512(&faster[n_faster]);
            vlm_kernels_amx(&faster[n_faster++]);
        }
    }
#elif defined(__aarch64__)
    if (vlm_neon_there()) {
        vlm_kernels_plain(&faster[0]);
        vlm_kernels_neon(&faster[n_faster++]);

        if (vlm_i8mm_there()) {
            vlm_kernels_plain(&faster[1]);
            vlm_kernels_neon(&faster[1]);
            vlm_kernels_i8mm(&faster[n_faster++]);
        }
    }
#endif

    if (n_faster == 0) {
        print_message("# this processor runs the definitions alone\n");
    }

    return 0;
}


static inline float *
floats(size_t n, vlm_kind_t kind, uint64_t seed)
{
    float  *x;

    x = vlm_aligned(n * sizeof(float));
    assert_non_null(x);
    vlm_parity_fill(x, 1, (uint32_t) n, kind, seed);

    return x;
}


static inline void
check_bits(const float *got, const float *want, size_t n, const char *what)
{
    size_t  i;

    i = vlm_differs(got, want, n);

    if (i < n) {
        fail_msg("%s: value %zu of %zu is %.9g, not %.9g", what, i, n, (double) got[i],
                 (double) want[i]);
    }
}


static inline void
check_near(float got, double want, double bound, const char *what, size_t i)
{
    if (!(fabs(got - want) <= bound)) {
        fail_msg("%s: value %zu is %.9g, not %.9g: off by %g, allowed %g", what, i, (double) got,
                 want, fabs(got - want), bound);
    }
}

#endif
