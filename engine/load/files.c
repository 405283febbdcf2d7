/* The files of a model: see files.h. */

#include "load/files.h"

#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/json.h"
#include "family/family.h"
#include "load/gguf_model.h"

#define MAX_FILE  (16u << 20)          /* bytes of a file that has a template */


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


/*
 * The words of the chat template: by the name that is configured, else by the checkpoint's own
 * template if it was compared, else the family's.
 */
static int
choose_words(const vlm_conf_t *conf, const char *jinja, size_t bytes, vlm_config_t *c,
             vlm_err_t *err)
{
    char                known[160];
    const vlm_words_t  *w;

    if (conf->chat_template != NULL) {
        c->words = vlm_words_find(conf->chat_template);

        if (c->words == NULL) {
            vlm_words_list(known, sizeof(known));
            return vlm_fail(err, VLM_EMODEL, "no chat template \"%s\", there are %s",
                            vlm_printable(conf->chat_template), known);
        }

        return 0;
    }

    if (bytes == 0 || c->family->words.picture != NULL) {
        return 0;                      /* models that see pictures have the family's words */
    }

    w = vlm_words_of(jinja, bytes);
    c->words = w == NULL ? c->words : w;
    c->unknown = w == NULL;

    return 0;
}


/* The template of a directory: a file of its own, or a text in the tokenizer's settings. */
static int
directory_words(const vlm_conf_t *conf, vlm_config_t *c, vlm_err_t *err)
{
    int           rc;
    char          path[4096];
    size_t        i;
    vlm_file_t    f;
    vlm_json_t   *j;
    const char   *text;

    static const char *const  names[] = { "chat_template.jinja", "chat_template.json",
                                          "tokenizer_config.json" };

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!vlm_file_exists(conf->model, names[i])) {
            continue;
        }

        if (vlm_file_path(path, sizeof(path), conf->model, names[i], err) != 0
            || vlm_file_open(&f, path, MAX_FILE, err) != 0)
        {
            return -1;
        }

        j = i == 0 ? NULL : vlm_json_named(f.data, f.bytes, names[i], NULL);
        text = i == 0 ? (const char *) f.data : vlm_json_text(vlm_json_get(j, "chat_template"));
        rc = text == NULL ? 1 : choose_words(conf, text, i == 0 ? f.bytes : strlen(text), c, err);
        vlm_json_free(j);
        vlm_file_close(&f);

        if (rc <= 0) {
            return rc;
        }
    }

    return choose_words(conf, NULL, 0, c, err);
}


int
vlm_files_config(const vlm_conf_t *conf, vlm_config_t *config, vlm_err_t *err)
{
    int               rc;
    vlm_gguf_text_t   jinja;
    vlm_gguf_model_t  m;

    if (is_gguf(conf)) {
        rc = vlm_gguf_model_open(&m, conf->model, conf->mmproj, err) != 0
             ? -1 : vlm_gguf_config(&m, config, err);
        if (rc == 0) {
            config->gguf = 1;
            jinja = vlm_gguf_text(vlm_gguf_find(&m.text, "tokenizer.chat_template"));
            rc = choose_words(conf, jinja.p, jinja.n, config, err);
        }

        vlm_gguf_model_close(&m);

        return rc;
    }

    if (conf->mmproj != NULL) {
        return vlm_fail(err, VLM_EMODEL, "%s: not a GGUF file, and mmproj is for one", conf->model);
    }

    return vlm_config_read(config, conf->model, err) != 0 ? -1
           : directory_words(conf, config, err);
}


vlm_tokenizer_t *
vlm_files_tokenizer(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err)
{
    vlm_gguf_model_t  m;
    vlm_tokenizer_t  *t;

    if (!is_gguf(conf)) {
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

    if (is_gguf(conf)) {
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
