/* Attention in vectors of 16; ../wide.h has the algorithm. */

#include "base/size.h"
#include "ops/avx512/vec.h"
#include "ops/kernels.h"
#include "ops/plain/softmax.h"

#define VLM_ISA(name)  name##_avx512
#define STRIP          4

#include "ops/wide.h"
