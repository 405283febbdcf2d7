/* The program vlm: what its command line says, and its commands. */

#ifndef VLM_CLI_H
#define VLM_CLI_H

#include "vlm.h"

#define VLM_CLI_IMAGES  64

typedef struct {
    vlm_conf_t   conf;
    const char  *prompt, *text, *task, *adapter;
    const char  *user, *nginx, *module;            /* NULL: as doctor finds them */
    const char  *image[VLM_CLI_IMAGES];
    size_t       n_images;
    uint32_t     top;
    int          raw, json, json_mode, help;
    float        temperature;
    uint64_t     seed;
} vlm_args_t;

/*
 * The commands print to standard output.  0; or -1 and the sentence for standard error, after
 * which the exit status is 1.
 */
int vlm_cli_tokenize(const vlm_args_t *a, vlm_err_t *err);         /* ask.c */
int vlm_cli_chat(const vlm_args_t *a, vlm_err_t *err);
int vlm_cli_logits(const vlm_args_t *a, vlm_err_t *err);
int vlm_cli_doctor(const vlm_args_t *a, vlm_err_t *err);           /* doctor.c */
int vlm_cli_bench(const vlm_args_t *a, vlm_err_t *err);            /* bench.c */

/* "WHAT: "VALUE"" as an error of the command line or of the machine; returns -1. */
int vlm_cli_wrong(vlm_err_t *err, const char *what, const char *value);

#endif
