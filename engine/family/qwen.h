/* Parts that Qwen's families of vision-language models share. */

#ifndef VLM_QWEN_H
#define VLM_QWEN_H

#include <stddef.h>

#include "family/family.h"

#define VLM_QWEN_IM_END         151645 /* ids that end an answer */
#define VLM_QWEN_END_OF_TEXT    151643

#define VLM_LAYER(m)   offsetof(vlm_layer_t, m)    /* of a vlm_weight_t */
#define VLM_MERGER(m)  offsetof(vlm_merger_t, m)
#define VLM_MODEL(m)   offsetof(vlm_model_t, m)

/* The pattern of Qwen2's tokenizer. */
extern const char  vlm_qwen_split[];

/* Re-saved by newer versions of transformers, tensors have longer names. */
extern const vlm_alias_t  vlm_qwen_aliases[];

/* Lists of the language model's weights outside of its layers. */
extern const vlm_weight_t  vlm_qwen_text_before[], vlm_qwen_text_after[];

/* Where config.json says nothing; and what differs between families. */
typedef struct {
    uint32_t  max_positions;
    uint32_t  head_dim;                /* 0: hidden / heads */
    float     rope_theta, norm_eps;
    int       interleaved;             /* pairs of time, row and column alternate */
} vlm_qwen_text_t;

/* The text settings of config.json, and the ids of the tokens around pictures. */
int vlm_qwen_read_text(const vlm_reader_t *r, const vlm_qwen_text_t *family, vlm_text_config_t *t);
int vlm_qwen_read_tokens(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g);

/* The same of the vision encoder: 0 is a size that has to be there. */
typedef struct {
    uint32_t     hidden, depth, heads, mlp, out, patch;
    const char  *act;                  /* the only hidden_act */
} vlm_qwen_vision_t;

/* The vision settings that the families share, and what depends on them. */
int vlm_qwen_read_vision(const vlm_reader_t *r, const vlm_qwen_vision_t *family,
                         vlm_vision_config_t *v, const vlm_text_config_t *t);

/* Tools, of a vlm_words_t. */
#define VLM_QWEN_TOOLS                                                                             \
    .tools = { "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"  \
               "You are provided with function signatures within <tools></tools> XML "             \
               "tags:\n<tools>",                                                                   \
               "\n</tools>\n\nFor each function call, return a json object with function name "    \
               "and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": "  \
               "<function-name>, \"arguments\": <args-json-object>}\n</tool_call>" },              \
    .mark = { "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>" }

/* M-RoPE. */
void vlm_qwen_positions(struct vlm_prompt_s *p, uint32_t merge);

/* ---- GGUF: qwen_gguf.c ---------------------------------------------------- */

extern const vlm_gguf_key_t   vlm_qwen_gguf_text[], vlm_qwen_gguf_vision[], vlm_qwen_gguf_pixels[],
                              vlm_qwen_gguf_tokens[];
extern const vlm_gguf_must_t  vlm_qwen_gguf_must[], vlm_qwen_gguf_must_vision[];
extern const vlm_gguf_name_t  vlm_qwen_gguf_names[];

#define VLM_QWEN_GGUF_COMMON                                                                       \
    .splitter = "qwen2", .table = "token_embd.weight", .head = "output.weight", .merge = 2,        \
    .text = vlm_qwen_gguf_text, .pixels = vlm_qwen_gguf_pixels, .tokens = vlm_qwen_gguf_tokens,    \
    .must = vlm_qwen_gguf_must

#define VLM_QWEN_GGUF_NAME(from, to)   { from, to, VLM_GGUF_WHOLE, 0 }
#define VLM_QWEN_GGUF_LAYER(from, to)  VLM_QWEN_GGUF_NAME("blk.*." from, "model.layers.*." to)
#define VLM_QWEN_GGUF_BLOCK(from, to)  VLM_QWEN_GGUF_NAME("v.blk.*." from, "visual.blocks.*." to)

#endif
