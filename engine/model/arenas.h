/*
 * The memory of a model: an arena for each lifetime.  They are counted, which gives the plan, and
 * then lie in one block of the device, one behind the other.
 */

#ifndef VLM_ARENAS_H
#define VLM_ARENAS_H

#include "model/model.h"

typedef struct {
    vlm_arena_t  text, vision;         /* weights */
    vlm_arena_t  lora;                 /* places of adapters */
    vlm_arena_t  kv, work;
    vlm_arena_t  features;             /* of pictures, and the vision encoder's work */
} vlm_arenas_t;

/* Places all of a model; with bases, weights are read as well: see vlm_model_bind(). */
int vlm_arenas_place(vlm_arenas_t *a, vlm_model_t *m, vlm_checkpoint_t *c, const vlm_conf_t *conf,
                     const vlm_progress_t *progress, vlm_err_t *err);

/* The plan of what was counted, for a device that takes so many bytes for itself. */
void vlm_arenas_plan(const vlm_arenas_t *a, uint64_t device, vlm_plan_t *plan);

/* Sets the bases after they were counted: one block of *bytes, or NULL. */
void *vlm_arenas_reserve(vlm_arenas_t *a, const vlm_ops_t *ops, vlm_device_t *d, uint64_t *bytes,
                         vlm_err_t *err);

#endif
