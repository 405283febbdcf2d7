/* The definitions of an adapter's products, compiled for wider registers: the same bits. */

#define VLM_ISA(name)  name##_avx512

#include "ops/plain/low.c"
