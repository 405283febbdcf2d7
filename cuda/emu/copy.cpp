/*
 * Asynchronous copies to shared memory, done at the latest allowed time: a kernel that reads before
 * it waits finds the old bytes.
 */

#include <string.h>

#include "grid.h"

#define MAX_COPIES  256                /* of one thread, that are not yet waited for */

typedef struct {
    void        *to;
    const void  *from;
    unsigned     bytes, group;
} copy_t;

typedef struct {
    unsigned  n, group;                /* copies in flight; the group that is being filled */
    copy_t    copy[MAX_COPIES];
} queue_t;

static queue_t  queues[VLM_EMU_THREADS];


void
vlm_emu_copy_forget(unsigned n_threads)
{
    unsigned  i;

    for (i = 0; i < n_threads; i++) {
        queues[i].n = queues[i].group = 0;
    }
}


void
vlm_emu_copy(vlm_place_t at, void *to, const void *from, unsigned bytes)
{
    queue_t  *q = &queues[vlm_emu_thread()];

    if (reinterpret_cast<uintptr_t>(to) % 16 != 0 || reinterpret_cast<uintptr_t>(from) % 16 != 0) {
        vlm_emu_fault(at, "an address that is no multiple of 16");
    }

    if (bytes > 16 || q->n == MAX_COPIES) {
        vlm_emu_fault(at, bytes > 16 ? "more than 16 bytes" : "too many copies under way");
    }

    q->copy[q->n++] = { to, from, bytes, q->group };
}


void
vlm_emu_copy_commit(void)
{
    queues[vlm_emu_thread()].group++;
}


void
vlm_emu_copy_wait(unsigned groups)
{
    unsigned        i, kept;
    queue_t        *q = &queues[vlm_emu_thread()];
    const copy_t   *c;

    for (kept = 0, i = 0; i < q->n; i++) {
        c = &q->copy[i];

        if (c->group + groups >= q->group) {
            q->copy[kept++] = *c;
            continue;
        }

        memset(c->to, 0, 16);
        memcpy(c->to, c->from, c->bytes);
    }

    q->n = kept;
}
