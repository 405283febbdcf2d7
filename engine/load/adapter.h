/*
 * An adapter as PEFT writes it: adapter_config.json, and adapter_model.safetensors with two
 * matrices of a low rank for each module that it adapts.
 *
 * The tensors say which modules those are; the configuration says their scale.  Each setting that
 * changes what the tensors mean is read, or refused by its name.
 */

#ifndef VLM_ADAPTER_H
#define VLM_ADAPTER_H

#include "base/file.h"
#include "base/sha256.h"
#include "family/family.h"
#include "load/safetensors.h"

#define VLM_ADAPTER_PATTERNS  64
#define VLM_ADAPTER_PATTERN   128      /* bytes of one, and a zero */
#define VLM_ADAPTER_MODULE    160      /* bytes of a module's name, and a zero */
#define VLM_ADAPTER_NAME      64       /* bytes of an adapter's name, and a zero */

typedef struct {
    double    alpha;
    int       rslora;                  /* 1: the scale is alpha / root of the rank */
    uint32_t  n_patterns;              /* alpha_pattern: of modules whose alpha is another */
    struct {
        char    text[VLM_ADAPTER_PATTERN];
        double  alpha;
    }         pattern[VLM_ADAPTER_PATTERNS];
    char      base[256];               /* base_model_name_or_path, cut; for a notice */
} vlm_adapter_config_t;

typedef enum {
    VLM_ADAPTER_A,                     /* [r][K] */
    VLM_ADAPTER_B,                     /* [N][r] */
    VLM_ADAPTER_SHIFT,                 /* [N]: B's bias */
    VLM_ADAPTER_TABLE_A,               /* [r][V] of an embedding */
    VLM_ADAPTER_TABLE_B,               /* [D][r] */
    VLM_ADAPTER_BASE,                  /* the module's own weight, which PEFT may save beside */
    VLM_ADAPTER_OTHER
} vlm_adapter_kind_t;

typedef struct {
    vlm_tensor_t        t;             /* t.name is the whole name, malloc()ed */
    vlm_adapter_kind_t  kind;
    char                module[VLM_ADAPTER_MODULE];        /* by the family's name, or "" */
} vlm_adapter_tensor_t;

typedef struct {
    char                   name[VLM_ADAPTER_NAME];
    char                   dir[4096];  /* where its files are: it may be a checkpoint-N within */
    vlm_adapter_config_t   config;
    int                    fd;         /* of the tensors, or -1; they are never mapped */
    char                   path[4096];
    const vlm_family_t    *family;
    vlm_adapter_tensor_t  *tensor;     /* [n] */
    uint32_t               n, room;
    vlm_sha256_t           sum;        /* of adapter_config.json, and of all that was read */
} vlm_adapter_file_t;

/* 1: letters, digits, '.', '_' and '-', not a dot first, and short enough.  Else 0. */
int vlm_adapter_is_name(const char *name);

/*
 * Opens an adapter's files, in dir or in the checkpoint-N of it that has weights and the largest N.
 * VLM_EMODEL with the adapter's name in the sentence.
 */
int vlm_adapter_open(vlm_adapter_file_t *f, const char *name, const char *dir,
                     const vlm_family_t *family, vlm_err_t *err);
/* Reads a tensor's bytes [t->bytes].  VLM_EMODEL: the file was cut meanwhile. */
int vlm_adapter_read(vlm_adapter_file_t *f, const vlm_tensor_t *t, void *to, vlm_err_t *err);
/* The hash of the settings, and of the tensors in the order in which they were read. */
void vlm_adapter_identity(vlm_adapter_file_t *f, uint8_t hash[32]);
void vlm_adapter_close(vlm_adapter_file_t *f);     /* idempotent, also after a failed open */

/* adapter_config.json [bytes]; and what a whole tensor's name says. */
int vlm_adapter_config(vlm_adapter_config_t *c, const char *name, const void *data, size_t bytes,
                       vlm_err_t *err);
vlm_adapter_kind_t vlm_adapter_kind(const vlm_family_t *family, const char *tensor,
                                    char module[VLM_ADAPTER_MODULE]);

/* alpha / r, or alpha / root of r; the module's name is PEFT's or the family's. */
double vlm_adapter_scale(const vlm_adapter_config_t *c, const char *module, uint32_t r);

#endif
