/* Qwen2, Qwen3 and Llama: their config.json, how angles grow, and the words of templates. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "family/family.h"
#include "model/model.h"

/* As published, but for lists of numbers that the engine does not read. */
#define QWEN2                                                                                      \
    "{\"architectures\":[\"Qwen2ForCausalLM\"],\"attention_dropout\":0.0,\"bos_token_id\":151643," \
    "\"eos_token_id\":151645,\"hidden_act\":\"silu\",\"hidden_size\":1536,"                        \
    "\"initializer_range\":0.02,\"intermediate_size\":8960,\"max_position_embeddings\":32768,"     \
    "\"max_window_layers\":28,\"model_type\":\"qwen2\",\"num_attention_heads\":12,"                \
    "\"num_hidden_layers\":28,\"num_key_value_heads\":2,\"rms_norm_eps\":1e-06,"                   \
    "\"rope_theta\":1000000.0,\"sliding_window\":32768,\"tie_word_embeddings\":true,"              \
    "\"torch_dtype\":\"bfloat16\",\"use_cache\":true,\"use_sliding_window\":false,"                \
    "\"vocab_size\":151936}"
#define QWEN3                                                                                      \
    "{\"architectures\":[\"Qwen3ForCausalLM\"],\"attention_bias\":false,\"eos_token_id\":151645,"  \
    "\"head_dim\":128,\"hidden_act\":\"silu\",\"hidden_size\":1024,\"intermediate_size\":3072,"    \
    "\"max_position_embeddings\":40960,\"max_window_layers\":28,\"model_type\":\"qwen3\","         \
    "\"num_attention_heads\":16,\"num_hidden_layers\":28,\"num_key_value_heads\":8,"               \
    "\"rms_norm_eps\":1e-06,\"rope_scaling\":null,\"rope_theta\":1000000,"                         \
    "\"sliding_window\":null,\"tie_word_embeddings\":true,\"use_sliding_window\":false,"           \
    "\"vocab_size\":151936}"
#define LLAMA                                                                                      \
    "{\"architectures\":[\"LlamaForCausalLM\"],\"attention_bias\":false,\"bos_token_id\":128000,"  \
    "\"eos_token_id\":[128001,128008,128009],\"head_dim\":64,\"hidden_act\":\"silu\","             \
    "\"hidden_size\":2048,\"intermediate_size\":8192,\"max_position_embeddings\":131072,"          \
    "\"mlp_bias\":false,\"model_type\":\"llama\",\"num_attention_heads\":32,"                      \
    "\"num_hidden_layers\":16,\"num_key_value_heads\":8,\"pretraining_tp\":1,"                     \
    "\"rms_norm_eps\":1e-05,\"rope_scaling\":{\"factor\":32.0,\"high_freq_factor\":4.0,"           \
    "\"low_freq_factor\":1.0,\"original_max_position_embeddings\":8192,"                           \
    "\"rope_type\":\"llama3\"},\"rope_theta\":500000.0,\"tie_word_embeddings\":true,"              \
    "\"vocab_size\":128256}"


/* A configuration in which `to` replaces `from`; NULL changes nothing. */
static int
parse(vlm_config_t *c, const char *good, const char *from, const char *to, vlm_err_t *err)
{
    char               text[2048];
    const char        *at = from == NULL ? good : strstr(good, from);
    vlm_config_file_t  file[VLM_CONFIG_FILES] = { { "config.json", text, 0 } };

    assert_non_null(at);
    (void) snprintf(text, sizeof(text), "%.*s%s%s", (int) (at - good), good, to == NULL ? "" : to,
                    at + (from == NULL ? 0 : strlen(from)));
    file[0].bytes = strlen(text);
    memset(err, 0, sizeof(*err));

    return vlm_config_parse(c, file, err);
}


static void
reads(vlm_config_t *c, const char *good, const char *from, const char *to)
{
    vlm_err_t  err;

    if (parse(c, good, from, to, &err) != 0) {
        fail_msg("%s: %s", to == NULL ? "" : to, err.text);
    }
}


static void
refuses(const char *good, const char *from, const char *to, const char *says)
{
    vlm_err_t     err;
    vlm_config_t  c;

    if (parse(&c, good, from, to, &err) == 0) {
        fail_msg("%s is taken", to);
    }

    if (strstr(err.text, says) == NULL) {
        fail_msg("%s: \"%s\" should say \"%s\"", to, err.text, says);
    }
}


static void
published_configurations_are_read(void **state)
{
    uint32_t      i;
    vlm_config_t  c;

    (void) state;

    reads(&c, QWEN2, NULL, NULL);
    assert_string_equal(c.family->model_type, "qwen2");
    assert_int_equal(c.text.head_dim, 128);
    assert_int_equal(c.text.kv_heads, 2);
    assert_int_equal(c.text.tied, 1);
    assert_int_equal(c.vision.depth, 0);
    assert_int_equal(c.generation.n_eos, 1);
    assert_true(vlm_rope_size(&c.text) == 1);

    for (i = 0; i < 64; i++) {
        assert_int_equal(c.text.axis[i], 0);
    }

    reads(&c, QWEN3, NULL, NULL);
    assert_string_equal(c.family->model_type, "qwen3");
    assert_int_equal(c.text.head_dim, 128);        /* 16 heads of 128 are not 1024 */
    assert_int_equal(c.text.max_positions, 40960);

    reads(&c, LLAMA, NULL, NULL);
    assert_string_equal(c.family->model_type, "llama");
    assert_int_equal(c.text.head_dim, 64);
    assert_int_equal(c.generation.n_eos, 3);
    assert_int_equal(c.text.max_positions, 131072);
}


static void
what_needs_other_arithmetic_is_refused(void **state)
{
    (void) state;

    refuses(QWEN2, "\"use_sliding_window\":false", "\"use_sliding_window\":true",
            "use_sliding_window is true");
    refuses(QWEN2, "\"vocab_size\"", "\"attention_bias\":false,\"vocab_size\"",
            "attention_bias is false; attention of this family of models has biases");
    refuses(QWEN3, "\"attention_bias\":false", "\"attention_bias\":true",
            "attention_bias is true; attention of this family of models has no biases");
    refuses(QWEN3, "\"vocab_size\"", "\"layer_types\":[\"sliding_attention\"],\"vocab_size\"",
            "layer_types has \"sliding_attention\"");
    refuses(LLAMA, "\"mlp_bias\":false", "\"mlp_bias\":true", "mlp_bias is true");
    refuses(LLAMA, "\"hidden_act\":\"silu\"", "\"hidden_act\":\"gelu\"", "only \"silu\"");
    refuses(LLAMA, "\"rope_type\":\"llama3\"", "\"rope_type\":\"longrope\"",
            "rope_scaling.rope_type is \"longrope\", only \"default\", \"linear\", \"llama3\" and "
            "\"yarn\" are understood");
    refuses(LLAMA, "\"factor\":32.0", "\"factor\":0.5", "rope_scaling.factor is 0.5");
    refuses(LLAMA, "\"high_freq_factor\":4.0", "\"high_freq_factor\":1.0",
            "rope_scaling.high_freq_factor is 1");
    refuses(LLAMA, "\"rope_type\":\"llama3\"", "\"rope_type\":\"table\",\"divisors\":[1,2]",
            "rope_scaling.divisors is no list of 32 numbers");
}


static void
check_rates(const char *scaling, float theta, uint32_t head_dim, const float *want, uint32_t step,
            float size)
{
    char          text[256];
    float         rate[VLM_MAX_HEAD_DIM / 2];
    uint32_t      i;
    vlm_config_t  c;

    (void) snprintf(text, sizeof(text), "\"rope_scaling\":%s,\"rope_theta\":%.1f,\"head_dim\":%u,"
                    "\"vocab_size\"", scaling, (double) theta, head_dim);
    reads(&c, "{\"hidden_size\":128,\"intermediate_size\":128,\"max_position_embeddings\":4096,"
          "\"model_type\":\"llama\",\"num_attention_heads\":4,\"num_hidden_layers\":1,"
          "\"num_key_value_heads\":2,\"vocab_size\":512}", "\"vocab_size\"", text);
    vlm_rope_rates(&c.text, rate);

    for (i = 0; i < head_dim / 2; i += step) {
        if (!(fabsf(rate[i] - want[i / step]) <= 1e-6f * want[i / step])) {
            fail_msg("%s: pair %u turns by %.9g, not %.9g", scaling, i, (double) rate[i],
                     (double) want[i / step]);
        }
    }

    assert_true(fabsf(vlm_rope_size(&c.text) - size * size) < 1e-6f);
}


/* Numbers of transformers 4.57.6: ROPE_INIT_FUNCTIONS of modeling_rope_utils.py. */
static void
pairs_turn_at_the_rates_of_transformers(void **state)
{
    static const float  llama3[] = {
        1.0f, 0.663601279f, 0.440366626f, 0.292227834f, 0.193922758f, 0.128687382f, 0.0853971019f,
        0.0566696189f, 0.0376060307f, 0.0249554086f, 0.0165604409f, 0.0109895291f, 0.00729266508f,
        0.00483942125f, 0.00321144611f, 0.00129054801f, 0.000429556705f, 9.70828623e-05f,
        1.94616387e-05f, 1.29147675e-05f, 8.57025589e-06f, 5.68723226e-06f, 3.77405445e-06f,
        2.50446715e-06f, 1.66196742e-06f, 1.10288363e-06f, 7.31874934e-07f, 4.85673127e-07f,
        3.22293289e-07f, 2.1387423e-07f, 1.41927202e-07f, 9.41830649e-08f
    };
    static const float  yarn[] = {             /* every fourth */
        1.0f, 0.177827939f, 0.0316227786f, 0.00515479548f, 0.000583333371f, 4.44569851e-05f,
        7.90569356e-06f, 1.40585337e-06f
    };
    static const float  yarn_weights[] = {
        1.0f, 0.562341332f, 0.316227764f, 0.177827939f, 0.100000001f, 0.0562341288f,
        0.0266817175f, 0.0122256698f, 0.00531250006f, 0.00210877974f, 0.000691748341f,
        0.000111142464f, 6.2500003e-05f, 3.51463314e-05f, 1.97642366e-05f, 1.11142463e-05f
    };
    static const float  linear[] = { 0.400000006f, 0.0399999991f, 0.00399999972f, 0.000400000019f };

    (void) state;

    check_rates("{\"rope_type\":\"llama3\",\"factor\":32.0,\"low_freq_factor\":1.0,"
                "\"high_freq_factor\":4.0,\"original_max_position_embeddings\":8192}", 5e5f, 64,
                llama3, 1, 1);
    check_rates("{\"type\":\"yarn\",\"factor\":4.0,\"original_max_position_embeddings\":32768}",
                1e6f, 64, yarn, 4, 1.138629436f);
    check_rates("{\"rope_type\":\"yarn\",\"factor\":16.0,\"beta_fast\":24,\"beta_slow\":2,"
                "\"mscale\":1.0,\"mscale_all_dim\":0.8}", 1e4f, 32, yarn_weights, 1, 1.045385049f);
    check_rates("{\"rope_type\":\"linear\",\"factor\":2.5}", 1e4f, 32, linear, 4, 1);
}


static void
yarn_lengthens_the_context(void **state)
{
    vlm_config_t  c;

    (void) state;

    reads(&c, QWEN2, "\"sliding_window\":32768", "\"rope_scaling\":{\"factor\":4.0,"
          "\"original_max_position_embeddings\":32768,\"type\":\"yarn\"}");
    assert_int_equal(c.text.max_positions, 131072);
}


static void
words_are_found_by_name_and_by_the_hash_of_a_published_template(void **state)
{
    char  names[160];

    static const char  smollm2[] =
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
        "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
        "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
        "{{ '<|im_start|>assistant\n' }}{% endif %}";

    (void) state;

    assert_ptr_equal(vlm_words_of(smollm2, sizeof(smollm2) - 1), vlm_words_find("smollm2"));
    assert_null(vlm_words_of(smollm2, sizeof(smollm2) - 2));
    assert_null(vlm_words_find("smollm"));
    vlm_words_list(names, sizeof(names));
    assert_string_equal(names, "qwen2, qwen2.5, qwen2.5-coder, qwen3, qwen3-2507, chatml, smollm2, "
                               "llama3");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(published_configurations_are_read),
        cmocka_unit_test(what_needs_other_arithmetic_is_refused),
        cmocka_unit_test(pairs_turn_at_the_rates_of_transformers),
        cmocka_unit_test(yarn_lengthens_the_context),
        cmocka_unit_test(words_are_found_by_name_and_by_the_hash_of_a_published_template)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
