/*
 * How weights lie, in the files of a checkpoint and in memory: a vlm_format_t for each form.  Other
 * code than this folder's and the kernels asks the table and does not tell one form from another.
 */

#ifndef VLM_FORMAT_H
#define VLM_FORMAT_H

#include "base/size.h"
#include "vlm.h"

#define VLM_FORMAT_DEFAULT  VLM_INT8

typedef struct {
    vlm_type_t   type;
    const char  *name;                 /* "bf16": in configurations, logs and lists */
    uint32_t     bits;                 /* of an element */

    /* -- in a file -- */

    const char  *spelt;                /* "BF16": as safetensors call it; NULL: read from none */
    /* Elements [first, first + n) as f32; data may be unaligned. */
    void       (*read)(const uint8_t *data, uint64_t first, uint64_t n, float *out);

    uint32_t     block, bytes;         /* elements that share scales there, and bytes of these */

    /* -- in memory -- */

    int          resident;             /* 1: the weights of a model may have this form */
    vlm_type_t   kv;                   /* the form of such a model's adapters, of its keys and
                                          values, see vlm_format_kv(), and of what reads the stream
                                          of an encoder of texts */
    int          scales;               /* 1: a row has a scale beside it */
    vlm_type_t   finer;                /* of those of its weights that this one would hurt most */

    /*
     * The rest is NULL and 0 for a form that a device packs from f32 rows.  Otherwise it packs from
     * quantised rows [K], whose values share scales: one a row.
     */

    int          cached;               /* 1: a cache file keeps it, since it is slow to make */
    uint64_t   (*row_bytes)(uint64_t K);           /* of such a row; NULL: bits of each value */
    /* One row and its scales; row may be x's own memory. */
    void       (*quantise)(const float *x, uint32_t K, void *row, float *scale);
    /* The same of a row that comes in pieces: the largest of a piece and of those before; then of
       all of them the scale, and the rounded values of a piece. */
    float      (*largest)(const float *x, uint32_t n, float before);
    float      (*scale)(float largest);
    void       (*round)(const float *x, uint32_t n, float largest, void *q);
    /* Up to VLM_PANEL quantised rows as a panel (panel.h, int4.h), and back. */
    uint64_t   (*panel_bytes)(uint32_t K);
    void       (*pack)(void *panel, const void *rows, uint32_t n, uint32_t K, uint32_t flip);
    void       (*unpack)(void *rows, const void *panel, uint32_t n, uint32_t K, uint32_t flip);
} vlm_format_t;

/*
 * Puts n values at index `at` of an array, and each `step` elements behind the one before; the form
 * is that of keys and values: VLM_F32 or VLM_BF16.
 */
void vlm_format_put(vlm_type_t type, void *array, uint64_t at, uint64_t step, const float *from,
                    uint64_t n);

/* The form of keys and values beside weights of a form; int8: of vlm_conf_t, int16: of a device. */
static inline vlm_type_t
vlm_format_kv(const vlm_format_t *f, int int8, int int16)
{
    return int8 ? VLM_INT8 : int16 && f->scales ? VLM_INT16 : f->kv;
}

/* The form of a type; never NULL for one of the enumeration. */
const vlm_format_t *vlm_format_of(vlm_type_t type);
/* NULL: files with such elements are not read. */
const vlm_format_t *vlm_format_spelt(const char *spelt);

/* The form of elements that mean something with scales beside them: "I8", "F8_E4M3"; or NULL. */
const vlm_format_t *vlm_format_scaled(const char *spelt);

/* The form of GGUF's type, whose name is put into name; NULL: it is not read. */
const vlm_format_t *vlm_format_gguf(uint32_t type, char name[12]);

/* Bytes of a row of K elements, and scales of N such rows. */
static inline uint64_t
vlm_format_row(const vlm_format_t *f, uint64_t K)
{
    return f->row_bytes != NULL ? f->row_bytes(K) : vlm_mul(K, f->bits) / 8;
}

static inline uint64_t
vlm_format_scales(const vlm_format_t *f, uint64_t N)
{
    return f->scales ? N : 0;
}

#endif
