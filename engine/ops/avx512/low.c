/* The products of adapters in vectors of 16; ../low_wide.h has them. */

#include "ops/avx512/vec.h"

#define VLM_ISA(name)  name##_avx512
#define MOST           6               /* 24 sums, 4 values of weights, 1 of a row: 32 registers */

#include "ops/low_wide.h"
