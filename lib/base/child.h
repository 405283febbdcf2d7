/* Work in a process of its own, whose end, however bad, is not its caller's. */

#ifndef VLM_CHILD_H
#define VLM_CHILD_H

#include <stddef.h>

typedef enum {
    VLM_CHILD_DONE,                    /* it had nothing to say, and exited with 0 */
    VLM_CHILD_SAID,                    /* text has what it said */
    VLM_CHILD_DIED,                    /* it said nothing: *status says how */
    VLM_CHILD_LATE,                    /* it took longer, and was killed */
    VLM_CHILD_NONE                     /* there is no process: errno says why */
} vlm_child_e;

/* Writes what there is to say to text [size], and returns its bytes; at most 4096. */
typedef size_t vlm_child_work_t(void *data, char *text, size_t size);

/*
 * Forks, and waits for the child.  Signals are blocked meanwhile, so that a handler of SIGCHLD does
 * not take its status.  For a process of one thread.
 *
 *   ms            that the work may take
 *   text, bytes   room for what it says, and *bytes of it; then what it has said
 *   status        as of waitpid(); 0 without a process
 */
vlm_child_e vlm_child_run(vlm_child_work_t *work, void *data, int ms, char *text, size_t *bytes,
                          int *status);

#endif
