/* The definition of attention, compiled for wider registers: the same source, the same bits. */

#define VLM_ISA(name)  name##_avx2

#include "ops/plain/attend.c"
