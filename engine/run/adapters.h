/*
 * The adapters of an engine: names, versions and places.
 *
 * A version of an adapter has a place in planned memory from the start of its load on.  It is
 * listed under its name until it is unloaded, prompts keep it until they are freed, and when
 * nothing keeps it any more its place is free.  All fields are read and written under vlm_s.mutex,
 * apart from those that no thread changes once the version is listed.
 *
 * An adapter that cannot be loaded is left out, with its reason in a list, and never keeps the
 * model from its work.
 */

#ifndef VLM_ADAPTERS_H
#define VLM_ADAPTERS_H

#include "model/lora.h"
#include "run/engine.h"

#define VLM_ADAPTER_SLICE  (4u << 20)  /* bytes that are put between two steps */

struct vlm_adapter_s {
    vlm_t            *v;
    vlm_adapter_info_t  info;
    uint32_t          place;
    uint8_t           identity[32];
    int               tower;           /* 1: it changes the features of pictures */
    vlm_lora_data_t  *data;            /* until it is put */
    uint32_t          users;           /* prompts, the list, and threads at work on it */
    int               opening;         /* of the directory: the model's load will read it */
    int               failed;          /* prompts had it before the model's load left it out */
    int               listed, ready;   /* ready: it is put */
};

/* Sets what a plan says of the adapters that a load would leave out. */
void vlm_adapters_check(const vlm_conf_t *conf, const vlm_model_t *m, vlm_plan_t *plan);
/* any: lists the directory's adapters, so that prompts can have them before the model is loaded. */
void vlm_adapters_list(vlm_t *v);
/* engine: reads and puts those, at the end of a load.  -1: the device failed. */
int vlm_adapters_open(vlm_t *v, vlm_err_t *err);
void vlm_adapters_close(vlm_t *v);
/* engine: puts a slice of an adapter that was loaded meanwhile.  -1: the device failed; after
   VLM_EMEMORY the slice is put again by the next call. */
int vlm_adapters_put(vlm_t *v, vlm_err_t *err);
/* Under the mutex: adapters that wait to be put. */
int vlm_adapters_wait(const vlm_t *v);
/* 0; or -1 and VLM_EINPUT: the prompt has an adapter that was left out meanwhile. */
int vlm_adapter_failed(vlm_t *v, const vlm_prompt_t *p, vlm_err_t *err);
/* 1: the prompt has no adapter, or one that is put. */
int vlm_adapter_ready(vlm_t *v, const vlm_prompt_t *p);
/* engine, of a loaded model: sets what caches compare of the prompt's adapter. */
void vlm_adapter_settle(vlm_t *v, vlm_prompt_t *p);

#endif
