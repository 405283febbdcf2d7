/* One .safetensors file: names, types, shapes and ranges, of a mapped file or an open one. */

#ifndef VLM_SAFETENSORS_H
#define VLM_SAFETENSORS_H

#include "format/format.h"
#include "vlm.h"

#define VLM_MAX_DIMS  8

/* The remedy for a file that ends early. */
#define VLM_DOWNLOAD  "it was not downloaded to its end; download it again"

typedef struct vlm_made_s  vlm_made_t;             /* load/quant.h */

typedef struct {
    const char     *name;              /* owned by the index that found it */
    char            dtype[12];         /* as the file spells it: "BF16" */
    const vlm_format_t *format;        /* of the elements; NULL: they are not read */
    const vlm_made_t *made;            /* how the elements are computed from other tensors, or NULL;
                                          then format and data are NULL */
    uint32_t        n_dims;
    uint64_t        dims[VLM_MAX_DIMS];            /* slowest first */
    const uint8_t  *data;              /* [bytes] in the mapped file; may be unaligned; or NULL */
    uint64_t        at;                /* of its first byte in the file */
    uint64_t        bytes;             /* type x shape, checked */
    uint32_t        file;              /* index of the shard */
} vlm_tensor_t;

/* Called for each tensor of a header, in the file's order; name is valid during the call. */
typedef int (*vlm_tensor_fn)(void *data, const vlm_tensor_t *t, vlm_err_t *err);

/*
 * Parses a whole file [bytes] and calls back for each tensor after all were checked: header length,
 * every byte of the data in exactly one tensor, type x shape = bytes, no name twice.  path is for
 * messages.  0, or -1: VLM_EMODEL, VLM_EMEMORY, or fn's error.
 */
int vlm_safetensors_parse(const uint8_t *file, uint64_t bytes, const char *path, vlm_tensor_fn fn,
                          void *data, vlm_err_t *err);

/* The same of an open file, of which the header alone is read: tensors have no data. */
int vlm_safetensors_read(int fd, uint64_t bytes, const char *path, vlm_tensor_fn fn, void *data,
                         vlm_err_t *err);

#endif
