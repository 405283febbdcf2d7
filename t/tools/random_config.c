/*
 * Writes config.json and the small files of a checkpoint.
 *
 * The shape is copied member by member, so that control tokens can be those of the tokenizer, and
 * the settings of the text model can be in the place that newer files have them in.
 */

#include <inttypes.h>
#include <string.h>

#include "base/file.h"
#include "random.h"


/* ---- control tokens ----------------------------------------------------------------------- */

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


/* ---- config.json -------------------------------------------------------------------------- */

/* Newer files have these keys at the top level, and all others in text_config. */
static const char  *top_keys[] = {
    "architectures", "model_type", "vision_config", "bos_token_id", "eos_token_id",
    "vision_start_token_id", "vision_end_token_id", "vision_token_id", "image_token_id",
    "video_token_id", "tie_word_embeddings", "torch_dtype", NULL
};

/* The ids of control tokens come from the tokenizer and not from the shape. */
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


/*
 * [1, 2, 3] or, to mutate it, [2, 1, 3].  Interleaved sections differ in their last pairs, which
 * hardly turn, so that time gets all of rows' there: [3, 0, 3].
 */
static void
write_sections(const job_t *job, FILE *f, const vlm_json_t *j, int mutate)
{
    double             n[3];
    int                i;
    const vlm_json_t  *e;

    for (i = 0, e = vlm_json_first(j); i < 3; i++, e = vlm_json_next(e)) {
        n[i] = vlm_json_number(e, 0);
    }

    if (mutate && job->family == &random_qwen3) {
        fprintf(f, "[%g, 0, %g]", n[0] + n[1], n[2]);
    } else {
        fprintf(f, "[%g, %g, %g]", n[mutate ? 1 : 0], n[mutate ? 0 : 1], n[2]);
    }
}


/* The list of blocks without windows; a mutation removes or adds block 0. */
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


/* The blocks of which DeepStack takes the output; a mutation takes the first list elsewhere. */
static void
write_lists(FILE *f, const vlm_json_t *j, int other)
{
    int                n, free_block;
    const vlm_json_t  *e;

    free_block = 0;

    for (e = vlm_json_first(j); e != NULL; /* void */ ) {
        if (vlm_json_number(e, -1) == free_block) {
            free_block++;
            e = vlm_json_first(j);
        } else {
            e = vlm_json_next(e);
        }
    }

    n = 0;
    fputc('[', f);

    for (e = vlm_json_first(j); e != NULL; e = vlm_json_next(e)) {
        fprintf(f, "%s%g", n == 0 ? "" : ", ",
                other && n == 0 ? (double) free_block : vlm_json_number(e, 0));
        n++;
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
        write_sections(job, f, j, strcmp(mutate, "mrope") == 0);
    } else if (strcmp(key, "fullatt_block_indexes") == 0) {
        write_full(f, j, strcmp(mutate, "window") == 0);
    } else if (strcmp(key, "deepstack_visual_indexes") == 0) {
        write_lists(f, j, strcmp(mutate, "block") == 0);
    } else if (strcmp(key, "torch_dtype") == 0 || strcmp(key, "dtype") == 0) {
        fprintf(f, "\"%s\"", job->opt.type == VLM_F32 ? "float32"
                             : job->opt.type == VLM_F16 ? "float16" : "bfloat16");
    } else {
        write_value(job, f, j, indent);
    }
}


/* Shapes are the project's own files, whose strings need no escapes. */
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


/* transformers 5 writes rope_theta and rope_scaling as one object. */
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


int
random_write_config(const job_t *job, vlm_err_t *err)
{
    FILE              *f;
    int                n;
    const vlm_json_t  *e;

    f = random_create(job, "config.json", err);
    if (f == NULL) {
        return -1;
    }

    n = 0;
    fputc('{', f);

    for (e = vlm_json_first(job->config); e != NULL; e = vlm_json_next(e)) {
        if (!job->opt.new_names || job->family == &random_bloom || is_top(vlm_json_key(e))) {
            write_member(job, f, e, 2, &n);
        }
    }

    if (job->opt.new_names && job->family != &random_bloom) {
        write_text_config(job, f);
    }

    fputs("\n}\n", f);

    return random_finish(job, f, "config.json", err);
}


/* transformers 5, which writes rope_parameters, has the settings in a file of another name. */
static int
write_processor(const job_t *job, vlm_err_t *err)
{
    int                     newer, size;
    FILE                   *f;
    uint64_t                min;
    const char             *name;
    const random_family_t  *a = job->family;

    size = a == &random_qwen3;
    newer = size && vlm_json_get(job->text, "rope_parameters") != NULL;
    name = newer ? "processor_config.json" : "preprocessor_config.json";
    min = job->opt.min_pixels != 0 ? job->opt.min_pixels : a->min_pixels;

    f = random_create(job, name, err);
    if (f == NULL) {
        return -1;
    }

    fprintf(f, newer ? "{\n\"image_processor\": {\n" : "{\n");
    fprintf(f, size ? "  \"size\": {\"shortest_edge\": %" PRIu64 ", \"longest_edge\": %" PRIu64 "}"
                    : "  \"min_pixels\": %" PRIu64 ",\n  \"max_pixels\": %" PRIu64,
            min, a->max_pixels);
    fprintf(f, ",\n  \"patch_size\": %" PRIu64 ",\n  \"temporal_patch_size\": %" PRIu64 ",\n"
            "  \"merge_size\": %" PRIu64 ",\n  \"image_mean\": %s,\n  \"image_std\": %s,\n"
            "  \"image_processor_type\": \"Qwen2VLImageProcessor\"%s,\n", job->s.patch,
            job->s.temporal, job->s.merge, a->mean, a->std, newer ? "}" : "");

    if (newer) {
        fprintf(f, "  \"video_processor\": {\"size\": {\"shortest_edge\": %" PRIu64
                ", \"longest_edge\": %" PRIu64 "}},\n", min, a->max_pixels);
    }

    fprintf(f, "  \"processor_class\": \"%s\"\n}\n", a->processor);

    return random_finish(job, f, name, err);
}


int
random_write_small_files(const job_t *job, vlm_err_t *err)
{
    FILE     *f;
    int64_t   bos, eos;

    bos = token_id(job, "<|endoftext|>");
    eos = token_id(job, "<|im_end|>");

    if (bos < 0) {
        bos = (int64_t) vlm_json_number(vlm_json_get(job->text, "bos_token_id"), 0);
    }

    if (eos < 0) {
        eos = (int64_t) vlm_json_number(vlm_json_get(job->text, "eos_token_id"), 0);
    }

    f = random_create(job, "generation_config.json", err);
    if (f == NULL) {
        return -1;
    }

    if (job->family->processor == NULL) {
        fprintf(f, "{\n  \"_from_model_config\": true,\n  \"bos_token_id\": %" PRId64 ",\n"
                "  \"eos_token_id\": %" PRId64 "\n}\n", bos, eos);

        return random_finish(job, f, "generation_config.json", err);
    }

    fprintf(f, "{\n  \"bos_token_id\": %" PRId64 ",\n  \"do_sample\": true,\n"
            "  \"eos_token_id\": [\n    %" PRId64 ",\n    %" PRId64 "\n  ],\n"
            "  \"pad_token_id\": %" PRId64 ",\n%s}\n", bos, eos, bos, bos, job->family->sampling);

    if (random_finish(job, f, "generation_config.json", err) != 0) {
        return -1;
    }

    return write_processor(job, err);
}


int
random_copy_tokenizer(const job_t *job, vlm_err_t *err)
{
    int          i;
    FILE        *f;
    char         path[4096];
    vlm_file_t   in;

    static const struct {
        const char             *name, *as;
        const random_family_t  *family;                /* NULL: any */
    } files[] = {
        { "tokenizer.json", "tokenizer.json", NULL },
        { "tokenizer_config.json", "tokenizer_config.json", NULL },
        { "vocab.json", "vocab.json", NULL },
        { "merges.txt", "merges.txt", NULL },
        { "chat_template.json", "chat_template.json", &random_qwen2_5 },
        { "qwen3.jinja", "chat_template.jinja", &random_qwen3 },
        { NULL, NULL, NULL }
    };

    for (i = 0; files[i].name != NULL; i++) {
        if ((files[i].family != NULL && files[i].family != job->family)
            || !vlm_file_exists(job->opt.tokenizer, files[i].name))
        {
            continue;
        }

        if (vlm_file_path(path, sizeof(path), job->opt.tokenizer, files[i].name, err) != 0
            || vlm_file_open(&in, path, MAX_JSON, err) != 0)
        {
            return -1;
        }

        f = random_create(job, files[i].as, err);
        if (f == NULL) {
            vlm_file_close(&in);
            return -1;
        }

        fwrite(in.data, 1, in.bytes, f);
        vlm_file_close(&in);

        if (random_finish(job, f, files[i].as, err) != 0) {
            return -1;
        }
    }

    return 0;
}
