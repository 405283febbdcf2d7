/*
 * AVX-VNNI's linear with AVX-512's encoding of its instruction, for tests on processors that have
 * only that one.
 */

#define VLM_VPDPBUSD  "vpdpbusd"

#define vlm_linear_avxvnni  vlm_linear_avxvnni_emu

#include "ops/avxvnni/linear.c"
