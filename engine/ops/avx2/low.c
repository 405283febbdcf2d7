/* The products of adapters in vectors of 8; ../low_wide.h has them. */

#include "ops/avx2/vec.h"

#define VLM_ISA(name)  name##_avx2
#define MOST           2               /* 8 sums, 4 values of weights, 1 of a row: 16 registers */

#include "ops/low_wide.h"
