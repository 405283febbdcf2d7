/*
 * The tensors of a checkpoint directory: model.safetensors, or the shards that
 * model.safetensors.index.json names.  Both naming schemes are folded into the published one:
 * "model.language_model.X" becomes "model.X", "model.visual.X" becomes "visual.X".
 */

#ifndef VLM_CHECKPOINT_H
#define VLM_CHECKPOINT_H

#include "load/safetensors.h"

typedef struct vlm_checkpoint_s  vlm_checkpoint_t;

/* Maps every shard and indexes it.  VLM_EMODEL with file, tensor and numbers. */
vlm_checkpoint_t *vlm_checkpoint_open(const char *dir, vlm_err_t *err);
void vlm_checkpoint_close(vlm_checkpoint_t *c);    /* NULL is fine */

/*
 * A tensor by its published name, and of this shape (dims[n_dims]; trailing 1s do not count).
 * NULL and VLM_EMODEL if it is missing, has another shape, or an element type we do not read.
 * Remembers that it was asked for: see vlm_checkpoint_unused().
 */
const vlm_tensor_t *vlm_checkpoint_find(vlm_checkpoint_t *c, const char *name,
                                        const uint64_t *dims, uint32_t n_dims, vlm_err_t *err);
int vlm_checkpoint_has(const vlm_checkpoint_t *c, const char *name);

/* Elements of all tensors but one; but may be NULL. */
uint64_t vlm_checkpoint_elements(const vlm_checkpoint_t *c, const char *but);

/*
 * 0, or -1 and VLM_EMODEL naming the first of the tensors that nobody asked for and how many
 * there are.  A left-over "lm_head.weight" of a tied model is not one (re-saved files carry it).
 */
int vlm_checkpoint_unused(const vlm_checkpoint_t *c, vlm_err_t *err);

/*
 * What tells these files from others, without reading them all: SHA-256 over names, sizes, times
 * of change, and pieces of each from its beginning to its end.  -1 and VLM_EMODEL.
 */
int vlm_checkpoint_id(const vlm_checkpoint_t *c, uint8_t id[32], vlm_err_t *err);

/* Copies elements [first, first + n) of a tensor as f32. */
void vlm_tensor_f32(const vlm_tensor_t *t, uint64_t first, uint64_t n, float *out);

/*
 * Have two tensors of one shape the same values?  1 or 0.  Looks at pieces of them from the first
 * element to the last, which tells a matrix that was trained from one that was not.
 */
int vlm_tensor_same(const vlm_tensor_t *a, const vlm_tensor_t *b);

/* The pages of this tensor will not be read again: they leave resident memory. */
void vlm_tensor_done(vlm_checkpoint_t *c, const vlm_tensor_t *t);

#endif
