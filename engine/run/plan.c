/* The plan of an engine's memory: its device, what each part takes, and what would fit. */

#include "run/engine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "load/files.h"
#include "model/arenas.h"
#include "ops/cuda.h"
#include "run/adapters.h"

#define LEAST_PIXELS  50176            /* 64 merged cells: a remedy lowers max_pixels no further */

static int plan_one(const vlm_conf_t *given, vlm_plan_t *plan, vlm_err_t *err);
static int refuse_plan(const vlm_conf_t *conf, const vlm_plan_t *plan, vlm_err_t *err);


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


/* The plan for the device that conf names, or that device auto would choose. */
static int
plan_one(const vlm_conf_t *given, vlm_plan_t *plan, vlm_err_t *err)
{
    int                rc, cuda, assumed;
    char               reason[480];
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

    if (vlm_conf_check(&conf, err) != 0 || vlm_files_config(&conf, config, err) != 0
        || vlm_conf_cell(&conf, config, err) != 0
        || vlm_device_choose(&conf, config, &cuda, &index, reason, sizeof(reason), err) != 0
        || (device = cuda ? vlm_cuda_planner(&ops)
                          : vlm_cpu_open(conf.ops, conf.threads, &ops, err)) == NULL
        || (c = vlm_files_weights(&conf, config, &assumed, err)) == NULL)
    {
        goto done;
    }

    vlm_model_settle(config, c);

    if (vlm_model_init(&m, config, ops, device, conf.weights, err) != 0
        || vlm_plan_lora(&conf, &m, err) != 0
        || vlm_arenas_place(&arenas, &m, c, &conf, NULL, err) != 0)
    {
        goto done;
    }

    if (!conf.ahead) {
        vlm_adapters_check(&conf, &m, plan);
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


int
vlm_device_choose(const vlm_conf_t *conf, const vlm_config_t *config, int *cuda, uint32_t *index,
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
        (void) snprintf(reason, bytes, "device auto took the cpu: %.450s", cause.text);
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
vlm_plan_lora(const vlm_conf_t *conf, vlm_model_t *m, vlm_err_t *err)
{
    return vlm_lora_open(m, conf->lora == NULL ? 0 : conf->lora_max, conf->lora_rank,
                         conf->lora_tower, err);
}


/* The plan's total with another value of a setting, or UINT64_MAX: there is no such plan. */
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
