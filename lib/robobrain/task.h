/*
 * RoboBrain's tasks: their names, the prompts of its training, and the keywords that choose a task
 * for a request without one.  Any thread may call these functions; none of them reads a file.
 *
 * Releases of RoboBrain were trained with different prompts.  A release is given in tenths: 20 is
 * 2.0, and 25 is 2.5; a newer one counts as 2.5.
 */

#ifndef VLM_TASK_H
#define VLM_TASK_H

#include <stddef.h>
#include <stdint.h>

typedef enum { VLM_GENERAL, VLM_GROUNDING, VLM_AFFORDANCE, VLM_TRAJECTORY, VLM_POINTING, VLM_TASKS }
    vlm_task_t;

const char *vlm_task_name(vlm_task_t task);        /* "general", ...; static */
int vlm_task_find(const char *name, size_t bytes); /* a vlm_task_t, or -1 */
int vlm_task_guess(const char *text, size_t bytes);    /* by keywords: a vlm_task_t, never -1 */

/*
 * The task that a release does when it is asked for another one: 2.5 has no prompt for affordance,
 * which its authors ask for by pointing.  Other tasks, and -1, are returned as they are.
 */
int vlm_task_of(uint32_t release, int task);

/* Puts a release's training prompt around a request; malloc()ed, or NULL: no memory. */
char *vlm_task_prompt(uint32_t release, vlm_task_t task, const char *text, size_t bytes);

#endif
