/* Asks whether work is still wanted: see vlm_stop_t in vlm.h. */

#ifndef VLM_STOP_H
#define VLM_STOP_H

#include "vlm.h"

/* 1 and VLM_ECANCELLED if the work is no longer wanted.  stop may be NULL. */
static inline int
vlm_stopped(const vlm_stop_t *stop, vlm_err_t *err)
{
    if (stop == NULL || stop->stop == NULL || !stop->stop(stop->data)) {
        return 0;
    }

    (void) vlm_fail(err, VLM_ECANCELLED, "the work was stopped: its client has left, or its time "
                    "is over");

    return 1;
}

#endif
