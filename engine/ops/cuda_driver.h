/*
 * Which driver of NVIDIA takes a library: the major version of the CUDA that built it decides, as
 * compiled code runs with any driver of that version or a later one.
 *
 * cuda/toolkit has the same numbers for the build.
 */

#ifndef VLM_CUDA_DRIVER_H
#define VLM_CUDA_DRIVER_H

#include <stddef.h>

/* The least driver for a library that this CUDA built: 11 is 450. */
int vlm_cuda_least_driver(int cuda);

/* The latest CUDA whose libraries this driver takes: 535 is 12; 0: it takes none. */
int vlm_cuda_of_driver(int driver);

/* The toolkit to install for a driver of this CUDA: it builds a library that the driver takes. */
const char *vlm_cuda_toolkit(int cuda);

#endif
