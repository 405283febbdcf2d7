/* Attention in int16 with vectors of 8; ../int16.h has the algorithm. */

#include "ops/avx2/vec.h"
#include "ops/avxvnni/vex.h"

#define VLM_ISA(name)  name##_avxvnni
#define COLUMN         2
#define FEW_STRIP      4


/* sum and the products of a's and b's pairs: a builtin makes gcc copy registers. */
static inline __attribute__((always_inline)) int_t
int_dot(int_t sum, int_t a, int_t b)
{
    __asm__(VLM_VEX "vpdpwssd %2, %1, %0" : "+x"(sum) : "x"(a), "x"(b));

    return sum;
}


#include "ops/int16.h"
