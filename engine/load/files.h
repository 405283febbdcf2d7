/* The files of a model, as a configuration names them: a directory, or two GGUF files. */

#ifndef VLM_FILES_H
#define VLM_FILES_H

#include "load/checkpoint.h"
#include "load/config.h"
#include "text/tokenizer.h"

/* All settings, as vlm_config_read() does. */
int vlm_files_config(const vlm_conf_t *conf, vlm_config_t *config, vlm_err_t *err);

vlm_tokenizer_t *vlm_files_tokenizer(const vlm_conf_t *conf, const vlm_config_t *config,
                                     vlm_err_t *err);

/*
 * Opens the weights of a model whose configuration was read.  With conf->ahead, and if a file of
 * weights is not there, the checkpoint is assumed, and *assumed is 1.  NULL and VLM_EMODEL.
 */
vlm_checkpoint_t *vlm_files_weights(const vlm_conf_t *conf, const vlm_config_t *config,
                                    int *assumed, vlm_err_t *err);

#endif
