/*
 * Fuzz target: adapter_model.safetensors of an adapter, read for matrices of each order.  A file
 * that is accepted fits in a place, and one that vlm_lora_check() refuses is refused by
 * vlm_lora_read().
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model/lora.h"

#define D     12                       /* hidden: a turn of 4 x 3 */
#define RANK  3

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static char  dir[] = "/tmp/lora-fuzz-XXXXXX";


static void
require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}


static void
write_file(const char *name, const void *data, size_t bytes)
{
    int   fd;
    char  path[64];

    (void) snprintf(path, sizeof(path), "%s/%s", dir, name);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    require(fd != -1 && write(fd, data, bytes) == (ssize_t) bytes);
    (void) close(fd);
}


static void
remove_files(void)
{
    char  path[64];

    (void) snprintf(path, sizeof(path), "%s/adapter_model.safetensors", dir);
    (void) unlink(path);
    (void) snprintf(path, sizeof(path), "%s/adapter_config.json", dir);
    (void) unlink(path);
    (void) rmdir(dir);
}


static void
add(vlm_model_t *m, vlm_lora_matrix_t x, uint32_t K, vlm_linear_t *w)
{
    uint32_t            i;
    vlm_turned_t        t = { 0 };
    static const float  gain[D] = { 1, 2, 0.5f, 1, 1, 1, 3, 1, 1, 1, 1, -1 };

    for (w->N = 0, i = 0; i < VLM_PARTS; i++) {
        w->N += x.rows[i];
    }

    if (x.table) {
        w->N = 6;
    }

    w->K = K;
    x.w = w;
    x.period = K == D ? D : 0;

    t.gain = t.shift = x.period == 0 ? NULL : gain;
    require(vlm_lora_add(m->lora, &x, &t, NULL) == 0);
}


/* A turned model of one layer, whose matrices have all orders. */
static const vlm_model_t *
make_model(void)
{
    vlm_arena_t              a = { 0 };
    static vlm_model_t       m;
    static vlm_linear_t      w[5];
    static const char        config[] = "{\"lora_alpha\": 2, \"alpha_pattern\": {\"up\": 8}}";

    if (m.lora != NULL) {
        return &m;
    }

    require(mkdtemp(dir) != NULL && atexit(remove_files) == 0);
    write_file("adapter_config.json", config, sizeof(config) - 1);

    m.config.family = vlm_family_find("bloom");
    m.config.text.hidden = D;
    m.config.text.heads = 2;
    m.config.text.layers = 1;
    m.type = VLM_INT8;
    m.turned = 1;

    require(vlm_lora_open(&m, 1, RANK, 1, NULL) == 0);
    m.lora->packed = 1;

    add(&m, (vlm_lora_matrix_t) { .name = { "q", "k", "v" }, .rows = { D, 4, 4 },
                                  .reads = VLM_LORA_TEXT }, D, &w[0]);
    add(&m, (vlm_lora_matrix_t) { .name = { "gate", "up" }, .rows = { 64, 64 },
                                  .order = VLM_IN_TURN, .reads = VLM_LORA_TEXT }, D, &w[1]);
    add(&m, (vlm_lora_matrix_t) { .name = { "down" }, .rows = { D }, .blocks = 1,
                                  .writes = VLM_LORA_TEXT }, 64, &w[2]);
    add(&m, (vlm_lora_matrix_t) { .name = { "qkv" }, .rows = { 24 }, .order = VLM_BY_HEAD }, D,
        &w[3]);
    add(&m, (vlm_lora_matrix_t) { .name = { "embed" }, .rows = { 6 }, .table = 1,
                                  .writes = VLM_LORA_TEXT }, D, &w[4]);
    vlm_lora_place(m.lora, &a);

    return &m;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int                 refused;
    uint32_t            i;
    uint64_t            n;
    vlm_err_t           err = { 0 };
    volatile uint8_t    sink = 0;
    vlm_lora_data_t    *d;
    const vlm_model_t  *m = make_model();

    write_file("adapter_model.safetensors", data, bytes);

    refused = vlm_lora_check(m, "x", dir, &err) != 0;
    require(refused == (err.code != VLM_OK));

    memset(&err, 0, sizeof(err));
    d = vlm_lora_read(m, "x", dir, &err);
    require((d == NULL) == (err.code != VLM_OK) && (d == NULL || !refused));

    if (d == NULL) {
        return 0;
    }

    for (i = 0; i < m->lora->n; i++) {
        require(d->low[i].r <= RANK);
    }

    for (n = 0; n < m->lora->bytes; n++) {
        sink = (uint8_t) (sink + d->data[n]);
    }

    vlm_lora_data_free(d);

    return 0;
}
