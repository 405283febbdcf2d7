/* The parts that Qwen's families share: control tokens, names, settings of vision, positions. */

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


/* ---- config.json --------------------------------------------------------- */

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
