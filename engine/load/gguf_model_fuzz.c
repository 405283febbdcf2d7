/*
 * Fuzz target: a model of two GGUF files, of which the second begins at the last magic number of
 * the input.  Every row of every tensor of an accepted model can be read, and its tokenizer used.
 */

#include <stdlib.h>
#include <string.h>

#include "load/gguf_model.h"
#include "load/quant.h"

#define MOST  (1u << 14)               /* values of a tensor that are read */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}


static void
read_tokenizer(const vlm_gguf_model_t *m)
{
    size_t            n;
    uint32_t          id;
    vlm_err_t         err = { 0 };
    vlm_ids_t         ids = { 0 };
    vlm_tokenizer_t  *t;

    static const char  text[] = "Where is the cup? <|im_end|> 12\n";

    t = vlm_gguf_tokenizer(m, &err);
    require((t == NULL) == (err.code != VLM_OK));

    if (t == NULL) {
        return;
    }

    require(vlm_encode(t, text, sizeof(text) - 1, &ids, &err) == 0);

    for (id = 0; id < ids.n; id++) {
        require(ids.ids[id] < vlm_vocab_size(t));
        (void) vlm_token_bytes(t, ids.ids[id], &n);
    }

    free(ids.ids);
    vlm_tokenizer_close(t);
}


static void
read_tensor(const vlm_tensor_t *t)
{
    float           *row;
    uint32_t         i;
    uint64_t         n, K;
    volatile float   sink = 0;

    for (K = 1, i = 1; i < t->n_dims; i++) {
        K = t->dims[i] > MOST || K > MOST ? MOST + 1 : K * t->dims[i];
    }

    if (K == 0 || K > MOST) {
        return;
    }

    row = malloc(K * sizeof(float));   /* of its exact size, for sanitizers */
    require(row != NULL);

    for (n = 0; n < t->dims[0] && n < MOST / K; n++) {
        vlm_tensor_rows(t, n, 1, row, K);
        sink += row[K - 1];
    }

    if (t->dims[0] > 0) {
        vlm_tensor_rows(t, t->dims[0] - 1, 1, row, K);
        sink += row[K - 1];
    }

    free(row);
}


static void
read_weights(vlm_gguf_model_t *m, const vlm_config_t *config)
{
    uint32_t             i;
    vlm_err_t            err = { 0 };
    vlm_checkpoint_t    *c;
    const vlm_tensor_t  *t;

    c = vlm_gguf_weights(m, config, &err);
    require((c == NULL) == (err.code != VLM_OK));

    for (i = 0; c != NULL && i < vlm_checkpoint_count(c); i++) {
        t = vlm_checkpoint_tensor(c, i);

        if (t != NULL) {
            read_tensor(t);
        }
    }

    vlm_checkpoint_close(c);
}


static void
read_model(vlm_gguf_model_t *m)
{
    int           rc;
    vlm_err_t     err = { 0 };
    vlm_config_t  config;

    read_tokenizer(m);

    rc = vlm_gguf_config(m, &config, &err);
    require((rc != 0) == (err.code != VLM_OK));

    if (rc == 0) {
        require(config.text.heads % config.text.kv_heads == 0 && config.text.vocab > 0);
        require(config.generation.image_token < config.text.vocab);
        read_weights(m, &config);
    }
}


/* A copy of its exact size. */
static uint8_t *
copy(const uint8_t *data, size_t bytes)
{
    uint8_t  *p = malloc(bytes + (bytes == 0));

    require(p != NULL);

    return memcpy(p, data, bytes);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int                rc;
    size_t             at;
    uint8_t           *text, *vision;
    vlm_err_t          err = { 0 };
    vlm_gguf_model_t   m;

    for (at = bytes < 4 ? 0 : bytes - 4; at > 0 && memcmp(data + at, VLM_GGUF_MAGIC, 4) != 0; at--)
    { /* void */ }

    if (at == 0) {
        return 0;
    }

    text = copy(data, at);
    vision = copy(data + at, bytes - at);
    rc = vlm_gguf_model_parse(&m, text, at, vision, bytes - at, &err);
    require((rc != 0) == (err.code != VLM_OK));

    if (rc == 0) {
        read_model(&m);
    }

    vlm_gguf_model_close(&m);
    free(text);
    free(vision);

    return 0;
}
