/* The settings of an encoder of texts, from the files of its directory. */

#ifndef VLM_SETTINGS_H
#define VLM_SETTINGS_H

#include "load/config.h"

typedef struct {
    vlm_config_t  config;              /* of it the text part alone */
    uint32_t      tokens;              /* most of a text, with the control tokens */
} vlm_settings_t;

/* VLM_EMODEL names file, path and value. */
int vlm_settings_read(vlm_settings_t *s, const char *dir, vlm_err_t *err);

typedef struct {
    const void  *data;                 /* [bytes]; NULL: there is no such file */
    size_t       bytes;
    const char  *path;                 /* for messages */
} vlm_settings_file_t;

enum { VLM_SETTINGS_CONFIG, VLM_SETTINGS_TOKENS, VLM_SETTINGS_POOLING, VLM_SETTINGS_FILES };

/* The same without files. */
int vlm_settings_parse(vlm_settings_t *s, const vlm_settings_file_t file[VLM_SETTINGS_FILES],
                       vlm_err_t *err);

#endif
