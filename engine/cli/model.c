/* Findings of doctor about the checkpoint's own files. */

#include <inttypes.h>

#include "cli/doctor.h"
#include "load/files.h"
#include "format/format.h"
#include "family/family.h"

#define FAMILY  "take a whole checkpoint of a family in the list of README.md, as the hub ships it"
#define FILES   "download the model's files again, all of them"


void
vlm_doctor_config(vlm_doctor_t *d)
{
    vlm_err_t                 err = { VLM_OK, "" };
    const vlm_config_t       *c = d->config;
    const vlm_conf_t         *conf = &d->args->conf;

    if (vlm_files_config(conf, d->config, &err) != 0) {
        vlm_doctor_say(d, VLM_STOPS, FAMILY, "%s", err.text);
        return;
    }

    d->read = 1;
    vlm_doctor_say(d, VLM_FINE, NULL, "the configuration is that of a %s with %" PRIu32 " layers "
                   "and %" PRIu32 " in its vision encoder", c->family->title, c->text.layers,
                   c->vision.depth);

    if (conf->context > c->text.max_positions) {
        vlm_doctor_say(d, VLM_WARNS, "lower context", "context is %" PRIu32 ", and the model was "
                       "made for %" PRIu32, conf->context, c->text.max_positions);
    }

    if (c->vision.depth > 0 && !c->pixel.said) {
        vlm_doctor_say(d, VLM_WARNS, "download preprocessor_config.json", "no file says how "
                       "pictures are resized: the defaults of %s are used", c->family->title);
    }
}


void
vlm_doctor_tokenizer(vlm_doctor_t *d)
{
    vlm_t       *v;
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf = d->args->conf;

    if (!d->read) {
        return;
    }

    conf.lora = NULL;
    conf.memory = 0;
    v = vlm_open(&conf, &err);

    if (v == NULL) {
        vlm_doctor_say(d, VLM_STOPS, err.code == VLM_EINPUT ? "correct the option" : FILES, "%s",
                       err.text);
        return;
    }

    vlm_close(v);
    d->tokens = 1;
    vlm_doctor_say(d, VLM_FINE, NULL, "the tokenizer has the tokens that the model's prompts need");
}


/* Quantised files whose matrices are rounded a second time. */
static void
say_lossy(vlm_doctor_t *d, const vlm_checkpoint_t *c)
{
    uint32_t             n, own;
    const vlm_format_t  *f = vlm_format_of(d->args->conf.weights);

    n = vlm_checkpoint_lossy(c, f, &own);

    if (n > own && f->quantise != NULL) {
        vlm_doctor_say(d, VLM_WARNS, "take the model's files in bf16, or weights bf16", "%" PRIu32
                       " matrices are quantised in the files (%s), and weights %s rounds %" PRIu32
                       " of them again", n, d->config->quant.text, f->name, n - own);
    }
}


void
vlm_doctor_weights(vlm_doctor_t *d)
{
    int                assumed;
    vlm_err_t          err = { VLM_OK, "" };
    vlm_conf_t         conf = d->args->conf;
    vlm_plan_t         plan;
    vlm_facts_t        facts;
    vlm_checkpoint_t  *c;

    if (!d->read) {
        return;
    }

    conf.lora = NULL;
    conf.memory = 0;
    conf.device = "cpu";
    conf.ops = NULL;

    c = vlm_files_weights(&conf, d->config, &assumed, &err);

    if (c == NULL || vlm_plan(&conf, &plan, &err) != 0 || vlm_facts(&conf, &facts, &err) != 0) {
        vlm_doctor_say(d, VLM_STOPS, err.code == VLM_EINPUT ? "correct the option" : FILES, "%s",
                       err.text);
        vlm_checkpoint_close(c);
        return;
    }

    d->whole = 1;
    vlm_doctor_say(d, VLM_FINE, NULL, "every tensor of the model is in its files: %" PRIu64
                   " parameters", facts.parameters);
    say_lossy(d, c);
    vlm_checkpoint_close(c);
}
