/*
 * Fuzz target: adapter_config.json, then behind a byte 0xff the name of a tensor.  Accepted ones
 * must keep the promises of adapter.h.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/adapter.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
require(int holds)
{
    if (!holds) {
        __builtin_trap();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int                    i, rc;
    char                   module[VLM_ADAPTER_MODULE], *name;
    size_t                 n;
    double                 scale;
    vlm_err_t              err = { 0 };
    const uint8_t         *end;
    vlm_adapter_kind_t     kind;
    vlm_adapter_config_t   c;
    const char            *families[] = { "qwen2_5_vl", "bloom" };

    end = bytes == 0 ? NULL : memchr(data, 0xff, bytes);
    n = end == NULL ? bytes : (size_t) (end - data);

    rc = vlm_adapter_config(&c, "x", data, n, &err);
    require((rc != 0) == (err.code != VLM_OK));

    name = end == NULL ? strdup("base_model.model.h.0.mlp.dense.lora_A.weight")
                       : strndup((const char *) end + 1, bytes - n - 1);
    require(name != NULL);

    for (i = 0; i < 2; i++) {
        kind = vlm_adapter_kind(vlm_family_find(families[i]), name, module);
        require(strlen(module) < sizeof(module));
        require(kind == VLM_ADAPTER_OTHER || module[0] != '\0');

        if (rc == 0) {
            require(c.n_patterns <= VLM_ADAPTER_PATTERNS && isfinite(c.alpha));
            scale = vlm_adapter_scale(&c, module, 8);
            require(isfinite(scale) && fabs(scale) <= 1e6);
        }
    }

    free(name);

    return 0;
}
