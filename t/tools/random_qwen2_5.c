/*
 * The tensors of Qwen2.5-VL.
 *
 * Scales keep every activation finite and near one, attention peaked and logits some units apart.
 * Biases are large and gains far from one, so that an engine that omits one has other answers.
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "random.h"

#define LAYER  "model.layers.%" PRIu64 "."
#define BLOCK  "visual.blocks.%" PRIu64 "."


static void
add_vision(job_t *job)
{
    char            b[64];
    double          out;
    uint64_t        i, E, M, cell;
    tensor_t       *t;
    const shape_t  *s;

    s = &job->s;
    E = s->v_hidden;
    M = s->v_mlp;
    cell = E * s->merge * s->merge;
    out = s->tied ? 4.0 / sqrt((double) s->hidden) : 1.0;

    t = random_add(job, MATRIX, 1.0, "visual.", "patch_embed.proj.weight", E,
            s->channels * s->temporal * s->patch * s->patch);
    t->n_dims = 5;
    t->dims[1] = s->channels;
    t->dims[2] = s->temporal;
    t->dims[3] = t->dims[4] = s->patch;

    for (i = 0; i < s->v_depth; i++) {
        snprintf(b, sizeof(b), BLOCK, i);
        random_add(job, GAIN, 1, b, "norm1.weight", E, 0);
        random_add(job, GAIN, 1, b, "norm2.weight", E, 0);
        random_add(job, MATRIX, 1.25, b, "attn.qkv.weight", 3 * E, E);
        random_add(job, PLAIN, 1.0, b, "attn.qkv.bias", 3 * E, 0);
        random_add(job, MATRIX, 1.0, b, "attn.proj.weight", E, E);
        random_add(job, PLAIN, 0.25, b, "attn.proj.bias", E, 0);
        random_add(job, MATRIX, 1.5, b, "mlp.gate_proj.weight", M, E);
        random_add(job, PLAIN, 0.5, b, "mlp.gate_proj.bias", M, 0);
        random_add(job, MATRIX, 1.0, b, "mlp.up_proj.weight", M, E);
        random_add(job, PLAIN, 0.5, b, "mlp.up_proj.bias", M, 0);
        random_add(job, MATRIX, 1.0, b, "mlp.down_proj.weight", E, M);
        random_add(job, PLAIN, 0.5, b, "mlp.down_proj.bias", E, 0);
    }

    random_add(job, GAIN, 1, "visual.", "merger.ln_q.weight", E, 0);
    random_add(job, MATRIX, 1.0, "visual.", "merger.mlp.0.weight", cell, cell);
    random_add(job, PLAIN, 0.5, "visual.", "merger.mlp.0.bias", cell, 0);
    random_add(job, MATRIX, 1.5 * out, "visual.", "merger.mlp.2.weight", s->hidden, cell);
    random_add(job, PLAIN, 0.5 * out, "visual.", "merger.mlp.2.bias", s->hidden, 0);
}


static void
add_text(job_t *job)
{
    char            b[64];
    double          out, branch;
    uint64_t        i, D, F, kv;
    const shape_t  *s;

    s = &job->s;
    D = s->hidden;
    F = s->mlp;
    kv = D / s->heads * s->kv_heads;
    out = s->tied ? 4.0 / sqrt((double) D) : 1.0;      /* spread of embeddings and features */
    branch = s->tied ? 2.5 * out : 1.0;        /* else a tied head would repeat the last token */

    random_add(job, PLAIN, out * sqrt(3.0), "model.", "embed_tokens.weight", s->vocab, D);

    for (i = 0; i < s->layers; i++) {
        snprintf(b, sizeof(b), LAYER, i);
        random_add(job, GAIN, 1, b, "input_layernorm.weight", D, 0);
        random_add(job, MATRIX, 1.5, b, "self_attn.q_proj.weight", D, D);
        random_add(job, PLAIN, 1.5, b, "self_attn.q_proj.bias", D, 0);
        random_add(job, MATRIX, 1.5, b, "self_attn.k_proj.weight", kv, D);
        random_add(job, PLAIN, 1.5, b, "self_attn.k_proj.bias", kv, 0);
        random_add(job, MATRIX, 1.0, b, "self_attn.v_proj.weight", kv, D);
        random_add(job, PLAIN, 0.5, b, "self_attn.v_proj.bias", kv, 0);
        random_add(job, MATRIX, branch, b, "self_attn.o_proj.weight", D, D);
        random_add(job, GAIN, 1, b, "post_attention_layernorm.weight", D, 0);
        random_add(job, MATRIX, 1.5, b, "mlp.gate_proj.weight", F, D);
        random_add(job, MATRIX, 1.0, b, "mlp.up_proj.weight", F, D);
        random_add(job, MATRIX, branch, b, "mlp.down_proj.weight", D, F);
    }

    random_add(job, GAIN, 1, "model.", "norm.weight", D, 0);

    if (!s->tied) {
        random_add(job, MATRIX, 4.0, "", "lm_head.weight", s->vocab, D);
    }
}


static void
list(job_t *job)
{
    add_vision(job);
    add_text(job);
}


/* The mutations of config.json are in random_config.c. */
static int
mutate(job_t *job, const char *name)
{
    uint64_t        head;
    tensor_t       *gate, *up;
    const shape_t  *s;

    s = &job->s;

    if (strcmp(name, "q-heads") == 0) {
        head = s->hidden / s->heads;
        random_swap_heads(random_find(job, LAYER "self_attn.q_proj.weight", 0), 0, head,
                          s->heads);
        random_swap_heads(random_find(job, LAYER "self_attn.q_proj.bias", 0), 0, head,
                          s->heads);

    } else if (strcmp(name, "k-bias") == 0) {
        random_fix(random_find(job, LAYER "self_attn.k_proj.bias", 0), 0.0f);

    } else if (strcmp(name, "vision-heads") == 0) {
        head = s->v_hidden / s->v_heads;
        random_swap_heads(random_find(job, BLOCK "attn.qkv.weight", 0), s->v_hidden, head,
                          s->v_heads);
        random_swap_heads(random_find(job, BLOCK "attn.qkv.bias", 0), s->v_hidden, head,
                          s->v_heads);

    } else if (strcmp(name, "vision-bias") == 0) {
        random_fix(random_find(job, BLOCK "mlp.down_proj.bias", s->v_depth - 1), 0.0f);

    } else if (strcmp(name, "gate-up") == 0) {
        gate = random_find(job, LAYER "mlp.gate_proj.weight", s->layers - 1);
        up = random_find(job, LAYER "mlp.up_proj.weight", s->layers - 1);
        if (gate == NULL || up == NULL) {
            return -1;
        }

        random_swap(gate, up);

    } else if (strcmp(name, "merger-gain") == 0) {
        random_fix(random_find(job, "visual.merger.ln_q.weight", 0), 1.0f);

    } else if (strcmp(name, "mrope") != 0 && strcmp(name, "window") != 0) {
        return -1;
    }

    return 0;
}


const random_family_t  random_qwen2_5 = {
    .model_type = "qwen2_5_vl",
    .min_pixels = 3136,
    .max_pixels = 12845056,
    .mean = "[0.48145466, 0.4578275, 0.40821073]",
    .std = "[0.26862954, 0.26130258, 0.27577711]",
    .processor = "Qwen2_5_VLProcessor",
    .sampling = "  \"repetition_penalty\": 1.05,\n  \"temperature\": 1e-06\n",
    .list = list,
    .mutate = mutate
};
