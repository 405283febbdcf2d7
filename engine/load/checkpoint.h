/*
 * The tensors of a checkpoint directory: model.safetensors, or the shards that
 * model.safetensors.index.json names.
 */

#ifndef VLM_CHECKPOINT_H
#define VLM_CHECKPOINT_H

#include "base/file.h"
#include "family/family.h"
#include "load/safetensors.h"

typedef struct vlm_checkpoint_s  vlm_checkpoint_t;

/*
 * Maps every shard and indexes it.  Names that an alias fits are known by the other spelling;
 * aliases is a family's list, kept, or NULL.  VLM_EMODEL with file, tensor and numbers.
 */
vlm_checkpoint_t *vlm_checkpoint_open(const char *dir, const vlm_alias_t *aliases, vlm_err_t *err);

/*
 * 1: DIR has every file of weights, 0: some are missing.  -1 and VLM_EMODEL: its index is no JSON,
 * or it has PyTorch's own files instead, which are not read.
 */
int vlm_checkpoint_is_there(const char *dir, vlm_err_t *err);
/* For a plan: a checkpoint of which every tensor is found, with the shape asked for and no data. */
vlm_checkpoint_t *vlm_checkpoint_assume(vlm_err_t *err);
void vlm_checkpoint_close(vlm_checkpoint_t *c);    /* takes NULL */

/*
 * Finds a tensor by its published name and shape (dims[n_dims]; trailing 1s do not count).  NULL
 * and VLM_EMODEL if it is missing, has another shape, or has an unsupported element type.  The
 * function marks the tensor as used: see vlm_checkpoint_unused().
 */
const vlm_tensor_t *vlm_checkpoint_find(vlm_checkpoint_t *c, const char *name,
                                        const uint64_t *dims, uint32_t n_dims, vlm_err_t *err);
/* Once all tensors were read: 0, or -1 and VLM_EMODEL if a file became shorter meanwhile, so that
   some of what was read may be zeros. */
int vlm_checkpoint_whole(const vlm_checkpoint_t *c, vlm_err_t *err);
int vlm_checkpoint_has(const vlm_checkpoint_t *c, const char *name);
uint64_t vlm_checkpoint_rows(const vlm_checkpoint_t *c, const char *name);     /* 0: no such */

/* Number of elements of all tensors except `but`, which may be NULL. */
uint64_t vlm_checkpoint_elements(const vlm_checkpoint_t *c, const char *but);

/*
 * 0; or -1 and VLM_EMODEL with the name of the first unused tensor and the number of them.  The
 * tensor `but` is not counted: the head of a tied model, which re-saved files carry.
 */
int vlm_checkpoint_unused(const vlm_checkpoint_t *c, const char *but, vlm_err_t *err);

/*
 * Computes an identity of the checkpoint's files without reading all of their bytes: the SHA-256 of
 * names, sizes, times of change, and samples from beginning to end.  -1 and VLM_EMODEL.
 */
int vlm_checkpoint_id(const vlm_checkpoint_t *c, uint8_t id[32], vlm_err_t *err);

/* How many tensors lost bits before they were written; of these, rows in that form. */
uint32_t vlm_checkpoint_lossy(const vlm_checkpoint_t *c, const vlm_format_t *form,
                              uint32_t *own);

/* Copies elements [first, first + n) of a tensor as f32: whole rows, if it is made of others. */
void vlm_tensor_f32(const vlm_tensor_t *t, uint64_t first, uint64_t n, float *out);
/* Copies rows [row, row + n) of a matrix, each `stride` values behind the one before. */
void vlm_tensor_rows(const vlm_tensor_t *t, uint64_t row, uint32_t n, float *out, uint64_t stride);
/* The quantised form that the rows of a matrix have in the file, or NULL; a row and its scale. */
const vlm_format_t *vlm_tensor_own(const vlm_tensor_t *t);
void vlm_tensor_take(const vlm_tensor_t *t, uint64_t row, void *out, float *scale);

/*
 * 1 if two tensors of one shape have the same values, else 0.  The function compares samples from
 * the first element to the last, which is enough to tell a trained matrix from another one.  A
 * quantised tensor differs from any other by its rounding and counts as the same.
 */
int vlm_tensor_same(const vlm_tensor_t *a, const vlm_tensor_t *b);

/* Drops this tensor's pages from resident memory: they will not be read again. */
void vlm_tensor_done(vlm_checkpoint_t *c, const vlm_tensor_t *t);

/* ---- for forms that make a tensor of others ------------------------------ */

/*
 * An empty one; a file, which is taken over; and a tensor of the file that was added last, under
 * another name.  settings is kept: what says which tensors there are, for messages.
 */
vlm_checkpoint_t *vlm_checkpoint_new(const char *dir, const vlm_alias_t *aliases,
                                     const char *settings, vlm_err_t *err);
int vlm_checkpoint_add_file(vlm_checkpoint_t *c, vlm_file_t *f, const char *path, vlm_err_t *err);
int vlm_checkpoint_add(vlm_checkpoint_t *c, const vlm_tensor_t *t, const char *name,
                       vlm_err_t *err);

uint32_t vlm_checkpoint_count(const vlm_checkpoint_t *c);
/* Tensor i of those, in the order of the files; NULL: it is part of another. */
const vlm_tensor_t *vlm_checkpoint_tensor(const vlm_checkpoint_t *c, uint32_t i);
/* A tensor of that name and any shape, or NULL; part() makes it part of another. */
const vlm_tensor_t *vlm_checkpoint_look(const vlm_checkpoint_t *c, const char *name);
const vlm_tensor_t *vlm_checkpoint_part(vlm_checkpoint_t *c, const char *name);
/* It may stay unused. */
void vlm_checkpoint_spare(vlm_checkpoint_t *c, const char *name);
/* Adds a tensor, or replaces the one of that name; m is malloc()ed and taken over on success. */
int vlm_checkpoint_make(vlm_checkpoint_t *c, const char *name, vlm_made_t *m, const uint64_t *dims,
                        uint32_t n_dims, vlm_err_t *err);

#endif
