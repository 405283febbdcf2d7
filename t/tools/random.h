/* Types and functions that the files of random-checkpoint share; see random_checkpoint.c. */

#ifndef VLM_BENCH_RANDOM_H
#define VLM_BENCH_RANDOM_H

#include <stdio.h>

#include "base/json.h"
#include "vlm.h"

#define MAX_JSON     (64u << 20)       /* of a shape and of tokenizer.json */
#define MAX_TENSORS  8192
#define MAX_SHARDS   999

typedef enum { MATRIX, PLAIN, GAIN } kind_t;       /* MATRIX: scaled by its columns */

typedef struct {
    char      name[96];                /* the published name */
    char      source[96];              /* the tensor that seeds its numbers: name, unless mutated */
    kind_t    kind;
    float     scale;
    uint32_t  n_dims;
    uint64_t  dims[5];
    uint64_t  n;                       /* elements */
    uint32_t  shard;
    uint64_t  offset;                  /* bytes, in its shard's data */
    uint64_t  swap_a, swap_b, n_swap;  /* n_swap rows from these two change places */
    float     fixed;                   /* every element, if is_fixed */
    int       is_fixed;
} tensor_t;

typedef struct {                       /* the sizes in the shape */
    uint64_t  hidden, layers, heads, kv_heads, mlp, vocab;
    uint64_t  v_hidden, v_depth, v_heads, v_mlp, channels, temporal, patch, merge;
    int       tied;
} shape_t;

typedef struct {
    const char  *shape, *dir, *tokenizer, *mutate;
    uint64_t     seed;
    vlm_type_t   type;
    int          new_names, trivial;
    int          sparse;               /* files have holes in place of weights */
    uint32_t     shards;
} options_t;

typedef struct {
    options_t    opt;
    shape_t      s;
    vlm_json_t  *config;               /* the shape */
    vlm_json_t  *vocab;                /* tokenizer.json, or NULL */
    tensor_t    *tensors;              /* [n_tensors], in the file's order */
    uint32_t     n_tensors, n_shards;
    uint64_t     bytes;                /* of all tensors */
} job_t;

/* random_tensors.c: lists the tensors, with a mutation if asked for, and writes the files. */
int random_list_tensors(job_t *job, vlm_err_t *err);
int random_write_tensors(const job_t *job, vlm_err_t *err);

/* random_config.c */
int random_write_config(const job_t *job, vlm_err_t *err);
int random_write_small_files(const job_t *job, vlm_err_t *err);
int random_copy_tokenizer(const job_t *job, vlm_err_t *err);

/* random_checkpoint.c: opens a file of the directory; finish closes it and reports an error. */
FILE *random_create(const job_t *job, const char *name, vlm_err_t *err);
int random_finish(const job_t *job, FILE *f, const char *name, vlm_err_t *err);

#endif
