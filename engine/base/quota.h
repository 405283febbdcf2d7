/*
 * What control groups leave of the processors: a group's quota is time in each period, so that two
 * cores' worth on a host of 64 is two threads.
 */

#ifndef VLM_QUOTA_H
#define VLM_QUOTA_H

#include <stdint.h>

/*
 * Of n threads, those that this process's groups allow, and all groups above them: cpu.max of
 * version 2, cpu.cfs_quota_us of version 1.  root is "", or where a test has its own /proc and
 * /sys.  Rounded up: half a core is one thread.
 */
uint32_t vlm_quota(const char *root, uint32_t n);

/* The same by one cpu.max: "MAX PERIOD" in microseconds; what is neither allows all. */
uint32_t vlm_quota_of(const char *text, uint32_t n);

#endif
