/* The settings of an engine: defaults and bounds. */

#include "run/engine.h"

#include <inttypes.h>
#include <string.h>

#include "base/cgroup.h"
#include "base/threads.h"
#include "format/format.h"

#define MAX_CONTEXT   (1u << 20)
#define MAX_FEATURES  1024             /* cached pictures, searched in turn for each new one */


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


int
vlm_conf_check(vlm_conf_t *conf, vlm_err_t *err)
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


int
vlm_conf_cell(const vlm_conf_t *conf, const vlm_config_t *config, vlm_err_t *err)
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
