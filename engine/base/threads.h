/*
 * The CPU device's own threads: a range of items is shared out, and the caller takes part.
 *
 * An item's result must not depend on which thread computes it, nor on its neighbours; then
 * nothing depends on the number of threads.
 */

#ifndef VLM_THREADS_H
#define VLM_THREADS_H

#include "vlm.h"

#define VLM_MAX_THREADS  256

typedef struct vlm_threads_s  vlm_threads_t;

/* Items [begin, end) by thread number `thread` (0: the caller). */
typedef void (*vlm_range_fn)(void *arg, uint32_t begin, uint32_t end, uint32_t thread);

/*
 * n threads in all, the caller's included; VLM_EMEMORY if the system gives fewer.  If n is as many
 * as the processors that this process may use, each of the others keeps one of them.
 */
vlm_threads_t *vlm_threads_open(uint32_t n, vlm_err_t *err);
void vlm_threads_close(vlm_threads_t *t);          /* NULL is fine */
uint32_t vlm_threads_count(const vlm_threads_t *t);

/*
 * Runs fn over [0, n) and returns when all are done.  Pieces are multiples of grain items: large
 * ones first, a half of what would be a thread's share, single grains at the end.
 */
void vlm_threads_run(vlm_threads_t *t, uint32_t n, uint32_t grain, vlm_range_fn fn, void *arg);

/*
 * Until it is told NULL, the caller asks quit before a range and between its own pieces; when the
 * answer is not 0, the rest of the range is left undone.
 */
void vlm_threads_ask(vlm_threads_t *t, int (*quit)(void *data), void *data);

/* How many threads this process should use: affinity, and the cgroup's quota. */
uint32_t vlm_threads_default(void);

#endif
