/*
 * Memory that may take its time: what a thread does to a range of bytes, a piece after the other,
 * beside everything else and behind it.
 *
 * A piece holds locks of the process's memory map, for which the event loop's next page may wait.
 * So the thread has the priority of all others: one of nice 19 was put off for seconds while it
 * held such a lock.  It gives way between pieces: if somebody else had to be let run meanwhile, it
 * rests, and has 3 % of a busy core at most.
 */

#ifndef VLM_BESIDE_H
#define VLM_BESIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define VLM_BESIDE  (2u << 20)         /* bytes of a piece, a large page: stopping waits for one */

/* Bytes [at, at + n) of the range; at is a multiple of VLM_BESIDE.  Not 0: no more of them. */
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
/* Waits for the piece at hand; safe twice, and on a zeroed structure. */
void vlm_beside_stop(vlm_beside_t *b);
int vlm_beside_running(const vlm_beside_t *b);     /* any thread: is there something left to do? */

#endif
