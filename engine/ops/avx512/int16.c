/* Attention in int16 with vectors of 16; ../int16.h has the algorithm. */

#include "ops/avx512/vec.h"
#include "ops/plain/int16.h"

#define VLM_ISA(name)  name##_avx512
#define COLUMN         4
#define FEW_STRIP      8


/* sum and the products of a's and b's pairs: a builtin makes gcc copy registers. */
static inline __attribute__((always_inline)) int_t
int_dot(int_t sum, int_t a, int_t b)
{
    __asm__("vpdpwssd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));

    return sum;
}


/*
 * The whole loop of a tile of 4 x 4 vectors in registers, because gcc copies sums within it, which
 * costs as much as half of the products.
 */
#define ROW(y, a, b, c, d)  "vpbroadcastd (%[" #y "],%[at]), %%zmm20\n\t"    \
                            "vpdpwssd %%zmm20, %%zmm16, %%zmm" #a "\n\t"     \
                            "vpdpwssd %%zmm20, %%zmm17, %%zmm" #b "\n\t"     \
                            "vpdpwssd %%zmm20, %%zmm18, %%zmm" #c "\n\t"     \
                            "vpdpwssd %%zmm20, %%zmm19, %%zmm" #d "\n\t"
#define CLEAR(i)            "vpxord %%zmm" #i ", %%zmm" #i ", %%zmm" #i "\n\t"
#define STORE(i)            "vmovdqu64 %%zmm" #i ", 64*" #i "(%[sum])\n\t"
#define LOAD(i, n)          "vmovdqu64 64*" #n "(%[x]), %%zmm" #i "\n\t"
#define SIXTEEN(f)          f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11) f(12) \
                            f(13) f(14) f(15)


static inline void
dot_four(const int32_t *x, const pair_t *const y[4], size_t step, uint64_t n, int32_t *sum)
{
    uint64_t  at = 0;

    __asm__ volatile(SIXTEEN(CLEAR)
                     "1:\n\t"
                     LOAD(16, 0) LOAD(17, 1) LOAD(18, 2) LOAD(19, 3)
                     ROW(y0, 0, 1, 2, 3)
                     ROW(y1, 4, 5, 6, 7)
                     ROW(y2, 8, 9, 10, 11)
                     ROW(y3, 12, 13, 14, 15)
                     "add $256, %[x]\n\t"
                     "add %[step], %[at]\n\t"
                     "dec %[n]\n\t"
                     "jnz 1b\n\t"
                     SIXTEEN(STORE)
                     : [x] "+r"(x), [at] "+r"(at), [n] "+r"(n)
                     : [y0] "r"(y[0]), [y1] "r"(y[1]), [y2] "r"(y[2]), [y3] "r"(y[3]),
                       [step] "r"(step * sizeof(*x)), [sum] "r"(sum)
                     : "zmm0", "zmm1", "zmm2", "zmm3", "zmm4", "zmm5", "zmm6", "zmm7", "zmm8",
                       "zmm9", "zmm10", "zmm11", "zmm12", "zmm13", "zmm14", "zmm15", "zmm16",
                       "zmm17", "zmm18", "zmm19", "zmm20", "memory", "cc");
}

#define DOT_TILE(x, y, step, n, sum)  dot_four(x, y, step, n, sum)


#include "ops/int16.h"
