/* config.json of Qwen2.5-VL. */

#include "family/qwen.h"
#include "family/qwen2_5_vl/family.h"

#define MAX_WINDOW  (1u << 16)         /* pixels */
#define MAX_PER_SECOND  100            /* positions of time */


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


int
vlm_qwen2_5_vl_read(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_decoder_t  text = {
        .max_positions = 32768, .rope_theta = 1e6f, .norm_eps = 1e-5f,
        .sections = VLM_SECTIONS_IN_A_ROW, .bias = 1
    };
    static const vlm_qwen_vision_t  vision = {
        .depth = 32, .heads = 16, .mlp = 3420, .out = 3584, .patch = 14, .act = "silu"
    };

    if (vlm_decoder_read(r, &text, &c->text) != 0
        || vlm_qwen_read_vision(r, &vision, &c->vision, &c->text) != 0
        || vlm_item_u32_or(r, vlm_item_vision(r, "tokens_per_second"), 1, MAX_PER_SECOND, 4,
                           &c->vision.per_second) != 0
        || read_window(r, &c->vision) != 0
        || read_full(r, &c->vision) != 0)
    {
        return -1;
    }

    return vlm_qwen_read_tokens(r, c->text.vocab, &c->generation);
}
