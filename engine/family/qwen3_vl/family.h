/* Qwen3-VL, dense, and models trained further from it. */

#ifndef VLM_QWEN3_VL_H
#define VLM_QWEN3_VL_H

#include "family/family.h"

extern const vlm_family_t  vlm_qwen3_vl;

extern const vlm_gguf_map_t  vlm_qwen3_vl_gguf;    /* gguf.c */

/* config.c */
int vlm_qwen3_vl_read(const vlm_reader_t *r, vlm_config_t *c);

#endif
