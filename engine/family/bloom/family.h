/* BLOOM, and models trained further from it: text alone, and no chat template. */

#ifndef VLM_BLOOM_H
#define VLM_BLOOM_H

#include "family/family.h"

extern const vlm_family_t  vlm_bloom;

/* config.c */
int vlm_bloom_read(const vlm_reader_t *r, vlm_config_t *c);

#endif
