/* The facts of a model in its files: the engine reads them, and answers list them. */

#ifndef VLM_FACTS_H
#define VLM_FACTS_H

#include <stdint.h>

/* The properties of a checkpoint, from its own files: for lists of models. */
typedef struct {
    const char  *architecture;         /* config.json's model_type; static, as all texts here */
    const char  *family;               /* its name for people: "Qwen2.5-VL" */
    const char  *turn, *turn_end;      /* control tokens around each turn of the template */
    const char  *call, *call_end;      /* marks around a call of a tool; NULL: the template has no
                                          tools */
    int          quiet;                /* 1: a prompt without thoughts says so by itself */
    uint64_t     parameters;           /* elements of all tensors; a tied head counts once; 0: the
                                          weights are not there yet */
    uint32_t     layers, heads, kv_heads, hidden, mlp, vocab;
    uint32_t     context_max;          /* max_position_embeddings */
    uint32_t     vision_layers;
    uint32_t     patch;                /* pixels on a side */
    uint32_t     coordinates;          /* in answers: 0, pixels of the picture as resized; N, shares
                                          of its sides, 0 to N */
    uint32_t     tasks;                /* release of the words that ask for visual tasks, in tenths:
                                          20 or 25; the host has the words */
    int          processor;            /* 1: a file says how pictures are resized */
    int          gguf;                 /* 1: the model is a GGUF file, no directory */
    int          template_unknown;     /* 1: the words of its chat template were not compared */
} vlm_facts_t;

#endif
