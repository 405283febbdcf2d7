/* Parts that Qwen's families of vision-language models share. */

#ifndef VLM_QWEN_H
#define VLM_QWEN_H

#include "family/decoder.h"

#define VLM_QWEN_IM_END         151645 /* ids that end an answer */
#define VLM_QWEN_END_OF_TEXT    151643

#define VLM_MERGER(m)  offsetof(vlm_merger_t, m)

/* The pattern of Qwen2's tokenizer. */
extern const char  vlm_qwen_split[];

/* The ids of the tokens around pictures. */
int vlm_qwen_read_tokens(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g);

/* The same of the vision encoder: 0 is a size that has to be there. */
typedef struct {
    uint32_t     hidden, depth, heads, mlp, out, patch;
    const char  *act;                  /* the only hidden_act */
} vlm_qwen_vision_t;

/* The vision settings that the families share, and what depends on them. */
int vlm_qwen_read_vision(const vlm_reader_t *r, const vlm_qwen_vision_t *family,
                         vlm_vision_config_t *v, const vlm_text_config_t *t);

/* The words of a conversation: its turns, and tools, whose example of a call lies in braces. */
#define VLM_QWEN_TURNS                                                                             \
    .turn = "<|im_start|>", .end = "<|im_end|>",                                                   \
    .role = { "system\n", "user\n", "assistant\n", "user\n" }, .after = "\n"
#define VLM_QWEN_TOOLS(open, close)                                                                \
    .tools = { "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"  \
               "You are provided with function signatures within <tools></tools> XML "             \
               "tags:\n<tools>",                                                                   \
               "\n</tools>\n\nFor each function call, return a json object with function name "    \
               "and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n" open        \
               "\"name\": <function-name>, \"arguments\": <args-json-object>" close                \
               "\n</tool_call>" },                                                                 \
    .mark = { "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>",     \
              "</think>" }
#define VLM_QWEN_WORDS  VLM_QWEN_TURNS, VLM_QWEN_TOOLS("{", "}")

/* An answer of Qwen3 that begins with no thoughts. */
#define VLM_QWEN_QUIET  "<think>\n\n</think>\n\n"

/* Around pictures and frames. */
#define VLM_QWEN_PICTURES                                                                          \
    .picture = "<|vision_start|>", .cell = "<|image_pad|>", .picture_end = "<|vision_end|>",       \
    .frame_cell = "<|video_pad|>"

/* M-RoPE. */
void vlm_qwen_positions(struct vlm_prompt_s *p, uint32_t merge);

/* ---- GGUF: qwen_gguf.c ---------------------------------------------------- */

extern const vlm_gguf_splitter_t  vlm_qwen_splitter[];
extern const vlm_gguf_key_t   vlm_qwen_gguf_vision[], vlm_qwen_gguf_pixels[],
                              vlm_qwen_gguf_tokens[];
extern const vlm_gguf_must_t  vlm_qwen_gguf_must_vision[];
extern const vlm_gguf_name_t  vlm_qwen_gguf_names[], vlm_qwen_gguf_head_norms[];

#define VLM_QWEN_GGUF                                                                              \
    VLM_DECODER_GGUF, .splitter = vlm_qwen_splitter, .merge = 2, .pixels = vlm_qwen_gguf_pixels,   \
    .tokens = vlm_qwen_gguf_tokens

#define VLM_QWEN_GGUF_BLOCK(from, to)  VLM_GGUF_NAME("v.blk.*." from, "visual.blocks.*." to)

#endif
