/* The parts that Qwen's families share: text settings, control tokens, names, positions. */

#include "family/qwen.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "chat/prompt.h"
#include "model/model.h"

#define IMAGE_TOKEN    151655          /* where config.json says none */
#define VISION_START   151652
#define VISION_END     151653

#define VISION(m)      offsetof(vlm_vision_config_t, m)

const char  vlm_qwen_split[] =
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

const vlm_alias_t  vlm_qwen_aliases[] = {
    { "model.language_model.", "model." },
    { "model.visual.", "visual." },
    { NULL, NULL }
};


const vlm_weight_t  vlm_qwen_text_before[] = {
    { VLM_WEIGHT_MATRIX, VLM_MODEL(embed), { "model.embed_tokens" }, VLM_DIM_D, { VLM_DIM_V },
      VLM_STACKED, VLM_STORE, 0 },
    { VLM_WEIGHT_HEAD, VLM_MODEL(head), { "lm_head", "model.embed_tokens" }, VLM_DIM_D,
      { VLM_DIM_V }, VLM_STACKED, VLM_STORE, 0 },
    { .kind = VLM_WEIGHT_END }
};

const vlm_weight_t  vlm_qwen_text_after[] = {
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


/* The base and the sections of M-RoPE; transformers 5 calls them "rope_parameters". */
static int
read_rope(const vlm_reader_t *r, const vlm_qwen_text_t *family, vlm_text_config_t *t)
{
    char        path[96];
    float       x;
    vlm_item_t  rope, theta, sections;

    rope = vlm_item_text(r, "rope_parameters");
    if (rope.j == NULL) {
        rope = vlm_item_text(r, "rope_scaling");
    }

    (void) snprintf(path, sizeof(path), "%.60s.", rope.path);

    if (vlm_item_is(r, vlm_item(rope.j, path, "type"), "mrope", "default") != 0
        || vlm_item_is(r, vlm_item(rope.j, path, "rope_type"), "mrope", "default") != 0
        || vlm_item_f32_or(r, vlm_item(rope.j, path, "partial_rotary_factor"), 1, 1, 1, &x) != 0)
    {
        return -1;
    }

    theta = vlm_item(rope.j, path, "rope_theta");
    if (theta.j == NULL) {
        theta = vlm_item_text(r, "rope_theta");
    }

    if (vlm_item_f32_or(r, theta, 1.0, 1e12, (double) family->rope_theta, &t->rope_theta) != 0) {
        return -1;
    }

    if (vlm_json_bool(vlm_item(rope.j, path, "mrope_interleaved").j, family->interleaved)
        != family->interleaved)
    {
        return vlm_fail(r->err, VLM_EMODEL, "%s: %smrope_interleaved is %s, this family of models "
                        "needs %s", r->file, path, family->interleaved ? "false" : "true",
                        family->interleaved ? "true" : "false");
    }

    sections = vlm_item(rope.j, path, "mrope_section");

    return read_sections(r, t, &sections, family->interleaved);
}


static int
read_head_dim(const vlm_reader_t *r, const vlm_qwen_text_t *family, vlm_text_config_t *t)
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
refuse_text(const vlm_reader_t *r)
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
vlm_qwen_read_text(const vlm_reader_t *r, const vlm_qwen_text_t *family, vlm_text_config_t *t)
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

    if (refuse_text(r) != 0
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


int
vlm_qwen_read_tokens(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g)
{
    const vlm_field_t  fields[] = {
        { "image_token_id", offsetof(vlm_generation_config_t, image_token), 0, vocab - 1,
          IMAGE_TOKEN },
        { "vision_start_token_id", offsetof(vlm_generation_config_t, vision_start), 0, vocab - 1,
          VISION_START },
        { "vision_end_token_id", offsetof(vlm_generation_config_t, vision_end), 0, vocab - 1,
          VISION_END },
        { NULL, 0, 0, 0, 0 }
    };

    if (vlm_items_read(r, vlm_item_top, fields, g) != 0) {
        return -1;
    }

    if (g->image_token >= vocab || g->vision_start >= vocab || g->vision_end >= vocab) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: picture tokens %u, %u, %u in a vocabulary of %u",
                        r->file, g->image_token, g->vision_start, g->vision_end, vocab);
    }

    return 0;
}


/* The base of the two-dimensional angles; older files lack it, and newer ones call them axial. */
static int
read_vision_rope(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    vlm_item_t  rope;

    static const char  prefix[] = "vision_config.rope_parameters.";

    rope = vlm_item_vision(r, "rope_parameters");

    return vlm_item_is(r, vlm_item(rope.j, prefix, "rope_type"), "axial", "default") != 0
           || vlm_item_f32_or(r, vlm_item(rope.j, prefix, "rope_theta"), 1.0, 1e12, 10000.0,
                              &v->rope_theta) != 0 ? -1 : 0;
}


/* Sizes that depend on each other, after all of them were read. */
static int
check_vision(const vlm_reader_t *r, vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    if (v->hidden % v->heads != 0 || v->hidden / v->heads % 4 != 0) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: vision_config.hidden_size %u in %u heads: a "
                        "head's size should be a multiple of 4", r->file, v->hidden, v->heads);
    }

    v->head_dim = v->hidden / v->heads;

    if (v->head_dim > VLM_MAX_HEAD_DIM) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: a vision head of %u numbers, at most %u",
                        r->file, v->head_dim, VLM_MAX_HEAD_DIM);
    }

    if (v->out != t->hidden) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: vision_config.out_hidden_size is %u, the "
                        "language model's hidden_size %u", r->file, v->out, t->hidden);
    }

    return 0;
}


int
vlm_qwen_read_vision(const vlm_reader_t *r, const vlm_qwen_vision_t *family,
                     vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    vlm_item_t  channels;

    const vlm_field_t  fields[] = {
        { "hidden_size", VISION(hidden), 1, VLM_MAX_HIDDEN, family->hidden },
        { "depth", VISION(depth), 1, VLM_MAX_LAYERS, family->depth },
        { "num_heads", VISION(heads), 1, VLM_MAX_HEADS, family->heads },
        { "intermediate_size", VISION(mlp), 1, VLM_MAX_MLP, family->mlp },
        { "out_hidden_size", VISION(out), 1, VLM_MAX_HIDDEN, family->out },
        { "patch_size", VISION(patch), 1, VLM_MAX_PATCH, family->patch },
        { "temporal_patch_size", VISION(temporal), 1, VLM_MAX_TEMPORAL, 2 },
        { "spatial_merge_size", VISION(merge), 1, VLM_MAX_MERGE, 2 },
        { NULL, 0, 0, 0, 0 }
    };

    if (!vlm_json_is_object(r->vision)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no vision_config", r->file);
    }

    channels = vlm_item_vision(r, "in_channels");
    if (channels.j == NULL) {
        channels = vlm_item_vision(r, "in_chans");
    }

    v->norm_eps = 1e-6f;               /* the classes' own, no setting */

    return vlm_item_is(r, vlm_item_vision(r, "hidden_act"), family->act, family->act) != 0
           || vlm_item_u32_or(r, channels, 3, 3, 3, &v->channels) != 0
           || vlm_items_read(r, vlm_item_vision, fields, v) != 0
           || read_vision_rope(r, v) != 0 ? -1 : check_vision(r, v, t);
}


/* ---- prompts ------------------------------------------------------------- */

static int32_t
larger(int32_t a, int32_t b)
{
    return a > b ? a : b;
}


/*
 * Text has its running index on all three axes.  A picture that starts at p has time p, row p + row
 * and column p + column of the merged grid; the text after it starts one past the largest of those.
 * Frames of a video that follow others without a token between start where the first do, and their
 * time is later.
 */
void
vlm_qwen_positions(struct vlm_prompt_s *p, uint32_t merge)
{
    int32_t               at, start, rows, columns, time;
    uint32_t              i, cell, picture, end;
    const vlm_picture_t  *pic;

    at = start = 0;
    picture = 0;
    end = VLM_NONE;                    /* of the picture before */

    for (i = 0; i < p->n; /* void */ ) {
        if (picture == p->n_pictures || i != p->picture_at[picture]) {
            p->pos[3 * i] = p->pos[3 * i + 1] = p->pos[3 * i + 2] = at++;
            i++;
            continue;
        }

        start = i == end ? start : at;
        time = (int32_t) p->time[picture];
        pic = p->picture[picture++];
        rows = (int32_t) (pic->grid_h / merge);
        columns = (int32_t) (pic->grid_w / merge);

        for (cell = 0; cell < pic->n_cells; cell++, i++) {
            p->pos[3 * i] = start + time;
            p->pos[3 * i + 1] = start + (int32_t) cell / columns;
            p->pos[3 * i + 2] = start + (int32_t) cell % columns;
        }

        at = larger(at, start + larger(time + 1, larger(rows, columns)));
        end = i;
    }

    p->next_pos = at;
}
