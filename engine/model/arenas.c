/* The arenas of a model: see arenas.h. */

#include "model/arenas.h"

#include "base/size.h"
#include "model/lora.h"


int
vlm_arenas_place(vlm_arenas_t *a, vlm_model_t *m, vlm_checkpoint_t *c, const vlm_conf_t *conf,
                 const vlm_progress_t *progress, vlm_err_t *err)
{
    if (vlm_model_bind(m, c, &a->text, &a->vision, progress, err) != 0) {
        return -1;
    }

    if (m->lora != NULL) {
        vlm_lora_place(m->lora, &a->lora);
    }

    vlm_model_place_kv(m, &a->kv, conf);
    vlm_model_place_work(m, &a->work, &a->features, conf->slots, conf->max_pixels,
                         conf->features);

    /* Each arena begins where the one before ends. */

    a->text.used = vlm_round(a->text.used, VLM_ALIGN);
    a->vision.used = vlm_round(a->vision.used, VLM_ALIGN);
    a->lora.used = vlm_round(a->lora.used, VLM_ALIGN);
    a->kv.used = vlm_round(a->kv.used, VLM_ALIGN);
    a->work.used = vlm_round(a->work.used, VLM_ALIGN);

    return 0;
}


void
vlm_arenas_plan(const vlm_arenas_t *a, uint64_t device, vlm_plan_t *plan)
{
    plan->weights = a->text.used;
    plan->vision = vlm_add(a->vision.used, a->features.used);
    plan->lora = a->lora.used;
    plan->kv = a->kv.used;
    plan->workspace = a->work.used;
    plan->device = device;
    plan->total = vlm_add(vlm_add(plan->weights, plan->vision), vlm_add(plan->kv, plan->workspace));
    plan->total = vlm_add(vlm_add(plan->total, plan->lora), device);
}


void *
vlm_arenas_reserve(vlm_arenas_t *a, const vlm_ops_t *ops, vlm_device_t *d, uint64_t *bytes,
                   vlm_err_t *err)
{
    uint32_t      i;
    uint8_t      *block, *base;
    vlm_plan_t    plan;
    vlm_arena_t  *all[] = { &a->text, &a->vision, &a->lora, &a->kv, &a->work, &a->features };

    vlm_arenas_plan(a, 0, &plan);

    block = ops->basic->reserve(d, plan.total, err);
    if (block == NULL) {
        return NULL;
    }

    for (base = block, i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        all[i]->base = base;
        all[i]->size = all[i]->used;
        all[i]->used = 0;
        base += all[i]->size;
    }

    *bytes = plan.total;

    return block;
}
