/* Attention in int16 with vectors of 8; ../int16.h has the algorithm. */

#include "ops/avx2/vec.h"

#define VLM_ISA(name)  name##_avx2
#define COLUMN         2
#define FEW_STRIP      4


/* sum and the products of a's and b's pairs. */
static inline __attribute__((always_inline)) int_t
int_dot(int_t sum, int_t a, int_t b)
{
    return int_add(sum, _mm256_madd_epi16(a, b));
}


#include "ops/int16.h"
