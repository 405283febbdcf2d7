/* The facts of a checkpoint, and how one without them is refused. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "load/fixture.h"
#include "vlm.h"

/* demo/model: the head is the embedding; a layer's weights, its biases of q, k, v, its norms. */
#define TEXT    (768 * 256 + 5 * (2 * 256 * 256 + 2 * 64 * 256 + 3 * 576 * 256 \
                                  + 256 + 2 * 64 + 2 * 256) + 256)
#define VISION  (192 * 3 * 2 * 14 * 14 + 6 * (4 * 192 * 192 + 4 * 192 + 3 * 192 * 512 + 2 * 512 \
                                              + 192 + 2 * 192) \
                 + 192 + 768 * 768 + 768 + 768 * 256 + 256)


static void
the_demo_models_facts_are_its_config_and_its_tensors(void **state)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_facts_t  f;

    (void) state;

    vlm_conf_default(&conf);
    conf.model = "demo/model";

    assert_int_equal(vlm_facts(&conf, &f, &err), 0);
    assert_string_equal(f.architecture, "qwen2_5_vl");
    assert_string_equal(f.family, "Qwen2.5-VL");
    assert_string_equal(f.turn, "<|im_start|>");
    assert_string_equal(f.turn_end, "<|im_end|>");
    assert_int_equal(vlm_thinks(&f, "models/demo"), 0);
    assert_int_equal(f.parameters, TEXT + VISION);
    assert_int_equal(f.layers, 5);
    assert_int_equal(f.heads, 8);
    assert_int_equal(f.kv_heads, 2);
    assert_int_equal(f.hidden, 256);
    assert_int_equal(f.mlp, 576);
    assert_int_equal(f.vocab, 768);
    assert_int_equal(f.context_max, 4096);
    assert_int_equal(f.vision_layers, 6);
    assert_int_equal(f.patch, 14);
    assert_int_equal(f.coordinates, 0);
    assert_int_equal(f.tasks, 20);
    assert_int_equal(f.processor, 1);
}


static void
a_directory_that_is_no_checkpoint_is_refused_with_the_file(void **state)
{
    char         dir[64];
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf;
    vlm_facts_t  f;

    (void) state;

    vlm_conf_default(&conf);
    assert_int_equal(vlm_facts(&conf, &f, &err), -1);
    assert_int_equal(err.code, VLM_EINPUT);

    err.code = VLM_OK;
    conf.model = "engine";
    assert_int_equal(vlm_facts(&conf, &f, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "engine/config.json"));

    /* A config.json alone. */

    assert_int_equal(fixture_dir(dir), 0);
    fixture_copy(dir, "config.json", "demo/model/config.json");

    err.code = VLM_OK;
    conf.model = dir;
    assert_int_equal(vlm_facts(&conf, &f, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "model.safetensors"));

    fixture_remove(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_demo_models_facts_are_its_config_and_its_tensors),
        cmocka_unit_test(a_directory_that_is_no_checkpoint_is_refused_with_the_file)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
