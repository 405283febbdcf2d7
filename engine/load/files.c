/* The files of a model: see files.h. */

#include "load/files.h"


vlm_checkpoint_t *
vlm_files_weights(const vlm_conf_t *conf, const vlm_config_t *config, int *assumed, vlm_err_t *err)
{
    int                there;
    vlm_checkpoint_t  *c;

    there = conf->ahead ? vlm_checkpoint_is_there(conf->model, err) : 1;
    *assumed = there == 0;

    if (there != 1) {
        return there == 0 ? vlm_checkpoint_assume(err) : NULL;
    }

    c = vlm_checkpoint_open(conf->model, config->family->aliases, err);

    if (c != NULL && vlm_quant_fold(c, &config->quant, err) != 0) {
        vlm_checkpoint_close(c);
        return NULL;
    }

    return c;
}
