/* The engine behind a vlm_t, shared by the files of run/. */

#ifndef VLM_ENGINE_H
#define VLM_ENGINE_H

#include <pthread.h>

#include "base/beside.h"
#include "grammar/forms.h"
#include "image/known.h"
#include "model/model.h"
#include "run/adjust.h"
#include "run/batch.h"
#include "run/job.h"
#include "run/masks.h"
#include "run/prefix.h"
#include "vlm.h"

typedef struct {                       /* the engine thread's */
    vlm_model_t     model;
    vlm_rows_t      rows;
    vlm_job_t     **slot;              /* [slots] NULL: free */
    uint32_t       *token;             /* [slots] picked in this step, on the host */
    float          *logprob;           /* [slots] */
    uint32_t       *seen;              /* [seen_words] of a prompt being admitted, or of a job
                                          before a step with guessed tokens */
    vlm_adjust_t    adjust;
    vlm_masks_t    *masks;             /* [slots] places */
    uint32_t        turn;              /* slot whose turn it is to be encoded or prefilled */
    vlm_features_t  features;
    uint32_t        encoder;           /* entry of features that it works on, or VLM_NONE */
    vlm_prefix_t    prefix;
    vlm_turn_t      stream;            /* the language model's turn, if it is turned */
    float          *work;              /* [hidden] of turning a vector back */
    void           *room;              /* [vlm_kv_room()] for rows on their way between slots */
    uint64_t        n_admitted;
} vlm_sched_t;

struct vlm_s {
    vlm_conf_t        conf;
    vlm_config_t      config;
    vlm_tokenizer_t  *tokenizer;
    vlm_template_t    template;
    vlm_tokens_t     *pieces;          /* of the vocabulary, for grammars */
    vlm_forms_t      *forms;           /* compiled grammars */
    vlm_known_t       known;           /* pictures */
    vlm_plan_t        plan;
    char              reason[480];     /* why device auto chose its device */
    int               lost;            /* 1: the device was lost while it was opened */
    vlm_packed_t      packed;          /* the cache file, whose mapping may hold the weights */
    uint8_t          *reserved;        /* [reserved_bytes] the plan's block, on the device */
    uint64_t          reserved_bytes;
    vlm_beside_t      filling;         /* of the planned memory; see fill.c */
    int               making;          /* writing the cache file: most of the work of a load */
    int               remake;          /* the cache file was damaged */

    const vlm_ops_t  *ops;
    vlm_device_t     *device;
    vlm_sched_t       sched;

    vlm_adapter_t    *adapter[VLM_MAX_ADAPTERS];   /* [conf.lora_max] of each place, or NULL; see
                                                      adapters.h */
    vlm_adapter_info_t  left_out[VLM_MAX_ADAPTERS];
    uint32_t          n_left_out;
    int               fd;              /* eventfd */

    pthread_mutex_t   mutex;           /* held for a few assignments, never across work */
    vlm_job_t        *submitted, **submitted_last;
    vlm_job_t        *news, **news_last;
    vlm_job_t        *ended;           /* its last event was taken: freed at the next call */
    int               running;         /* a vlm_run() in progress will look at submitted again */
    vlm_stat_t        stat;            /* as vlm_stat() gives it */
};

/* Checks settings, and sets the threads and features that they leave to the engine.  See conf.c. */
int vlm_conf_check(vlm_conf_t *conf, vlm_err_t *err);
/* Checks that the largest picture has one merged cell of this model. */
int vlm_conf_cell(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err);

/*
 * Sets cuda to 1 and index to the GPU's, if the model should run on it, as far as is known without
 * touching a device; else cuda to 0.  Device auto has a reason in bytes.  See plan.c.
 */
int vlm_device_choose(const vlm_conf_t *conf, const vlm_config_t *config, int *cuda,
                      uint32_t *index, char *reason, size_t bytes, vlm_err_t *err);
/* Gives a model the room for adapters that conf asks for. */
int vlm_plan_lora(const vlm_conf_t *conf, vlm_model_t *m, vlm_err_t *err);

int vlm_host_stopped(const vlm_t *v);       /* 1: the host's stop() returned true */
uint32_t vlm_n_ids(const vlm_t *v);    /* ids below it can be picked */
/* Refuses pictures and videos, -1 and VLM_EINPUT, if the model has no vision encoder. */
int vlm_takes_pictures(const vlm_t *v, vlm_err_t *err);

/*
 * Opens the quantised cache file, or writes it first, into progress, which stays empty if there can
 * be none.  -1: stopped, or the checkpoint is damaged.  See weights.c.
 */
int vlm_weights_open(vlm_t *v, vlm_checkpoint_t *c, vlm_progress_t *progress, vlm_err_t *err);
/* Tells the log what the files of a quantised checkpoint have lost. */
void vlm_weights_tell(vlm_t *v, const vlm_checkpoint_t *c);
void vlm_weights_loaded(vlm_t *v);     /* closes files that are not needed any more */
void vlm_weights_remake(vlm_t *v, vlm_err_t *err); /* err says why the next open() writes it */
void vlm_weights_without(vlm_t *v, vlm_err_t *err);        /* or why the next has no cache file */
int vlm_weights_progress(void *data, uint32_t percent);    /* of vlm_progress_t; data: a vlm_t */

/* Commits planned memory in the background, beside the first answers.  See fill.c. */
void vlm_filling_start(vlm_t *v);
void vlm_filling_stop(vlm_t *v);          /* before the device is closed; safe twice */

/* Admits, encodes, prefills and steps until no job is left.  See sched.c. */
int vlm_sched_open(vlm_t *v, vlm_err_t *err);
/* Asks the device, once it is ready, to keep the steps that are repeated. */
int vlm_sched_record(vlm_t *v, vlm_err_t *err);
void vlm_sched_close(vlm_t *v);
int vlm_sched_run(vlm_t *v, vlm_err_t *err);

/* News for the loop: more text is visible, or the job has ended. */
void vlm_tell_started(vlm_t *v, vlm_job_t *j);
void vlm_tell_text(vlm_t *v, vlm_job_t *j, size_t visible, uint32_t visible_tokens);
void vlm_tell_end(vlm_t *v, vlm_job_t *j, vlm_finish_t finish, const vlm_err_t *err);
/* Adds a step's guesses to the counters: n tokens, and of them those that were picked. */
void vlm_count_guesses(vlm_t *v, uint32_t n, uint32_t right);

void vlm_count_forced(vlm_t *v, uint32_t n);

/* The next submitted job, or NULL.  last: NULL also means that this run is over. */
vlm_job_t *vlm_take_submitted(vlm_t *v, int last);
/* A submitted job that was cancelled before it had a slot, or NULL. */
vlm_job_t *vlm_take_cancelled(vlm_t *v);

#endif
