/* config.json of Qwen2.5-VL. */

#include <stddef.h>
#include <string.h>

#include "family/qwen.h"
#include "family/qwen2_5_vl/family.h"

#define MAX_WINDOW  (1u << 16)         /* pixels */
#define MAX_PER_SECOND  100            /* positions of time */
#define FIELD(m)    offsetof(vlm_vision_config_t, m)


/* The blocks that attend over the whole picture. */
static int
read_full(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    uint32_t           i, n;
    vlm_item_t         it;
    const vlm_json_t  *e;

    it = vlm_item_vision(r, "fullatt_block_indexes");

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
        if (vlm_item_u32(r, vlm_item_element(&it, e, i), 0, v->depth - 1, &n) != 0) {
            return -1;
        }
        v->full[n] = 1;
    }

    return 0;
}


/* The size of a window, in merged cells. */
static int
read_window(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    uint32_t  pixels, cell;

    if (vlm_item_u32_or(r, vlm_item_vision(r, "window_size"), 1, MAX_WINDOW, 112, &pixels) != 0) {
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


/* The base of the two-dimensional angles; older files lack it, and newer ones call them axial. */
static int
read_rope(const vlm_reader_t *r, vlm_vision_config_t *v)
{
    vlm_item_t  rope;

    static const char  prefix[] = "vision_config.rope_parameters.";

    rope = vlm_item_vision(r, "rope_parameters");

    return vlm_item_is(r, vlm_item(rope.j, prefix, "rope_type"), "axial", "default") != 0
           || vlm_item_f32_or(r, vlm_item(rope.j, prefix, "rope_theta"), 1.0, 1e12, 10000.0,
                              &v->rope_theta) != 0 ? -1 : 0;
}


static int
read_vision(const vlm_reader_t *r, vlm_vision_config_t *v, const vlm_text_config_t *t)
{
    vlm_item_t  channels;

    static const vlm_field_t  fields[] = {
        { "hidden_size", FIELD(hidden), 1, VLM_MAX_HIDDEN, 0 },
        { "depth", FIELD(depth), 1, VLM_MAX_LAYERS, 32 },
        { "num_heads", FIELD(heads), 1, VLM_MAX_HEADS, 16 },
        { "intermediate_size", FIELD(mlp), 1, VLM_MAX_MLP, 3420 },
        { "out_hidden_size", FIELD(out), 1, VLM_MAX_HIDDEN, 3584 },
        { "patch_size", FIELD(patch), 1, VLM_MAX_PATCH, 14 },
        { "temporal_patch_size", FIELD(temporal), 1, VLM_MAX_TEMPORAL, 2 },
        { "spatial_merge_size", FIELD(merge), 1, VLM_MAX_MERGE, 2 },
        { "tokens_per_second", FIELD(per_second), 1, MAX_PER_SECOND, 4 },
        { NULL, 0, 0, 0, 0 }
    };

    if (!vlm_json_is_object(r->vision)) {
        return vlm_fail(r->err, VLM_EMODEL, "%s: no vision_config", r->file);
    }

    channels = vlm_item_vision(r, "in_channels");
    if (channels.j == NULL) {
        channels = vlm_item_vision(r, "in_chans");
    }

    v->norm_eps = 1e-6f;               /* the class's own, no setting */

    if (vlm_item_is(r, vlm_item_vision(r, "hidden_act"), "silu", "silu") != 0
        || vlm_item_u32_or(r, channels, 3, 3, 3, &v->channels) != 0
        || vlm_fields_read(r, vlm_item_vision, fields, v) != 0
        || read_window(r, v) != 0
        || read_full(r, v) != 0
        || read_rope(r, v) != 0)
    {
        return -1;
    }

    return vlm_qwen_check_vision(r, v, t);
}


int
vlm_qwen2_5_vl_read(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_qwen_text_t  family = {
        .max_positions = 32768, .rope_theta = 1e6f, .norm_eps = 1e-5f
    };

    if (vlm_qwen_read_text(r, &family, &c->text) != 0
        || read_vision(r, &c->vision, &c->text) != 0)
    {
        return -1;
    }

    return vlm_qwen_read_tokens(r, c->text.vocab, &c->generation);
}
