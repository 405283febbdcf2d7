/* The definition of a linear's epilogue, compiled for wider registers: the same bits. */

#define VLM_ISA(name)  name##_avx2

#include "ops/plain/epilogue.c"
