/*
 * The kernels that AMX replaces in AVX-512's table: called after vlm_kernels_avx512().  Linux
 * forbids tiles to a process until it asks for them, because they make its threads' saved state
 * larger.
 */

#define _GNU_SOURCE

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/kernels.h"

#define ARCH_REQ_XCOMP_PERM  0x1023    /* asm/prctl.h has it from Linux 5.16 on */
#define XFEATURE_XTILEDATA   18

void vlm_linear_amx(const vlm_linear_args_t *a, uint32_t begin, uint32_t end);


int
vlm_amx_there(void)
{
    unsigned  a, b, c, d;

    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & (1u << 24)) == 0 || (d & (1u << 25)) == 0)
    {
        return 0;
    }

    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}


void
vlm_kernels_amx(vlm_kernels_t *k)
{
    k->name = "amx";
    k->linear = vlm_linear_amx;
}
