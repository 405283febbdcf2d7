/*
 * Quantised checkpoints.  A matrix lies in several tensors there: values of few bits, scales, and
 * sometimes zero points.  config.json's quantization_config says in which form; vlm_quant_fold()
 * then makes one tensor of them, which has the name and the shape of the plain one, so that a model
 * is bound to it as to any other.
 *
 * A form is a file in quant/ and a line in the table of quant/config.c.  Modules that config.json
 * excepts ("ignore", "modules_to_not_convert") have plain tensors: the tensors that a file has
 * decide.
 */

#ifndef VLM_QUANT_H
#define VLM_QUANT_H

#include "load/item.h"
#include "load/safetensors.h"

#define VLM_QUANT_ROWS  64             /* that a form reads together */

typedef struct vlm_quant_form_s  vlm_quant_form_t;
typedef struct vlm_checkpoint_s  vlm_checkpoint_t;

typedef enum {
    VLM_VALUES, VLM_SCALES,
    VLM_ZEROS,                         /* may be missing, as the next */
    VLM_EXTRA,                         /* a form's own */
    VLM_MADE_PARTS
} vlm_made_part_t;

/* The settings of quantization_config. */
typedef struct {
    const vlm_quant_form_t  *form;     /* NULL: the files have plain numbers */
    uint32_t                 bits;     /* of a value */
    uint32_t                 rows, columns;        /* of a matrix under one scale; 0: all */
    uint32_t                 less;     /* added to each zero point of the file */
    float                    divisor;  /* of scales */
    char                     text[80]; /* for people: "AWQ, 4 bits in groups of 128" */
} vlm_quant_t;

/* A tensor that is computed from others, which are in mapped files. */
struct vlm_made_s {
    /* Rows [row, row + n) as f32, each `stride` values behind the one before; any thread. */
    void                (*read)(const vlm_made_t *m, uint64_t row, uint32_t n, float *out,
                                uint64_t stride);
    /* The form of weights that its rows have already, or NULL; a row of it, and its scale. */
    const vlm_format_t   *own;
    void                (*take)(const vlm_made_t *m, uint64_t row, void *out, float *scale);

    vlm_tensor_t          part[VLM_MADE_PARTS];    /* data NULL: there is none */
    const vlm_format_t   *format;      /* of the values, if that is one of format/ */
    uint64_t              N, K;        /* rows, and values of each */
    int                   lossy;       /* 1: it has fewer bits than the numbers that it was */
    uint32_t              bits, less;
    uint32_t              head;        /* rows of a head, if pairs of them lie side by side */
    float                 divisor;
    uint64_t              rows, columns;           /* under one scale: never 0 */
    uint64_t              grid;        /* scales of a row: K / columns, up */
};

struct vlm_quant_form_s {
    const char  *suffix[VLM_MADE_PARTS];           /* of the tensors' names; NULL: none */
    const char  *other;                /* scales have this suffix in some files; or NULL */
    const char  *spare[3];             /* of tensors that are not needed; NULL ends them */
    /* Sets N, K and the functions from the tensors, and checks all shapes. */
    int        (*make)(vlm_made_t *m, const char *name, vlm_err_t *err);
};

extern const vlm_quant_form_t  vlm_quant_scaled, vlm_quant_bnb, vlm_quant_packed, vlm_quant_awq,
                               vlm_quant_gptq;

/* Reads quantization_config, if there is one; VLM_EMODEL: a form that is not read, by its name. */
int vlm_quant_read(const vlm_reader_t *r, vlm_quant_t *q);

/* Makes the tensors of a checkpoint in the form q.  VLM_EMODEL names a tensor and its fault. */
int vlm_quant_fold(vlm_checkpoint_t *c, const vlm_quant_t *q, vlm_err_t *err);

/* ---- for the forms ------------------------------------------------------- */

/* 0 if a part has elements of that type and the shape [a][b]; else -1 and VLM_EMODEL. */
int vlm_made_check(const vlm_made_t *m, vlm_made_part_t part, const char *dtype, uint64_t a,
                   uint64_t b, const char *name, vlm_err_t *err);
/* The same for scales [a][b] of any plain type. */
int vlm_made_check_scales(const vlm_made_t *m, uint64_t a, uint64_t b, const char *name,
                          vlm_err_t *err);
/* Sets what one scale covers, once N and K are known. */
void vlm_made_cover(vlm_made_t *m);

static inline float
vlm_made_scale(const vlm_made_t *m, uint64_t at)
{
    float  s;

    m->part[VLM_SCALES].format->read(m->part[VLM_SCALES].data, at, 1, &s);

    return s / m->divisor;
}

/* Word i of a tensor of 32-bit words. */
static inline uint32_t
vlm_made_word(const vlm_tensor_t *t, uint64_t i)
{
    const uint8_t  *p = t->data + 4 * i;

    return p[0] | (uint32_t) p[1] << 8 | (uint32_t) p[2] << 16 | (uint32_t) p[3] << 24;
}

/* Values in a word of 32 bits, and up to how many words n values take. */
static inline uint32_t
vlm_made_per_word(const vlm_made_t *m)
{
    return 32 / m->bits;
}

static inline uint64_t
vlm_made_words(const vlm_made_t *m, uint64_t n)
{
    return n / vlm_made_per_word(m) + (n % vlm_made_per_word(m) != 0);
}

static inline int32_t
vlm_made_value(const vlm_made_t *m, uint32_t word, uint32_t i)
{
    return (int32_t) (word >> i * m->bits & ((1u << m->bits) - 1));
}

#endif
