/* Attention in vectors of 8; ../wide.h has the algorithm. */

#include "base/size.h"
#include "ops/avx2/vec.h"
#include "ops/kernels.h"
#include "ops/plain/softmax.h"

#define VLM_ISA(name)  name##_avx2
#define STRIP          2               /* 8 sums, 2 keys, 1 value of a row: 16 registers */

#include "ops/wide.h"
