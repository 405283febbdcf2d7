/*
 * Fuzz target: a .safetensors file.  Every accepted tensor must lie inside the file, byte by byte.
 */

#include <stdlib.h>
#include <string.h>

#include "load/safetensors.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

typedef struct {
    const uint8_t  *at;                /* the next tensor's first byte */
    uint64_t        n;                 /* bytes of all */
} cover_t;


static int
cover(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    cover_t  *c;

    (void) err;

    c = data;

    if (c->at != NULL && t->data != c->at) {
        __builtin_trap();
    }

    c->at = t->data + t->bytes;
    c->n += t->bytes;

    return strlen(t->name) > 256 || t->n_dims > VLM_MAX_DIMS ? -1 : 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int        rc;
    cover_t    c = { 0 };
    vlm_err_t  err = { 0 };

    rc = vlm_safetensors_parse(data, bytes, "fuzz", cover, &c, &err);

    if ((rc != 0) != (err.code != VLM_OK)) {
        __builtin_trap();
    }

    if (rc == 0 && c.at != NULL && c.at != data + bytes) {
        __builtin_trap();
    }

    return 0;
}
