/* Qwen2: Qwen2.5-VL's language model, with one position for each row. */

#include "family/qwen2/family.h"

#include "family/qwen.h"
#include "model/model.h"

static const vlm_weight_t  text_layer[] = {
    VLM_DECODER_NORMS,
    VLM_DECODER_MATRICES(1)
};

static const vlm_gguf_map_t  gguf = {
    .architecture = "qwen2",
    VLM_DECODER_GGUF,
    .splitter = vlm_qwen_splitter,
    .names = { vlm_decoder_gguf_names }
};


static int
read_config(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_decoder_t  text = {
        .max_positions = 32768, .rope_theta = 1e6f, .norm_eps = 1e-6f, .bias = 1
    };

    return vlm_decoder_read(r, &text, &c->text);
}


const vlm_family_t  vlm_qwen2 = {
    .model_type = "qwen2",
    .title = "Qwen2",
    .read = read_config,
    .eos = { VLM_QWEN_IM_END, VLM_QWEN_END_OF_TEXT },
    .n_eos = 2,
    .split = vlm_qwen_split,
    .aliases = vlm_decoder_aliases,
    .text = { vlm_decoder_before, text_layer, vlm_decoder_after, "model.layers." },
    .gguf = &gguf,
    .positions = vlm_decoder_positions,
    .words = {
        VLM_QWEN_WORDS,
        .system = "You are Qwen, created by Alibaba Cloud. You are a helpful assistant."
    },
    .tasks = 20,
    .thinks = vlm_decoder_thinks
};
