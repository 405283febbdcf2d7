/* The life of an engine: open, load, run, close. */

#include "run/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/size.h"
#include "load/files.h"
#include "model/arenas.h"
#include "ops/cuda.h"
#include "run/adapters.h"


vlm_t *
vlm_open(const vlm_conf_t *conf, vlm_err_t *err)
{
    vlm_t  *v;

    v = calloc(1, sizeof(*v));
    if (v == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for an engine");
        return NULL;
    }

    v->conf = *conf;
    v->packed.fd = -1;
    v->submitted_last = &v->submitted;
    v->news_last = &v->news;
    v->stat.state = VLM_LOADING;
    pthread_mutex_init(&v->mutex, NULL);

    v->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (v->fd == -1) {
        (void) vlm_fail(err, VLM_EMEMORY, "eventfd() failed");
        goto failed;
    }

    if (vlm_conf_check(&v->conf, err) != 0 || vlm_files_config(conf, &v->config, err) != 0
        || vlm_conf_cell(&v->conf, &v->config, err) != 0)
    {
        goto failed;
    }

    v->tokenizer = vlm_files_tokenizer(conf, &v->config, err);
    if (v->tokenizer == NULL || vlm_known_open(&v->known, v->conf.features, err) != 0
        || vlm_template_open(&v->template, v->tokenizer, &v->config, v->conf.context - 1, err) != 0)
    {
        goto failed;
    }

    v->pieces = vlm_tokens_open(v->tokenizer, vlm_n_ids(v), v->config.generation.eos,
                                v->config.generation.n_eos, err);
    v->forms = vlm_forms_open(conf->grammars);

    if (v->pieces == NULL || v->forms == NULL) {
        (void) (v->pieces == NULL || vlm_fail(err, VLM_EMEMORY, "no memory for grammars"));
        goto failed;
    }

    vlm_adapters_list(v);

    return v;

failed:

    vlm_close(v);

    return NULL;
}


/* Device auto falls back to the cpu when a GPU fails; err has the reason, and is cleared. */
static int
take_cpu(vlm_t *v, vlm_err_t *err)
{
    (void) snprintf(v->reason, sizeof(v->reason), "device auto took the cpu: %.450s", err->text);
    v->conf.device = "cpu";
    memset(err, 0, sizeof(*err));

    return vlm_plan(&v->conf, &v->plan, err);
}


/* Opens the device that was planned for; under device auto, the cpu if that fails. */
static int
open_device(vlm_t *v, vlm_err_t *err)
{
    int                 cuda;
    uint32_t            index;
    vlm_err_t           cause = { VLM_OK, "" };
    vlm_cuda_request_t  r;

    if (vlm_device_choose(&v->conf, &v->config, &cuda, &index, v->reason, sizeof(v->reason),
                          err) != 0)
    {
        return -1;
    }

    if (cuda) {
        memset(&r, 0, sizeof(r));
        r.index = index;
        r.weights = v->conf.weights;
        r.bytes = v->plan.total - v->plan.device;

        v->device = vlm_cuda_load(&r, &v->ops, &cause);

        /* A lost device is usable again in the next process, so auto does not fall back. */

        if (v->device == NULL && (r.lost || strcmp(v->conf.device, "auto") != 0)) {
            v->lost = r.lost;
            *err = cause;
            return -1;
        }

        if (v->device == NULL) {
            cuda = 0;
            *err = cause;

            if (take_cpu(v, err) != 0) {
                return -1;
            }
        }
    }

    if (!cuda) {
        v->device = vlm_cpu_open(v->conf.ops, v->conf.threads, &v->ops, err);
    }

    if (v->device == NULL) {
        return -1;
    }

    if (v->reason[0] != '\0' && v->conf.log != NULL) {
        v->conf.log(v->conf.data, v->plan.device == 0 ? VLM_LOG_WARN : VLM_LOG_NOTICE, v->reason);
    }

    return 0;
}


/* Opens the model on one device with all its memory and weights, or fails. */
static int
load_model(vlm_t *v, vlm_checkpoint_t *c, vlm_err_t *err)
{
    vlm_model_t    *m = &v->sched.model;
    vlm_arenas_t    arenas;
    vlm_progress_t  progress = { vlm_weights_progress, v, v->conf.threads, NULL };

    memset(&arenas, 0, sizeof(arenas));

    if (open_device(v, err) != 0
        || vlm_model_init(m, &v->config, v->ops, v->device, v->conf.weights, err) != 0
        || vlm_plan_lora(&v->conf, m, err) != 0 || vlm_weights_open(v, c, &progress, err) != 0
        || vlm_arenas_place(&arenas, m, c, &v->conf, &progress, err) != 0
        || (v->reserved = vlm_arenas_reserve(&arenas, v->ops, v->device, &v->reserved_bytes, err))
           == NULL
        || vlm_arenas_place(&arenas, m, c, &v->conf, &progress, err) != 0)
    {
        return -1;
    }

    vlm_weights_loaded(v);

    m->n_vocab = vlm_vocab_size(v->tokenizer);
    vlm_model_ready(m);

    return v->ops->basic->sync(v->device, err);
}


static void
close_device(vlm_t *v)
{
    vlm_filling_stop(v);
    vlm_model_free(&v->sched.model);

    if (v->device != NULL) {
        v->ops->basic->close(v->device);
        v->device = NULL;
    }

    vlm_packed_close(&v->packed);
}


/*
 * A cache file that proved damaged is written again.  If another process took the device's memory
 * since it was opened, device auto falls back to the cpu.
 */
static int
load_instead(vlm_t *v, vlm_checkpoint_t *c, vlm_err_t *err)
{
    if (v->device != NULL && v->packed.failed && !v->remake) {
        vlm_weights_remake(v, err);
        close_device(v);

        if (load_model(v, c, err) == 0) {
            return 0;
        }

        /* The checkpoint itself is left if the new file is damaged, too. */

        if (v->packed.failed) {
            vlm_weights_without(v, err);
            close_device(v);

            if (load_model(v, c, err) == 0) {
                return 0;
            }
        }
    }

    if (v->device == NULL || v->plan.device == 0 || err->code != VLM_EMEMORY
        || strcmp(v->conf.device, "auto") != 0)
    {
        return -1;
    }

    close_device(v);

    if (take_cpu(v, err) != 0) {
        return -1;
    }

    return load_model(v, c, err);
}


static void
set_lost(vlm_t *v, int lost)
{
    pthread_mutex_lock(&v->mutex);
    v->stat.state = lost ? VLM_LOST : v->stat.state;
    pthread_mutex_unlock(&v->mutex);
}


/* Measures the device's own use of memory, now that it will take no more. */
static uint64_t
measure_taken(const vlm_t *v)
{
    char      text[160];
    uint64_t  taken;

    taken = v->ops->basic->taken == NULL ? 0 : v->ops->basic->taken(v->device);

    if (taken > v->plan.device && v->conf.log != NULL) {
        (void) snprintf(text, sizeof(text), "the device took %" PRIu64 "m for itself, %" PRIu64
                        "m were declared", vlm_mib(taken), vlm_mib(v->plan.device));
        v->conf.log(v->conf.data, VLM_LOG_WARN, text);
    }

    return taken;
}


int
vlm_load(vlm_t *v, vlm_err_t *err)
{
    int                rc, assumed;
    uint64_t           taken;
    vlm_err_t          local = { VLM_OK, "" };
    vlm_checkpoint_t  *c;

    if (vlm_plan(&v->conf, &v->plan, err) != 0) {
        return -1;
    }

    c = vlm_files_weights(&v->conf, &v->config, &assumed, err);
    if (c == NULL) {
        return -1;
    }

    vlm_weights_tell(v, c);
    vlm_model_settle(&v->config, c);

    rc = load_model(v, c, &local);
    rc = rc == 0 ? 0 : load_instead(v, c, &local);
    rc = rc == 0 ? vlm_checkpoint_whole(c, &local) : rc;

    vlm_checkpoint_close(c);

    if (rc != 0 || vlm_sched_open(v, &local) != 0 || vlm_sched_record(v, &local) != 0
        || vlm_adapters_open(v, &local) != 0)
    {
        set_lost(v, v->lost || (v->device != NULL && local.code == VLM_EDEVICE));
        return vlm_fail(err, local.code, "%s", local.text);
    }

    taken = measure_taken(v);
    vlm_filling_start(v);

    pthread_mutex_lock(&v->mutex);
    v->stat.state = VLM_READY;
    v->stat.progress = 100;
    v->stat.plan = v->plan;
    v->stat.taken = taken;
    v->ops->basic->describe(v->device, v->stat.device, sizeof(v->stat.device));
    memcpy(v->stat.reason, v->reason, sizeof(v->stat.reason));
    pthread_mutex_unlock(&v->mutex);

    return 0;
}


int
vlm_run(vlm_t *v, vlm_err_t *err)
{
    int        rc;
    vlm_err_t  local = { VLM_OK, "" };

    pthread_mutex_lock(&v->mutex);
    v->running = 1;
    pthread_mutex_unlock(&v->mutex);

    rc = vlm_sched_run(v, &local);

    if (rc != 0) {
        set_lost(v, 1);

        if (err != NULL) {
            *err = local;
        }
    }

    return rc;
}


void
vlm_close(vlm_t *v)
{
    vlm_err_t    closing = { VLM_ECANCELLED, "the engine is closing" };
    vlm_event_t  e;

    if (v == NULL) {
        return;
    }

    vlm_fail_jobs(v, &closing);

    while (v->fd != -1 && vlm_next_event(v, &e)) {
        /* the call after a job's last event frees it */
    }

    vlm_sched_close(v);
    vlm_adapters_close(v);
    close_device(v);

    vlm_known_close(&v->known);
    vlm_forms_close(v->forms);
    vlm_tokens_close(v->pieces);
    vlm_tokenizer_close(v->tokenizer);

    if (v->fd != -1) {
        (void) close(v->fd);
    }

    pthread_mutex_destroy(&v->mutex);
    free(v);
}


int
vlm_host_stopped(const vlm_t *v)
{
    return v->conf.stop != NULL && v->conf.stop(v->conf.data);
}


uint32_t
vlm_n_ids(const vlm_t *v)
{
    uint32_t  n = vlm_vocab_size(v->tokenizer);

    return n < v->config.text.vocab ? n : v->config.text.vocab;
}


void
vlm_stat(const vlm_t *v, vlm_stat_t *s)
{
    vlm_t  *shared = (vlm_t *) v;      /* constness does not include the mutex */

    pthread_mutex_lock(&shared->mutex);
    *s = v->stat;
    pthread_mutex_unlock(&shared->mutex);

    s->filling = vlm_beside_running(&v->filling);
}


void
vlm_sampling_default(const vlm_t *v, vlm_sampling_t *s)
{
    const vlm_generation_config_t  *g = &v->config.generation;

    memset(s, 0, sizeof(*s));

    s->temperature = g->temperature;
    s->top_k = g->top_k;
    s->top_p = g->top_p > 0 ? g->top_p : 1;
    s->repetition_penalty = g->repetition_penalty;
    s->max_tokens = v->conf.max_tokens;
}
