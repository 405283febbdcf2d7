/*
 * Writes a complete checkpoint directory of seeded random weights, for any shape of its families.
 *
 *     random-checkpoint SHAPE.json DIR [--seed N] [--type bf16|f16|f32] [--names old|new]
 *                       [--shards N] [--gain wild|trivial] [--tokenizer DIR] [--mutate NAME]
 *                       [--values random|none] [--min-pixels N]
 *
 * SHAPE.json is a config.json (bench/shapes/).  A shape of Qwen2.5-VL is flat, and --names new
 * writes it as newer versions of transformers do; one of Qwen3-VL is written as it is, and one of
 * BLOOM, whose tensors have the names of re-saved files with --names new.
 *
 * Weights are computed from integers only, so that t/fidelity/weights.py, which documents the rule,
 * makes the same ones.  The program makes and writes them a piece at a time: the 3B's 7.5 GB need a
 * few MB of memory.  --mutate makes one small mistake, which tests must detect;
 * t/fidelity/mutations.txt describes each.  With --values none the files are sparse, of the right
 * size, which is enough for a plan of the 72B.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "random.h"

#define MAX_NUMBER  (1u << 24)         /* of any size in a shape */


/* ---- the shape ---------------------------------------------------------------------------- */

static int
number(const vlm_json_t *j, const char *file, const char *name, uint64_t *out, vlm_err_t *err)
{
    return vlm_json_u64(vlm_json_get(j, name), file, name, 1, MAX_NUMBER, out, err);
}


/* The sizes that only one family's shape has. */
static int
read_family(job_t *job, vlm_err_t *err)
{
    shape_t           *s;
    const char        *f;
    const vlm_json_t  *c, *v;

    s = &job->s;
    f = job->opt.shape;
    c = job->text;
    v = vlm_json_get(job->config, "vision_config");

    s->tied = vlm_json_bool(vlm_json_get(job->config, "tie_word_embeddings"), 0)
              || vlm_json_bool(vlm_json_get(c, "tie_word_embeddings"), 0);

    if (job->family == &random_qwen3) {
        s->lists = vlm_json_count(vlm_json_get(v, "deepstack_visual_indexes"));

        return number(c, f, "head_dim", &s->head_dim, err) != 0
               || number(v, f, "num_position_embeddings", &s->positions, err) != 0 ? -1 : 0;
    }

    if (s->hidden % s->heads != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s: heads do not divide the hidden size", f);
    }

    s->head_dim = s->hidden / s->heads;

    return 0;
}


/* A size of BLOOM, by either of its names. */
static int
either(const job_t *job, const char *name, const char *other, uint64_t *out, vlm_err_t *err)
{
    return number(job->text, job->opt.shape, vlm_json_get(job->text, name) ? name : other, out,
                  err);
}


static int
read_bloom(job_t *job, vlm_err_t *err)
{
    shape_t  *s = &job->s;

    if (either(job, "n_embed", "hidden_size", &s->hidden, err) != 0
        || either(job, "n_layer", "num_hidden_layers", &s->layers, err) != 0
        || either(job, "n_head", "num_attention_heads", &s->heads, err) != 0
        || number(job->text, job->opt.shape, "vocab_size", &s->vocab, err) != 0)
    {
        return -1;
    }

    s->tied = vlm_json_bool(vlm_json_get(job->text, "tie_word_embeddings"), 1);
    s->head_dim = s->hidden / s->heads;

    if (s->hidden % s->heads != 0 || 16 * (s->layers + 1) > MAX_TENSORS) {
        return vlm_fail(err, VLM_EMODEL, "%s: heads do not divide the hidden size, or more than %u "
                        "layers", job->opt.shape, MAX_TENSORS / 16);
    }

    return 0;
}


static int
read_shape(job_t *job, vlm_err_t *err)
{
    uint64_t           n;
    shape_t           *s;
    const char        *f;
    const vlm_json_t  *c, *v, *rope, *theta;

    if (job->family == &random_bloom) {
        return read_bloom(job, err);
    }

    s = &job->s;
    f = job->opt.shape;
    c = job->text;
    v = vlm_json_get(job->config, "vision_config");

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
        || number(v, f, "spatial_merge_size", &s->merge, err) != 0
        || read_family(job, err) != 0)
    {
        return -1;
    }

    rope = vlm_json_get(c, "rope_parameters");
    rope = rope == NULL ? vlm_json_get(c, "rope_scaling") : rope;
    theta = vlm_json_get(rope, "rope_theta");
    theta = theta == NULL ? vlm_json_get(c, "rope_theta") : theta;

    if (vlm_json_count(vlm_json_get(rope, "mrope_section")) != 3
        || !(vlm_json_number(theta, 0) > 0))
    {
        return vlm_fail(err, VLM_EMODEL, "%s: no rope_theta, or no mrope_section of 3 numbers", f);
    }

    n = s->layers + s->v_depth + s->lists;

    if (s->v_hidden % s->v_heads != 0 || 16 * (n + 1) > MAX_TENSORS) {
        return vlm_fail(err, VLM_EMODEL, "%s: vision heads do not divide the hidden size, or "
                        "more than %u layers", f, MAX_TENSORS / 16);
    }

    return 0;
}


/* ---- files -------------------------------------------------------------------------------- */

FILE *
random_create(const job_t *job, const char *name, vlm_err_t *err)
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


int
random_finish(const job_t *job, FILE *f, const char *name, vlm_err_t *err)
{
    int  failed;

    failed = ferror(f);

    if (fclose(f) != 0 || failed) {
        return vlm_fail(err, VLM_EMODEL, "%s/%s: write failed: %s", job->opt.dir, name,
                        strerror(errno));
    }

    return 0;
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
        } else if (strcmp(argv[i], "--min-pixels") == 0) {
            o->min_pixels = strtoull(v, NULL, 10);
        } else if (strcmp(argv[i], "--shards") == 0) {
            o->shards = (uint32_t) strtoul(v, NULL, 10);
        } else if (strcmp(argv[i], "--tokenizer") == 0) {
            o->tokenizer = v;
        } else if (strcmp(argv[i], "--values") == 0) {
            o->sparse = strcmp(v, "none") == 0;
        } else if (strcmp(argv[i], "--mutate") == 0) {
            o->mutate = v;
        } else {
            return -1;
        }
    }

    return (o->shards >= 1 && o->shards <= MAX_SHARDS) ? 0 : -1;
}


static int
find_family(job_t *job, vlm_err_t *err)
{
    const char  *type;

    type = vlm_json_text(vlm_json_get(job->config, "model_type"));
    type = type == NULL ? "" : type;

    if (strcmp(type, random_qwen2_5.model_type) == 0) {
        job->family = &random_qwen2_5;
        job->text = job->config;
        return 0;
    }

    if (strcmp(type, random_bloom.model_type) == 0) {
        job->family = &random_bloom;
        job->text = job->config;
        return 0;
    }

    if (strcmp(type, random_qwen3.model_type) == 0 && !job->opt.new_names) {
        job->family = &random_qwen3;
        job->text = vlm_json_get(job->config, "text_config");
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%s: model_type is \"%s\"%s", job->opt.shape, type,
                    job->opt.new_names ? ", which has no --names new" : "");
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

    job->config = vlm_json_named(f.data, f.bytes, job->opt.shape, err);
    vlm_file_close(&f);

    if (job->config == NULL || find_family(job, err) != 0 || read_shape(job, err) != 0) {
        return -1;
    }

    if (job->opt.tokenizer != NULL && vlm_file_exists(job->opt.tokenizer, "tokenizer.json")) {
        job->vocab = vlm_json_read(job->opt.tokenizer, "tokenizer.json", MAX_JSON, err);
        if (job->vocab == NULL) {
            return -1;
        }
    }

    if (random_list_tensors(job, err) != 0) {
        return -1;
    }

    if (random_write_config(job, err) != 0 || random_write_small_files(job, err) != 0
        || (job->opt.tokenizer != NULL && random_copy_tokenizer(job, err) != 0))
    {
        return -1;
    }

    return random_write_tensors(job, err);
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
              "    [--values random|none] [--min-pixels N]\n"
              "    [--mutate q-heads|k-bias|vision-heads|vision-bias|gate-up|merger-gain|mrope|"
              "window|\n        q-gain|k-gain|patch-bias|shift|lists|block|k-heads|qkv-bias|"
              "dense-bias|up-bias|\n        down-bias|embed-gain|embed-shift|last-shift]\n",
              stderr);
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
