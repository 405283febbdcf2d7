/*
 * Writes a complete checkpoint directory of seeded random weights, for any shape of the family.
 *
 *     random-checkpoint SHAPE.json DIR [--seed N] [--type bf16|f16|f32] [--names old|new]
 *                       [--shards N] [--gain wild|trivial] [--tokenizer DIR] [--mutate NAME]
 *
 * SHAPE.json is a config.json (bench/shapes/).  Weights come from integers alone, so that
 * t/fidelity/weights.py, whose head has the rule, makes the same ones.  They are made and written
 * a piece at a time: the 3B's 7.5 GB need a few MB of memory.  --mutate makes one small mistake,
 * for tests that have to notice it; t/fidelity/mutations.txt says what each of them does.
 */

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "base/size.h"

#define GOLDEN       UINT64_C(0x9E3779B97F4A7C15)
#define PIECE        (1u << 18)        /* elements made and written at once */
#define MAX_NUMBER   (1u << 24)        /* of any size in a shape */
#define MAX_TENSORS  8192
#define MAX_SHARDS   999
#define MAX_JSON     (64u << 20)       /* of a shape and of tokenizer.json */

typedef enum { MATRIX, PLAIN, GAIN } kind_t;       /* MATRIX: scaled by its columns */

typedef struct {
    char      name[96];                /* the published one */
    char      source[96];              /* whose numbers it holds: name, but for a mutation */
    kind_t    kind;
    float     scale;
    uint32_t  n_dims;
    uint64_t  dims[5];
    uint64_t  n;                       /* elements */
    uint32_t  shard;
    uint64_t  offset;                  /* bytes, in its shard's data */
    uint64_t  swap_a, swap_b, n_swap;  /* n_swap rows from these two change places */
    float     fixed;                   /* every element, if is_fixed */
    int       is_fixed;
} tensor_t;

typedef struct {                       /* what the tensors' sizes need, from the shape */
    uint64_t  hidden, layers, heads, kv_heads, mlp, vocab;
    uint64_t  v_hidden, v_depth, v_heads, v_mlp, channels, temporal, patch, merge;
    int       tied;
} shape_t;

typedef struct {
    const char  *shape, *dir, *tokenizer, *mutate;
    uint64_t     seed;
    vlm_type_t   type;
    int          new_names, trivial;
    uint32_t     shards;
} options_t;

typedef struct {
    options_t    opt;
    shape_t      s;
    vlm_json_t  *config;               /* the shape */
    vlm_json_t  *vocab;                /* tokenizer.json, or NULL */
    tensor_t    *tensors;              /* [n_tensors], in the file's order */
    uint32_t     n_tensors, n_shards;
    uint64_t     bytes;                /* of all tensors */
} job_t;


/* ---- numbers ------------------------------------------------------------------------------ */

static uint64_t
mix64(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);

    return z ^ (z >> 31);
}


static uint64_t
fnv1a64(const char *s)
{
    uint64_t  h;

    for (h = UINT64_C(0xCBF29CE484222325); *s != '\0'; s++) {
        h = (h ^ (uint8_t) *s) * UINT64_C(0x100000001B3);
    }

    return h;
}


/* Which element of the tensor without mutation stands at i. */
static uint64_t
origin(const tensor_t *t, uint64_t i)
{
    uint64_t  columns, row;

    if (t->n_swap == 0) {
        return i;
    }

    columns = t->n / t->dims[0];
    row = i / columns;

    if (row >= t->swap_a && row < t->swap_a + t->n_swap) {
        return i + (t->swap_b - t->swap_a) * columns;
    }

    if (row >= t->swap_b && row < t->swap_b + t->n_swap) {
        return i - (t->swap_b - t->swap_a) * columns;
    }

    return i;
}


static void
make_values(const job_t *job, const tensor_t *t, uint64_t first, uint64_t n, float *out)
{
    float     u;
    uint64_t  key, i, h;

    key = mix64(fnv1a64(t->source) + job->opt.seed * GOLDEN);

    for (i = 0; i < n; i++) {
        h = mix64(key + (origin(t, first + i) + 1) * GOLDEN);
        u = (float) ((int32_t) (h >> 40) - (1 << 23)) / (float) (1 << 23);

        if (t->is_fixed) {
            out[i] = t->fixed;
        } else if (t->kind != GAIN) {
            out[i] = u * t->scale;
        } else if (job->opt.trivial) {
            out[i] = 1.0f;
        } else {
            out[i] = (1.0f + u * 0.5f) * ((h & 7) == 0 ? -1.0f : 1.0f);
        }
    }
}


/* f32 to the file's type, halves to even; in place is fine.  Returns bytes. */
static size_t
to_type(vlm_type_t type, const float *in, uint64_t n, void *out)
{
    uint32_t   bits;
    uint64_t   i;
    uint16_t  *half;
    _Float16   f;

    if (type == VLM_F32) {
        memmove(out, in, n * sizeof(float));
        return n * sizeof(float);
    }

    half = out;

    for (i = 0; i < n; i++) {
        if (type == VLM_F16) {
            f = (_Float16) in[i];
            memcpy(&half[i], &f, sizeof(f));
        } else {
            memcpy(&bits, &in[i], sizeof(bits));
            half[i] = (uint16_t) ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
        }
    }

    return n * sizeof(uint16_t);
}


static uint64_t
type_bytes(vlm_type_t type)
{
    return type == VLM_F32 ? 4 : 2;
}


/* ---- which tensors there are -------------------------------------------------------------- */

static tensor_t *
add(job_t *job, kind_t kind, double scale, const char *prefix, const char *name, uint64_t n,
    uint64_t k)
{
    tensor_t  *t;

    t = &job->tensors[job->n_tensors++];
    memset(t, 0, sizeof(*t));

    snprintf(t->name, sizeof(t->name), "%s%s", prefix, name);
    memcpy(t->source, t->name, sizeof(t->source));
    t->kind = kind;
    t->scale = (float) (kind == MATRIX ? scale * sqrt(3.0 / (double) k) : scale);
    t->n_dims = k == 0 ? 1 : 2;
    t->dims[0] = n;
    t->dims[1] = k;
    t->n = k == 0 ? n : n * k;

    return t;
}


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

    t = add(job, MATRIX, 1.0, "visual.", "patch_embed.proj.weight", E,
            s->channels * s->temporal * s->patch * s->patch);
    t->n_dims = 5;
    t->dims[1] = s->channels;
    t->dims[2] = s->temporal;
    t->dims[3] = t->dims[4] = s->patch;

    for (i = 0; i < s->v_depth; i++) {
        snprintf(b, sizeof(b), "visual.blocks.%" PRIu64 ".", i);
        add(job, GAIN, 0, b, "norm1.weight", E, 0);
        add(job, GAIN, 0, b, "norm2.weight", E, 0);
        add(job, MATRIX, 1.25, b, "attn.qkv.weight", 3 * E, E);
        add(job, PLAIN, 1.0, b, "attn.qkv.bias", 3 * E, 0);
        add(job, MATRIX, 1.0, b, "attn.proj.weight", E, E);
        add(job, PLAIN, 0.25, b, "attn.proj.bias", E, 0);
        add(job, MATRIX, 1.5, b, "mlp.gate_proj.weight", M, E);
        add(job, PLAIN, 0.5, b, "mlp.gate_proj.bias", M, 0);
        add(job, MATRIX, 1.0, b, "mlp.up_proj.weight", M, E);
        add(job, PLAIN, 0.5, b, "mlp.up_proj.bias", M, 0);
        add(job, MATRIX, 1.0, b, "mlp.down_proj.weight", E, M);
        add(job, PLAIN, 0.5, b, "mlp.down_proj.bias", E, 0);
    }

    add(job, GAIN, 0, "visual.", "merger.ln_q.weight", E, 0);
    add(job, MATRIX, 1.0, "visual.", "merger.mlp.0.weight", cell, cell);
    add(job, PLAIN, 0.5, "visual.", "merger.mlp.0.bias", cell, 0);
    add(job, MATRIX, 1.5 * out, "visual.", "merger.mlp.2.weight", s->hidden, cell);
    add(job, PLAIN, 0.5 * out, "visual.", "merger.mlp.2.bias", s->hidden, 0);
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
    branch = s->tied ? 2.5 * out : 1.0;        /* a tied head likes the last token otherwise */

    add(job, PLAIN, out * sqrt(3.0), "model.", "embed_tokens.weight", s->vocab, D);

    for (i = 0; i < s->layers; i++) {
        snprintf(b, sizeof(b), "model.layers.%" PRIu64 ".", i);
        add(job, GAIN, 0, b, "input_layernorm.weight", D, 0);
        add(job, MATRIX, 1.5, b, "self_attn.q_proj.weight", D, D);
        add(job, PLAIN, 1.5, b, "self_attn.q_proj.bias", D, 0);
        add(job, MATRIX, 1.5, b, "self_attn.k_proj.weight", kv, D);
        add(job, PLAIN, 1.5, b, "self_attn.k_proj.bias", kv, 0);
        add(job, MATRIX, 1.0, b, "self_attn.v_proj.weight", kv, D);
        add(job, PLAIN, 0.5, b, "self_attn.v_proj.bias", kv, 0);
        add(job, MATRIX, branch, b, "self_attn.o_proj.weight", D, D);
        add(job, GAIN, 0, b, "post_attention_layernorm.weight", D, 0);
        add(job, MATRIX, 1.5, b, "mlp.gate_proj.weight", F, D);
        add(job, MATRIX, 1.0, b, "mlp.up_proj.weight", F, D);
        add(job, MATRIX, branch, b, "mlp.down_proj.weight", D, F);
    }

    add(job, GAIN, 0, "model.", "norm.weight", D, 0);

    if (!s->tied) {
        add(job, MATRIX, 4.0, "", "lm_head.weight", s->vocab, D);
    }
}


/* ---- mutations of tensors; those of config.json are in write_value() ---------------------- */

static tensor_t *
find(job_t *job, const char *fmt, uint64_t i)
{
    char      name[96];
    uint32_t  k;

    snprintf(name, sizeof(name), fmt, i);

    for (k = 0; k < job->n_tensors; k++) {
        if (strcmp(job->tensors[k].name, name) == 0) {
            return &job->tensors[k];
        }
    }

    return NULL;
}


static void
fix(tensor_t *t, float value)
{
    t->is_fixed = 1;
    t->fixed = value;
}


/* The first and the last of n heads change places, the first one's rows beginning at first. */
static void
swap_heads(tensor_t *t, uint64_t first, uint64_t head_dim, uint64_t n)
{
    if (n > 1) {
        t->swap_a = first;
        t->swap_b = first + (n - 1) * head_dim;
        t->n_swap = head_dim;
    }
}


static int
mutate_tensors(job_t *job, const char *name)
{
    float           scale;
    uint64_t        head;
    tensor_t       *gate, *up;
    const shape_t  *s;

    s = &job->s;

    if (strcmp(name, "q-heads") == 0) {
        head = s->hidden / s->heads;
        swap_heads(find(job, "model.layers.%" PRIu64 ".self_attn.q_proj.weight", 0), 0, head,
                   s->heads);
        swap_heads(find(job, "model.layers.%" PRIu64 ".self_attn.q_proj.bias", 0), 0, head,
                   s->heads);

    } else if (strcmp(name, "k-bias") == 0) {
        fix(find(job, "model.layers.%" PRIu64 ".self_attn.k_proj.bias", 0), 0.0f);

    } else if (strcmp(name, "vision-heads") == 0) {
        head = s->v_hidden / s->v_heads;
        swap_heads(find(job, "visual.blocks.%" PRIu64 ".attn.qkv.weight", 0), s->v_hidden, head,
                   s->v_heads);
        swap_heads(find(job, "visual.blocks.%" PRIu64 ".attn.qkv.bias", 0), s->v_hidden, head,
                   s->v_heads);

    } else if (strcmp(name, "vision-bias") == 0) {
        fix(find(job, "visual.blocks.%" PRIu64 ".mlp.down_proj.bias", s->v_depth - 1), 0.0f);

    } else if (strcmp(name, "gate-up") == 0) {
        gate = find(job, "model.layers.%" PRIu64 ".mlp.gate_proj.weight", s->layers - 1);
        up = find(job, "model.layers.%" PRIu64 ".mlp.up_proj.weight", s->layers - 1);
        memcpy(gate->source, up->name, sizeof(up->name));
        memcpy(up->source, gate->name, sizeof(gate->name));
        scale = gate->scale;
        gate->scale = up->scale;
        up->scale = scale;

    } else if (strcmp(name, "merger-gain") == 0) {
        fix(find(job, "visual.merger.ln_q.weight", 0), 1.0f);

    } else if (strcmp(name, "mrope") != 0 && strcmp(name, "window") != 0) {
        return -1;
    }

    return 0;
}


/* ---- JSON: reading the shape -------------------------------------------------------------- */

static int
number(const vlm_json_t *j, const char *file, const char *name, uint64_t *out, vlm_err_t *err)
{
    return vlm_json_u64(vlm_json_get(j, name), file, name, 1, MAX_NUMBER, out, err);
}


static int
read_shape(job_t *job, vlm_err_t *err)
{
    shape_t           *s;
    const char        *f;
    const vlm_json_t  *c, *v;

    s = &job->s;
    f = job->opt.shape;
    c = job->config;
    v = vlm_json_get(c, "vision_config");

    s->tied = vlm_json_bool(vlm_json_get(c, "tie_word_embeddings"), 0);

    if (number(c, f, "hidden_size", &s->hidden, err) != 0
        || number(c, f, "num_hidden_layers", &s->layers, err) != 0
        || number(c, f, "num_attention_heads", &s->heads, err) != 0
        || number(c, f, "num_key_value_heads", &s->kv_heads, err) != 0
        || number(c, f, "intermediate_size", &s->mlp, err) != 0
        || number(c, f, "vocab_size", &s->vocab, err) != 0
        || number(v, f, "hidden_size", &s->v_hidden, err) != 0
        || number(v, f, "depth", &s->v_depth, err) != 0
        || number(v, f, "num_heads", &s->v_heads, err) != 0
        || number(v, f, "intermediate_size", &s->v_mlp, err) != 0
        || number(v, f, vlm_json_get(v, "in_chans") ? "in_chans" : "in_channels", &s->channels,
                  err) != 0
        || number(v, f, "temporal_patch_size", &s->temporal, err) != 0
        || number(v, f, "patch_size", &s->patch, err) != 0
        || number(v, f, "spatial_merge_size", &s->merge, err) != 0)
    {
        return -1;
    }

    if (vlm_json_count(vlm_json_get(vlm_json_get(c, "rope_scaling"), "mrope_section")) != 3
        || !(vlm_json_number(vlm_json_get(c, "rope_theta"), 0) > 0))
    {
        return vlm_fail(err, VLM_EMODEL, "%s: no rope_theta, or no mrope_section of 3 numbers", f);
    }

    if (s->hidden % s->heads != 0 || s->v_hidden % s->v_heads != 0
        || 16 * (s->layers + s->v_depth) > MAX_TENSORS)
    {
        return vlm_fail(err, VLM_EMODEL, "%s: heads do not divide the hidden size, or more than "
                        "%u layers", f, MAX_TENSORS / 16);
    }

    return 0;
}


/* The id of a control token in tokenizer.json, or -1. */
static int64_t
token_id(const job_t *job, const char *name)
{
    const char        *content;
    const vlm_json_t  *t;

    t = vlm_json_first(vlm_json_get(job->vocab, "added_tokens"));

    for ( /* void */ ; t != NULL; t = vlm_json_next(t)) {
        content = vlm_json_text(vlm_json_get(t, "content"));
        if (content != NULL && strcmp(content, name) == 0) {
            return (int64_t) vlm_json_number(vlm_json_get(t, "id"), -1);
        }
    }

    return -1;
}


/* ---- JSON: writing config.json ------------------------------------------------------------ */

/* The keys that newer files keep at the top; every other one moves to text_config. */
static const char  *top_keys[] = {
    "architectures", "model_type", "vision_config", "bos_token_id", "eos_token_id",
    "vision_start_token_id", "vision_end_token_id", "vision_token_id", "image_token_id",
    "video_token_id", "tie_word_embeddings", "torch_dtype", NULL
};

/* Control tokens follow the tokenizer, whatever ids the shape says. */
static const struct {
    const char  *key, *token;
} control[] = {
    { "bos_token_id", "<|endoftext|>" },
    { "eos_token_id", "<|im_end|>" },
    { "vision_start_token_id", "<|vision_start|>" },
    { "vision_end_token_id", "<|vision_end|>" },
    { "vision_token_id", "<|vision_pad|>" },
    { "image_token_id", "<|image_pad|>" },
    { "video_token_id", "<|video_pad|>" },
    { NULL, NULL }
};


static int
is_top(const char *key)
{
    int  i;

    for (i = 0; top_keys[i] != NULL; i++) {
        if (strcmp(key, top_keys[i]) == 0) {
            return 1;
        }
    }

    return 0;
}


static int64_t
control_id(const job_t *job, const char *key)
{
    int  i;

    for (i = 0; control[i].key != NULL; i++) {
        if (strcmp(key, control[i].key) == 0) {
            return token_id(job, control[i].token);
        }
    }

    return -1;
}


/* [1, 2, 3] or, to mutate it, [2, 1, 3]. */
static void
write_sections(FILE *f, const vlm_json_t *j, int swap)
{
    double             n[3];
    int                i;
    const vlm_json_t  *e;

    for (i = 0, e = vlm_json_first(j); i < 3; i++, e = vlm_json_next(e)) {
        n[i] = vlm_json_number(e, 0);
    }

    fprintf(f, "[%g, %g, %g]", n[swap ? 1 : 0], n[swap ? 0 : 1], n[2]);
}


/* The list of blocks without windows; to mutate it, block 0 is taken out or put in. */
static void
write_full(FILE *f, const vlm_json_t *j, int flip)
{
    int                n, had;
    const vlm_json_t  *e;

    e = vlm_json_first(j);
    had = e != NULL && vlm_json_number(e, -1) == 0;
    n = 0;

    fputc('[', f);

    if (flip && !had) {
        fputs("0", f);
        n++;
    }

    for ( /* void */ ; e != NULL; e = vlm_json_next(e)) {
        if (!flip || vlm_json_number(e, -1) != 0) {
            fprintf(f, "%s%g", n++ == 0 ? "" : ", ", vlm_json_number(e, 0));
        }
    }

    fputc(']', f);
}


static void write_value(const job_t *job, FILE *f, const vlm_json_t *j, int indent);


static void
write_member(const job_t *job, FILE *f, const vlm_json_t *j, int indent, int *n)
{
    int64_t      id;
    const char  *key, *mutate;

    key = vlm_json_key(j);
    mutate = job->opt.mutate == NULL ? "" : job->opt.mutate;
    id = control_id(job, key);

    fprintf(f, "%s\n%*s\"%s\": ", (*n)++ == 0 ? "" : ",", indent, "", key);

    if (id >= 0) {
        fprintf(f, "%" PRId64, id);
    } else if (strcmp(key, "mrope_section") == 0) {
        write_sections(f, j, strcmp(mutate, "mrope") == 0);
    } else if (strcmp(key, "fullatt_block_indexes") == 0) {
        write_full(f, j, strcmp(mutate, "window") == 0);
    } else if (strcmp(key, "torch_dtype") == 0) {
        fprintf(f, "\"%s\"", job->opt.type == VLM_F32 ? "float32"
                             : job->opt.type == VLM_F16 ? "float16" : "bfloat16");
    } else {
        write_value(job, f, j, indent);
    }
}


/* Shapes are our own files: their strings need no escapes. */
static void
write_value(const job_t *job, FILE *f, const vlm_json_t *j, int indent)
{
    int                n;
    const vlm_json_t  *e;

    n = 0;

    if (vlm_json_is_object(j)) {
        fputc('{', f);
        for (e = vlm_json_first(j); e != NULL; e = vlm_json_next(e)) {
            write_member(job, f, e, indent + 2, &n);
        }
        fprintf(f, "\n%*s}", indent, "");

    } else if (vlm_json_is_array(j)) {
        fputc('[', f);
        for (e = vlm_json_first(j); e != NULL; e = vlm_json_next(e)) {
            fputs(n++ == 0 ? "" : ", ", f);
            write_value(job, f, e, indent);
        }
        fputc(']', f);

    } else if (vlm_json_text(j) != NULL) {
        fprintf(f, "\"%s\"", vlm_json_text(j));
    } else if (vlm_json_is_null(j)) {
        fputs("null", f);
    } else if (vlm_json_bool(j, -1) >= 0) {
        fputs(vlm_json_bool(j, 0) ? "true" : "false", f);
    } else {
        fprintf(f, "%.15g", vlm_json_number(j, 0));
    }
}


/* As transformers 5 writes it: rope_theta and rope_scaling are one object. */
static void
write_text_config(const job_t *job, FILE *f)
{
    int                n;
    const char        *key;
    const vlm_json_t  *e;

    n = 1;
    fputs(",\n  \"text_config\": {\n    \"model_type\": \"qwen2_5_vl_text\"", f);

    for (e = vlm_json_first(job->config); e != NULL; e = vlm_json_next(e)) {
        key = vlm_json_key(e);
        if (!is_top(key) && strcmp(key, "rope_theta") != 0 && strcmp(key, "rope_scaling") != 0) {
            write_member(job, f, e, 4, &n);
        }
    }

    fputs(",\n    \"rope_parameters\": {", f);
    n = 0;
    write_member(job, f, vlm_json_get(vlm_json_get(job->config, "rope_scaling"), "mrope_section"),
                 6, &n);
    write_member(job, f, vlm_json_get(job->config, "rope_theta"), 6, &n);
    fputs(",\n      \"rope_type\": \"default\",\n      \"type\": \"default\"\n    }\n  }", f);
}


static FILE *
create(const job_t *job, const char *name, vlm_err_t *err)
{
    FILE  *f;
    char   path[4096];

    if (vlm_file_path(path, sizeof(path), job->opt.dir, name, err) != 0) {
        return NULL;
    }

    f = fopen(path, "wb");
    if (f == NULL) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s", path, strerror(errno));
    }

    return f;
}


static int
finish(const job_t *job, FILE *f, const char *name, vlm_err_t *err)
{
    int  failed;

    failed = ferror(f);

    if (fclose(f) != 0 || failed) {
        return vlm_fail(err, VLM_EMODEL, "%s/%s: write failed: %s", job->opt.dir, name,
                        strerror(errno));
    }

    return 0;
}


static int
write_config(const job_t *job, vlm_err_t *err)
{
    FILE              *f;
    int                n;
    const vlm_json_t  *e;

    f = create(job, "config.json", err);
    if (f == NULL) {
        return -1;
    }

    n = 0;
    fputc('{', f);

    for (e = vlm_json_first(job->config); e != NULL; e = vlm_json_next(e)) {
        if (!job->opt.new_names || is_top(vlm_json_key(e))) {
            write_member(job, f, e, 2, &n);
        }
    }

    if (job->opt.new_names) {
        write_text_config(job, f);
    }

    fputs("\n}\n", f);

    return finish(job, f, "config.json", err);
}


static int
write_small_files(const job_t *job, vlm_err_t *err)
{
    FILE     *f;
    int64_t   bos, eos;

    bos = token_id(job, "<|endoftext|>");
    eos = token_id(job, "<|im_end|>");

    if (bos < 0) {
        bos = (int64_t) vlm_json_number(vlm_json_get(job->config, "bos_token_id"), 0);
    }

    if (eos < 0) {
        eos = (int64_t) vlm_json_number(vlm_json_get(job->config, "eos_token_id"), 0);
    }

    f = create(job, "generation_config.json", err);
    if (f == NULL) {
        return -1;
    }

    fprintf(f, "{\n  \"bos_token_id\": %" PRId64 ",\n  \"do_sample\": true,\n"
            "  \"eos_token_id\": [\n    %" PRId64 ",\n    %" PRId64 "\n  ],\n"
            "  \"pad_token_id\": %" PRId64 ",\n  \"repetition_penalty\": 1.05,\n"
            "  \"temperature\": 1e-06\n}\n", bos, eos, bos, bos);

    if (finish(job, f, "generation_config.json", err) != 0) {
        return -1;
    }

    f = create(job, "preprocessor_config.json", err);
    if (f == NULL) {
        return -1;
    }

    fprintf(f, "{\n  \"min_pixels\": 3136,\n  \"max_pixels\": 12845056,\n"
            "  \"patch_size\": %" PRIu64 ",\n  \"temporal_patch_size\": %" PRIu64 ",\n"
            "  \"merge_size\": %" PRIu64 ",\n"
            "  \"image_mean\": [0.48145466, 0.4578275, 0.40821073],\n"
            "  \"image_std\": [0.26862954, 0.26130258, 0.27577711],\n"
            "  \"image_processor_type\": \"Qwen2VLImageProcessor\",\n"
            "  \"processor_class\": \"Qwen2_5_VLProcessor\"\n}\n",
            job->s.patch, job->s.temporal, job->s.merge);

    return finish(job, f, "preprocessor_config.json", err);
}


static int
copy_tokenizer(const job_t *job, vlm_err_t *err)
{
    int          i;
    FILE        *f;
    char         path[4096];
    vlm_file_t   in;

    static const char  *names[] = { "tokenizer.json", "tokenizer_config.json", "vocab.json",
                                    "merges.txt", "chat_template.json", NULL };

    for (i = 0; names[i] != NULL; i++) {
        if (!vlm_file_exists(job->opt.tokenizer, names[i])) {
            continue;
        }

        if (vlm_file_path(path, sizeof(path), job->opt.tokenizer, names[i], err) != 0
            || vlm_file_open(&in, path, MAX_JSON, err) != 0)
        {
            return -1;
        }

        f = create(job, names[i], err);
        if (f == NULL) {
            vlm_file_close(&in);
            return -1;
        }

        fwrite(in.data, 1, in.bytes, f);
        vlm_file_close(&in);

        if (finish(job, f, names[i], err) != 0) {
            return -1;
        }
    }

    return 0;
}


/* ---- tensors to files --------------------------------------------------------------------- */

/* Shards of about equal size; a tensor larger than that leaves fewer of them. */
static void
place(job_t *job)
{
    uint32_t   i, shard, last;
    uint64_t   at, bytes;
    tensor_t  *t;

    job->bytes = 0;

    for (i = 0; i < job->n_tensors; i++) {
        job->bytes += job->tensors[i].n * type_bytes(job->opt.type);
    }

    job->n_shards = 0;
    last = UINT32_MAX;
    bytes = 0;
    at = 0;

    for (i = 0; i < job->n_tensors; i++) {
        t = &job->tensors[i];
        shard = (uint32_t) ((double) at / (double) job->bytes * job->opt.shards);

        if (shard != last) {
            last = shard;
            job->n_shards++;
            bytes = 0;
        }

        t->shard = job->n_shards - 1;
        t->offset = bytes;
        bytes += t->n * type_bytes(job->opt.type);
        at += t->n * type_bytes(job->opt.type);
    }
}


static void
shard_name(const job_t *job, uint32_t shard, char *buf, size_t bytes)
{
    if (job->n_shards == 1) {
        snprintf(buf, bytes, "model.safetensors");
    } else {
        snprintf(buf, bytes, "model-%05u-of-%05u.safetensors", shard + 1, job->n_shards);
    }
}


static void
file_name(const job_t *job, const tensor_t *t, char *buf, size_t bytes)
{
    if (job->opt.new_names && strncmp(t->name, "visual.", 7) == 0) {
        snprintf(buf, bytes, "model.%s", t->name);
    } else if (job->opt.new_names && strncmp(t->name, "model.", 6) == 0) {
        snprintf(buf, bytes, "model.language_model.%s", t->name + 6);
    } else {
        snprintf(buf, bytes, "%s", t->name);
    }
}


/* The header's text in memory, padded with spaces to a multiple of 8. */
static char *
make_header(const job_t *job, uint32_t shard, size_t *bytes)
{
    int              n, k;
    char            *text, name[128];
    FILE            *f;
    uint32_t         i, d;
    const tensor_t  *t;

    text = NULL;
    f = open_memstream(&text, bytes);
    if (f == NULL) {
        return NULL;
    }

    n = fprintf(f, "{\"__metadata__\":{\"format\":\"pt\"}");

    for (i = 0; i < job->n_tensors; i++) {
        t = &job->tensors[i];
        if (t->shard != shard) {
            continue;
        }

        file_name(job, t, name, sizeof(name));
        n += fprintf(f, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", name,
                     job->opt.type == VLM_F32 ? "F32" : job->opt.type == VLM_F16 ? "F16" : "BF16");
        for (d = 0; d < t->n_dims; d++) {
            n += fprintf(f, "%s%" PRIu64, d == 0 ? "" : ",", t->dims[d]);
        }
        n += fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", t->offset,
                     t->offset + t->n * type_bytes(job->opt.type));
    }

    n += fprintf(f, "}");
    k = (8 - n % 8) % 8;
    fprintf(f, "%*s", k, "");

    if (fclose(f) != 0) {
        free(text);
        return NULL;
    }

    return text;
}


static int
write_shard(const job_t *job, uint32_t shard, float *piece, vlm_err_t *err)
{
    FILE            *f;
    char            *header, name[64];
    size_t           bytes;
    uint8_t          length[8];
    uint32_t         i;
    uint64_t         at, n;
    const tensor_t  *t;

    header = make_header(job, shard, &bytes);
    if (header == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a header");
    }

    shard_name(job, shard, name, sizeof(name));
    f = create(job, name, err);
    if (f == NULL) {
        free(header);
        return -1;
    }

    for (i = 0; i < 8; i++) {
        length[i] = (uint8_t) ((uint64_t) bytes >> (8 * i));
    }

    fwrite(length, 1, 8, f);
    fwrite(header, 1, bytes, f);
    free(header);

    for (i = 0; i < job->n_tensors && !ferror(f); i++) {
        t = &job->tensors[i];
        for (at = 0; t->shard == shard && at < t->n && !ferror(f); at += n) {
            n = t->n - at < PIECE ? t->n - at : PIECE;
            make_values(job, t, at, n, piece);
            fwrite(piece, 1, to_type(job->opt.type, piece, n, piece), f);
        }
    }

    return finish(job, f, name, err);
}


static int
write_index(const job_t *job, vlm_err_t *err)
{
    FILE      *f;
    char       name[128], shard[64];
    uint32_t   i;

    f = create(job, "model.safetensors.index.json", err);
    if (f == NULL) {
        return -1;
    }

    fprintf(f, "{\n  \"metadata\": {\n    \"total_size\": %" PRIu64 "\n  },\n"
            "  \"weight_map\": {", job->bytes);

    for (i = 0; i < job->n_tensors; i++) {
        file_name(job, &job->tensors[i], name, sizeof(name));
        shard_name(job, job->tensors[i].shard, shard, sizeof(shard));
        fprintf(f, "%s\n    \"%s\": \"%s\"", i == 0 ? "" : ",", name, shard);
    }

    fputs("\n  }\n}\n", f);

    return finish(job, f, "model.safetensors.index.json", err);
}


static int
write_tensors(const job_t *job, vlm_err_t *err)
{
    int        rc;
    float     *piece;
    uint32_t   i;

    piece = malloc(PIECE * sizeof(float));
    if (piece == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u numbers", PIECE);
    }

    rc = 0;
    for (i = 0; rc == 0 && i < job->n_shards; i++) {
        rc = write_shard(job, i, piece, err);
    }

    free(piece);

    return (rc == 0 && job->n_shards > 1) ? write_index(job, err) : rc;
}


/* ---- the command -------------------------------------------------------------------------- */

static int
read_options(options_t *o, int argc, char **argv)
{
    int          i;
    const char  *v;

    memset(o, 0, sizeof(*o));
    o->type = VLM_BF16;
    o->shards = 1;

    if (argc < 3 || argc % 2 == 0) {
        return -1;
    }

    o->shape = argv[1];
    o->dir = argv[2];

    for (i = 3; i < argc; i += 2) {
        v = argv[i + 1];

        if (strcmp(argv[i], "--seed") == 0) {
            o->seed = strtoull(v, NULL, 10);
        } else if (strcmp(argv[i], "--type") == 0 && strcmp(v, "bf16") == 0) {
            o->type = VLM_BF16;
        } else if (strcmp(argv[i], "--type") == 0 && strcmp(v, "f16") == 0) {
            o->type = VLM_F16;
        } else if (strcmp(argv[i], "--type") == 0 && strcmp(v, "f32") == 0) {
            o->type = VLM_F32;
        } else if (strcmp(argv[i], "--names") == 0) {
            o->new_names = strcmp(v, "new") == 0;
        } else if (strcmp(argv[i], "--gain") == 0) {
            o->trivial = strcmp(v, "trivial") == 0;
        } else if (strcmp(argv[i], "--shards") == 0) {
            o->shards = (uint32_t) strtoul(v, NULL, 10);
        } else if (strcmp(argv[i], "--tokenizer") == 0) {
            o->tokenizer = v;
        } else if (strcmp(argv[i], "--mutate") == 0) {
            o->mutate = v;
        } else {
            return -1;
        }
    }

    return (o->shards >= 1 && o->shards <= MAX_SHARDS) ? 0 : -1;
}


static int
run(job_t *job, vlm_err_t *err)
{
    vlm_file_t  f;

    if (mkdir(job->opt.dir, 0777) != 0 && errno != EEXIST) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s", job->opt.dir, strerror(errno));
    }

    if (vlm_file_open(&f, job->opt.shape, MAX_JSON, err) != 0) {
        return -1;
    }

    job->config = vlm_json_parse(f.data, f.bytes, job->opt.shape, err);
    vlm_file_close(&f);

    if (job->config == NULL || read_shape(job, err) != 0) {
        return -1;
    }

    if (job->opt.tokenizer != NULL && vlm_file_exists(job->opt.tokenizer, "tokenizer.json")) {
        job->vocab = vlm_json_read(job->opt.tokenizer, "tokenizer.json", MAX_JSON, err);
        if (job->vocab == NULL) {
            return -1;
        }
    }

    job->tensors = calloc(MAX_TENSORS, sizeof(tensor_t));
    if (job->tensors == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %u tensors", MAX_TENSORS);
    }

    add_vision(job);
    add_text(job);
    place(job);

    if (job->opt.mutate != NULL && mutate_tensors(job, job->opt.mutate) != 0) {
        return vlm_fail(err, VLM_EINPUT, "no mutation is called \"%s\"", job->opt.mutate);
    }

    if (write_config(job, err) != 0 || write_small_files(job, err) != 0
        || (job->opt.tokenizer != NULL && copy_tokenizer(job, err) != 0))
    {
        return -1;
    }

    return write_tensors(job, err);
}


int
main(int argc, char **argv)
{
    int        rc;
    job_t      job;
    vlm_err_t  err;

    memset(&job, 0, sizeof(job));
    memset(&err, 0, sizeof(err));

    if (read_options(&job.opt, argc, argv) != 0) {
        fputs("usage: random-checkpoint SHAPE.json DIR [--seed N] [--type bf16|f16|f32]\n"
              "    [--names old|new] [--shards N] [--gain wild|trivial] [--tokenizer DIR]\n"
              "    [--mutate q-heads|k-bias|vision-heads|vision-bias|gate-up|merger-gain|mrope|"
              "window]\n", stderr);
        return 2;
    }

    rc = run(&job, &err);
    if (rc != 0) {
        fprintf(stderr, "random-checkpoint: %s\n", err.text);
    }

    free(job.tensors);
    vlm_json_free(job.vocab);
    vlm_json_free(job.config);

    return rc == 0 ? 0 : 1;
}
