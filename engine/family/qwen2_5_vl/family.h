/* Qwen2.5-VL, and models trained further from it. */

#ifndef VLM_QWEN2_5_VL_H
#define VLM_QWEN2_5_VL_H

#include "family/family.h"

extern const vlm_family_t  vlm_qwen2_5_vl;

extern const vlm_gguf_map_t  vlm_qwen2_5_vl_gguf;  /* gguf.c */

/* config.c */
int vlm_qwen2_5_vl_read(const vlm_reader_t *r, vlm_config_t *c);

/*
 * order.c: windows row-major over the merged grid, merged cells row-major in a window, of which
 * those at an edge may be smaller.  A window is a segment.
 */
void vlm_qwen2_5_vl_order(const vlm_vision_config_t *c, vlm_layout_t *l);

#endif
