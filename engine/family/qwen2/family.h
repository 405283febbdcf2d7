/* Qwen2 and Qwen2.5, Qwen2.5-Coder: text alone. */

#ifndef VLM_QWEN2_H
#define VLM_QWEN2_H

#include "family/family.h"

extern const vlm_family_t  vlm_qwen2;

#endif
