/*
 * The memory and the processors that the machine and its control groups leave to this process.
 *
 * root is where /proc and /sys are: "", or a directory of a test.  The functions read some small
 * files of the kernel's, so they are not for an event loop.
 */

#ifndef VLM_CGROUP_H
#define VLM_CGROUP_H

#include <stdint.h>

typedef struct {
    uint64_t  bytes;                   /* 0: the system does not say */
    int       group;                   /* a control group's limit, not the machine's RAM */
} vlm_ram_t;

/* MemTotal, or the least that the memory groups above this process allow. */
void vlm_ram(const char *root, vlm_ram_t *ram);

/*
 * Of n threads, those that this process's cpu groups allow, and all groups above them: cpu.max of
 * version 2, cpu.cfs_quota_us of version 1.  A quota is time in each period, so two cores' worth
 * on a host of 64 is two threads.  Rounded up: half a core is one thread.
 */
uint32_t vlm_quota(const char *root, uint32_t n);

/* The same by one cpu.max: "MAX PERIOD" in microseconds; any other text allows all. */
uint32_t vlm_quota_of(const char *text, uint32_t n);

/* The processors that this process may use: by its affinity, and by the cpu groups' quota. */
uint32_t vlm_processors(void);

#endif
