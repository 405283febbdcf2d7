/*
 * A model of GGUF files: one has the language model and the tokenizer, and a second one the vision
 * encoder ("mmproj"), if the family has one.  Their keys become the text of a config.json and their
 * tensors get the family's names, by tables in the family's folder.
 */

#ifndef VLM_GGUF_MODEL_H
#define VLM_GGUF_MODEL_H

#include "load/checkpoint.h"
#include "load/config.h"
#include "load/gguf.h"
#include "text/tokenizer.h"

typedef struct {
    vlm_gguf_t           text, vision;
    const vlm_family_t  *family;
} vlm_gguf_model_t;

/*
 * Opens the files, whose paths are kept (mmproj: NULL if there is none), and finds their family.
 * -1: VLM_EMODEL, VLM_EMEMORY; vlm_gguf_model_close() is needed either way.
 */
int vlm_gguf_model_open(vlm_gguf_model_t *m, const char *model, const char *mmproj, vlm_err_t *err);
/* The same for whole files in memory, which are kept, for the fuzzer. */
int vlm_gguf_model_parse(vlm_gguf_model_t *m, const uint8_t *text, uint64_t text_bytes,
                         const uint8_t *vision, uint64_t vision_bytes, vlm_err_t *err);
void vlm_gguf_model_close(vlm_gguf_model_t *m);

/* gguf_config.c: all settings, from the keys of both files. */
int vlm_gguf_config(const vlm_gguf_model_t *m, vlm_config_t *c, vlm_err_t *err);

/* gguf_tokenizer.c: the text file's tokenizer. */
vlm_tokenizer_t *vlm_gguf_tokenizer(const vlm_gguf_model_t *m, vlm_err_t *err);

/* gguf_weights.c: the tensors of both files, by the family's names; takes the files over. */
vlm_checkpoint_t *vlm_gguf_weights(vlm_gguf_model_t *m, const vlm_config_t *config,
                                   vlm_err_t *err);

#endif
