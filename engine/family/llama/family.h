/* Llama 2 and 3, SmolLM2, and others of their recipe: text alone. */

#ifndef VLM_LLAMA_H
#define VLM_LLAMA_H

#include "family/family.h"

extern const vlm_family_t  vlm_llama;

#endif
