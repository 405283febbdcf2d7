/* Qwen3: text alone. */

#ifndef VLM_QWEN3_H
#define VLM_QWEN3_H

#include "family/family.h"

extern const vlm_family_t  vlm_qwen3;

#endif
