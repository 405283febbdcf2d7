/* Qwen3: Qwen3-VL's language model, with one position for each row. */

#define _GNU_SOURCE

#include "family/qwen3/family.h"

#include <string.h>

#include "family/qwen.h"
#include "model/model.h"

static const vlm_weight_t  text_layer[] = {
    VLM_DECODER_NORMS,
    VLM_DECODER_HEAD_NORMS,
    VLM_DECODER_MATRICES(0)
};

static const vlm_gguf_map_t  gguf = {
    .architecture = "qwen3",
    VLM_DECODER_GGUF,
    .splitter = vlm_qwen_splitter,
    .names = { vlm_decoder_gguf_names, vlm_qwen_gguf_head_norms }
};


static int
read_config(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_decoder_t  text = {
        .max_positions = 32768, .head_dim = 128, .rope_theta = 1e6f, .norm_eps = 1e-6f
    };

    return vlm_decoder_read(r, &text, &c->text);
}


/* The first models think or do not, as they are asked; of those of 2507 one is called Thinking. */
static int
thinks(const char *name)
{
    return strcasestr(name, "thinking") != NULL;
}


const vlm_family_t  vlm_qwen3 = {
    .model_type = "qwen3",
    .title = "Qwen3",
    .read = read_config,
    .eos = { VLM_QWEN_IM_END, VLM_QWEN_END_OF_TEXT },
    .n_eos = 2,
    .split = vlm_qwen_split,
    .aliases = vlm_decoder_aliases,
    .text = { vlm_decoder_before, text_layer, vlm_decoder_after, "model.layers." },
    .gguf = &gguf,
    .positions = vlm_decoder_positions,
    .words = { VLM_QWEN_WORDS, .quiet = VLM_QWEN_QUIET },
    .tasks = 20,
    .thinks = thinks
};
