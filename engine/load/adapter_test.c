/* adapter_config.json and names of tensors, as peft writes them. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/adapter.h"
#include "load/fixture.h"

#define LIST  "t/fidelity/lora/lora-a-list"


static int
read_config(vlm_adapter_config_t *c, const char *text, vlm_err_t *err)
{
    memset(err, 0, sizeof(*err));

    return vlm_adapter_config(c, "x", text, strlen(text), err);
}


static void
check_scale(const char *text, const char *module, uint32_t r, double want)
{
    vlm_err_t             err;
    vlm_adapter_config_t  c;

    if (read_config(&c, text, &err) != 0) {
        fail_msg("%s", err.text);
    }

    assert_true(fabs(vlm_adapter_scale(&c, module, r) - want) < 1e-9);
}


static void
the_scale_is_alpha_over_the_rank_or_its_root(void **state)
{
    (void) state;

    check_scale("{\"lora_alpha\": 16}", "q_proj", 8, 2);
    check_scale("{\"lora_alpha\": 16, \"use_rslora\": false}", "q_proj", 4, 4);
    check_scale("{\"lora_alpha\": 16, \"use_rslora\": true}", "q_proj", 4, 8);
    check_scale("{\"lora_alpha\": 0.5}", "q_proj", 1, 0.5);
}


/* As of re.match(r"(.*\.)?(KEY)$", module). */
static void
a_pattern_is_a_name_or_the_end_of_one_behind_a_dot(void **state)
{
    size_t             i;
    char               text[256];
    const char        *module = "model.layers.12.self_attn.q_proj";
    const struct {
        const char  *key;
        int          fits;
    } keys[] = {
        { "q_proj", 1 }, { "proj", 0 }, { "self_attn.q_proj", 1 }, { "attn.q_proj", 0 },
        { "model.layers.12.self_attn.q_proj", 1 }, { "layers.1.self_attn.q_proj", 0 },
        { "layers.12", 0 }, { "k_proj|q_proj", 1 }, { "k_proj|v_proj", 0 },
        { "layers\\\\.\\\\d+\\\\.self_attn\\\\.q_proj", 1 }, { "layers\\\\.\\\\d\\\\..*", 0 },
        { ".*q_proj", 1 }, { ".*k_proj", 0 }, { "q.*", 1 }, { "layers.*", 1 }, { "q_pro", 0 },
        { "q_projx*", 1 }, { "q_projx+", 0 }, { "..proj", 1 }
    };

    (void) state;

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        (void) snprintf(text, sizeof(text), "{\"lora_alpha\": 1, \"alpha_pattern\": {\"%s\": 3}}",
                        keys[i].key);
        check_scale(text, module, 1, keys[i].fits ? 3 : 1);
    }

    /* The first that fits counts. */

    check_scale("{\"lora_alpha\": 1, \"alpha_pattern\": {\"k_proj\": 2, \"q_proj\": 3, "
                "\"self_attn.q_proj\": 4}}", module, 1, 3);
}


static void
check_refused(const char *text, const char *want)
{
    vlm_err_t             err;
    vlm_adapter_config_t  c;

    assert_int_equal(read_config(&c, text, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_string_equal(err.text, want);
}


static void
other_regular_expressions_and_settings_are_refused_by_name(void **state)
{
    (void) state;

    check_refused("{\"lora_alpha\": 1, \"alpha_pattern\": {\"(q|k)_proj\": 3}}",
                  "adapter \"x\": alpha_pattern has \"(q|k)_proj\", which is not supported");
    check_refused("{\"lora_alpha\": 1, \"alpha_pattern\": {\".*a.*b.*\": 3}}",
                  "adapter \"x\": alpha_pattern has \".*a.*b.*\", which is not supported");
    check_refused("{\"lora_alpha\": 1, \"alpha_pattern\": {\"q_proj\": \"3\"}}",
                  "adapter \"x\": alpha_pattern is not a number from -1e6 to 1e6");
    check_refused("{}", "adapter \"x\": lora_alpha is not a number from -1e6 to 1e6");
    check_refused("{\"lora_alpha\": 1e300}",
                  "adapter \"x\": lora_alpha is not a number from -1e6 to 1e6");
    check_refused("[]", "adapter \"x\": adapter_config.json is no object");
    check_refused("{\"lora_alpha\": 1, \"peft_type\": \"IA3\"}",
                  "adapter \"x\": peft_type is IA3, which is not supported");
    check_refused("{\"lora_alpha\": 1, \"fan_in_fan_out\": true}",
                  "adapter \"x\": fan_in_fan_out is true, which is not supported");
    check_refused("{\"lora_alpha\": 1, \"target_parameters\": [\"a\"]}",
                  "adapter \"x\": target_parameters is set, which is not supported");
    check_refused("{\"lora_alpha\": 1, \"layer_replication\": [[0, 4], [2, 5]]}",
                  "adapter \"x\": layer_replication is set, which is not supported");
    check_refused("{\"lora_alpha\": 1, \"init_lora_weights\": \"pissa_niter_4\"}",
                  "adapter \"x\": init_lora_weights is pissa_niter_4, which is not supported");
}


static void
settings_of_training_alone_are_passed_over(void **state)
{
    (void) state;

    check_scale("{\"peft_type\": \"LORA\", \"bias\": \"none\", \"lora_alpha\": 1, \"r\": 8, "
                "\"lora_dropout\": 0.5, \"init_lora_weights\": \"gaussian\", \"use_dora\": false, "
                "\"modules_to_save\": null, \"rank_pattern\": {\"q\": 3}, \"task_type\": \"X\", "
                "\"alpha_pattern\": {}, \"target_modules\": [\"q\"], \"lora_bias\": true, "
                "\"init\": 1}", "q", 1, 1);
}


static void
names_of_tensors_say_module_and_kind(void **state)
{
    char                 module[VLM_ADAPTER_MODULE], all[400];
    size_t               i;
    const struct {
        const char         *family, *tensor, *module;
        vlm_adapter_kind_t  kind;
    } names[] = {
        { "qwen2_5_vl", "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight",
          "model.layers.3.self_attn.q_proj", VLM_ADAPTER_A },
        { "qwen2_5_vl", "base_model.model.model.language_model.layers.3.mlp.up_proj.lora_B.weight",
          "model.layers.3.mlp.up_proj", VLM_ADAPTER_B },
        { "qwen3_vl", "base_model.model.model.visual.blocks.0.attn.qkv.lora_B.bias",
          "visual.blocks.0.attn.qkv", VLM_ADAPTER_SHIFT },
        { "bloom", "base_model.model.transformer.word_embeddings.lora_embedding_A",
          "word_embeddings", VLM_ADAPTER_TABLE_A },
        { "bloom", "base_model.model.word_embeddings.lora_embedding_B", "word_embeddings",
          VLM_ADAPTER_TABLE_B },
        { "bloom", "base_model.model.lm_head.base_layer.weight", "lm_head", VLM_ADAPTER_BASE },
        { "bloom", "base_model.model.h.0.mlp.dense_h_to_4h.lora_magnitude_vector", "",
          VLM_ADAPTER_OTHER },
        { "bloom", "h.0.mlp.dense_h_to_4h.lora_A.weight", "", VLM_ADAPTER_OTHER },
        { "bloom", "base_model.model..lora_A.weight", "", VLM_ADAPTER_OTHER },
        { "bloom", "", "", VLM_ADAPTER_OTHER }
    };

    (void) state;

    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_int_equal(vlm_adapter_kind(vlm_family_find(names[i].family), names[i].tensor,
                                          module), names[i].kind);
        assert_string_equal(module, names[i].module);
    }

    memset(all, 'a', sizeof(all));
    memcpy(all, "base_model.model.", 17);
    strcpy(all + 300, ".lora_A.weight");
    assert_int_equal(vlm_adapter_kind(vlm_family_find("bloom"), all, module), VLM_ADAPTER_OTHER);
}


static void
a_name_is_that_of_a_plain_directory(void **state)
{
    char  longest[VLM_ADAPTER_NAME + 1];

    (void) state;

    memset(longest, 'x', sizeof(longest));
    longest[VLM_ADAPTER_NAME] = '\0';
    assert_int_equal(vlm_adapter_is_name(longest), 0);
    longest[VLM_ADAPTER_NAME - 1] = '\0';
    assert_int_equal(vlm_adapter_is_name(longest), 1);
    assert_int_equal(vlm_adapter_is_name("gurukul_lite-1.0"), 1);
    assert_int_equal(vlm_adapter_is_name(""), 0);
    assert_int_equal(vlm_adapter_is_name(".."), 0);
    assert_int_equal(vlm_adapter_is_name("a/b"), 0);
    assert_int_equal(vlm_adapter_is_name("a b"), 0);
    assert_int_equal(vlm_adapter_is_name("\xc3\xa9"), 0);
}


/* Its tensors are read, not mapped: reading a page behind the new end would be SIGBUS. */
static void
a_file_that_is_cut_while_it_is_read_is_an_error(void **state)
{
    char                  dir[64], path[128], to[1 << 16];
    vlm_err_t             err = { 0 };
    vlm_adapter_file_t    f;
    const vlm_tensor_t   *first, *last;

    (void) state;

    assert_int_equal(fixture_dir(dir), 0);
    fixture_copy(dir, "adapter_config.json", LIST "/adapter_config.json");
    fixture_copy(dir, "adapter_model.safetensors", LIST "/adapter_model.safetensors");
    assert_int_equal(vlm_adapter_open(&f, "x", dir, vlm_family_find("qwen2_5_vl"), &err), 0);
    first = &f.tensor[0].t;
    last = &f.tensor[f.n - 1].t;
    assert_true(first->bytes <= sizeof(to) && last->bytes <= sizeof(to));
    assert_int_equal(vlm_adapter_read(&f, last, to, &err), 0);

    snprintf(path, sizeof(path), "%s/adapter_model.safetensors", dir);
    assert_int_equal(truncate(path, (off_t) (last->at + 1)), 0);
    assert_int_equal(vlm_adapter_read(&f, first, to, &err), 0);
    assert_int_equal(vlm_adapter_read(&f, last, to, &err), -1);
    assert_int_equal(err.code, VLM_EMODEL);
    assert_non_null(strstr(err.text, "/adapter_model.safetensors: cut below "));
    vlm_adapter_close(&f);
    vlm_adapter_close(&f);
    fixture_remove(dir);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_scale_is_alpha_over_the_rank_or_its_root),
        cmocka_unit_test(a_pattern_is_a_name_or_the_end_of_one_behind_a_dot),
        cmocka_unit_test(other_regular_expressions_and_settings_are_refused_by_name),
        cmocka_unit_test(settings_of_training_alone_are_passed_over),
        cmocka_unit_test(names_of_tensors_say_module_and_kind),
        cmocka_unit_test(a_name_is_that_of_a_plain_directory),
        cmocka_unit_test(a_file_that_is_cut_while_it_is_read_is_an_error)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
