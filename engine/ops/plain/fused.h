/*
 * fmaf() is exact by its definition: a processor that has it as an instruction gives the same bits
 * as the library's function, several times faster.  The program chooses when it starts, which is
 * before TSan has begun.
 */

#ifndef VLM_PLAIN_FUSED_H
#define VLM_PLAIN_FUSED_H

#include <features.h>

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) \
    && !defined(__SANITIZE_THREAD__)
#define VLM_FUSED  __attribute__((target_clones("fma", "default")))
#else
#define VLM_FUSED
#endif

#endif
