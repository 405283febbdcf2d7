/*
 * Fuzz target: a quantization_config, a byte 0xff, and a .safetensors file in that form.  Every row
 * of every matrix that is accepted can be read.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/format.h"
#include "load/checkpoint.h"
#include "load/quant.h"

#define MOST  (1u << 16)               /* values of a matrix that are read */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char  dir[] = "/dev/shm/vlm-quant-XXXXXX";
static char  path[64];


static void
end(void)
{
    (void) unlink(path);
    (void) rmdir(dir);
}


static int
begin(void)
{
    if (mkdtemp(dir) == NULL) {
        return -1;
    }

    (void) snprintf(path, sizeof(path), "%s/model.safetensors", dir);

    return atexit(end);
}


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


static void
read_file(const vlm_quant_t *q)
{
    uint32_t             i;
    vlm_err_t            err = { 0 };
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    c = vlm_checkpoint_open(dir, NULL, &err);

    if (c != NULL && vlm_quant_fold(c, q, &err) == 0) {
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
    FILE           *f;
    vlm_quant_t     q;
    const uint8_t  *file;

    file = bytes == 0 ? NULL : memchr(data, 0xff, bytes);

    if ((path[0] == '\0' && begin() != 0) || file == NULL
        || read_settings(data, (size_t) (file - data), &q) != 0)
    {
        return 0;
    }

    f = fopen(path, "wb");

    if (f != NULL) {
        (void) fwrite(file + 1, 1, bytes - (size_t) (file + 1 - data), f);
        (void) fclose(f);
        read_file(&q);
    }

    return 0;
}
