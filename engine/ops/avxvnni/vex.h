/*
 * How AVX-VNNI's instructions are encoded.  Built with -DVLM_EVEX, the set has AVX-512's encoding
 * of the same instructions, for tests and measurements on processors that have only that one.  It
 * stays within AVX-VNNI's 16 registers, because its files are compiled without AVX-512.
 *
 *   make O=build/evex E=build/evex/engine CPPFLAGS=-DVLM_EVEX build/evex/bench-kernels
 *   build/evex/bench-kernels --ops avxvnni --threads 1 --what matrices
 */

#ifndef VLM_VEX_H
#define VLM_VEX_H

#ifdef VLM_EVEX
#define VLM_VEX  ""
#else
#define VLM_VEX  "%{vex%} "
#endif

#endif
