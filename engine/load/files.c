/* The files of a model: see files.h. */

#include "load/files.h"

#include <string.h>
#include <sys/stat.h>

#include "load/gguf_model.h"


/* 1: a GGUF file, or what is given as one and may be missing. */
static int
is_gguf(const vlm_conf_t *conf)
{
    size_t       n = strlen(conf->model);
    struct stat  st;

    if (stat(conf->model, &st) == 0 && S_ISDIR(st.st_mode)) {
        return 0;
    }

    return conf->mmproj != NULL || (n > 5 && strcmp(conf->model + n - 5, ".gguf") == 0)
           || vlm_gguf_check(conf->model, NULL) == 0;
}


int
vlm_files_config(const vlm_conf_t *conf, vlm_config_t *config, vlm_err_t *err)
{
    int               rc;
    vlm_gguf_model_t  m;

    if (is_gguf(conf)) {
        rc = vlm_gguf_model_open(&m, conf->model, conf->mmproj, err) != 0
             ? -1 : vlm_gguf_config(&m, config, err);
        vlm_gguf_model_close(&m);

        return rc;
    }

    if (conf->mmproj != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: not a GGUF file, and mmproj is for one", conf->model);
    }

    return vlm_config_read(config, conf->model, err);
}


vlm_tokenizer_t *
vlm_files_tokenizer(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err)
{
    vlm_gguf_model_t  m;
    vlm_tokenizer_t  *t;

    if (conf->mmproj == NULL) {
        return vlm_tokenizer_open(conf->model, config->family->split, err);
    }

    t = vlm_gguf_model_open(&m, conf->model, conf->mmproj, err) != 0
        ? NULL : vlm_gguf_tokenizer(&m, err);
    vlm_gguf_model_close(&m);

    return t;
}


vlm_checkpoint_t *
vlm_files_weights(const vlm_conf_t *conf, const vlm_config_t *config, int *assumed, vlm_err_t *err)
{
    int                there;
    vlm_gguf_model_t   m;
    vlm_checkpoint_t  *c;

    *assumed = 0;

    if (conf->mmproj != NULL) {
        c = vlm_gguf_model_open(&m, conf->model, conf->mmproj, err) != 0
            ? NULL : vlm_gguf_weights(&m, config, err);
        vlm_gguf_model_close(&m);

        return c;
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
