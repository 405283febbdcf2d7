/* A request's settings for the logits of its answer, and its results: the interfaces and the
   engine share both. */

#ifndef VLM_LOGITS_H
#define VLM_LOGITS_H

#include <stdint.h>

#define VLM_TOP_LOGPROBS  20           /* likeliest tokens beside each, as in OpenAI's interface */
#define VLM_MAX_BIAS      1024         /* tokens of "logit_bias", as there */

typedef struct {
    uint32_t  id;                      /* token of the vocabulary */
    float     bias;                    /* -100 to 100; at -100 the id is never picked */
} vlm_bias_t;

typedef struct {
    uint32_t  id;
    float     logprob;                 /* before penalties, bias and temperature */
} vlm_logprob_t;

typedef struct {
    vlm_logprob_t  picked;
    uint32_t       n_top;
    vlm_logprob_t  top[VLM_TOP_LOGPROBS];          /* [n_top] by falling probability */
} vlm_token_t;

#endif
