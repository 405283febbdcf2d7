/*
 * Reads the settings of an encoder of texts: config.json by the family that it names, and what
 * sentence-transformers keeps beside it, the most tokens of a text and how rows become a vector.
 */

#include "embed/settings.h"

#include <string.h>

#include "base/file.h"
#include "family/family.h"
#include "load/item.h"

#define MAX_FILE  (4u << 20)           /* bytes */
#define POOLING   "pooling_mode_"      /* begins the keys of ways to make a vector */
#define MEAN      POOLING "mean_tokens"


static vlm_json_t *
open_file(vlm_reader_t *r, const vlm_settings_file_t *f, vlm_err_t *err)
{
    vlm_json_t  *j;

    memset(r, 0, sizeof(*r));
    r->file = f->path;
    r->prefix = "";
    r->err = err;

    j = vlm_json_named(f->data, f->bytes, f->path, err);

    if (j != NULL && !vlm_json_is_object(j)) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: not a JSON object", f->path);
        vlm_json_free(j);
        return NULL;
    }

    r->top = j;

    return j;
}


static int
read_config(vlm_config_t *c, const vlm_reader_t *r)
{
    char         known[160];
    vlm_item_t   type = vlm_item_top(r, "model_type");
    const char  *name = vlm_json_text(type.j);

    c->family = name == NULL ? NULL : vlm_family_encoder(name);

    if (c->family == NULL) {
        vlm_family_encoders(known, sizeof(known));
        return vlm_fail(r->err, VLM_EMODEL, "%s: model_type is \"%s\", an encoder of texts is %s",
                        r->file, name == NULL ? "not a text" : vlm_printable(name), known);
    }

    return c->family->read(r, c);
}


/* A vector is the mean of all rows: other ways give other vectors. */
static int
check_pooling(const vlm_reader_t *r)
{
    int                mean;
    const char        *key;
    const vlm_json_t  *j;

    for (j = vlm_json_first(r->top); j != NULL; j = vlm_json_next(j)) {
        key = vlm_json_key(j);
        mean = strcmp(key, MEAN) == 0;

        if (strncmp(key, POOLING, sizeof(POOLING) - 1) == 0 && vlm_json_bool(j, !mean) != mean) {
            return vlm_fail(r->err, VLM_EMODEL, "%s: %s is %s, which is not supported", r->file,
                            vlm_printable(key), mean ? "not true" : "not false");
        }
    }

    return 0;
}


int
vlm_settings_parse(vlm_settings_t *s, const vlm_settings_file_t file[VLM_SETTINGS_FILES],
                   vlm_err_t *err)
{
    int           i, rc;
    vlm_json_t   *j;
    vlm_reader_t  r;

    memset(s, 0, sizeof(*s));

    for (rc = 0, i = 0; rc == 0 && i < VLM_SETTINGS_FILES; i++) {
        if (file[i].data == NULL) {
            continue;
        }

        j = open_file(&r, &file[i], err);

        if (j == NULL) {
            return -1;
        }

        if (i == VLM_SETTINGS_CONFIG) {
            rc = read_config(&s->config, &r);
            s->tokens = s->config.text.max_positions;

        } else if (i == VLM_SETTINGS_TOKENS) {
            rc = vlm_item_u32_or(&r, vlm_item_top(&r, "max_seq_length"), 3,
                                 s->config.text.max_positions, s->tokens, &s->tokens);
        } else {
            rc = check_pooling(&r);
        }

        vlm_json_free(j);
    }

    return rc;
}


int
vlm_settings_read(vlm_settings_t *s, const char *dir, vlm_err_t *err)
{
    int                  i, rc;
    char                 path[VLM_SETTINGS_FILES][4096];
    vlm_file_t           f[VLM_SETTINGS_FILES];
    vlm_settings_file_t  file[VLM_SETTINGS_FILES];

    static const char  *names[VLM_SETTINGS_FILES] = {
        "config.json", "sentence_bert_config.json", "1_Pooling/config.json"
    };

    memset(f, 0, sizeof(f));
    memset(file, 0, sizeof(file));
    rc = vlm_file_check_dir(dir, names[0], err);

    for (i = 0; rc == 0 && i < VLM_SETTINGS_FILES; i++) {
        rc = vlm_file_path(path[i], sizeof(path[i]), dir, names[i], err);
        file[i].path = path[i];

        if (rc == 0 && (i == 0 || vlm_file_exists(dir, names[i]))) {
            rc = vlm_file_open(&f[i], path[i], MAX_FILE, err);
            file[i].data = f[i].data == NULL ? (const void *) "" : f[i].data;
            file[i].bytes = f[i].bytes;
        }
    }

    rc = rc == 0 ? vlm_settings_parse(s, file, err) : -1;

    for (i = 0; i < VLM_SETTINGS_FILES; i++) {
        vlm_file_close(&f[i]);
    }

    return rc;
}
