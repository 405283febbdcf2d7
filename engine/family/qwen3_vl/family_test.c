/* Qwen3-VL: both spellings of its config.json, its refusals, and its order of patches. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family/family.h"
#include "image/patch.h"

/* As published, but for the numbers. */
#define GOOD                                                                                       \
    "{\"architectures\":[\"Qwen3VLForConditionalGeneration\"],\"image_token_id\":151655,"          \
    "\"model_type\":\"qwen3_vl\",\"text_config\":{\"attention_bias\":false,\"head_dim\":128,"      \
    "\"hidden_act\":\"silu\",\"hidden_size\":2560,\"intermediate_size\":9728,"                     \
    "\"max_position_embeddings\":262144,\"model_type\":\"qwen3_vl_text\","                         \
    "\"num_attention_heads\":32,\"num_hidden_layers\":36,\"num_key_value_heads\":8,"               \
    "\"rms_norm_eps\":1e-6,\"rope_scaling\":{\"mrope_interleaved\":true,"                          \
    "\"mrope_section\":[24,20,20],\"rope_type\":\"default\"},\"rope_theta\":5000000,"              \
    "\"tie_word_embeddings\":true,\"vocab_size\":151936},\"tie_word_embeddings\":true,"            \
    "\"video_token_id\":151656,\"vision_config\":{\"deepstack_visual_indexes\":[5,11,17],"         \
    "\"depth\":24,\"hidden_act\":\"gelu_pytorch_tanh\",\"hidden_size\":1024,\"in_channels\":3,"    \
    "\"intermediate_size\":4096,\"model_type\":\"qwen3_vl\",\"num_heads\":16,"                     \
    "\"num_position_embeddings\":2304,\"out_hidden_size\":2560,\"patch_size\":16,"                 \
    "\"spatial_merge_size\":2,\"temporal_patch_size\":2},\"vision_end_token_id\":151653,"          \
    "\"vision_start_token_id\":151652}"

#define PIXELS                                                                                     \
    "{\"size\":{\"longest_edge\":16777216,\"shortest_edge\":65536},\"patch_size\":16,"             \
    "\"temporal_patch_size\":2,\"merge_size\":2,\"image_mean\":[0.5,0.5,0.5],"                     \
    "\"image_std\":[0.5,0.5,0.5],\"processor_class\":\"Qwen3VLProcessor\","                        \
    "\"image_processor_type\":\"Qwen2VLImageProcessorFast\"}"


/* GOOD, in which `to` replaces `from`. */
static int
parse(vlm_config_t *c, const char *from, const char *to, const char *pixels, vlm_err_t *err)
{
    char               text[4096], *at;
    vlm_config_file_t  file[VLM_CONFIG_FILES] = {
        { "config.json", text, 0 }, { "generation_config.json", NULL, 0 },
        { "preprocessor_config.json", pixels, pixels == NULL ? 0 : strlen(pixels) },
        { "processor_config.json", NULL, 0 }
    };

    strcpy(text, GOOD);

    if (from != NULL) {
        at = strstr(text, from);
        assert_non_null(at);
        (void) snprintf(text, sizeof(text), "%.*s%s%s", (int) (at - text), GOOD, to,
                        strstr(GOOD, from) + strlen(from));
    }

    file[0].bytes = strlen(text);
    memset(err, 0, sizeof(*err));

    return vlm_config_parse(c, file, err);
}


static void
reads(vlm_config_t *c, const char *from, const char *to)
{
    vlm_err_t  err;

    if (parse(c, from, to, NULL, &err) != 0) {
        fail_msg("%s: %s", to == NULL ? "" : to, err.text);
    }
}


static void
refuses(const char *from, const char *to, const char *says)
{
    vlm_err_t     err;
    vlm_config_t  c;

    if (parse(&c, from, to, NULL, &err) == 0) {
        fail_msg("%s is taken", to);
    }

    if (strstr(err.text, says) == NULL) {
        fail_msg("%s: \"%s\" should say \"%s\"", to, err.text, says);
    }
}


static void
the_published_configuration_is_read(void **state)
{
    uint32_t      i;
    vlm_config_t  c;

    (void) state;

    reads(&c, NULL, NULL);
    assert_string_equal(c.family->model_type, "qwen3_vl");
    assert_int_equal(c.text.hidden, 2560);
    assert_int_equal(c.text.heads, 32);
    assert_int_equal(c.text.kv_heads, 8);
    assert_int_equal(c.text.head_dim, 128);        /* 32 heads of 128 are not 2560 */
    assert_int_equal(c.text.vocab, 151936);
    assert_true(c.text.rope_theta == 5e6f);
    assert_int_equal(c.text.tied, 1);

    for (i = 0; i < 64; i++) {
        assert_int_equal(c.text.axis[i], i < 60 ? i % 3 : 0);
    }

    assert_int_equal(c.vision.hidden, 1024);
    assert_int_equal(c.vision.depth, 24);
    assert_int_equal(c.vision.head_dim, 64);
    assert_int_equal(c.vision.mlp, 4096);
    assert_int_equal(c.vision.patch, 16);
    assert_int_equal(c.vision.places, 48);
    assert_int_equal(c.vision.deep, 3);
    assert_int_equal(c.vision.deep_block[0], 5);
    assert_int_equal(c.vision.deep_block[1], 11);
    assert_int_equal(c.vision.deep_block[2], 17);

    for (i = 0; i < VLM_MAX_LAYERS; i++) {
        assert_int_equal(c.vision.full[i], i < 24);
    }

    assert_int_equal(c.generation.image_token, 151655);
    assert_int_equal(c.generation.n_eos, 2);
    assert_int_equal(c.generation.eos[0], 151645);
    assert_int_equal(c.family->coordinates, 1000);
    assert_int_equal(c.family->tasks, 25);
}


static void
the_spelling_of_transformers_5_says_the_same(void **state)
{
    vlm_config_t  a, b;

    (void) state;

    memset(&a, 0, sizeof(a));
    memset(&b, 0, sizeof(b));
    reads(&a, NULL, NULL);
    reads(&b, "\"rope_scaling\":{\"mrope_interleaved\":true,\"mrope_section\":[24,20,20],"
              "\"rope_type\":\"default\"},\"rope_theta\":5000000,",
          "\"rope_parameters\":{\"mrope_interleaved\":true,\"mrope_section\":[24,20,20],"
          "\"rope_theta\":5000000,\"rope_type\":\"default\"},");
    assert_memory_equal(&a, &b, sizeof(a));

    reads(&b, "\"model_type\":\"qwen3_vl\",\"num_heads\"",
          "\"model_type\":\"qwen3_vl_vision\",\"rope_parameters\":{\"rope_theta\":10000.0,"
          "\"rope_type\":\"axial\"},\"num_heads\"");
    assert_memory_equal(&a, &b, sizeof(a));
    reads(&b, "\"model_type\":\"qwen3_vl\",\"num_heads\"",
          "\"rope_parameters\":{\"rope_theta\":500.0},\"num_heads\"");
    assert_true(b.vision.rope_theta == 500);
}


static void
a_head_is_tied_if_the_top_or_the_text_settings_or_both_say_so(void **state)
{
    vlm_config_t  c;

    (void) state;

    reads(&c, "\"tie_word_embeddings\":true,\"vocab_size\":151936},\"tie_word_embeddings\":true",
          "\"vocab_size\":151936},\"tie_word_embeddings\":true");
    assert_int_equal(c.text.tied, 1);
    reads(&c, "},\"tie_word_embeddings\":true", "}");
    assert_int_equal(c.text.tied, 1);
    reads(&c, "\"tie_word_embeddings\":true,\"vocab_size\":151936},\"tie_word_embeddings\":true",
          "\"vocab_size\":151936},\"tie_word_embeddings\":false");
    assert_int_equal(c.text.tied, 0);
    reads(&c, "\"tie_word_embeddings\":true,\"vocab_size\":151936},\"tie_word_embeddings\":true",
          "\"vocab_size\":151936}");
    assert_int_equal(c.text.tied, 0);
}


static void
sections_that_take_turns_leave_what_is_left_to_time(void **state)
{
    uint32_t      i;
    vlm_config_t  c;

    (void) state;

    reads(&c, "[24,20,20]", "[60,3,1]");

    for (i = 0; i < 64; i++) {
        assert_int_equal(c.text.axis[i], i == 1 || i == 4 || i == 7 ? 1 : i == 2 ? 2 : 0);
    }
}


static void
pictures_are_bounded_by_numbers_of_pixels(void **state)
{
    vlm_err_t     err;
    vlm_config_t  c;

    (void) state;

    assert_int_equal(parse(&c, NULL, NULL, NULL, &err), 0);
    assert_int_equal(c.pixel.min_pixels, 65536);
    assert_int_equal(c.pixel.max_pixels, 16777216);
    assert_true(c.pixel.mean[0] == 0.5f && c.pixel.std[2] == 0.5f);

    assert_int_equal(parse(&c, NULL, NULL, PIXELS, &err), 0);
    assert_int_equal(c.pixel.min_pixels, 65536);
    assert_int_equal(c.pixel.max_pixels, 16777216);
    assert_int_equal(c.pixel.said, 1);
    assert_true(c.pixel.mean[1] == 0.5f && c.pixel.std[1] == 0.5f);
}


static void
what_needs_other_arithmetic_is_refused_with_the_place_and_the_value(void **state)
{
    (void) state;

    refuses("\"attention_bias\":false", "\"attention_bias\":true", "attention_bias is true");
    refuses("\"gelu_pytorch_tanh\"", "\"gelu\"", "only \"gelu_pytorch_tanh\" is understood");
    refuses("\"hidden_act\":\"silu\"", "\"hidden_act\":\"relu\"", "only \"silu\" is understood");
    refuses("\"mrope_interleaved\":true", "\"mrope_interleaved\":false", "mrope_interleaved");
    refuses("[24,20,20]", "[24,20,21]", "the sum should be half of a head's 128");
    refuses("\"rope_type\":\"default\"", "\"rope_type\":\"yarn\"", "\"yarn\"");
    refuses("\"rope_type\":\"default\"", "\"partial_rotary_factor\":0.25",
            "text_config.rope_scaling.partial_rotary_factor is 0.25");
    refuses("\"model_type\":\"qwen3_vl\",\"num_heads\"", "\"model_type\":\"vit\",\"num_heads\"",
            "vision_config.model_type is \"vit\"");
    refuses("\"model_type\":\"qwen3_vl_text\"", "\"model_type\":\"qwen3_vl_moe_text\"",
            "only \"qwen3_vl_text\" is understood");
    refuses("\"num_position_embeddings\":2304", "\"num_position_embeddings\":2305",
            "num_position_embeddings is 2305, which is no square number");
    refuses("\"num_position_embeddings\":2304", "\"num_position_embeddings\":0", "is 0");
    refuses("\"num_heads\":16", "\"num_heads\":16,\"rope_parameters\":{\"rope_type\":\"yarn\"}",
            "vision_config.rope_parameters.rope_type is \"yarn\"");
    refuses("\"out_hidden_size\":2560", "\"out_hidden_size\":2048", "out_hidden_size is 2048");
    refuses("\"vision_config\"", "\"other_config\"", "no vision_config");
}


static void
blocks_for_the_first_layers_are_bounded_and_different(void **state)
{
    vlm_config_t  c;

    (void) state;

    refuses("[5,11,17]", "[5,11,24]", "deepstack_visual_indexes[2]");
    refuses("[5,11,17]", "[5,17,5]", "names block 5 twice, as numbers 1 and 3 of the list");
    refuses("[5,11,17]", "[0,1,2,3,4,5,6,7,8]", "names 9 blocks, at most 8");
    refuses("[5,11,17]", "5", "is no list");
    refuses("[5,11,17]", "[-1]", "deepstack_visual_indexes[0]");
    refuses("\"deepstack_visual_indexes\":[5,11,17],", "", "no vision_config."
            "deepstack_visual_indexes, and its default, blocks 8, 16 and 24, does not fit an "
            "encoder of 24 blocks");

    reads(&c, "[5,11,17]", "[17,5]");
    assert_int_equal(c.vision.deep, 2);
    assert_int_equal(c.vision.deep_block[0], 17);
    assert_int_equal(c.vision.deep_block[1], 5);
    reads(&c, "[5,11,17]", "[]");
    assert_int_equal(c.vision.deep, 0);
    reads(&c, "[5,11,17]", "[23]");
    assert_int_equal(c.vision.deep, 1);
    assert_int_equal(c.vision.deep_block[0], 23);
}


static void
a_picture_is_one_segment_of_cells_row_by_row(void **state)
{
    uint32_t       i;
    vlm_err_t      err = { VLM_OK, "" };
    vlm_config_t   c;
    vlm_picture_t  p;

    (void) state;

    reads(&c, NULL, NULL);
    memset(&p, 0, sizeof(p));
    assert_int_equal(vlm_patch_layout(&p, 5 * 32, 3 * 32, &c.vision, &err), 0);
    assert_int_equal(p.n_patches, 60);
    assert_int_equal(p.n_cells, 15);
    assert_int_equal(p.n_segments, 1);
    assert_int_equal(p.longest, 60);
    assert_int_equal(p.border[0], 0);
    assert_int_equal(p.border[1], 60);

    for (i = 0; i < 60; i++) {
        assert_int_equal(p.row[i], i / 20 * 2 + i % 4 / 2);
        assert_int_equal(p.column[i], i % 20 / 4 * 2 + i % 2);
        assert_int_equal(p.cell[i / 4], i / 4);
    }

    free(p.row);
    free(p.column);
    free(p.border);
    free(p.cell);
}


static void
models_called_thinking_think(void **state)
{
    const vlm_family_t  *f = vlm_family_find("qwen3_vl");

    (void) state;

    assert_int_equal(vlm_family_thinks(f, "/models/Qwen3-VL-4B-Thinking"), 1);
    assert_int_equal(vlm_family_thinks(f, "/models/Qwen3-VL-4B-Instruct"), 0);
    assert_int_equal(vlm_family_thinks(f, "/models/thinking/Qwen3-VL-4B-Instruct"), 0);
    assert_int_equal(vlm_family_thinks(f, "/models/RoboBrain2.5-8B"), 0);
    assert_null(f->words.system);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_published_configuration_is_read),
        cmocka_unit_test(the_spelling_of_transformers_5_says_the_same),
        cmocka_unit_test(a_head_is_tied_if_the_top_or_the_text_settings_or_both_say_so),
        cmocka_unit_test(sections_that_take_turns_leave_what_is_left_to_time),
        cmocka_unit_test(pictures_are_bounded_by_numbers_of_pixels),
        cmocka_unit_test(what_needs_other_arithmetic_is_refused_with_the_place_and_the_value),
        cmocka_unit_test(blocks_for_the_first_layers_are_bounded_and_different),
        cmocka_unit_test(a_picture_is_one_segment_of_cells_row_by_row),
        cmocka_unit_test(models_called_thinking_think)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
