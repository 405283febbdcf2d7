/* A checkpoint, for the files that open it: its shards, and their tensors. */

#ifndef VLM_SHARDS_H
#define VLM_SHARDS_H

#include "load/checkpoint.h"
#include "load/slots.h"

#define VLM_MAX_SHARDS     1024
#define VLM_SHARD_PATH     4096
#define VLM_SHARD_NAME     256

typedef struct {
    char         name[VLM_SHARD_NAME];     /* a plain one */
    char         path[VLM_SHARD_PATH];
    vlm_file_t   file;
} vlm_shard_t;

struct vlm_checkpoint_s {
    char                dir[VLM_SHARD_PATH];
    vlm_shard_t        *shards;        /* [n_shards], room for VLM_MAX_SHARDS */
    uint32_t            n_shards;
    vlm_slots_t         all;           /* tensors */
    const vlm_alias_t  *aliases;
    const char         *settings;      /* "config.json" */
    vlm_tensor_t        any;           /* of a checkpoint that is not there yet */
    int                 assumed;       /* 1: it is not, and has every tensor that is asked for */
};

/* The name by which a tensor is known, in buf if it differs from the given one. */
const char *vlm_checkpoint_fold(const vlm_checkpoint_t *c, const char *name, char *buf,
                                size_t bytes);
/* A vlm_tensor_fn: takes a tensor of the last shard in. */
int vlm_checkpoint_take(void *data, const vlm_tensor_t *t, vlm_err_t *err);

#endif
