/* Attention in vectors of 4; ../wide.h has the algorithm. */

#include "base/size.h"
#include "ops/kernels.h"
#include "ops/neon/vec.h"
#include "ops/plain/softmax.h"

#define VLM_ISA(name)  name##_neon
#define STRIP          4               /* 16 sums, 4 keys, 1 value of a row: 32 registers */

#include "ops/wide.h"
