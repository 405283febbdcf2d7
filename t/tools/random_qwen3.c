/*
 * The tensors of Qwen3-VL, with the published names.  Scales and mistakes are as for Qwen2.5-VL;
 * gains of q's norm are twice as large, because nothing else makes attention peaked.
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "random.h"

#define TEXT    "model.language_model."
#define VISION  "model.visual."
#define LAYER   TEXT "layers.%" PRIu64 "."
#define BLOCK   VISION "blocks.%" PRIu64 "."
#define LIST    VISION "deepstack_merger_list.%" PRIu64 "."


/* The spread of embeddings and features. */
static double
spread(const shape_t *s)
{
    return s->tied ? 4.0 / sqrt((double) s->hidden) : 1.0;
}


static void
add_merger(job_t *job, const char *prefix, uint64_t normed)
{
    double          out = spread(&job->s);
    uint64_t        cell;
    const shape_t  *s = &job->s;

    cell = s->v_hidden * s->merge * s->merge;

    random_add_norm(job, prefix, "norm", normed);
    random_add_linear(job, 1.5, 0.5, prefix, "linear_fc1", cell, cell);
    random_add_linear(job, 1.5 * out, 0.5 * out, prefix, "linear_fc2", s->hidden, cell);
}


static void
add_vision(job_t *job)
{
    char            b[64];
    uint64_t        i, E;
    tensor_t       *t;
    const shape_t  *s = &job->s;

    E = s->v_hidden;

    random_add_linear(job, 1.0, 0.5, VISION, "patch_embed.proj", E,
                      s->channels * s->temporal * s->patch * s->patch);
    t = random_find(job, VISION "patch_embed.proj.weight", 0);
    t->n_dims = 5;
    t->dims[1] = s->channels;
    t->dims[2] = s->temporal;
    t->dims[3] = t->dims[4] = s->patch;

    random_add(job, PLAIN, 1.0, VISION, "pos_embed.weight", s->positions, E);

    for (i = 0; i < s->v_depth; i++) {
        snprintf(b, sizeof(b), BLOCK, i);
        random_add_norm(job, b, "norm1", E);
        random_add_norm(job, b, "norm2", E);
        random_add_linear(job, 1.25, 1.0, b, "attn.qkv", 3 * E, E);
        random_add_linear(job, 1.0, 0.25, b, "attn.proj", E, E);
        random_add_linear(job, 1.5, 0.5, b, "mlp.linear_fc1", s->v_mlp, E);
        random_add_linear(job, 1.0, 0.5, b, "mlp.linear_fc2", E, s->v_mlp);
    }

    add_merger(job, VISION "merger.", E);

    for (i = 0; i < s->lists; i++) {
        snprintf(b, sizeof(b), LIST, i);
        add_merger(job, b, E * s->merge * s->merge);
    }
}


static void
add_text(job_t *job)
{
    char            b[64];
    double          out, branch;
    uint64_t        i, D, F, q, kv;
    const shape_t  *s = &job->s;

    D = s->hidden;
    F = s->mlp;
    q = s->head_dim * s->heads;
    kv = s->head_dim * s->kv_heads;
    out = spread(s);
    branch = s->tied ? 2.5 * out : 1.0;        /* else a tied head would repeat the last token */

    random_add(job, PLAIN, out * sqrt(3.0), TEXT, "embed_tokens.weight", s->vocab, D);

    for (i = 0; i < s->layers; i++) {
        snprintf(b, sizeof(b), LAYER, i);
        random_add(job, GAIN, 1, b, "input_layernorm.weight", D, 0);
        random_add(job, MATRIX, 1.5, b, "self_attn.q_proj.weight", q, D);
        random_add(job, GAIN, 2, b, "self_attn.q_norm.weight", s->head_dim, 0);
        random_add(job, MATRIX, 1.5, b, "self_attn.k_proj.weight", kv, D);
        random_add(job, GAIN, 1, b, "self_attn.k_norm.weight", s->head_dim, 0);
        random_add(job, MATRIX, 1.0, b, "self_attn.v_proj.weight", kv, D);
        random_add(job, MATRIX, branch, b, "self_attn.o_proj.weight", D, q);
        random_add(job, GAIN, 1, b, "post_attention_layernorm.weight", D, 0);
        random_add(job, MATRIX, 1.5, b, "mlp.gate_proj.weight", F, D);
        random_add(job, MATRIX, 1.0, b, "mlp.up_proj.weight", F, D);
        random_add(job, MATRIX, branch, b, "mlp.down_proj.weight", D, F);
    }

    random_add(job, GAIN, 1, TEXT, "norm.weight", D, 0);

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


/* ---- mutations ---------------------------------------------------------------------------- */

/* DeepStack's first and last merger change places. */
static int
swap_lists(job_t *job)
{
    uint32_t  i;

    static const char  *parts[] = {
        LIST "norm.weight", LIST "norm.bias", LIST "linear_fc1.weight", LIST "linear_fc1.bias",
        LIST "linear_fc2.weight", LIST "linear_fc2.bias"
    };

    for (i = 0; job->s.lists > 1 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        random_swap(random_find(job, parts[i], 0), random_find(job, parts[i], job->s.lists - 1));
    }

    return 0;
}


/* The mutations of config.json are in random_config.c. */
static int
mutate(job_t *job, const char *name)
{
    uint64_t        E, last;
    const shape_t  *s = &job->s;

    E = s->v_hidden;
    last = s->layers - 1;

    if (strcmp(name, "q-heads") == 0) {
        random_swap_heads(random_find(job, LAYER "self_attn.q_proj.weight", 0), 0, s->head_dim,
                          s->heads);

    } else if (strcmp(name, "q-gain") == 0) {
        random_fix(random_find(job, LAYER "self_attn.q_norm.weight", 0), 1.0f);

    } else if (strcmp(name, "k-gain") == 0) {
        random_fix(random_find(job, LAYER "self_attn.k_norm.weight", last), 1.0f);

    } else if (strcmp(name, "vision-heads") == 0) {
        random_swap_heads(random_find(job, BLOCK "attn.qkv.weight", 0), E, E / s->v_heads,
                          s->v_heads);
        random_swap_heads(random_find(job, BLOCK "attn.qkv.bias", 0), E, E / s->v_heads,
                          s->v_heads);

    } else if (strcmp(name, "vision-bias") == 0) {
        random_fix(random_find(job, BLOCK "mlp.linear_fc2.bias", s->v_depth - 1), 0.0f);

    } else if (strcmp(name, "patch-bias") == 0) {
        random_fix(random_find(job, VISION "patch_embed.proj.bias", 0), 0.0f);

    } else if (strcmp(name, "shift") == 0) {
        random_fix(random_find(job, BLOCK "norm1.bias", 0), 0.0f);

    } else if (strcmp(name, "gate-up") == 0) {
        random_swap(random_find(job, LAYER "mlp.gate_proj.weight", last),
                    random_find(job, LAYER "mlp.up_proj.weight", last));

    } else if (strcmp(name, "merger-gain") == 0) {
        random_fix(random_find(job, VISION "merger.norm.weight", 0), 1.0f);

    } else if (strcmp(name, "lists") == 0) {
        return swap_lists(job);

    } else if (strcmp(name, "mrope") != 0 && strcmp(name, "block") != 0) {
        return -1;
    }

    return 0;
}


const random_family_t  random_qwen3 = {
    .model_type = "qwen3_vl",
    .processor = "Qwen3VLProcessor",
    .min_pixels = 65536,
    .max_pixels = 16777216,
    .mean = "[0.5, 0.5, 0.5]",
    .std = "[0.5, 0.5, 0.5]",
    .sampling = "  \"repetition_penalty\": 1.0,\n  \"temperature\": 0.7,\n"
                "  \"top_k\": 20,\n  \"top_p\": 0.8\n",
    .list = list,
    .mutate = mutate
};
