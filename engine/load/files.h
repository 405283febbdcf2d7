/* The files of a model, as a configuration names them. */

#ifndef VLM_FILES_H
#define VLM_FILES_H

#include "load/checkpoint.h"
#include "load/config.h"

/*
 * Opens the weights of a model whose configuration was read.  With conf->ahead, and if a file of
 * weights is not there, the checkpoint is assumed, and *assumed is 1.  NULL and VLM_EMODEL.
 */
vlm_checkpoint_t *vlm_files_weights(const vlm_conf_t *conf, const vlm_config_t *config,
                                    int *assumed, vlm_err_t *err);

#endif
