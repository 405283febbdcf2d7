/* The recipe of Llama and Qwen: settings of config.json, and weights outside of layers. */

#include "family/decoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chat/prompt.h"
#include "model/model.h"

const vlm_alias_t  vlm_decoder_aliases[] = {
    { "model.language_model.", "model." },
    { "model.visual.", "visual." },
    { NULL, NULL }
};

const vlm_weight_t  vlm_decoder_before[] = {
    { VLM_WEIGHT_MATRIX, VLM_MODEL(embed), { "model.embed_tokens" }, VLM_DIM_D, { VLM_DIM_V },
      VLM_STACKED, VLM_STORE, 0 },
    { VLM_WEIGHT_HEAD, VLM_MODEL(head), { "lm_head", "model.embed_tokens" }, VLM_DIM_D,
      { VLM_DIM_V }, VLM_STACKED, VLM_STORE, 0 },
    { .kind = VLM_WEIGHT_END }
};

const vlm_weight_t  vlm_decoder_after[] = {
    { VLM_WEIGHT_RMS, VLM_MODEL(norm), { "model.norm" }, VLM_DIM_D, { 0 }, 0, 0, 0 },
    { .kind = VLM_WEIGHT_END }
};


/* ---- config.json --------------------------------------------------------- */

/*
 * Sets the axis by which each pair of a head is rotated: the pairs of the first section by time,
 * those of the second by row, the others by column.  Interleaved, pairs 1, 4, ... are rotated by
 * row and 2, 5, ... by column, as many as those sections have, and all others by time.
 */
static void
set_axes(vlm_text_config_t *t, const uint32_t n[3], int interleaved)
{
    uint32_t  pair, axis;

    for (pair = 0; pair < t->head_dim / 2; pair++) {
        if (interleaved) {
            axis = pair % 3;
            axis = pair < 3 * n[axis] ? axis : 0;
        } else {
            axis = pair < n[0] ? 0 : pair < n[0] + n[1] ? 1 : 2;
        }

        t->axis[pair] = (uint8_t) axis;
    }
}


static int
read_sections(const vlm_reader_t *r, vlm_text_config_t *t, const vlm_item_t *list, int interleaved)
{
    uint32_t           i, n[3];
    const vlm_json_t  *e;

    if (!vlm_json_is_array(list->j) || vlm_json_count(list->j) != 3) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of 3 numbers", r->file, list->path);
    }

    for (i = 0, e = vlm_json_first(list->j); i < 3; i++, e = vlm_json_next(e)) {
        if (vlm_item_u32(r, vlm_item_element(list, e, i), 0, VLM_MAX_HEAD_DIM / 2, &n[i]) != 0) {
            return -1;
        }
    }

    if (n[0] + n[1] + n[2] != t->head_dim / 2) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: mrope_section is %u, %u, %u, the sum should be "
                        "half of a head's %u", r->file, n[0], n[1], n[2], t->head_dim);
    }

    set_axes(t, n, interleaved);

    return 0;
}


static float
yarn_size(float factor, float weight)
{
    return factor <= 1 ? 1 : 0.1f * weight * logf(factor) + 1;
}


/*
 * YaRN multiplies q and k by a factor, too: attention_factor, or 1 + ln(factor) / 10, or the share
 * of two such numbers with weights of their own.
 */
static int
read_yarn(const vlm_reader_t *r, const vlm_item_t *rope, const char *path, vlm_text_config_t *t)
{
    float                m, all, otherwise;
    vlm_rope_scaling_t  *s = &t->scaling;

    if (vlm_item_f32_or(r, vlm_item(rope->j, path, "beta_slow"), 1e-3, 1e6, 1, &s->slow) != 0
        || vlm_item_f32_or(r, vlm_item(rope->j, path, "beta_fast"), 1e-3, 1e6, 32, &s->fast) != 0
        || vlm_item_f32_or(r, vlm_item(rope->j, path, "mscale"), 0, 100, 0, &m) != 0
        || vlm_item_f32_or(r, vlm_item(rope->j, path, "mscale_all_dim"), 0, 100, 0, &all) != 0)
    {
        return -1;
    }

    s->whole = vlm_json_bool(vlm_item(rope->j, path, "truncate").j, 1);
    otherwise = m > 0 && all > 0 ? yarn_size(s->factor, m) / yarn_size(s->factor, all)
                : yarn_size(s->factor, 1);

    if (vlm_item_f32_or(r, vlm_item(rope->j, path, "attention_factor"), 1e-3, 1e3,
                        (double) otherwise, &s->size) != 0)
    {
        return -1;
    }

    if ((double) s->factor * s->original > t->max_positions) {
        t->max_positions = (double) s->factor * s->original < VLM_MAX_POSITIONS
                           ? (uint32_t) (s->factor * (float) s->original) : VLM_MAX_POSITIONS;
    }

    return 0;
}


/* The name of the way in which angles grow: "rope_type", which older files call "type". */
static vlm_item_t
rope_type(const vlm_item_t *rope, const char *path)
{
    vlm_item_t  it;

    it = vlm_item(rope->j, path, "rope_type");

    return it.j != NULL ? it : vlm_item(rope->j, path, "type");
}


/* From a GGUF file: what the rate of each pair is divided by. */
static int
read_table(const vlm_reader_t *r, const vlm_item_t *rope, const char *path, vlm_text_config_t *t)
{
    uint32_t           i;
    vlm_item_t         list = vlm_item(rope->j, path, "divisors");
    const vlm_json_t  *e;

    if (!vlm_json_is_array(list.j) || vlm_json_count(list.j) != t->head_dim / 2) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is no list of %u numbers, half of a head's",
                        r->file, list.path, t->head_dim / 2);
    }

    t->scaling.kind = VLM_SCALING_TABLE;

    for (i = 0, e = vlm_json_first(list.j); e != NULL; i++, e = vlm_json_next(e)) {
        if (vlm_item_f32_or(r, vlm_item_element(&list, e, i), 1e-6, 1e6, 1,
                            &t->scaling.divisor[i]) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/*
 * Angles for longer texts than those that the model was trained with at first.  Numbers that are
 * not there have the defaults of transformers' modeling_rope_utils.py.
 */
static int
read_scaling(const vlm_reader_t *r, const vlm_item_t *rope, const char *path, vlm_text_config_t *t)
{
    float                original;
    vlm_rope_scaling_t  *s = &t->scaling;
    const char          *type = vlm_json_text(rope_type(rope, path).j);

    if (type == NULL || strcmp(type, "default") == 0) {
        return vlm_item_is(r, rope_type(rope, path), "default", "default");
    }

    if (strcmp(type, "table") == 0) {
        return read_table(r, rope, path, t);
    }

    s->kind = strcmp(type, "linear") == 0 ? VLM_SCALING_LINEAR
              : strcmp(type, "llama3") == 0 ? VLM_SCALING_LLAMA3
              : strcmp(type, "yarn") == 0 ? VLM_SCALING_YARN : VLM_SCALING_NONE;

    if (s->kind == VLM_SCALING_NONE) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %s is \"%s\", only \"default\", \"linear\", "
                        "\"llama3\" and \"yarn\" are understood", r->file,
                        rope_type(rope, path).path, vlm_printable(type));
    }

    if (vlm_item_f32_or(r, vlm_item(rope->j, path, "factor"), 1, 1e6, 1, &s->factor) != 0
        || vlm_item_f32_or(r, vlm_item(rope->j, path, "original_max_position_embeddings"), 1,
                           VLM_MAX_POSITIONS, t->max_positions, &original) != 0)
    {
        return -1;
    }

    s->original = (uint32_t) original;

    if (s->kind == VLM_SCALING_LLAMA3) {
        return vlm_item_f32_or(r, vlm_item(rope->j, path, "low_freq_factor"), 1e-3, 1e6, 1,
                               &s->slow) != 0
               || vlm_item_f32_or(r, vlm_item(rope->j, path, "high_freq_factor"),
                                  (double) s->slow * 1.001, 1e9, 4, &s->fast) != 0 ? -1 : 0;
    }

    return s->kind == VLM_SCALING_LINEAR ? 0 : read_yarn(r, rope, path, t);
}


/* The base of the angles, how they grow, and M-RoPE's sections; newer files: "rope_parameters". */
static int
read_rope(const vlm_reader_t *r, const vlm_decoder_t *family, vlm_text_config_t *t)
{
    int         interleaved = family->sections == VLM_SECTIONS_INTERLEAVED;
    char        path[96];
    float       x;
    vlm_item_t  rope, theta, sections;

    rope = vlm_item_text(r, "rope_parameters");
    if (rope.j == NULL) {
        rope = vlm_item_text(r, "rope_scaling");
    }

    (void) snprintf(path, sizeof(path), "%.60s.", rope.path);

    theta = vlm_item(rope.j, path, "rope_theta");
    if (theta.j == NULL) {
        theta = vlm_item_text(r, "rope_theta");
    }

    if (vlm_item_f32_or(r, vlm_item(rope.j, path, "partial_rotary_factor"), 1, 1, 1, &x) != 0
        || vlm_item_f32_or(r, theta, 1.0, 1e12, (double) family->rope_theta, &t->rope_theta) != 0)
    {
        return -1;
    }

    if (family->sections == VLM_SECTIONS_NONE) {
        return read_scaling(r, &rope, path, t);
    }

    if (vlm_item_is(r, vlm_item(rope.j, path, "type"), "mrope", "default") != 0
        || vlm_item_is(r, vlm_item(rope.j, path, "rope_type"), "mrope", "default") != 0)
    {
        return -1;
    }

    if (vlm_json_bool(vlm_item(rope.j, path, "mrope_interleaved").j, interleaved) != interleaved) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %smrope_interleaved is %s, this family of models "
                        "needs %s", r->file, path, interleaved ? "false" : "true",
                        interleaved ? "true" : "false");
    }

    sections = vlm_item(rope.j, path, "mrope_section");

    return read_sections(r, t, &sections, interleaved);
}


static int
read_head_dim(const vlm_reader_t *r, const vlm_decoder_t *family, vlm_text_config_t *t)
{
    uint32_t    otherwise;
    vlm_item_t  it;

    if (t->heads % t->kv_heads != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %u attention heads are no multiple of %u "
                        "key-value heads", r->file, t->heads, t->kv_heads);
    }

    it = vlm_item_text(r, "head_dim");

    if (it.j == NULL && family->head_dim == 0 && t->hidden % t->heads != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: hidden_size %u is no multiple of %u attention "
                        "heads, and there is no head_dim", r->file, t->hidden, t->heads);
    }

    otherwise = family->head_dim != 0 ? family->head_dim : t->hidden / t->heads;

    if (vlm_item_u32_or(r, it, 2, VLM_MAX_HEAD_DIM, otherwise, &t->head_dim) != 0) {
        return -1;
    }

    if (t->head_dim < 2 || t->head_dim > VLM_MAX_HEAD_DIM || t->head_dim % 2 != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: a head of %u numbers, expected an even number "
                        "from 2 to %u", r->file, t->head_dim, VLM_MAX_HEAD_DIM);
    }

    return 0;
}


/* Refuses settings under which another function would have to be computed. */
static int
refuse_text(const vlm_reader_t *r, const vlm_decoder_t *family)
{
    float              x;
    size_t             i;
    const char        *s;
    const vlm_json_t  *e;

    static const struct {
        const char  *key;
        double       only;
    } numbers[] = {
        { "partial_rotary_factor", 1 }, { "num_experts", 0 }, { "num_local_experts", 0 }
    };

    for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (vlm_item_f32_or(r, vlm_item_text(r, numbers[i].key), numbers[i].only, numbers[i].only,
                            numbers[i].only, &x) != 0)
        {
            return -1;
        }
    }

    if (vlm_json_bool(vlm_item_text(r, "attention_bias").j, family->bias) != family->bias) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: attention_bias is %s; attention of this family "
                        "of models has %s", r->file, family->bias ? "false" : "true",
                        family->bias ? "biases" : "no biases");
    }

    if (vlm_json_bool(vlm_item_text(r, "mlp_bias").j, 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: mlp_bias is true, which is not supported",
                        r->file);
    }

    if (vlm_json_bool(vlm_item_text(r, "use_sliding_window").j, 0)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: use_sliding_window is true; sliding windows in "
                        "the language model are not supported", r->file);
    }

    for (e = vlm_json_first(vlm_item_text(r, "layer_types").j); e != NULL; e = vlm_json_next(e)) {
        s = vlm_json_text(e);
        if (s == NULL || strcmp(s, "full_attention") != 0) {
            return vlm_fail(r->err, VLM_EMODEL, "%s: layer_types has \"%s\", only "
                            "\"full_attention\" is understood", r->file,
                            s == NULL ? "?" : vlm_printable(s));
        }
    }

    return vlm_item_is(r, vlm_item_text(r, "hidden_act"), "silu", "silu");
}


int
vlm_decoder_read(const vlm_reader_t *r, const vlm_decoder_t *family, vlm_text_config_t *t)
{
    const vlm_field_t  fields[] = {
        { "hidden_size", offsetof(vlm_text_config_t, hidden), 1, VLM_MAX_HIDDEN, 0 },
        { "num_hidden_layers", offsetof(vlm_text_config_t, layers), 1, VLM_MAX_LAYERS, 0 },
        { "num_attention_heads", offsetof(vlm_text_config_t, heads), 1, VLM_MAX_HEADS, 0 },
        { "num_key_value_heads", offsetof(vlm_text_config_t, kv_heads), 1, VLM_MAX_HEADS, 0 },
        { "intermediate_size", offsetof(vlm_text_config_t, mlp), 1, VLM_MAX_MLP, 0 },
        { "vocab_size", offsetof(vlm_text_config_t, vocab), 1, VLM_MAX_VOCAB, 0 },
        { "max_position_embeddings", offsetof(vlm_text_config_t, max_positions), 1,
          VLM_MAX_POSITIONS, family->max_positions },
        { NULL, 0, 0, 0, 0 }
    };

    if (refuse_text(r, family) != 0
        || vlm_items_read(r, vlm_item_text, fields, t) != 0
        || vlm_item_f32_or(r, vlm_item_text(r, "rms_norm_eps"), 0.0, 1.0, (double) family->norm_eps,
                           &t->norm_eps) != 0
        || read_head_dim(r, family, t) != 0
        || read_rope(r, family, t) != 0)
    {
        return -1;
    }

    t->tied = vlm_json_bool(vlm_item_text(r, "tie_word_embeddings").j, 0);

    return 0;
}


/* ---- prompts ------------------------------------------------------------- */

void
vlm_decoder_positions(struct vlm_prompt_s *p, uint32_t merge)
{
    uint32_t  i;

    (void) merge;

    for (i = 0; i < 3 * p->n; i++) {
        p->pos[i] = (int32_t) (i / 3);
    }

    p->next_pos = (int32_t) p->n;
}


int
vlm_decoder_thinks(const char *name)
{
    (void) name;

    return 0;
}
