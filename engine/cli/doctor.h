/*
 * Findings about a checkpoint on this machine, which may stop it: a finding is a line with a
 * sentence and, unless all is well, a remedy.
 *
 * The checks look at this machine through root, so that a test can show them another one.  None of
 * them changes a file, and none loads weights.
 */

#ifndef VLM_DOCTOR_H
#define VLM_DOCTOR_H

#include <stdio.h>

#include "cli/cli.h"
#include "load/config.h"

typedef enum { VLM_FINE, VLM_WARNS, VLM_STOPS } vlm_finding_t;

typedef struct {                       /* an nginx, as "nginx -V" describes it */
    char  path[4096];                  /* of the program; "": none was found */
    char  version[64];                 /* "nginx/1.22.1" */
    char  module[4096];                /* where its module would be */
    char  user[256];                   /* of its workers; "": not known */
} vlm_nginx_t;

typedef struct {
    const vlm_args_t  *args;
    const char        *root;           /* "", or a test's directory with /proc, /sys and /dev */
    FILE              *out;
    uint32_t           n[VLM_STOPS + 1];           /* findings of each kind so far */

    char               stop[480];      /* the last sentence that stops it, not to be said twice */

    int                read;           /* 1: config is read */
    int                tokens;         /* 1: the tokenizer is, too */
    int                whole;          /* 1: and the files have all weights */
    int                planned;        /* 1: plan is made */
    vlm_config_t      *config;
    vlm_plan_t         plan;           /* of the device that the settings choose */
    vlm_plan_t         cpu;            /* of the cpu; total 0: the settings do not take it */
    vlm_nginx_t        nginx;
} vlm_doctor_t;

/*
 * Prints a finding, "ok", "warn" or "stop", and counts it.  The sentence is fmt's; a remedy comes
 * behind a semicolon, and is NULL where all is well.  One cause may stop several checks: its
 * sentence is not repeated.
 */
void vlm_doctor_say(vlm_doctor_t *d, vlm_finding_t f, const char *remedy, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Makes the findings, in this order. */
void vlm_doctor_config(vlm_doctor_t *d);           /* model.c: sets read */
void vlm_doctor_tokenizer(vlm_doctor_t *d);        /* sets tokens */
void vlm_doctor_weights(vlm_doctor_t *d);          /* sets whole */
void vlm_doctor_processor(vlm_doctor_t *d);        /* machine.c */
void vlm_doctor_memory(vlm_doctor_t *d);           /* sets planned, plan and cpu */
void vlm_doctor_pages(vlm_doctor_t *d);
void vlm_doctor_nginx(vlm_doctor_t *d);            /* nginx.c: sets nginx */
void vlm_doctor_gpu(vlm_doctor_t *d);
void vlm_doctor_user(vlm_doctor_t *d);             /* user.c */
void vlm_doctor_cache(vlm_doctor_t *d);            /* cache.c */

/* Reads a text file below root, at most bytes - 1 of it; without one returns -1, and text is "". */
int vlm_doctor_text(const vlm_doctor_t *d, const char *path, char *text, size_t bytes);

/*
 * The quantised cache that a server keeps for a model without the parameter cache, or in conf's
 * directory.
 */
typedef enum {
    VLM_CACHE_NONE,                    /* its form needs none, or the model is small */
    VLM_CACHE_ABSENT,
    VLM_CACHE_STALE,                   /* damaged, or of other weights: why says which */
    VLM_CACHE_WHOLE
} vlm_cache_state_t;

typedef struct {
    char       dir[4096];
    char       path[4096];             /* of the file */
    char       above[4096];            /* in which a server makes dir; "": it does not */
    vlm_err_t  why;
} vlm_cache_t;

/* plan: of conf.  The checkpoint's files must be there. */
vlm_cache_state_t vlm_cli_cache(const vlm_conf_t *conf, const vlm_config_t *config,
                                const vlm_plan_t *plan, vlm_cache_t *cache);

#endif
