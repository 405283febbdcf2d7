/*
 * Fuzz target: config.json, generation_config.json, preprocessor_config.json and
 * processor_config.json, separated by bytes 0xff, which JSON has no use for.  An accepted
 * configuration must keep the promises of config.h.
 */

#include <stdlib.h>
#include <string.h>

#include "load/config.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}


/* Later code relies on these sizes of an encoder. */
static void
check_vision(const vlm_config_t *c)
{
    uint32_t                    i;
    const vlm_vision_config_t  *v = &c->vision;

    require(v->head_dim * v->heads == v->hidden && v->head_dim % 4 == 0 && v->head_dim > 0);
    require(v->out == c->text.hidden && v->rope_theta >= 1);
    require((v->window > 0 || v->full[0]) && v->patch > 0 && v->merge > 0 && v->channels == 3);
    require(c->pixel.min_pixels > 0 && c->pixel.min_pixels <= c->pixel.max_pixels);
    require(v->places <= VLM_MAX_PLACES && v->deep <= VLM_MAX_DEEP);

    for (i = 0; i < v->deep; i++) {
        require(v->deep_block[i] < v->depth
                && (i == 0 || v->deep_block[i] != v->deep_block[i - 1]));
    }

    require(c->video.min_pixels <= c->video.max_pixels && v->per_second <= 100);

    for (i = v->depth; i < VLM_MAX_LAYERS; i++) {
        require(v->full[i] == 0);
    }
}


static void
check(const vlm_config_t *c)
{
    uint32_t                  i;
    const vlm_text_config_t  *t;

    t = &c->text;

    require(t->heads % t->kv_heads == 0 && t->head_dim % 2 == 0 && t->head_dim > 0);
    require(t->layers > 0 && t->layers <= VLM_MAX_LAYERS && t->vocab > 0 && t->mlp > 0);

    for (i = 0; i < t->head_dim / 2; i++) {
        require(t->axis[i] < 3);
    }

    require(c->generation.temperature >= 0 && c->generation.top_k <= 1u << 20);
    require(c->generation.image_token < t->vocab && c->generation.n_eos <= VLM_MAX_EOS);

    for (i = 0; i < c->generation.n_eos; i++) {
        require(c->generation.eos[i] < t->vocab);
    }

    require(c->vision.depth <= VLM_MAX_LAYERS);

    if (c->vision.depth > 0) {
        check_vision(c);
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int                i, rc;
    vlm_err_t          err = { 0 };
    vlm_config_t       c;
    const uint8_t     *end;
    vlm_config_file_t  file[VLM_CONFIG_FILES];

    for (i = 0; i < VLM_CONFIG_FILES; i++) {
        end = bytes == 0 ? NULL : memchr(data, 0xff, bytes);

        file[i].path = "fuzz";
        file[i].data = i > 0 && bytes == 0 ? NULL : data;
        file[i].bytes = end == NULL ? bytes : (size_t) (end - data);

        bytes -= end == NULL ? bytes : file[i].bytes + 1;
        data = end == NULL ? data : end + 1;
    }

    rc = vlm_config_parse(&c, file, &err);

    require((rc != 0) == (err.code != VLM_OK));

    if (rc == 0) {
        check(&c);
    }

    return 0;
}
