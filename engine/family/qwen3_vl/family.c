/*
 * Qwen3-VL: the names of its tensors, the order of a picture's patches, and its template.
 *
 * Unlike in Qwen2.5-VL, queries and keys are normalised by head; the vision encoder has norms with
 * a mean, learned positions and no windows, and the output of some of its blocks is added to the
 * rows of pictures after the first layers of the language model.
 */

#define _GNU_SOURCE

#include "family/qwen3_vl/family.h"

#include <string.h>

#include "family/qwen.h"
#include "image/patch.h"
#include "model/model.h"

#define END  { .kind = VLM_WEIGHT_END }


/* ---- the language model -------------------------------------------------- */

static const vlm_weight_t  text_layer[] = {
    VLM_DECODER_NORMS,
    VLM_DECODER_HEAD_NORMS,
    VLM_DECODER_MATRICES(0)
};


/* ---- the vision encoder -------------------------------------------------- */

static const vlm_weight_t  encoder_before[] = {
    { VLM_WEIGHT_PATCH, VLM_MODEL(patch), { "visual.patch_embed.proj" }, 0, { VLM_DIM_E },
      VLM_STACKED, VLM_STORE, 1 },
    { VLM_WEIGHT_PLACES, VLM_MODEL(places), { "visual.pos_embed" }, VLM_DIM_E, { VLM_DIM_PLACES },
      VLM_STACKED, VLM_STORE, 0 },
    END
};

static const vlm_weight_t  encoder_block[] = {
    { VLM_WEIGHT_LAYER, VLM_LAYER(norm1), { "norm1" }, VLM_DIM_E, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_LAYER, VLM_LAYER(norm2), { "norm2" }, VLM_DIM_E, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(qkv), { "attn.qkv" }, VLM_DIM_E, { VLM_DIM_3E },
      VLM_STACKED, VLM_STORE, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(o), { "attn.proj" }, VLM_DIM_E, { VLM_DIM_E },
      VLM_STACKED, VLM_ADD, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(up), { "mlp.linear_fc1" }, VLM_DIM_E, { VLM_DIM_ENCODER_F },
      VLM_STACKED, VLM_GELU_TANH, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(down), { "mlp.linear_fc2" }, VLM_DIM_ENCODER_F, { VLM_DIM_E },
      VLM_STACKED, VLM_ADD, 1 },
    END
};

static const vlm_weight_t  encoder_after[] = {
    { VLM_WEIGHT_LAYER, VLM_MODEL(merger.norm), { "visual.merger.norm" }, VLM_DIM_E, { 0 },
      0, 0, 0 },
    { VLM_WEIGHT_MATRIX, VLM_MODEL(merger.first), { "visual.merger.linear_fc1" }, VLM_DIM_CELL,
      { VLM_DIM_CELL }, VLM_STACKED, VLM_GELU, 1 },
    { VLM_WEIGHT_MATRIX, VLM_MODEL(merger.second), { "visual.merger.linear_fc2" }, VLM_DIM_CELL,
      { VLM_DIM_D }, VLM_STACKED, VLM_STORE, 1 },
    END
};

static const vlm_weight_t  deep_merger[] = {
    { VLM_WEIGHT_LAYER, VLM_MERGER(norm), { "norm" }, VLM_DIM_CELL, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_MATRIX, VLM_MERGER(first), { "linear_fc1" }, VLM_DIM_CELL, { VLM_DIM_CELL },
      VLM_STACKED, VLM_GELU, 1 },
    { VLM_WEIGHT_MATRIX, VLM_MERGER(second), { "linear_fc2" }, VLM_DIM_CELL, { VLM_DIM_D },
      VLM_STACKED, VLM_STORE, 1 },
    END
};


/* Cells row by row, in one segment: every block attends over the whole picture. */
static void
order(const vlm_vision_config_t *c, vlm_layout_t *l)
{
    uint32_t  y, x;

    (void) c;

    vlm_layout_segment(l);

    for (y = 0; y < l->rows; y++) {
        for (x = 0; x < l->columns; x++) {
            vlm_layout_cell(l, y, x);
        }
    }
}


/* Of each size there is a model that thinks, which has a name of its own. */
static int
thinks(const char *name)
{
    return strcasestr(name, "thinking") != NULL;
}


const vlm_family_t  vlm_qwen3_vl = {
    .model_type = "qwen3_vl",
    .title = "Qwen3-VL",
    .read = vlm_qwen3_vl_read,
    .vocab_of_table = 1,
    .pixel = {
        .min_pixels = 65536,
        .max_pixels = 16777216,
        .mean = { 0.5f, 0.5f, 0.5f },
        .std = { 0.5f, 0.5f, 0.5f }
    },
    .video = { .min_pixels = 128 * 32 * 32, .max_pixels = 768 * 32 * 32, .whole = 1 },
    .eos = { VLM_QWEN_IM_END, VLM_QWEN_END_OF_TEXT },
    .n_eos = 2,
    .split = vlm_qwen_split,
    .aliases = vlm_decoder_aliases,
    .text = { vlm_decoder_before, text_layer, vlm_decoder_after, "model.layers." },
    .encoder = { encoder_before, encoder_block, encoder_after, "visual.blocks." },
    .deep = { NULL, deep_merger, NULL, "visual.deepstack_merger_list." },
    .gguf = &vlm_qwen3_vl_gguf,
    .order = order,
    .positions = vlm_qwen_positions,
    .words = {
        VLM_QWEN_WORDS,
        VLM_QWEN_PICTURES,
        .seconds = { "<", " seconds>" }
    },
    .coordinates = 1000,
    .tasks = 25,
    .thinks = thinks
};
