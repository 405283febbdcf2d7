/* Types and functions that the files of random-checkpoint share; see random_checkpoint.c. */

#ifndef VLM_RANDOM_H
#define VLM_RANDOM_H

#include <stdio.h>

#include "base/json.h"
#include "vlm.h"

#define MAX_JSON     (64u << 20)       /* of a shape and of tokenizer.json */
#define MAX_TENSORS  8192
#define MAX_SHARDS   999

typedef enum { MATRIX, PLAIN, GAIN } kind_t;       /* MATRIX: scaled by its columns */

typedef struct job_s  job_t;

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
    uint64_t  hidden, layers, heads, kv_heads, head_dim, mlp, vocab;
    uint64_t  v_hidden, v_depth, v_heads, v_mlp, channels, temporal, patch, merge;
    uint64_t  positions, lists;        /* learned positions of patches, DeepStack's lists */
    int       tied;
} shape_t;

typedef struct {
    const char  *shape, *dir, *tokenizer, *mutate;
    uint64_t     seed;
    uint64_t     min_pixels;           /* 0: the family's */
    vlm_type_t   type;
    int          new_names, trivial;
    int          sparse;               /* files have holes in place of weights */
    uint32_t     shards;
} options_t;

typedef struct {
    const char  *model_type;
    const char  *processor;            /* NULL: the family takes no pictures */
    uint64_t     min_pixels, max_pixels;
    const char  *mean, *std;           /* of pixels, as in JSON */
    const char  *sampling;             /* lines of generation_config.json */
    void       (*list)(job_t *job);
    int        (*mutate)(job_t *job, const char *name);        /* -1: not known */
} random_family_t;

struct job_s {
    const random_family_t  *family;
    options_t    opt;
    shape_t      s;
    vlm_json_t  *config;               /* the shape */
    const vlm_json_t  *text;           /* in it, the language model's */
    vlm_json_t  *vocab;                /* tokenizer.json, or NULL */
    tensor_t    *tensors;              /* [n_tensors], in the file's order */
    uint32_t     n_tensors, n_shards;
    uint64_t     bytes;                /* of all tensors */
};

extern const random_family_t  random_qwen2_5, random_qwen3, random_bloom;

/* random_tensors.c: lists the tensors, with a mutation if asked for, and writes the files. */
int random_list_tensors(job_t *job, vlm_err_t *err);
int random_write_tensors(const job_t *job, vlm_err_t *err);

/* Functions for families: random_add() adds [n][k], or [n] if k is 0; random_add_linear() a matrix
   and its bias, random_add_norm() a LayerNorm's gain and shift; random_find() finds a tensor of
   layer i; the others make small mistakes. */
tensor_t *random_add(job_t *job, kind_t kind, double scale, const char *prefix, const char *name,
                     uint64_t n, uint64_t k);
void random_add_linear(job_t *job, double scale, double bias, const char *prefix, const char *name,
                       uint64_t n, uint64_t k);
void random_add_norm(job_t *job, const char *prefix, const char *name, uint64_t n);
tensor_t *random_find(job_t *job, const char *fmt, uint64_t i);
void random_fix(tensor_t *t, float value);
void random_swap_heads(tensor_t *t, uint64_t first, uint64_t head_dim, uint64_t n);
void random_swap(tensor_t *a, tensor_t *b);

/* random_config.c */
int random_write_config(const job_t *job, vlm_err_t *err);
int random_write_small_files(const job_t *job, vlm_err_t *err);
int random_copy_tokenizer(const job_t *job, vlm_err_t *err);

/* random_checkpoint.c: opens a file of the directory; finish closes it and reports an error. */
FILE *random_create(const job_t *job, const char *name, vlm_err_t *err);
int random_finish(const job_t *job, FILE *f, const char *name, vlm_err_t *err);

#endif
