/*
 * Reads config.json, generation_config.json and the processor's file into one structure.
 *
 * Every setting that is not understood is refused here, with the file, the path and the value: if
 * it were ignored, answers would be slightly wrong.  Defaults are those of transformers' classes,
 * except for the sizes that every published file has.
 */

#include "load/config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"

/*
 * Limits: generous for the largest published model (72B: hidden 8192, mlp 29568, 80 layers), and
 * small enough for a product of any three and four bytes to stay within 64 bits.
 */
#define MAX_FILE       (4u << 20)      /* bytes of a config file */
#define MAX_HIDDEN     (1u << 16)
#define MAX_MLP        (1u << 18)
#define MAX_VOCAB      (1u << 20)
#define MAX_HEADS      512
#define MAX_HEAD_DIM   512
#define MAX_POSITIONS  (1u << 24)      /* exact as f32, so that angles are */
#define MAX_PATCH      64
#define MAX_MERGE      8
#define MAX_TEMPORAL   4
#define MAX_WINDOW     (1u << 16)      /* pixels */
#define MAX_PIXELS     (1u << 30)

#define IMAGE_TOKEN    151655          /* the family's ids, where config.json says none */
#define VISION_START   151652
#define VISION_END     151653
#define IM_END         151645
#define END_OF_TEXT    151643

typedef struct {
    const char        *file;           /* its path, for messages */
    const vlm_json_t  *top;            /* the document */
    const vlm_json_t  *text;           /* "text_config", or NULL */
    const vlm_json_t  *vision;         /* "vision_config" */
    const char        *prefix;         /* of the paths of pixel settings */
    vlm_err_t         *err;
} reader_t;

typedef struct {
    const vlm_json_t  *j;              /* NULL: absent */
    char               path[96];
} item_t;


/* ---- values -------------------------------------------------------------- */

static item_t
item(const vlm_json_t *object, const char *prefix, const char *key)
{
    item_t  it;

    it.j = vlm_json_get(object, key);
    if (vlm_json_is_null(it.j)) {
        it.j = NULL;
    }

    snprintf(it.path, sizeof(it.path), "%.62s%.32s", prefix, key);

    return it;
}


/* A text setting: under "text_config" if that has it, else at the top. */
static item_t
text_item(const reader_t *r, const char *key)
{
    item_t  it;

    it = item(r->text, "text_config.", key);

    return it.j != NULL ? it : item(r->top, "", key);
}


static item_t
vision_item(const reader_t *r, const char *key)
{
    return item(r->vision, "vision_config.", key);
}


static item_t
pixel_item(const reader_t *r, const char *key)
{
    return item(r->top, r->prefix, key);
}


static int
whole(const reader_t *r, item_t it, uint32_t low, uint32_t high, uint32_t *out)
{
    uint64_t  n;

    if (vlm_json_u64(it.j, r->file, it.path, low, high, &n, r->err) != 0) {
        return -1;
    }

    *out = (uint32_t) n;

    return 0;
}


static int
whole_or(const reader_t *r, item_t it, uint32_t low, uint32_t high, uint32_t otherwise,
         uint32_t *out)
{
    if (it.j == NULL) {
        *out = otherwise;
        return 0;
    }

    return whole(r, it, low, high, out);
}


static int
real_or(const reader_t *r, item_t it, double low, double high, double otherwise, float *out)
{
    double  d;

    if (it.j == NULL) {
        *out = (float) otherwise;
        return 0;
    }

    d = vlm_json_number(it.j, NAN);

    if (isnan(d)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is not a number", r->file, it.path);
    }

    if (!(d >= low && d <= high)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is %.9g, expected a number from %g to %g",
                        r->file, it.path, d, low, high);
    }

    *out = (float) d;

    return 0;
}


/* A string that must be one of two (which may be the same) if it is given. */
static int
text_is(const reader_t *r, item_t it, const char *a, const char *b)
{
    const char  *s;

    if (it.j == NULL) {
        return 0;
    }

    s = vlm_json_text(it.j);

    if (s == NULL || (strcmp(s, a) != 0 && strcmp(s, b) != 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is \"%s\", only \"%s\" is understood",
                        r->file, it.path, s == NULL ? "not a text" : vlm_printable(s), b);
    }

    return 0;
}


/* ---- config.json: language model ----------------------------------------- */

/* The M-RoPE sections, their sum, the base; transformers 5 calls them "rope_parameters". */
static int
read_rope(const reader_t *r, vlm_text_config_t *t)
{
    int                i;
    char               path[96];
    item_t             rope, theta, section, s;
    const vlm_json_t  *e;

    rope = text_item(r, "rope_parameters");
    if (rope.j == NULL) {
        rope = text_item(r, "rope_scaling");
    }

    snprintf(path, sizeof(path), "%.60s.", rope.path);

    if (text_is(r, item(rope.j, path, "type"), "mrope", "default") != 0
        || text_is(r, item(rope.j, path, "rope_type"), "mrope", "default") != 0)
    {
        return -1;
    }

    theta = item(rope.j, path, "rope_theta");
    if (theta.j == NULL) {
        theta = text_item(r, "rope_theta");
    }

    if (real_or(r, theta, 1.0, 1e12, 1000000.0, &t->rope_theta) != 0) {
        return -1;
    }

    section = item(rope.j, path, "mrope_section");

    if (!vlm_json_is_array(section.j) || vlm_json_count(section.j) != 3) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of 3 numbers", r->file,
                        section.path);
    }

    for (i = 0, e = vlm_json_first(section.j); i < 3; i++, e = vlm_json_next(e)) {
        s.j = e;
        snprintf(s.path, sizeof(s.path), "%.60s[%d]", section.path, i);
        if (whole(r, s, 0, MAX_HEAD_DIM / 2, &t->mrope_section[i]) != 0) {
            return -1;
        }
    }

    return 0;
}


static int
read_head_dim(const reader_t *r, vlm_text_config_t *t)
{
    item_t  it;

    if (t->heads % t->kv_heads != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %u attention heads are no multiple of %u "
                        "key-value heads", r->file, t->heads, t->kv_heads);
    }

    it = text_item(r, "head_dim");

    if (it.j == NULL && t->hidden % t->heads != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: hidden_size %u is no multiple of %u attention "
                        "heads, and there is no head_dim", r->file, t->hidden, t->heads);
    }

    if (whole_or(r, it, 2, MAX_HEAD_DIM, t->hidden / t->heads, &t->head_dim) != 0) {
        return -1;
    }

    if (t->head_dim < 2 || t->head_dim > MAX_HEAD_DIM || t->head_dim % 2 != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: a head of %u numbers, expected an even number "
                        "from 2 to %u", r->file, t->head_dim, MAX_HEAD_DIM);
    }

    return 0;
}


/* Refuses settings that need arithmetic which is not implemented. */
static int
refuse_text(const reader_t *r)
{
    const char        *s;
    const vlm_json_t  *e;

    if (vlm_json_bool(text_item(r, "use_sliding_window").j, 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: use_sliding_window is true; sliding windows in "
                        "the language model are not supported", r->file);
    }

    for (e = vlm_json_first(text_item(r, "layer_types").j); e != NULL; e = vlm_json_next(e)) {
        s = vlm_json_text(e);
        if (s == NULL || strcmp(s, "full_attention") != 0) {
            return vlm_fail(r->err, VLM_EMODEL, "%s: layer_types has \"%s\", only "
                            "\"full_attention\" is understood", r->file,
                            s == NULL ? "?" : vlm_printable(s));
        }
    }

    if (!vlm_json_is_null(vlm_json_get(r->top, "quantization_config"))) {
        s = vlm_json_text(vlm_json_get(vlm_json_get(r->top, "quantization_config"),
                                       "quant_method"));
        return vlm_fail(r->err, VLM_EMODEL, "%s: the weights are quantised (%s); a checkpoint "
                        "in bf16, f16 or f32 is needed", r->file,
                        s == NULL ? "?" : vlm_printable(s));
    }

    return text_is(r, text_item(r, "hidden_act"), "silu", "silu");
}


static int
read_text(const reader_t *r, vlm_text_config_t *t)
{
    item_t  tied;

    if (refuse_text(r) != 0
        || whole(r, text_item(r, "hidden_size"), 1, MAX_HIDDEN, &t->hidden) != 0
        || whole(r, text_item(r, "num_hidden_layers"), 1, VLM_MAX_LAYERS, &t->layers) != 0
        || whole(r, text_item(r, "num_attention_heads"), 1, MAX_HEADS, &t->heads) != 0
        || whole(r, text_item(r, "num_key_value_heads"), 1, MAX_HEADS, &t->kv_heads) != 0
        || whole(r, text_item(r, "intermediate_size"), 1, MAX_MLP, &t->mlp) != 0
        || whole(r, text_item(r, "vocab_size"), 1, MAX_VOCAB, &t->vocab) != 0
        || whole_or(r, text_item(r, "max_position_embeddings"), 1, MAX_POSITIONS, 32768,
                    &t->max_positions) != 0
        || real_or(r, text_item(r, "rms_norm_eps"), 0.0, 1.0, 1e-5, &t->norm_eps) != 0
        || read_head_dim(r, t) != 0
        || read_rope(r, t) != 0)
    {
        return -1;
    }

    if (t->mrope_section[0] + t->mrope_section[1] + t->mrope_section[2] != t->head_dim / 2) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: mrope_section is %u, %u, %u, the sum should be "
                        "half of a head's %u", r->file, t->mrope_section[0], t->mrope_section[1],
                        t->mrope_section[2], t->head_dim);
    }

    tied = text_item(r, "tie_word_embeddings");
    t->tied = vlm_json_bool(tied.j, 0);

    return 0;
}


/* ---- config.json: vision encoder ----------------------------------------- */

static int
read_full(const reader_t *r, vlm_vision_config_t *v)
{
    item_t             it, one;
    uint32_t           i, n;
    const vlm_json_t  *e;

    it = vision_item(r, "fullatt_block_indexes");

    if (it.j == NULL) {
        for (i = 7; i < v->depth && i < 32; i += 8) {
            v->full[i] = 1;
        }
        return 0;
    }

    if (!vlm_json_is_array(it.j)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list", r->file, it.path);
    }

    for (i = 0, e = vlm_json_first(it.j); e != NULL; i++, e = vlm_json_next(e)) {
        one.j = e;
        snprintf(one.path, sizeof(one.path), "%.60s[%u]", it.path, i);
        if (whole(r, one, 0, v->depth - 1, &n) != 0) {
            return -1;
        }
        v->full[n] = 1;
    }

    return 0;
}


/* The size of a window, in merged cells. */
static int
read_window(const reader_t *r, vlm_vision_config_t *v)
{
    uint32_t  pixels, cell;

    if (whole_or(r, vision_item(r, "window_size"), 1, MAX_WINDOW, 112, &pixels) != 0) {
        return -1;
    }

    cell = v->patch * v->merge;

    if (pixels % cell != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: window_size %u is no multiple of a merged "
                        "cell's %u pixels", r->file, pixels, cell);
    }

    v->window = pixels / cell;

    return 0;
}


/* The base of the two-dimensional angles; older files lack it. */
static int
read_vision_rope(const reader_t *r, vlm_vision_config_t *v)
{
    item_t  rope;

    static const char  prefix[] = "vision_config.rope_parameters.";

    rope = vision_item(r, "rope_parameters");

    return text_is(r, item(rope.j, prefix, "rope_type"), "default", "default") != 0
           || real_or(r, item(rope.j, prefix, "rope_theta"), 1.0, 1e12, 10000.0,
                      &v->rope_theta) != 0 ? -1 : 0;
}


static int
check_vision(const reader_t *r, vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    if (v->hidden % v->heads != 0 || v->hidden / v->heads % 4 != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: vision_config.hidden_size %u in %u heads: a "
                        "head's size should be a multiple of 4", r->file, v->hidden, v->heads);
    }

    v->head_dim = v->hidden / v->heads;

    if (v->head_dim > MAX_HEAD_DIM) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: a vision head of %u numbers, at most %u",
                        r->file, v->head_dim, MAX_HEAD_DIM);
    }

    if (v->out != t->hidden) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: vision_config.out_hidden_size is %u, the "
                        "language model's hidden_size %u", r->file, v->out, t->hidden);
    }

    return 0;
}


static int
read_vision(const reader_t *r, vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    item_t  channels;

    if (!vlm_json_is_object(r->vision)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no vision_config", r->file);
    }

    channels = vision_item(r, "in_channels");
    if (channels.j == NULL) {
        channels = vision_item(r, "in_chans");
    }

    v->norm_eps = 1e-6f;               /* the class's own, no setting */

    if (text_is(r, vision_item(r, "hidden_act"), "silu", "silu") != 0
        || whole(r, vision_item(r, "hidden_size"), 1, MAX_HIDDEN, &v->hidden) != 0
        || whole_or(r, vision_item(r, "depth"), 1, VLM_MAX_LAYERS, 32, &v->depth) != 0
        || whole_or(r, vision_item(r, "num_heads"), 1, MAX_HEADS, 16, &v->heads) != 0
        || whole_or(r, vision_item(r, "intermediate_size"), 1, MAX_MLP, 3420, &v->mlp) != 0
        || whole_or(r, vision_item(r, "out_hidden_size"), 1, MAX_HIDDEN, 3584, &v->out) != 0
        || whole_or(r, channels, 3, 3, 3, &v->channels) != 0
        || whole_or(r, vision_item(r, "patch_size"), 1, MAX_PATCH, 14, &v->patch) != 0
        || whole_or(r, vision_item(r, "temporal_patch_size"), 1, MAX_TEMPORAL, 2,
                    &v->temporal) != 0
        || whole_or(r, vision_item(r, "spatial_merge_size"), 1, MAX_MERGE, 2, &v->merge) != 0
        || read_window(r, v) != 0
        || read_full(r, v) != 0
        || read_vision_rope(r, v) != 0)
    {
        return -1;
    }

    return check_vision(r, v, t);
}


/* ---- config.json: control tokens ----------------------------------------- */

static int
add_eos(const reader_t *r, item_t it, uint32_t vocab, vlm_generation_config_t *g)
{
    uint32_t  i, id;

    if (whole(r, it, 0, vocab - 1, &id) != 0) {
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
read_eos(const reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    item_t             it, one;
    uint32_t           i;
    const vlm_json_t  *e;

    it = text_item(r, "eos_token_id");

    if (it.j == NULL) {
        return 0;
    }

    if (!vlm_json_is_array(it.j)) {
        return add_eos(r, it, vocab, g);
    }

    for (i = 0, e = vlm_json_first(it.j); e != NULL; i++, e = vlm_json_next(e)) {
        one.j = e;
        snprintf(one.path, sizeof(one.path), "%.60s[%u]", it.path, i);
        if (add_eos(r, one, vocab, g) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The family's ids, where the vocabulary has them. */
static void
default_eos(uint32_t vocab, vlm_generation_config_t *g)
{
    if (vocab > IM_END) {
        g->eos[0] = IM_END;
        g->eos[1] = END_OF_TEXT;
        g->n_eos = 2;
    }
}


static int
read_tokens(const reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    if (whole_or(r, item(r->top, "", "image_token_id"), 0, vocab - 1, IMAGE_TOKEN,
                 &g->image_token) != 0
        || whole_or(r, item(r->top, "", "vision_start_token_id"), 0, vocab - 1, VISION_START,
                    &g->vision_start) != 0
        || whole_or(r, item(r->top, "", "vision_end_token_id"), 0, vocab - 1, VISION_END,
                    &g->vision_end) != 0)
    {
        return -1;
    }

    if (g->image_token >= vocab || g->vision_start >= vocab || g->vision_end >= vocab) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: picture tokens %u, %u, %u in a vocabulary of %u",
                        r->file, g->image_token, g->vision_start, g->vision_end, vocab);
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


/* An absent key takes the default of transformers' GenerationConfig: greedy, for one. */
static int
read_generation(const reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    if (r->top == NULL) {
        default_generation(g);
        return 0;
    }

    if (read_eos(r, vocab, g) != 0
        || real_or(r, item(r->top, "", "temperature"), 0.0, 100.0, 1.0, &g->temperature) != 0
        || real_or(r, item(r->top, "", "top_p"), 0.0, 1.0, 1.0, &g->top_p) != 0
        || real_or(r, item(r->top, "", "repetition_penalty"), 0.01, 100.0, 1.0,
                   &g->repetition_penalty) != 0
        || whole_or(r, item(r->top, "", "top_k"), 0, MAX_VOCAB, 50, &g->top_k) != 0)
    {
        return -1;
    }

    if (!vlm_json_bool(vlm_json_get(r->top, "do_sample"), 0)) {
        g->temperature = 0;
    }

    return 0;
}


/* ---- processor_config.json, preprocessor_config.json --------------------- */

static int
read_triple(const reader_t *r, const char *key, double low, double high, float out[3])
{
    int                i;
    item_t             it, one;
    const vlm_json_t  *e;

    it = pixel_item(r, key);

    if (it.j == NULL) {
        return 0;
    }

    if (!vlm_json_is_array(it.j) || vlm_json_count(it.j) != 3) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of 3 numbers", r->file, it.path);
    }

    for (i = 0, e = vlm_json_first(it.j); i < 3; i++, e = vlm_json_next(e)) {
        one.j = e;
        snprintf(one.path, sizeof(one.path), "%.60s[%d]", it.path, i);
        if (real_or(r, one, low, high, 0.0, &out[i]) != 0) {
            return -1;
        }
    }

    return 0;
}


/* The steps of the processor that are not settings here must be those of the family. */
static int
check_steps(const reader_t *r, const vlm_vision_config_t *v)
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

    if (real_or(r, pixel_item(r, "rescale_factor"), 0.99 / 255, 1.01 / 255, 1.0 / 255,
                &scale) != 0)
    {
        return -1;
    }

    return whole_or(r, pixel_item(r, "patch_size"), v->patch, v->patch, v->patch, &n) != 0
           || whole_or(r, pixel_item(r, "temporal_patch_size"), v->temporal, v->temporal,
                       v->temporal, &n) != 0
           || whole_or(r, pixel_item(r, "merge_size"), v->merge, v->merge, v->merge, &n) != 0
           || whole_or(r, pixel_item(r, "resample"), 3, 3, 3, &n) != 0 ? -1 : 0;
}


static int
read_pixels(const reader_t *r, vlm_pixel_config_t *p, const vlm_vision_config_t *v)
{
    char      path[80];
    item_t    min, max, size;
    uint32_t  low, high;

    size = pixel_item(r, "size");              /* the key of newer files */
    min = pixel_item(r, "min_pixels");
    max = pixel_item(r, "max_pixels");

    snprintf(path, sizeof(path), "%.60s.", size.path);

    if (min.j == NULL) {
        min = item(size.j, path, "shortest_edge");
    }

    if (max.j == NULL) {
        max = item(size.j, path, "longest_edge");
    }

    if (whole_or(r, min, 1, MAX_PIXELS, (uint32_t) p->min_pixels, &low) != 0
        || whole_or(r, max, 1, MAX_PIXELS, (uint32_t) p->max_pixels, &high) != 0
        || read_triple(r, "image_mean", -10.0, 10.0, p->mean) != 0
        || read_triple(r, "image_std", 1e-3, 10.0, p->std) != 0)
    {
        return -1;
    }

    if (low > high) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %smin_pixels %u is more than max_pixels %u",
                        r->file, r->prefix, low, high);
    }

    p->min_pixels = low;
    p->max_pixels = high;
    p->said = 1;

    return check_steps(r, v);
}


static void
default_pixels(vlm_pixel_config_t *p)
{
    static const vlm_pixel_config_t  family = {
        .min_pixels = 3136,
        .max_pixels = 12845056,
        .mean = { 0.48145466f, 0.4578275f, 0.40821073f },
        .std = { 0.26862954f, 0.26130258f, 0.27577711f }
    };

    *p = family;
}


/* ---- the files ----------------------------------------------------------- */

static int
read_config(vlm_config_t *c, const reader_t *r)
{
    item_t  type;

    type = item(r->top, "", "model_type");

    if (type.j == NULL) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no model_type, expected \"qwen2_5_vl\"", r->file);
    }

    if (text_is(r, type, "qwen2_5_vl", "qwen2_5_vl") != 0
        || read_text(r, &c->text) != 0
        || read_vision(r, &c->vision, &c->text) != 0)
    {
        return -1;
    }

    return read_tokens(r, c->text.vocab, &c->generation);
}


/* Opens a file's text as an object; r->top is NULL if there is no such file. */
static int
open_file(reader_t *r, const vlm_config_file_t *f)
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
close_file(reader_t *r)
{
    vlm_json_free((vlm_json_t *) r->top);
    r->top = NULL;
}


/*
 * transformers 5 writes the picture settings into processor_config.json, under "image_processor",
 * and reads that file first; older versions keep other settings in it.
 */
static int
read_processor(vlm_config_t *c, reader_t *r, const vlm_config_file_t file[2])
{
    int                rc;
    const vlm_json_t  *document, *nested;

    default_pixels(&c->pixel);

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


int
vlm_config_parse(vlm_config_t *c, const vlm_config_file_t file[VLM_CONFIG_FILES], vlm_err_t *err)
{
    int                      rc;
    reader_t                 r;
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
        default_eos(c->text.vocab, &c->generation);
    }

    return rc != 0 ? -1 : read_processor(c, &r, &file[2]);
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
        "processor_config.json"
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
