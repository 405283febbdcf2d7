/*
 * The CPU device's own threads: they share the items of a range, and the caller takes part.
 *
 * An item's result must depend neither on the thread that computes it nor on its neighbours, so
 * that no result depends on the number of threads.
 */

#ifndef VLM_THREADS_H
#define VLM_THREADS_H

#include "vlm.h"

#define VLM_MAX_THREADS  256

typedef struct vlm_threads_s  vlm_threads_t;

/* Items [begin, end) by thread number `thread` (0: the caller). */
typedef void (*vlm_range_fn)(void *arg, uint32_t begin, uint32_t end, uint32_t thread);

/*
 * Starts n threads in all, the caller's included; VLM_EMEMORY if the system gives fewer.  If n
 * equals the number of processors that this process may use, each of the other threads is bound to
 * one of them.
 */
vlm_threads_t *vlm_threads_open(uint32_t n, vlm_err_t *err);
void vlm_threads_close(vlm_threads_t *t);          /* takes NULL */
uint32_t vlm_threads_count(const vlm_threads_t *t);

/*
 * Runs fn over [0, n) and returns when all items are done.  Pieces are multiples of grain items:
 * large ones first, each half of a thread's share, single grains at the end.
 */
void vlm_threads_run(vlm_threads_t *t, uint32_t n, uint32_t grain, vlm_range_fn fn, void *arg);

/*
 * The caller asks quit before a range and between its own pieces; if the answer is not 0, the rest
 * of the range is left undone.  NULL ends that.
 */
void vlm_threads_ask(vlm_threads_t *t, int (*quit)(void *data), void *data);

#endif
