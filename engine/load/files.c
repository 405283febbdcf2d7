/* The files of a model: see files.h. */

#include "load/files.h"

#include "load/gguf.h"


int
vlm_files_config(const vlm_conf_t *conf, vlm_config_t *config, vlm_err_t *err)
{
    if (vlm_gguf_is(conf->model)) {
        return vlm_gguf_config(config, conf->model, conf->mmproj, err);
    }

    if (conf->mmproj != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: not a GGUF file, and mmproj is for one", conf->model);
    }

    return vlm_config_read(config, conf->model, err);
}


vlm_tokenizer_t *
vlm_files_tokenizer(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err)
{
    return conf->mmproj != NULL ? vlm_gguf_tokenizer(conf->model, config->family, err)
                                : vlm_tokenizer_open(conf->model, config->family->split, err);
}


vlm_checkpoint_t *
vlm_files_weights(const vlm_conf_t *conf, const vlm_config_t *config, int *assumed, vlm_err_t *err)
{
    int                there;
    vlm_checkpoint_t  *c;

    *assumed = 0;

    if (conf->mmproj != NULL) {
        return vlm_gguf_weights(conf->model, conf->mmproj, config, err);
    }

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
