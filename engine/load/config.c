/*
 * Reads config.json, generation_config.json and the processor's file into one structure.
 *
 * config.json's model_type names the family, which reads the rest of that file.  Every setting that
 * is not understood is refused, with the file, the path and the value: if it were ignored, answers
 * would be slightly wrong.  Defaults are those of transformers' classes, except for the sizes that
 * every published file has.
 */

#include "load/config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "family/family.h"
#include "load/item.h"

#define MAX_FILE       (4u << 20)      /* bytes of a config file */
#define MAX_PIXELS     (1u << 30)


/* ---- tokens that end an answer ------------------------------------------- */

static int
add_eos(const vlm_reader_t *r, vlm_item_t it, uint32_t vocab, vlm_generation_config_t *g)
{
    uint32_t  i, id;

    if (vlm_item_u32(r, it, 0, vocab - 1, &id) != 0) {
        return -1;
    }

    for (i = 0; i < g->n_eos; i++) {
        if (g->eos[i] == id) {
            return 0;
        }
    }

    if (g->n_eos == VLM_MAX_EOS) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: more than %u ids in eos_token_id", r->file,
                        VLM_MAX_EOS);
    }

    g->eos[g->n_eos++] = id;

    return 0;
}


/* An id or a list of them; none if the key is absent. */
static int
read_eos(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    vlm_item_t         it, one;
    uint32_t           i;
    const vlm_json_t  *e;

    it = vlm_item_text(r, "eos_token_id");

    if (it.j == NULL) {
        return 0;
    }

    if (!vlm_json_is_array(it.j)) {
        return add_eos(r, it, vocab, g);
    }

    for (i = 0, e = vlm_json_first(it.j); e != NULL; i++, e = vlm_json_next(e)) {
        one = vlm_item_element(&it, e, i);
        if (add_eos(r, one, vocab, g) != 0) {
            return -1;
        }
    }

    return 0;
}


/* ---- generation_config.json ---------------------------------------------- */

/* The defaults for checkpoints without the file. */
static void
default_generation(vlm_generation_config_t *g)
{
    g->temperature = 0.7f;
    g->top_k = 50;
    g->top_p = 1;
    g->repetition_penalty = 1.05f;
}


/* The family's ids, where the vocabulary has them. */
static void
default_eos(vlm_config_t *c)
{
    uint32_t                  i;
    vlm_generation_config_t  *g = &c->generation;
    const vlm_family_t       *f = c->family;

    for (i = 0; i < f->n_eos; i++) {
        if (f->eos[i] >= c->text.vocab) {
            g->n_eos = 0;
            return;
        }

        g->eos[g->n_eos++] = f->eos[i];
    }
}


/* An absent key takes the default of transformers' GenerationConfig: greedy, for one. */
static int
read_generation(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    if (r->top == NULL) {
        default_generation(g);
        return 0;
    }

    if (read_eos(r, vocab, g) != 0
        || vlm_item_f32_or(r, vlm_item_top(r, "temperature"), 0.0, 100.0, 1.0, &g->temperature)
           != 0
        || vlm_item_f32_or(r, vlm_item_top(r, "top_p"), 0.0, 1.0, 1.0, &g->top_p) != 0
        || vlm_item_f32_or(r, vlm_item_top(r, "repetition_penalty"), 0.01, 100.0, 1.0,
                           &g->repetition_penalty) != 0
        || vlm_item_u32_or(r, vlm_item_top(r, "top_k"), 0, VLM_MAX_VOCAB, 50, &g->top_k) != 0)
    {
        return -1;
    }

    if (!vlm_json_bool(vlm_json_get(r->top, "do_sample"), 0)) {
        g->temperature = 0;
    }

    return 0;
}


/* ---- the processors' files ----------------------------------------------- */

static int
read_triple(const vlm_reader_t *r, const char *key, double low, double high, float out[3])
{
    uint32_t           i;
    vlm_item_t         it, one;
    const vlm_json_t  *e;

    it = vlm_item_top(r, key);

    if (it.j == NULL) {
        return 0;
    }

    if (!vlm_json_is_array(it.j) || vlm_json_count(it.j) != 3) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of 3 numbers", r->file, it.path);
    }

    for (i = 0, e = vlm_json_first(it.j); i < 3; i++, e = vlm_json_next(e)) {
        one = vlm_item_element(&it, e, i);
        if (vlm_item_f32_or(r, one, low, high, 0.0, &out[i]) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The steps of the processor that are not settings here must be those of the family. */
static int
check_steps(const vlm_reader_t *r, const vlm_vision_config_t *v)
{
    int       i;
    float     scale;
    uint32_t  n;

    static const char  *steps[] = { "do_resize", "do_rescale", "do_normalize", NULL };

    for (i = 0; steps[i] != NULL; i++) {
        if (!vlm_json_bool(vlm_json_get(r->top, steps[i]), 1)) {
            return vlm_fail(r->err, VLM_EMODEL, "%s: %s%s is false, which is not supported",
                            r->file, r->prefix, steps[i]);
        }
    }

    const vlm_field_t  fields[] = {
        { "patch_size", 0, v->patch, v->patch, v->patch },
        { "temporal_patch_size", 0, v->temporal, v->temporal, v->temporal },
        { "merge_size", 0, v->merge, v->merge, v->merge },
        { "resample", 0, 3, 3, 3 },
        { NULL, 0, 0, 0, 0 }
    };

    if (vlm_item_f32_or(r, vlm_item_top(r, "rescale_factor"), 0.99 / 255, 1.01 / 255, 1.0 / 255,
                        &scale) != 0)
    {
        return -1;
    }

    return vlm_items_read(r, vlm_item_top, fields, &n);
}


static int
read_bounds(const vlm_reader_t *r, vlm_pixel_config_t *p)
{
    char        path[80];
    uint32_t    low, high;
    vlm_item_t  min, max, size;

    size = vlm_item_top(r, "size");            /* the key of newer files */
    min = vlm_item_top(r, "min_pixels");
    max = vlm_item_top(r, "max_pixels");

    snprintf(path, sizeof(path), "%.60s.", size.path);

    if (min.j == NULL) {
        min = vlm_item(size.j, path, "shortest_edge");
    }

    if (max.j == NULL) {
        max = vlm_item(size.j, path, "longest_edge");
    }

    if (vlm_item_u32_or(r, min, 1, MAX_PIXELS, (uint32_t) p->min_pixels, &low) != 0
        || vlm_item_u32_or(r, max, 1, MAX_PIXELS, (uint32_t) p->max_pixels, &high) != 0)
    {
        return -1;
    }

    if (low > high && min.j != NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %smin_pixels %u is more than max_pixels %u",
                        r->file, r->prefix, low, high);
    }

    p->min_pixels = low < high ? low : high;
    p->max_pixels = high;
    p->said = 1;

    return 0;
}


static int
read_pixels(const vlm_reader_t *r, vlm_pixel_config_t *p, const vlm_vision_config_t *v)
{
    if (read_bounds(r, p) != 0
        || read_triple(r, "image_mean", -10.0, 10.0, p->mean) != 0
        || read_triple(r, "image_std", 1e-3, 10.0, p->std) != 0)
    {
        return -1;
    }

    return check_steps(r, v);
}


/* ---- the files ----------------------------------------------------------- */

/* config.json, by the family that it names. */
static int
read_config(vlm_config_t *c, const vlm_reader_t *r)
{
    char         known[160];
    vlm_item_t   type;
    const char  *name;

    type = vlm_item_top(r, "model_type");
    name = vlm_json_text(type.j);
    vlm_family_list(known, sizeof(known));

    if (type.j == NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no model_type, expected %s", r->file, known);
    }

    c->family = name == NULL ? NULL : vlm_family_find(name);

    if (c->family == NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is \"%s\", only %s is understood", r->file,
                        type.path, name == NULL ? "not a text" : vlm_printable(name), known);
    }

    c->words = &c->family->words;
    c->vision.order = c->family->order;
    c->pixel = c->family->pixel;
    c->video = c->family->video;

    return c->family->read(r, c) != 0 ? -1 : vlm_quant_read(r, &c->quant);
}


/* Opens a file's text as an object; r->top is NULL if there is no such file. */
static int
open_file(vlm_reader_t *r, const vlm_config_file_t *f)
{
    r->file = f->path;
    r->top = r->text = r->vision = NULL;
    r->prefix = "";

    if (f->data == NULL) {
        return 0;
    }

    r->top = vlm_json_named(f->data, f->bytes, f->path, r->err);
    if (r->top == NULL) {
        return -1;
    }

    if (!vlm_json_is_object(r->top)) {
        (void) vlm_fail(r->err, VLM_EMODEL, "%s: not a JSON object", f->path);
        vlm_json_free((vlm_json_t *) r->top);
        r->top = NULL;
        return -1;
    }

    r->text = vlm_json_get(r->top, "text_config");
    r->vision = vlm_json_get(r->top, "vision_config");

    return 0;
}


static void
close_file(vlm_reader_t *r)
{
    vlm_json_free((vlm_json_t *) r->top);
    r->top = NULL;
}


/*
 * transformers 5 writes the picture settings into processor_config.json, under "image_processor",
 * and reads that file first; older versions keep other settings in it.
 */
static int
read_processor(vlm_config_t *c, vlm_reader_t *r, const vlm_config_file_t file[2])
{
    int                rc;
    const vlm_json_t  *document, *nested;

    if (open_file(r, &file[1]) != 0) {
        return -1;
    }

    nested = vlm_json_get(r->top, "image_processor");

    if (!vlm_json_is_object(nested)) {
        nested = NULL;
        close_file(r);

        if (open_file(r, &file[0]) != 0) {
            return -1;
        }
    }

    if (r->top == NULL) {
        return 0;
    }

    document = r->top;

    if (nested != NULL) {
        r->top = nested;
        r->prefix = "image_processor.";
    }

    rc = read_pixels(r, &c->pixel, &c->vision);

    r->top = document;
    close_file(r);

    return rc;
}


/*
 * A processor of video's own settings.  Frames go through the patch embedding of pictures, so that
 * they must be normalised as these are.
 */
static int
read_frames(const vlm_reader_t *r, vlm_config_t *c)
{
    vlm_pixel_config_t  like = c->pixel;

    if (read_pixels(r, &like, &c->vision) != 0) {
        return -1;
    }

    if (memcmp(like.mean, c->pixel.mean, sizeof(like.mean)) != 0
        || memcmp(like.std, c->pixel.std, sizeof(like.std)) != 0)
    {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %simage_mean or image_std is not that of "
                        "pictures, which is not supported", r->file, r->prefix);
    }

    return 0;
}


/*
 * The bounds of a video's frames are in the first of three files that there is, as for
 * transformers: the video's own, the older one of pictures, and that of version 5.
 */
static int
read_video(vlm_config_t *c, vlm_reader_t *r, const vlm_config_file_t file[3])
{
    int                rc;
    const vlm_json_t  *document, *nested;

    if (open_file(r, file[2].data != NULL ? &file[2] : &file[file[0].data == NULL]) != 0) {
        return -1;
    }

    if (r->top == NULL) {
        return 0;
    }

    document = r->top;
    nested = vlm_json_get(document, "video_processor");

    if (vlm_json_is_object(nested)) {
        r->top = nested;
        r->prefix = "video_processor.";
    }

    rc = read_bounds(r, &c->video);

    if (rc == 0 && (file[2].data != NULL || r->top == nested)) {
        rc = read_frames(r, c);
    }

    r->top = document;
    close_file(r);

    return rc;
}


int
vlm_config_parse(vlm_config_t *c, const vlm_config_file_t file[VLM_CONFIG_FILES], vlm_err_t *err)
{
    int                      rc;
    vlm_reader_t             r;
    vlm_generation_config_t  fallback;

    memset(c, 0, sizeof(*c));
    memset(&fallback, 0, sizeof(fallback));
    r.err = err;

    if (open_file(&r, &file[0]) != 0) {
        return -1;
    }

    rc = read_config(c, &r) != 0 || read_eos(&r, c->text.vocab, &fallback) != 0 ? -1 : 0;
    close_file(&r);

    if (rc != 0 || open_file(&r, &file[1]) != 0) {
        return -1;
    }

    rc = read_generation(&r, c->text.vocab, &c->generation);
    close_file(&r);

    if (c->generation.n_eos == 0) {
        memcpy(c->generation.eos, fallback.eos, sizeof(fallback.eos));
        c->generation.n_eos = fallback.n_eos;
    }

    if (c->generation.n_eos == 0) {
        default_eos(c);
    }

    if (rc != 0 || c->vision.depth == 0) {
        return rc;
    }

    return read_processor(c, &r, &file[2]) != 0 ? -1 : read_video(c, &r, &file[2]);
}


int
vlm_config_read(vlm_config_t *c, const char *dir, vlm_err_t *err)
{
    int                i, rc;
    char               path[VLM_CONFIG_FILES][4096];
    vlm_file_t         f[VLM_CONFIG_FILES];
    vlm_config_file_t  file[VLM_CONFIG_FILES];

    static const char  *names[VLM_CONFIG_FILES] = {
        "config.json", "generation_config.json", "preprocessor_config.json",
        "processor_config.json", "video_preprocessor_config.json"
    };

    memset(f, 0, sizeof(f));
    memset(file, 0, sizeof(file));
    rc = vlm_file_check_dir(dir, names[0], err);

    for (i = 0; rc == 0 && i < VLM_CONFIG_FILES; i++) {
        rc = vlm_file_path(path[i], sizeof(path[i]), dir, names[i], err);

        if (rc == 0 && (i == 0 || vlm_file_exists(dir, names[i]))) {
            rc = vlm_file_open(&f[i], path[i], MAX_FILE, err);
            file[i].data = f[i].data == NULL ? (const void *) "" : f[i].data;
        }

        file[i].path = path[i];
        file[i].bytes = f[i].bytes;
    }

    if (rc == 0) {
        rc = vlm_config_parse(c, file, err);
    }

    for (i = 0; i < VLM_CONFIG_FILES; i++) {
        vlm_file_close(&f[i]);
    }

    return rc;
}
