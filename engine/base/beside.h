/*
 * A background thread that applies a function to a range of bytes, piece by piece, while other
 * threads work.
 *
 * A piece holds locks of the process's memory map, for which the event loop's next page fault may
 * wait.  So the thread runs at normal priority: at nice 19 the kernel suspended it for seconds
 * while it held such a lock.  Between pieces the thread yields; if the kernel ran another thread
 * meanwhile, it sleeps, so that it takes 3 % of a busy core at most.
 */

#ifndef VLM_BESIDE_H
#define VLM_BESIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define VLM_BESIDE  (2u << 20)         /* bytes of a piece (a large page); stopping waits for one */

/*
 * Handles bytes [at, at + n) of the range; at is a multiple of VLM_BESIDE.  Any result but 0 ends
 * the work.
 */
typedef int (*vlm_beside_fn)(void *data, uint64_t at, uint64_t n);

typedef struct {
    vlm_beside_fn    fn;
    void            *data;
    uint64_t         bytes;
    pthread_t        thread;
    pthread_mutex_t  mutex;
    pthread_cond_t   wake;             /* from a rest */
    int              stopping;         /* under the mutex */
    int              started;
    atomic_int       running;
    atomic_uint      rests;
} vlm_beside_t;

/* If the system gives no thread, nothing is done. */
void vlm_beside_start(vlm_beside_t *b, vlm_beside_fn fn, void *data, uint64_t bytes);
/* Waits for the piece in progress; safe twice, and on a zeroed structure. */
void vlm_beside_stop(vlm_beside_t *b);
int vlm_beside_running(const vlm_beside_t *b);     /* any thread: is there still work to do? */

#endif
