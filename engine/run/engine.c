/* The public functions: plan, open, load, run, close. */

#include "run/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/sha256.h"
#include "base/size.h"
#include "base/threads.h"
#include "format/format.h"
#include "load/files.h"
#include "model/arenas.h"
#include "ops/cuda.h"
#include "run/adapters.h"

#define MAX_CONTEXT   (1u << 20)
#define MAX_FEATURES  1024             /* cached pictures, searched in turn for each new one */
#define LEAST_PIXELS  50176            /* 64 merged cells: a remedy lowers max_pixels no further */

static int check_conf(vlm_conf_t *conf, vlm_err_t *err);
static int plan_one(const vlm_conf_t *given, vlm_plan_t *plan, vlm_err_t *err);
static int check_cell(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err);
static int choose_device(const vlm_conf_t *conf, const vlm_config_t *config, int *cuda,
                         uint32_t *index, char *reason, size_t bytes, vlm_err_t *err);
static int open_device(vlm_t *v, vlm_err_t *err);
static int refuse_plan(const vlm_conf_t *conf, const vlm_plan_t *plan, vlm_err_t *err);
static uint64_t bound_pixels(const vlm_t *v, const vlm_pixels_t *pixels, vlm_pixel_config_t *c);
static void picture_key(const void *salt, size_t salt_bytes, uint64_t min, uint64_t max,
                        uint8_t key[32]);
static vlm_picture_t *make_picture(const vlm_t *v, const void *data, size_t bytes,
                                   const uint8_t sha256[32], const vlm_pixel_config_t *c,
                                   uint64_t max, const vlm_stop_t *stop, vlm_err_t *err);


void
vlm_conf_default(vlm_conf_t *conf)
{
    memset(conf, 0, sizeof(*conf));

    conf->device = "auto";
    conf->weights = VLM_FORMAT_DEFAULT;
    conf->context = 4096;
    conf->slots = 4;
    conf->max_pixels = 1003520;
    conf->features = 8;
    conf->max_tokens = 768;
    conf->grammars = 16 << 20;
    conf->lora_max = 4;
    conf->lora_rank = 16;
    conf->lora_tower = 1;
}


static int
check_conf(vlm_conf_t *conf, vlm_err_t *err)
{
    if (conf->threads == 0) {
        conf->threads = vlm_processors();
        conf->threads = conf->threads < VLM_MAX_THREADS ? conf->threads : VLM_MAX_THREADS;
    }

    if (conf->threads > VLM_MAX_THREADS) {
        return vlm_fail(err, VLM_EINPUT, "threads is %u, expected 1 to %u", conf->threads,
                        VLM_MAX_THREADS);
    }

    if (conf->model == NULL) {
        return vlm_fail(err, VLM_EINPUT, "no model directory is given");
    }

    if (conf->device == NULL) {
        return vlm_fail(err, VLM_EINPUT, "no device is given, expected auto, cpu or cuda[:N]");
    }

    if (vlm_weights_find(vlm_weights_name(conf->weights), &conf->weights, err) != 0) {
        return -1;
    }

    if (conf->context < 16 || conf->context > MAX_CONTEXT) {
        return vlm_fail(err, VLM_EINPUT, "context is %u, expected 16 to %u", conf->context,
                        MAX_CONTEXT);
    }

    if (conf->slots < 1 || conf->slots > VLM_SLICE) {
        return vlm_fail(err, VLM_EINPUT, "slots is %u, expected 1 to %u", conf->slots, VLM_SLICE);
    }

    if (conf->max_tokens < 1) {
        return vlm_fail(err, VLM_EINPUT, "max_tokens is 0, expected 1 at least");
    }

    if (conf->max_pixels < 28 * 28 || conf->max_pixels > 1u << 26) {
        return vlm_fail(err, VLM_EINPUT, "max_pixels is %" PRIu64 ", expected %d to %u",
                        conf->max_pixels, 28 * 28, 1u << 26);
    }

    if (conf->min_pixels > conf->max_pixels) {
        return vlm_fail(err, VLM_EINPUT, "min_pixels is %" PRIu64 ", more than max_pixels %" PRIu64,
                        conf->min_pixels, conf->max_pixels);
    }

    if (conf->lora != NULL && (conf->lora_max < 1 || conf->lora_max > VLM_MAX_ADAPTERS)) {
        return vlm_fail(err, VLM_EINPUT, "lora: max is %u, expected 1 to %d", conf->lora_max,
                        VLM_MAX_ADAPTERS);
    }

    if (conf->lora != NULL && (conf->lora_rank < 1 || conf->lora_rank > VLM_MAX_RANK)) {
        return vlm_fail(err, VLM_EINPUT, "lora: rank is %u, expected 1 to %d", conf->lora_rank,
                        VLM_MAX_RANK);
    }

    if (conf->features > MAX_FEATURES) {
        return vlm_fail(err, VLM_EINPUT, "features is %u, expected 0 to %u", conf->features,
                        MAX_FEATURES);
    }

    conf->features = conf->features > conf->slots ? conf->features : conf->slots;

    return 0;
}


/* A picture has one merged cell at least. */
static int
check_cell(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err)
{
    uint64_t                    side;
    const vlm_vision_config_t  *v = &config->vision;

    side = (uint64_t) v->patch * v->merge;

    if (conf->max_pixels < side * side) {
        return vlm_fail(err, VLM_EINPUT, "max_pixels is %" PRIu64 ", less than one cell of this "
                        "model: %" PRIu64, conf->max_pixels, side * side);
    }

    return 0;
}


/* 1 if the model should run on cuda, as far as is known without touching a device. */
static int
choose_device(const vlm_conf_t *conf, const vlm_config_t *config, int *cuda, uint32_t *index,
              char *reason, size_t bytes, vlm_err_t *err)
{
    int        automatic;
    vlm_err_t  cause = { VLM_OK, "" };

    *cuda = 0;
    *index = 0;
    automatic = strcmp(conf->device, "auto") == 0;

    if (strcmp(conf->device, "cpu") == 0) {
        return 0;
    }

    reason[0] = '\0';

    if (!automatic && vlm_cuda_index(conf->device, index) != 0) {
        return vlm_fail(err, VLM_EINPUT, "device is \"%s\", expected auto, cpu or cuda[:N]",
                        conf->device);
    }

    if (conf->kv_int8) {
        (void) snprintf(reason, bytes, "device auto took the cpu: a GPU has no kv int8 yet");
        return automatic ? 0 : vlm_fail(err, VLM_EINPUT, "device is \"%s\", and kv int8 needs the "
                                        "cpu: a GPU has keys and values in bf16", conf->device);
    }

    if (automatic && !vlm_cuda_is_there()) {
        (void) snprintf(reason, bytes, "device auto took the cpu: there is no " VLM_CUDA_LIBRARY);
        return 0;
    }

    if (vlm_cuda_takes(conf->weights, config->text.head_dim, config->vision.head_dim,
                       automatic ? &cause : err) != 0)
    {
        (void) snprintf(reason, bytes, "device auto took the cpu: %.90s", cause.text);
        return automatic ? 0 : -1;
    }

    *cuda = 1;

    if (automatic) {
        (void) snprintf(reason, bytes, "device auto took cuda:0: the library and a device are "
                        "there");
    }

    return 0;
}


int
vlm_plan(const vlm_conf_t *conf, vlm_plan_t *plan, vlm_err_t *err)
{
    vlm_err_t   cause = { VLM_OK, "" };
    vlm_conf_t  on_cpu;
    vlm_plan_t  other;

    if (plan_one(conf, plan, err) != 0) {
        return -1;
    }

    if (plan->device == 0 || strcmp(conf->device, "auto") != 0) {
        return 0;
    }

    /*
     * If the GPU is lost, the cpu must still be able to load the model: its plan has to fit, too.
     */

    on_cpu = *conf;
    on_cpu.device = "cpu";

    return plan_one(&on_cpu, &other, &cause) == 0
           ? 0 : vlm_fail(err, cause.code, "device auto may take the cpu: %s", cause.text);
}


static int
open_lora(const vlm_conf_t *conf, vlm_model_t *m, vlm_err_t *err)
{
    return vlm_lora_open(m, conf->lora == NULL ? 0 : conf->lora_max, conf->lora_rank,
                         conf->lora_tower, err);
}


/* The plan for the device that conf names, or that device auto would choose. */
static int
plan_one(const vlm_conf_t *given, vlm_plan_t *plan, vlm_err_t *err)
{
    int                rc, cuda, assumed;
    char               reason[128];
    uint32_t           index;
    vlm_conf_t         conf;
    vlm_model_t        m;
    vlm_config_t      *config;
    vlm_device_t      *device;
    vlm_arenas_t       arenas;
    const vlm_ops_t   *ops;
    vlm_checkpoint_t  *c;

    memset(plan, 0, sizeof(*plan));
    memset(&arenas, 0, sizeof(arenas));
    memset(&m, 0, sizeof(m));
    conf = *given;
    device = NULL;
    c = NULL;
    rc = -1;

    config = malloc(sizeof(*config));
    if (config == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to read config.json");
    }

    if (check_conf(&conf, err) != 0 || vlm_files_config(&conf, config, err) != 0
        || check_cell(&conf, config, err) != 0
        || choose_device(&conf, config, &cuda, &index, reason, sizeof(reason), err) != 0
        || (device = cuda ? vlm_cuda_planner(&ops)
                          : vlm_cpu_open(conf.ops, conf.threads, &ops, err)) == NULL
        || (c = vlm_files_weights(&conf, config, &assumed, err)) == NULL)
    {
        goto done;
    }

    vlm_model_settle(config, c);

    if (vlm_model_init(&m, config, ops, device, conf.weights, err) != 0
        || open_lora(&conf, &m, err) != 0
        || vlm_arenas_place(&arenas, &m, c, &conf, NULL, err) != 0
        || (!conf.ahead && vlm_adapters_check(&conf, &m, err) != 0))
    {
        goto done;
    }

    vlm_arenas_plan(&arenas, cuda ? VLM_CUDA_OVERHEAD : 0, plan);
    plan->assumed = assumed;
    plan->encoder = conf.encoder;
    plan->total = vlm_add(plan->total, cuda ? 0 : conf.encoder);

    rc = conf.memory == 0 || plan->total <= conf.memory ? 0 : refuse_plan(&conf, plan, err);

done:

    vlm_model_free(&m);
    vlm_checkpoint_close(c);

    if (device != NULL) {
        ops->basic->close(device);
    }

    free(config);

    return rc;
}


/* Appends the remedies with which the plan would fit: each is planned again before it is named. */
static uint64_t
total_with(const vlm_conf_t *conf, const char *name, uint32_t value)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  changed;
    vlm_plan_t  plan;

    changed = *conf;
    changed.memory = 0;

    if (strcmp(name, "context") == 0) {
        changed.context = value;
    } else if (strcmp(name, "slots") == 0) {
        changed.slots = value;
    } else {
        changed.max_pixels = value;
    }

    return vlm_plan(&changed, &plan, &err) == 0 ? plan.total : UINT64_MAX;
}


/* Appends the first of the halves of a setting with which the plan fits, if one does. */
static void
name_remedy(const vlm_conf_t *conf, const char *name, uint32_t now, uint32_t least, char *text,
            size_t bytes)
{
    int       k;
    size_t    n;
    uint32_t  value;
    uint64_t  total;

    n = strlen(text);
    k = strcmp(name, "context") == 0;

    for (value = now / 2; value >= least; value /= 2) {
        total = total_with(conf, name, value);

        if (total <= conf->memory) {
            (void) snprintf(text + n, bytes - n, "%s%s %u%s needs %" PRIu64 "m",
                            n == 0 ? ": " : ", ", name,
                            k && value % 1024 == 0 ? value / 1024 : value,
                            k && value % 1024 == 0 ? "k" : "", vlm_mib(total));
            return;
        }
    }
}


static int
refuse_plan(const vlm_conf_t *conf, const vlm_plan_t *plan, vlm_err_t *err)
{
    char  remedy[192] = "", lora[32] = "", encoder[32] = "";

    if (plan->lora > 0) {
        (void) snprintf(lora, sizeof(lora), "lora %" PRIu64 "m, ", vlm_mib(plan->lora));
    }

    if (plan->device == 0 && plan->encoder > 0) {
        (void) snprintf(encoder, sizeof(encoder), "encoder %" PRIu64 "m, ",
                        vlm_mib(plan->encoder));
    }

    name_remedy(conf, "context", conf->context, 1024, remedy, sizeof(remedy));
    name_remedy(conf, "slots", conf->slots, 1, remedy, sizeof(remedy));
    name_remedy(conf, "max_pixels", (uint32_t) conf->max_pixels, LEAST_PIXELS, remedy,
                sizeof(remedy));

    return vlm_fail(err, VLM_ELIMIT,
                    "%" PRIu64 "m needed (weights %" PRIu64 "m, vision %" PRIu64 "m, %skv %" PRIu64
                    "m, workspace %" PRIu64 "m, %sdevice %" PRIu64 "m), memory is %" PRIu64 "m%s",
                    vlm_mib(plan->total), vlm_mib(plan->weights), vlm_mib(plan->vision), lora,
                    vlm_mib(plan->kv), vlm_mib(plan->workspace), encoder, vlm_mib(plan->device),
                    vlm_mib(conf->memory), remedy);
}


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

    if (check_conf(&v->conf, err) != 0 || vlm_files_config(conf, &v->config, err) != 0
        || check_cell(&v->conf, &v->config, err) != 0)
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

    if (vlm_adapters_list(v, err) != 0) {
        goto failed;
    }

    return v;

failed:

    vlm_close(v);

    return NULL;
}


/* Device auto falls back to the cpu when a GPU fails; err has the reason, and is cleared. */
static int
take_cpu(vlm_t *v, vlm_err_t *err)
{
    (void) snprintf(v->reason, sizeof(v->reason), "device auto took the cpu: %.90s", err->text);
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

    if (choose_device(&v->conf, &v->config, &cuda, &index, v->reason, sizeof(v->reason), err) != 0)
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
        || open_lora(&v->conf, m, err) != 0 || vlm_weights_open(v, c, &progress, err) != 0
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


/* Refuses pictures and videos, if the model has no vision encoder. */
int
vlm_takes_pictures(const vlm_t *v, vlm_err_t *err)
{
    return v->config.vision.depth > 0 ? 0
           : vlm_fail(err, VLM_EINPUT, "%s has no vision encoder: this model takes text alone",
                      v->config.family->title);
}


vlm_picture_t *
vlm_picture_read(const vlm_t *v, const void *data, size_t bytes, vlm_err_t *err)
{
    return vlm_picture_read_salted(v, data, bytes, NULL, 0, NULL, NULL, err);
}


vlm_picture_t *
vlm_picture_read_salted(const vlm_t *v, const void *data, size_t bytes, const void *salt,
                        size_t salt_bytes, const vlm_pixels_t *pixels, const vlm_stop_t *stop,
                        vlm_err_t *err)
{
    uint64_t            max;
    uint8_t             file[32], key[32];
    vlm_known_t        *known = (vlm_known_t *) &v->known;     /* as in vlm_stat() */
    vlm_picture_t      *p;
    vlm_pixel_config_t  c;

    if (vlm_takes_pictures(v, err) != 0) {
        return NULL;
    }

    max = bound_pixels(v, pixels, &c);
    vlm_sha256(data, bytes, file);
    picture_key(salt, salt_bytes, c.min_pixels, max, key);

    p = vlm_known_find(known, file, key);
    if (p == NULL) {
        p = make_picture(v, data, bytes, file, &c, max, stop, err);
        p = p == NULL ? NULL : vlm_known_add(known, p, key);
    }

    return p;
}


/* The bounds of a picture: sets the checkpoint's with a raised minimum, and returns the maximum. */
static uint64_t
bound_pixels(const vlm_t *v, const vlm_pixels_t *pixels, vlm_pixel_config_t *c)
{
    uint64_t  min, max;

    min = pixels != NULL && pixels->min != 0 ? pixels->min : v->conf.min_pixels;
    max = pixels != NULL && pixels->max != 0 ? pixels->max : v->conf.max_pixels;

    *c = v->config.pixel;
    c->min_pixels = c->min_pixels > min ? c->min_pixels : min;

    return max < v->conf.max_pixels ? max : v->conf.max_pixels;
}


/* Patches of one file are the same within a tenant and for the same bounds. */
static void
picture_key(const void *salt, size_t salt_bytes, uint64_t min, uint64_t max, uint8_t key[32])
{
    struct {
        uint8_t   salt[32];
        uint64_t  min, max;
    } whole = { .min = min, .max = max };

    vlm_salt_hash(salt, salt_bytes, whole.salt);
    vlm_sha256(&whole, sizeof(whole), key);
}


static vlm_picture_t *
make_picture(const vlm_t *v, const void *data, size_t bytes, const uint8_t sha256[32],
             const vlm_pixel_config_t *c, uint64_t max, const vlm_stop_t *stop, vlm_err_t *err)
{
    vlm_picture_t  *p;

    p = vlm_picture_make_hashed(c, &v->config.vision, max, data, bytes, sha256, stop, err);

    /* A side is never less than one cell, so an extreme aspect may end above the bound. */

    if (p != NULL && (uint64_t) p->info.resized_width * p->info.resized_height > max) {
        (void) vlm_fail(err, VLM_ELIMIT,
                        "a picture of %ux%u becomes %ux%u pixels, max_pixels is %" PRIu64,
                        p->info.width, p->info.height, p->info.resized_width,
                        p->info.resized_height, max);
        vlm_picture_free(p);
        return NULL;
    }

    return p;
}


vlm_prompt_t *
vlm_prompt_make(const vlm_t *v, const vlm_message_t *messages, size_t n, const char *tail,
                vlm_err_t *err)
{
    return vlm_template_apply(&v->template, messages, n, NULL, tail, err);
}


vlm_prompt_t *
vlm_prompt_tools(const vlm_t *v, const vlm_message_t *messages, size_t n, const char *tools,
                 const char *tail, vlm_err_t *err)
{
    return vlm_template_apply(&v->template, messages, n, tools, tail, err);
}


vlm_prompt_t *
vlm_prompt_raw(const vlm_t *v, const vlm_part_t *parts, size_t n, vlm_err_t *err)
{
    return vlm_template_raw(&v->template, parts, n, err);
}


int
vlm_picture_measure(const vlm_t *v, const void *data, size_t bytes, const vlm_pixels_t *pixels,
                    vlm_picture_info_t *info, vlm_err_t *err)
{
    uint64_t            max;
    vlm_pixel_config_t  c;

    if (vlm_takes_pictures(v, err) != 0) {
        return -1;
    }

    max = bound_pixels(v, pixels, &c);

    return vlm_picture_look(&c, &v->config.vision, max, data, bytes, info, err);
}


/*
 * NFC shortens a text to a third at most: three jamo of nine bytes become a syllable of three
 * bytes.
 */
uint64_t
vlm_tokens_least(const vlm_t *v, size_t bytes)
{
    return bytes / (3 * (vlm_token_max_bytes(v->tokenizer) + 1));
}


/*
 * For a text of one word, a byte takes 48 bytes for nodes and joins (bpe.c), 6 for NFC, 12 for
 * growing ids.
 */
uint64_t
vlm_tokenize_memory(size_t bytes)
{
    return vlm_mul(bytes, 48 + 6 + 12) + 4096;
}


int
vlm_tokenize(const vlm_t *v, const char *text, size_t bytes, uint32_t **ids, size_t *n,
             vlm_err_t *err)
{
    vlm_ids_t  list = { NULL, 0, 0 };

    if (vlm_encode(v->tokenizer, text, bytes, &list, err) != 0) {
        free(list.ids);
        return -1;
    }

    *ids = list.ids;
    *n = list.n;

    return 0;
}


const char *
vlm_piece(const vlm_t *v, uint32_t id, size_t *bytes)
{
    return vlm_token_bytes(v->tokenizer, id, bytes);
}
