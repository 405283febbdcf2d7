/* Parts that Qwen's families of vision-language models share. */

#ifndef VLM_QWEN_H
#define VLM_QWEN_H

#include "family/family.h"

#define VLM_QWEN_IM_END         151645 /* ids that end an answer */
#define VLM_QWEN_END_OF_TEXT    151643

/* The pattern of Qwen2's tokenizer. */
extern const char  vlm_qwen_split[];

/* Re-saved by newer versions of transformers, tensors have longer names. */
extern const vlm_alias_t  vlm_qwen_aliases[];

/* The text settings of config.json, and the ids of the tokens around pictures. */
int vlm_qwen_read_text(const vlm_reader_t *r, vlm_text_config_t *t);
int vlm_qwen_read_tokens(const vlm_reader_t *r, uint32_t vocab, vlm_generation_config_t *g);

/* M-RoPE, for still pictures. */
void vlm_qwen_positions(struct vlm_prompt_s *p, uint32_t merge);

#endif
