/* An arena: memory that is counted first and handed out later. */

#include "base/arena.h"

#include <stddef.h>

#include "base/size.h"


void *
vlm_place(vlm_arena_t *a, uint64_t count, uint64_t bytes)
{
    uint64_t  at;

    at = vlm_round(a->used, VLM_ALIGN);
    a->used = vlm_add(at, vlm_mul(count, bytes));

    return (a->base == NULL || a->used > a->size) ? NULL : a->base + at;
}
