/* Drivers of NVIDIA: see cuda_driver.h.  The library has a copy of this file. */

#include "ops/cuda_driver.h"

#define OLDEST  (sizeof(table) / sizeof(table[0]) - 1)

/* Debian 12 has driver 535 and CUDA 11.8, Debian 13 550 and 12.4, JetPack 6 540 and 12.6. */
static const struct {
    int          cuda, driver;
    const char  *toolkit;
} table[] = {
    { 13, 580, "any CUDA from 11.8 on" },
    { 12, 525, "nvidia-cuda-toolkit of Debian 12 or 13, or CUDA 12 of NVIDIA (JetPack 6: 12.6)" },
    { 11, 450, "nvidia-cuda-toolkit of Debian 12 (CUDA 11.8)" }
};


int
vlm_cuda_least_driver(int cuda)
{
    size_t  i;

    for (i = 0; i < OLDEST && cuda < table[i].cuda; i++) { /* void */ }

    return table[i].driver;
}


int
vlm_cuda_of_driver(int driver)
{
    size_t  i;

    for (i = 0; i <= OLDEST; i++) {
        if (driver >= table[i].driver) {
            return table[i].cuda;
        }
    }

    return 0;
}


const char *
vlm_cuda_toolkit(int cuda)
{
    size_t  i;

    for (i = 0; i <= OLDEST; i++) {
        if (cuda >= table[i].cuda) {
            return table[i].toolkit;
        }
    }

    return "a driver from 450 on";
}
