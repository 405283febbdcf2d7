/* GGUF, version 3: one file with keys, and tensors whose elements lie in blocks. */

#ifndef VLM_GGUF_H
#define VLM_GGUF_H

#include "base/file.h"
#include "load/safetensors.h"

#define VLM_GGUF_MAGIC  "GGUF"

typedef struct {                       /* text in the file, without a zero */
    const char  *p;
    uint64_t     n;
} vlm_gguf_text_t;

typedef struct {
    vlm_gguf_text_t  key;
    uint32_t         type;             /* of the value, or of an array's elements */
    int              array;
    uint64_t         n;                /* elements */
    const uint8_t   *data;             /* checked to the last element */
} vlm_gguf_value_t;

typedef struct {
    const char        *path;           /* for messages; kept */
    vlm_file_t         file;
    vlm_gguf_value_t  *value;          /* [n_values] sorted by key */
    uint32_t           n_values;
    vlm_tensor_t      *tensor;         /* [n_tensors] by offset, names are malloc()ed */
    uint32_t           n_tensors;
} vlm_gguf_t;

/*
 * Reads the head of a whole file [bytes], which is kept.  Every text and array lies in the file,
 * tensors begin where the format says and do not overlap, no key or name is there twice.  -1:
 * VLM_EMODEL, VLM_EMEMORY; vlm_gguf_close() is needed either way.
 */
int vlm_gguf_parse(vlm_gguf_t *g, const uint8_t *file, uint64_t bytes, const char *path,
                   vlm_err_t *err);
/* The same for a file; VLM_EMODEL says what it is if it is none. */
int vlm_gguf_open(vlm_gguf_t *g, const char *path, vlm_err_t *err);
/* 0: the file begins as one; else -1 and such a sentence. */
int vlm_gguf_check(const char *path, vlm_err_t *err);
void vlm_gguf_close(vlm_gguf_t *g);    /* a zeroed structure is fine */

const vlm_gguf_value_t *vlm_gguf_find(const vlm_gguf_t *g, const char *key);
/* Element i of a value that is a number or a list of them; -1: there is no such number. */
int vlm_gguf_number(const vlm_gguf_value_t *v, uint64_t i, double *out);
/* A text; n is 0 if the value is none.  And the next one of an array, whose data is at first. */
vlm_gguf_text_t vlm_gguf_text(const vlm_gguf_value_t *v);
vlm_gguf_text_t vlm_gguf_next(const uint8_t **at);
int vlm_gguf_is_texts(const vlm_gguf_value_t *v);  /* an array of texts */
int vlm_gguf_same(vlm_gguf_text_t t, const char *s);

#endif
