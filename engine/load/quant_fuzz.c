/*
 * Fuzz target: a quantization_config, a byte 0xff, and a .safetensors file in that form.  Every row
 * of every matrix that is accepted can be read.
 */

#include <stdlib.h>
#include <string.h>

#include "format/format.h"
#include "load/checkpoint.h"
#include "load/quant.h"

#define MOST  (1u << 16)               /* values of a matrix that are read */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void
read_matrix(const vlm_tensor_t *t)
{
    float            *row, scale;
    uint64_t          n, N = t->dims[0], K = t->dims[1];
    volatile float    sink = 0;

    if (N == 0 || K == 0 || N > MOST || K > MOST / N) {
        return;
    }

    row = malloc(K * sizeof(float));   /* of its exact size, for sanitizers */

    for (n = 0; row != NULL && n < N; n++) {
        vlm_tensor_rows(t, n, 1, row, K);
        sink += row[K - 1];

        if (vlm_tensor_own(t) != NULL) {
            vlm_tensor_take(t, n, row, &scale);
        }
    }

    free(row);
}


/* A vlm_tensor_fn. */
static int
take(void *data, const vlm_tensor_t *t, vlm_err_t *err)
{
    return vlm_checkpoint_add(data, t, t->name, err);
}


static void
read_file(const vlm_quant_t *q, const uint8_t *data, size_t bytes)
{
    uint32_t             i;
    vlm_err_t            err = { 0 };
    vlm_file_t           file = { 0 };
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    c = vlm_checkpoint_new("fuzz", NULL, "fuzz", &err);

    if (c == NULL || vlm_checkpoint_add_file(c, &file, "fuzz", &err) != 0) {
        __builtin_trap();
    }

    if (vlm_safetensors_parse(data, bytes, "fuzz", take, c, &err) == 0
        && vlm_quant_fold(c, q, &err) == 0)
    {
        for (i = 0; i < vlm_checkpoint_count(c); i++) {
            t = vlm_checkpoint_tensor(c, i);

            if (t != NULL && t->made != NULL) {
                read_matrix(t);
            }
        }
    }

    vlm_checkpoint_close(c);
}


/* Reads the settings; 0: there is a form. */
static int
read_settings(const uint8_t *data, size_t bytes, vlm_quant_t *q)
{
    int           rc;
    vlm_err_t     err = { 0 };
    vlm_json_t   *j;
    vlm_reader_t  r = { .file = "fuzz", .prefix = "", .err = &err };

    j = vlm_json_named(data, bytes, "fuzz", &err);
    r.top = j;
    rc = j == NULL ? -1 : vlm_quant_read(&r, q);
    vlm_json_free(j);

    if ((rc != 0) != (err.code != VLM_OK)) {
        __builtin_trap();
    }

    return rc == 0 && q->form != NULL ? 0 : -1;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    vlm_quant_t     q;
    const uint8_t  *file;

    file = bytes == 0 ? NULL : memchr(data, 0xff, bytes);

    if (file != NULL && read_settings(data, (size_t) (file - data), &q) == 0) {
        read_file(&q, file + 1, bytes - (size_t) (file + 1 - data));
    }

    return 0;
}
