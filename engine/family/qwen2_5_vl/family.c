/* Qwen2.5-VL: the names of its tensors, its template, and which of its models think. */

#include "family/qwen2_5_vl/family.h"

#include <ctype.h>
#include <stddef.h>
#include <strings.h>
#include <string.h>

#include "family/qwen.h"
#include "model/model.h"

#define END  { .kind = VLM_WEIGHT_END }


/* ---- the language model -------------------------------------------------- */

static const vlm_weight_t  text_layer[] = {
    VLM_DECODER_NORMS,
    VLM_DECODER_MATRICES(1)
};


/* ---- the vision encoder -------------------------------------------------- */

static const vlm_weight_t  encoder_before[] = {
    { VLM_WEIGHT_PATCH, VLM_MODEL(patch), { "visual.patch_embed.proj" }, 0, { VLM_DIM_E },
      VLM_STACKED, VLM_STORE, 0 },
    END
};

static const vlm_weight_t  encoder_block[] = {
    { VLM_WEIGHT_RMS, VLM_LAYER(norm1), { "norm1" }, VLM_DIM_E, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_RMS, VLM_LAYER(norm2), { "norm2" }, VLM_DIM_E, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(qkv), { "attn.qkv" }, VLM_DIM_E, { VLM_DIM_3E },
      VLM_STACKED, VLM_STORE, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(o), { "attn.proj" }, VLM_DIM_E, { VLM_DIM_E },
      VLM_STACKED, VLM_ADD, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(up), { "mlp.gate_proj", "mlp.up_proj" }, VLM_DIM_E,
      { VLM_DIM_ENCODER_F, VLM_DIM_ENCODER_F }, VLM_IN_TURN, VLM_SILU_MUL, 1 },
    { VLM_WEIGHT_MATRIX, VLM_LAYER(down), { "mlp.down_proj" }, VLM_DIM_ENCODER_F, { VLM_DIM_E },
      VLM_STACKED, VLM_ADD, 1 },
    END
};

static const vlm_weight_t  encoder_after[] = {
    { VLM_WEIGHT_RMS, VLM_MODEL(merger.norm), { "visual.merger.ln_q" }, VLM_DIM_E, { 0 }, 0, 0, 0 },
    { VLM_WEIGHT_MATRIX, VLM_MODEL(merger.first), { "visual.merger.mlp.0" }, VLM_DIM_CELL,
      { VLM_DIM_CELL }, VLM_STACKED, VLM_GELU, 1 },
    { VLM_WEIGHT_MATRIX, VLM_MODEL(merger.second), { "visual.merger.mlp.2" }, VLM_DIM_CELL,
      { VLM_DIM_D }, VLM_STACKED, VLM_STORE, 1 },
    END
};


/* ---- thinking ------------------------------------------------------------ */

/* The first place of a word in a text, whatever the case of its letters; or NULL. */
static const char *
find(const char *text, const char *word)
{
    size_t  n = strlen(word);

    for ( /* void */ ; *text != '\0'; text++) {
        if (strncasecmp(text, word, n) == 0) {
            return text;
        }
    }

    return NULL;
}


/*
 * RoboBrain 2.0 is trained from Qwen2.5-VL: its models think, except the 3B.  "3b" within "13b"
 * does not count.
 */
static int
thinks(const char *name)
{
    const char  *p;

    name = find(name, "robobrain");
    if (name == NULL) {
        return 0;
    }

    for (p = name + 9; (p = find(p, "3b")) != NULL; p += 2) {
        if (!isalnum((unsigned char) p[-1]) && p[-1] != '.' && !isalnum((unsigned char) p[2])) {
            return 0;
        }
    }

    return 1;
}


const vlm_family_t  vlm_qwen2_5_vl = {
    .model_type = "qwen2_5_vl",
    .title = "Qwen2.5-VL",
    .read = vlm_qwen2_5_vl_read,
    .pixel = {
        .min_pixels = 3136,
        .max_pixels = 12845056,
        .mean = { 0.48145466f, 0.4578275f, 0.40821073f },
        .std = { 0.26862954f, 0.26130258f, 0.27577711f }
    },
    .video = { .min_pixels = 128 * 28 * 28, .max_pixels = 768 * 28 * 28 },
    .eos = { VLM_QWEN_IM_END, VLM_QWEN_END_OF_TEXT },
    .n_eos = 2,
    .split = vlm_qwen_split,
    .aliases = vlm_decoder_aliases,
    .text = { vlm_decoder_before, text_layer, vlm_decoder_after, "model.layers." },
    .encoder = { encoder_before, encoder_block, encoder_after, "visual.blocks." },
    .gguf = &vlm_qwen2_5_vl_gguf,
    .order = vlm_qwen2_5_vl_order,
    .positions = vlm_qwen_positions,
    .words = {
        VLM_QWEN_WORDS,
        VLM_QWEN_PICTURES,
        .system = "You are a helpful assistant."
    },
    .coordinates = 0,
    .tasks = 20,
    .thinks = thinks
};
