/* AVX-VNNI's linear with AVX-512's encoding of its instruction, for tests: see vex.h. */

#ifndef VLM_EVEX
#define VLM_EVEX
#endif

#define vlm_linear_avxvnni  vlm_linear_avxvnni_emu

#include "ops/avxvnni/linear.c"
