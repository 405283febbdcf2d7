/* Fuzz target: a GGUF file.  Every value and every tensor of an accepted one can be read. */

#include <stdlib.h>
#include <string.h>

#include "load/gguf.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
read_value(const vlm_gguf_value_t *v)
{
    double             x;
    uint64_t           i;
    const uint8_t     *at = v->data;
    volatile uint64_t  sink = 0;

    for (i = 0; i < v->n && i < 100000; i++) {
        if (vlm_gguf_number(v, i, &x) != 0) {
            vlm_gguf_text_t  t = vlm_gguf_next(&at);

            sink += t.n > 0 ? (uint64_t) (uint8_t) t.p[t.n - 1] : 0;
        }
    }
}


static void
read_tensor(const vlm_tensor_t *t, const uint8_t *file, size_t bytes)
{
    float     one;
    uint32_t  i;
    uint64_t  n;

    if (t->data < file || t->bytes > bytes || t->data + t->bytes > file + bytes) {
        __builtin_trap();
    }

    for (n = 1, i = 0; i < t->n_dims; i++) {
        n *= t->dims[i];
    }

    if (n > 0) {
        t->format->read(t->data, 0, 1, &one);
        t->format->read(t->data, n - 1, 1, &one);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int         rc;
    uint32_t    i;
    vlm_err_t   err = { 0 };
    vlm_gguf_t  g;

    memset(&g, 0, sizeof(g));
    rc = vlm_gguf_parse(&g, data, bytes, "fuzz", &err);

    if ((rc != 0) != (err.code != VLM_OK)) {
        __builtin_trap();
    }

    for (i = 0; rc == 0 && i < g.n_values; i++) {
        read_value(&g.value[i]);
    }

    for (i = 0; rc == 0 && i < g.n_tensors; i++) {
        read_tensor(&g.tensor[i], data, bytes);
    }

    vlm_gguf_close(&g);

    return 0;
}
