/* A model as Ollama's clients see it: in /api/tags, /api/ps and /api/show. */

#ifndef VLM_OLLAMA_H
#define VLM_OLLAMA_H

#include <time.h>

#include "base/facts.h"
#include "base/json_out.h"


/* The texts without a zero have their bytes behind them. */
typedef struct {
    const vlm_facts_t  *facts;
    const char         *name;          /* the model's first */
    size_t              name_bytes;
    const char         *directory;     /* the name of its checkpoint's */
    size_t              directory_bytes;
    const char         *format;        /* "safetensors" or "gguf" */
    const char         *weights;       /* their form: "int8" */
    uint64_t            bytes;         /* of the weights */
    time_t              created;
    uint32_t            context;       /* tokens of a sequence: clients cut their prompts to it */
    uint32_t            max_tokens;
    int                 thinks;
    int                 calls;         /* tools, if a request offers them */
} vlm_ollama_model_t;

/* An entry of /api/tags under one of the names; adapter: its directory, or "" for the model. */
void vlm_ollama_put_tag(vlm_json_out_t *w, const vlm_ollama_model_t *m, const char *name,
                        size_t bytes, const char *adapter);

/* An entry of /api/ps: the plan's bytes, of which so many are a GPU's. */
void vlm_ollama_put_loaded(vlm_json_out_t *w, const vlm_ollama_model_t *m, uint64_t bytes,
                           uint64_t vram, time_t now);

/* The answer of /api/show, of the model or of an adapter of it. */
void vlm_ollama_show(vlm_json_out_t *w, const vlm_ollama_model_t *m, int adapter);

/* Adds 2025-11-27T22:45:20.161Z; null for a year without four digits, as a file's time may have. */
void vlm_ollama_add_time(vlm_json_out_t *w, const char *key, time_t sec, unsigned ms);

#endif
