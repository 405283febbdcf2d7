/* Bounds of what a request may ask of an answer's logits: its fields and the engine share them. */

#ifndef VLM_LOGITS_H
#define VLM_LOGITS_H

#include <stdint.h>

#define VLM_TOP_LOGPROBS  20           /* likeliest tokens beside each, as in OpenAI's interface */
#define VLM_MAX_BIAS      1024         /* tokens of "logit_bias", as there */

typedef struct {
    uint32_t  id;                      /* token of the vocabulary */
    float     bias;                    /* -100 to 100; at -100 the id is never picked */
} vlm_bias_t;

#endif
