/*
 * The tensors of BLOOM, with the published names.  The norm of the embedding gives the first layer
 * numbers of about 1, whatever the table's spread is, which decides the spread of the logits.
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "random.h"

#define LAYER  "h.%" PRIu64 "."


static void
list(job_t *job)
{
    char            b[64];
    uint64_t        i;
    const shape_t  *s = &job->s;
    const uint64_t  D = s->hidden;

    random_add(job, PLAIN, 4.0 * sqrt(3.0 / (double) D), "", "word_embeddings.weight", s->vocab, D);
    random_add_norm(job, "", "word_embeddings_layernorm", D);

    for (i = 0; i < s->layers; i++) {
        snprintf(b, sizeof(b), LAYER, i);
        random_add_norm(job, b, "input_layernorm", D);
        random_add_linear(job, 1.25, 1.0, b, "self_attention.query_key_value", 3 * D, D);
        random_add_linear(job, 2.5, 0.5, b, "self_attention.dense", D, D);
        random_add_norm(job, b, "post_attention_layernorm", D);
        random_add_linear(job, 1.5, 0.5, b, "mlp.dense_h_to_4h", 4 * D, D);
        random_add_linear(job, 2.0, 0.5, b, "mlp.dense_4h_to_h", D, 4 * D);
    }

    random_add_norm(job, "", "ln_f", D);

    if (!s->tied) {
        random_add(job, MATRIX, 4.0, "", "lm_head.weight", s->vocab, D);
    }
}


/* Exchanges the keys of the first and of the last head: each head has rows of q, k and v. */
static void
swap_keys(const shape_t *s, tensor_t *t)
{
    t->swap_a = s->head_dim;
    t->swap_b = s->head_dim + (s->heads - 1) * 3 * s->head_dim;
    t->n_swap = s->head_dim;
}


static int
mutate(job_t *job, const char *name)
{
    uint64_t        last;
    const shape_t  *s = &job->s;

    last = s->layers - 1;

    if (strcmp(name, "k-heads") == 0) {
        swap_keys(s, random_find(job, LAYER "self_attention.query_key_value.weight", 0));
        swap_keys(s, random_find(job, LAYER "self_attention.query_key_value.bias", 0));

    } else if (strcmp(name, "qkv-bias") == 0) {
        random_fix(random_find(job, LAYER "self_attention.query_key_value.bias", last), 0.0f);

    } else if (strcmp(name, "dense-bias") == 0) {
        random_fix(random_find(job, LAYER "self_attention.dense.bias", 0), 0.0f);

    } else if (strcmp(name, "up-bias") == 0) {
        random_fix(random_find(job, LAYER "mlp.dense_h_to_4h.bias", last), 0.0f);

    } else if (strcmp(name, "down-bias") == 0) {
        random_fix(random_find(job, LAYER "mlp.dense_4h_to_h.bias", 0), 0.0f);

    } else if (strcmp(name, "embed-gain") == 0) {
        random_fix(random_find(job, "word_embeddings_layernorm.weight", 0), 1.0f);

    } else if (strcmp(name, "embed-shift") == 0) {
        random_fix(random_find(job, "word_embeddings_layernorm.bias", 0), 0.0f);

    } else if (strcmp(name, "last-shift") == 0) {
        random_fix(random_find(job, "ln_f.bias", 0), 0.0f);

    } else {
        return -1;
    }

    return 0;
}


const random_family_t  random_bloom = {
    .model_type = "bloom",
    .list = list,
    .mutate = mutate
};
