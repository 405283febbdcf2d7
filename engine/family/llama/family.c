/*
 * Llama: attention has no biases, and GGUF has the rows of q and k in another order.  Models of
 * this recipe have templates of their own (family/words.c).
 */

#include "family/llama/family.h"

#include "family/decoder.h"
#include "model/model.h"

static const vlm_weight_t  text_layer[] = {
    VLM_DECODER_NORMS,
    VLM_DECODER_MATRICES(0)
};

static const vlm_gguf_splitter_t  splitter[] = {
    { "llama-bpe",
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
      "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+", 0, 1 },
    { "smollm", VLM_DIGITS_PATTERN, 0, 0 },
    { NULL, NULL, 0, 0 }
};

static const vlm_gguf_name_t  names[] = {
    { "blk.*.attn_q.weight", "model.layers.*.self_attn.q_proj.weight", VLM_GGUF_PAIRS, 0 },
    { "blk.*.attn_k.weight", "model.layers.*.self_attn.k_proj.weight", VLM_GGUF_PAIRS, 0 },
    VLM_GGUF_NAME(NULL, NULL)
};

static const vlm_gguf_map_t  gguf = {
    .architecture = "llama",
    VLM_DECODER_GGUF,
    .splitter = splitter,
    .names = { names, vlm_decoder_gguf_names }
};


static int
read_config(const vlm_reader_t *r, vlm_config_t *c)
{
    static const vlm_decoder_t  text = {
        .max_positions = 2048, .rope_theta = 1e4f, .norm_eps = 1e-6f
    };

    return vlm_decoder_read(r, &text, &c->text);
}


const vlm_family_t  vlm_llama = {
    .model_type = "llama",
    .title = "Llama",
    .read = read_config,
    .split = NULL,
    .aliases = vlm_decoder_aliases,
    .text = { vlm_decoder_before, text_layer, vlm_decoder_after, "model.layers." },
    .gguf = &gguf,
    .positions = vlm_decoder_positions,
    .tasks = 20,
    .thinks = vlm_decoder_thinks
};
