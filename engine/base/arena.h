/*
 * An arena counts memory first and hands it out later.
 *
 * There is one arena for each lifetime.  Without a base it only counts: vlm_place() returns NULL
 * and used grows.  With a base the same calls, in the same order, return addresses, so the plan and
 * the use of memory cannot differ.
 */

#ifndef VLM_ARENA_H
#define VLM_ARENA_H

#include <stdint.h>

#define VLM_ALIGN  64                  /* a cache line, and the widest vector */

typedef struct {
    uint8_t   *base;                   /* NULL: counting */
    uint64_t   size;                   /* bytes behind base */
    uint64_t   used;                   /* saturates */
} vlm_arena_t;

/* count elements of bytes each, aligned to VLM_ALIGN; NULL when counting or when full. */
void *vlm_place(vlm_arena_t *a, uint64_t count, uint64_t bytes);

#endif
