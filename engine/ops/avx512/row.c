/* The definitions of norm and quantisation, compiled for wider registers: the same bits. */

#define VLM_ISA(name)  name##_avx512

#include "ops/plain/row.c"
