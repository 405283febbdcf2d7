/*
 * RoboBrain's tasks: their names, the prompts of its training, and the keywords that choose a task
 * for a request without one.  Any thread may call these functions; none of them reads a file.
 */

#ifndef VLM_TASK_H
#define VLM_TASK_H

#include <stddef.h>

typedef enum { VLM_GENERAL, VLM_GROUNDING, VLM_AFFORDANCE, VLM_TRAJECTORY, VLM_POINTING, VLM_TASKS }
    vlm_task_t;

const char *vlm_task_name(vlm_task_t task);        /* "general", ...; static */
int vlm_task_find(const char *name, size_t bytes); /* a vlm_task_t, or -1 */
int vlm_task_guess(const char *text, size_t bytes);    /* by keywords: a vlm_task_t, never -1 */

/* Puts RoboBrain's training prompt around a request; malloc()ed, or NULL: no memory. */
char *vlm_task_prompt(vlm_task_t task, const char *text, size_t bytes);

#endif
