/* What the files of run/ share: the engine behind a vlm_t. */

#ifndef VLM_ENGINE_H
#define VLM_ENGINE_H

#include <pthread.h>

#include "base/beside.h"
#include "image/known.h"
#include "model/model.h"
#include "run/adjust.h"
#include "run/batch.h"
#include "run/job.h"
#include "run/prefix.h"
#include "vlm.h"

typedef struct {                       /* the engine thread's */
    vlm_model_t     model;
    vlm_rows_t      rows;
    vlm_job_t     **slot;              /* [slots] NULL: free */
    uint32_t       *token;             /* [slots] picked in this step, on the host */
    float          *logprob;           /* [slots] */
    uint32_t       *seen;              /* [seen_words] of a prompt being admitted */
    vlm_adjust_t    adjust;
    uint32_t        turn;              /* slot whose turn it is to be encoded or prefilled */
    vlm_features_t  features;
    uint32_t        tower;             /* the place whose picture is in the tower, or VLM_NONE */
    vlm_prefix_t    prefix;
    void           *room;              /* [vlm_kv_room()] for rows on their way between slots */
    uint64_t        n_admitted;
} vlm_sched_t;

struct vlm_s {
    vlm_conf_t        conf;
    vlm_config_t      config;
    vlm_tokenizer_t  *tokenizer;
    vlm_template_t    template;
    vlm_json_tokens_t *json;
    vlm_known_t       known;           /* pictures */
    vlm_plan_t        plan;
    char              reason[128];     /* why device auto took what it took */
    int               lost;            /* the device, when it was to be opened */
    vlm_packed_t      packed;          /* the kept int8 form, where the weights may be */
    uint8_t          *reserved;        /* [reserved_bytes] the plan's block, on the device */
    uint64_t          reserved_bytes;
    vlm_beside_t      filling;         /* of what was promised; see fill.c */
    int               making;          /* it: most of the work of a load */
    int               remake;          /* it was damaged */

    const vlm_ops_t  *ops;
    vlm_device_t     *device;
    vlm_sched_t       sched;

    int               fd;              /* eventfd */

    pthread_mutex_t   mutex;           /* held for a few assignments, never across work */
    vlm_job_t        *submitted, **submitted_last;
    vlm_job_t        *news, **news_last;
    vlm_job_t        *ended;           /* its last event was taken: freed at the next call */
    int               running;         /* a vlm_run() that will look at submitted again */
    vlm_stat_t        stat;            /* as vlm_stat() gives it */
};

int vlm_stopped(const vlm_t *v);       /* what the host says */
uint32_t vlm_n_ids(const vlm_t *v);    /* ids below it can be picked */

/*
 * The kept int8 form, made if need be, into progress; nothing there, if it cannot be kept.  -1:
 * stopped, or the checkpoint is not what it should be.  See weights.c.
 */
int vlm_weights_open(vlm_t *v, vlm_checkpoint_t *c, vlm_progress_t *progress, vlm_err_t *err);
void vlm_weights_loaded(vlm_t *v);     /* closes what is not needed any more */
void vlm_weights_remake(vlm_t *v, vlm_err_t *err); /* err said why the next open() makes it */
int vlm_weights_progress(void *data, uint32_t percent);    /* of vlm_progress_t; data: a vlm_t */

/* Beside the first answers, memory that was promised is taken from the system.  See fill.c. */
void vlm_fill_start(vlm_t *v);
void vlm_fill_stop(vlm_t *v);          /* before the device is closed; safe twice */

/* Admits, encodes, prefills and steps until no job is left.  See sched.c. */
int vlm_sched_open(vlm_t *v, vlm_err_t *err);
/* Once the device is ready: asks it to keep the steps that come again and again. */
int vlm_sched_record(vlm_t *v, vlm_err_t *err);
void vlm_sched_close(vlm_t *v);
int vlm_sched_run(vlm_t *v, vlm_err_t *err);

/* News for the loop: more text is visible, or the job has ended. */
void vlm_tell_started(vlm_t *v, vlm_job_t *j);
void vlm_tell_text(vlm_t *v, vlm_job_t *j, size_t visible, uint32_t visible_tokens);
void vlm_tell_end(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err);

/* The next submitted job, or NULL.  last: NULL also means that this run is over. */
vlm_job_t *vlm_take_submitted(vlm_t *v, int last);
/* A submitted job that was cancelled before it had a slot, or NULL. */
vlm_job_t *vlm_take_cancelled(vlm_t *v);

#endif
