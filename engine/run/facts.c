/*
 * The properties of a checkpoint, for lists of models: no device is used, and no file stays open.
 */

#include <stdlib.h>

#include "load/files.h"
#include "run/engine.h"

static void copy_config(const vlm_config_t *c, vlm_facts_t *f);


int
vlm_facts(const vlm_conf_t *conf, vlm_facts_t *f, vlm_err_t *err)
{
    int                rc, assumed;
    char               head[160];
    vlm_config_t      *config;
    vlm_checkpoint_t  *c;

    if (conf->model == NULL) {
        return vlm_fail(err, VLM_EINPUT, "no model directory is given");
    }

    config = malloc(sizeof(*config));
    if (config == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory to read config.json");
    }

    c = NULL;
    rc = vlm_files_config(conf, config, err);

    if (rc == 0) {
        c = vlm_files_weights(conf, config, &assumed, err);
        rc = c == NULL ? -1 : 0;
    }

    if (rc == 0) {
        vlm_model_settle(config, c);
        copy_config(config, f);
        vlm_model_head_name(config->family, head, sizeof(head));
        f->parameters = vlm_checkpoint_elements(c, config->text.tied ? head : NULL);
    }

    vlm_checkpoint_close(c);
    free(config);

    return rc;
}


int
vlm_thinks(const vlm_facts_t *f, const char *path)
{
    return vlm_family_thinks(vlm_family_find(f->architecture), path);
}


static void
copy_config(const vlm_config_t *c, vlm_facts_t *f)
{
    f->architecture = c->family->model_type;
    f->family = c->family->title;
    f->coordinates = c->family->coordinates;
    f->tasks = c->family->tasks;
    f->turn = c->words->turn;
    f->turn_end = c->words->end;
    f->call = c->words->mark[0];
    f->call_end = c->words->mark[1];
    f->quiet = c->words->quiet != NULL;
    f->layers = c->text.layers;
    f->heads = c->text.heads;
    f->kv_heads = c->text.kv_heads;
    f->hidden = c->text.hidden;
    f->mlp = c->text.mlp;
    f->vocab = c->text.vocab;
    f->context_max = c->text.max_positions;
    f->vision_layers = c->vision.depth;
    f->patch = c->vision.patch;
    f->processor = c->pixel.said;
    f->gguf = c->gguf;
    f->template_unknown = c->unknown;
}
