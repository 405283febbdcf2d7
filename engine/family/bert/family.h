/* BERT, an encoder of texts: shared by the files of this folder. */

#ifndef VLM_BERT_H
#define VLM_BERT_H

#include "family/family.h"

extern const vlm_family_t  vlm_bert;

int vlm_bert_read(const vlm_reader_t *r, vlm_config_t *c);         /* config.json */

#endif
