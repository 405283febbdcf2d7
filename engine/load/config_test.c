/*
 * Configurations of every published size, as three generations of transformers write them, and one
 * that is right except for a single value.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "load/config.h"
#include "load/fixture.h"

/* A small model that is right; the cases replace a piece of it. */
#define GOOD \
    "{\"model_type\":\"qwen2_5_vl\",\"hidden_act\":\"silu\",\"hidden_size\":64," \
    "\"num_hidden_layers\":2,\"num_attention_heads\":4,\"num_key_value_heads\":2," \
    "\"intermediate_size\":96,\"vocab_size\":600,\"max_position_embeddings\":4096," \
    "\"rms_norm_eps\":1e-6,\"rope_theta\":1000000.0,\"tie_word_embeddings\":false," \
    "\"use_sliding_window\":false,\"eos_token_id\":558,\"image_token_id\":568," \
    "\"vision_start_token_id\":565,\"vision_end_token_id\":566," \
    "\"rope_scaling\":{\"type\":\"mrope\",\"mrope_section\":[2,3,3]}," \
    "\"vision_config\":{\"depth\":3,\"hidden_act\":\"silu\",\"hidden_size\":32," \
    "\"intermediate_size\":48,\"num_heads\":2,\"in_chans\":3,\"out_hidden_size\":64," \
    "\"patch_size\":14,\"spatial_merge_size\":2,\"window_size\":112," \
    "\"fullatt_block_indexes\":[0,2],\"temporal_patch_size\":2}}"


static char  dir[64];


/* text with the first a replaced by b. */
static void
edit(char *out, size_t bytes, const char *text, const char *a, const char *b)
{
    const char  *at;

    at = strstr(text, a);
    if (at == NULL) {
        fail_msg("no %s in the text", a);
    }

    snprintf(out, bytes, "%.*s%s%s", (int) (at - text), text, b, at + strlen(a));
}


static void
reads(vlm_config_t *c)
{
    vlm_err_t  err = { 0 };

    if (vlm_config_read(c, dir, &err) != 0) {
        fail_msg("%s", err.text);
    }
}


static void
fails(const char *says)
{
    vlm_err_t     err = { 0 };
    vlm_config_t  c;

    assert_int_equal(vlm_config_read(&c, dir, &err), -1);

    if (err.code != VLM_EMODEL || strstr(err.text, says) == NULL || strstr(err.text, dir) == NULL) {
        fail_msg("\"%s\" should say \"%s\" and the directory", err.text, says);
    }
}


static void
read_good(vlm_config_t *c, const char *a, const char *b)
{
    char  text[4096];

    edit(text, sizeof(text), GOOD, a, b);
    fixture_text(dir, "config.json", text);
    reads(c);
}


static void
read_shape(vlm_config_t *c, const char *path)
{
    fixture_copy(dir, "config.json", path);
    reads(c);
}


static int
set_up(void **state)
{
    (void) state;

    return fixture_dir(dir);
}


static int
tear_down(void **state)
{
    (void) state;

    fixture_remove(dir);

    return 0;
}


/* ---- published files ----------------------------------------------------- */

static void
check_vision(const vlm_vision_config_t *v, uint32_t mlp, uint32_t out)
{
    uint32_t  i;

    assert_int_equal(v->hidden, 1280);
    assert_int_equal(v->depth, 32);
    assert_int_equal(v->heads, 16);
    assert_int_equal(v->head_dim, 80);
    assert_int_equal(v->mlp, mlp);
    assert_int_equal(v->out, out);
    assert_int_equal(v->channels, 3);
    assert_int_equal(v->patch, 14);
    assert_int_equal(v->temporal, 2);
    assert_int_equal(v->merge, 2);
    assert_int_equal(v->window, 4);
    assert_true(v->norm_eps == 1e-6f);

    for (i = 0; i < VLM_MAX_LAYERS; i++) {
        assert_int_equal(v->full[i], i == 7 || i == 15 || i == 23 || i == 31);
    }
}


static void
check_3b(const vlm_config_t *c)
{
    uint32_t  i;

    assert_int_equal(c->text.hidden, 2048);
    assert_int_equal(c->text.layers, 36);
    assert_int_equal(c->text.heads, 16);
    assert_int_equal(c->text.kv_heads, 2);
    assert_int_equal(c->text.head_dim, 128);
    assert_int_equal(c->text.mlp, 11008);
    assert_int_equal(c->text.vocab, 151936);
    assert_int_equal(c->text.max_positions, 128000);

    for (i = 0; i < 64; i++) {
        assert_int_equal(c->text.axis[i], i < 16 ? 0 : i < 40 ? 1 : 2);
    }

    assert_true(c->text.rope_theta == 1e6f);
    assert_true(c->text.norm_eps == 1e-6f);
    assert_int_equal(c->text.tied, 1);
    check_vision(&c->vision, 3420, 2048);
    assert_int_equal(c->generation.image_token, 151655);
    assert_int_equal(c->generation.vision_start, 151652);
    assert_int_equal(c->generation.vision_end, 151653);
    assert_int_equal(c->generation.n_eos, 1);
    assert_int_equal(c->generation.eos[0], 151645);
}


static void
check_7b(const vlm_config_t *c)
{
    assert_int_equal(c->text.hidden, 3584);
    assert_int_equal(c->text.layers, 28);
    assert_int_equal(c->text.heads, 28);
    assert_int_equal(c->text.kv_heads, 4);
    assert_int_equal(c->text.mlp, 18944);
    assert_int_equal(c->text.vocab, 152064);
    assert_int_equal(c->text.tied, 0);
    check_vision(&c->vision, 3420, 3584);
}


static void
every_published_size_is_read(void **state)
{
    vlm_config_t  c;

    (void) state;

    read_shape(&c, "bench/shapes/3b.json");
    check_3b(&c);
    read_shape(&c, "bench/shapes/7b.json");
    check_7b(&c);
    read_shape(&c, "bench/shapes/32b.json");
    assert_int_equal(c.text.layers, 64);
    check_vision(&c.vision, 3456, 5120);
    read_shape(&c, "bench/shapes/72b.json");
    assert_int_equal(c.text.mlp, 29568);
    check_vision(&c.vision, 3456, 8192);
}


static void
configurations_saved_by_newer_transformers_say_the_same(void **state)
{
    vlm_config_t  c;

    (void) state;

    read_shape(&c, FIXTURES "/config-4.57.1-3b.json");
    check_3b(&c);
    read_shape(&c, FIXTURES "/config-5.0.0-3b.json");
    check_3b(&c);
    read_shape(&c, FIXTURES "/config-4.57.1-7b.json");
    check_7b(&c);
    read_shape(&c, FIXTURES "/config-5.0.0-7b.json");
    check_7b(&c);
}


static void
a_directory_saved_by_transformers_is_read(void **state)
{
    vlm_err_t     err = { 0 };
    vlm_config_t  c;

    (void) state;

    assert_int_equal(vlm_config_read(&c, FIXTURES "/saved", &err), 0);
    assert_int_equal(c.text.hidden, 16);
    assert_int_equal(c.vision.patch, 4);
    assert_int_equal(c.vision.window, 4);
    assert_int_equal(c.generation.n_eos, 2);
    assert_int_equal(c.generation.eos[0], 558);
    assert_int_equal(c.generation.eos[1], 556);
}


/* ---- optional keys ------------------------------------------------------- */

static void
settings_that_may_be_absent_have_the_classes_defaults(void **state)
{
    uint32_t      i;
    vlm_config_t  c;

    (void) state;

    read_good(&c, "\"rms_norm_eps\":1e-6,", "");
    assert_true(c.text.norm_eps == 1e-5f);
    read_good(&c, "\"rope_theta\":1000000.0,", "");
    assert_true(c.text.rope_theta == 1e6f);
    read_good(&c, "\"tie_word_embeddings\":false,", "");
    assert_int_equal(c.text.tied, 0);
    read_good(&c, "\"max_position_embeddings\":4096,", "");
    assert_int_equal(c.text.max_positions, 32768);
    read_good(&c, "\"in_chans\":3,", "");
    assert_int_equal(c.vision.channels, 3);
    read_good(&c, "\"fullatt_block_indexes\":[0,2],", "");
    for (i = 0; i < VLM_MAX_LAYERS; i++) {
        assert_int_equal(c.vision.full[i], 0);
    }
}


static void
a_head_may_be_wider_than_its_share(void **state)
{
    vlm_config_t  c;

    (void) state;

    read_good(&c, "\"hidden_size\":64,", "\"hidden_size\":64,\"head_dim\":16,");
    assert_int_equal(c.text.head_dim, 16);
    read_good(&c, "\"num_attention_heads\":4,",
              "\"num_attention_heads\":6,\"head_dim\":16,");
    assert_int_equal(c.text.head_dim, 16);
    assert_int_equal(c.text.heads, 6);
}


static void
eos_is_what_generation_config_says_else_config_else_the_familys(void **state)
{
    vlm_config_t  c;

    (void) state;

    fixture_text(dir, "config.json", GOOD);
    reads(&c);
    assert_int_equal(c.generation.n_eos, 1);
    assert_int_equal(c.generation.eos[0], 558);

    fixture_text(dir, "generation_config.json", "{\"eos_token_id\":7}");
    reads(&c);
    assert_int_equal(c.generation.n_eos, 1);
    assert_int_equal(c.generation.eos[0], 7);

    fixture_text(dir, "generation_config.json", "{\"eos_token_id\":[558,556,558]}");
    reads(&c);
    assert_int_equal(c.generation.n_eos, 2);
    assert_int_equal(c.generation.eos[1], 556);

    fixture_text(dir, "generation_config.json", "{\"eos_token_id\":null}");
    read_good(&c, "\"eos_token_id\":558,", "");
    assert_int_equal(c.generation.n_eos, 0);

    read_good(&c, "\"vocab_size\":600,\"max", "\"vocab_size\":152064,\"max");
    assert_int_equal(c.generation.n_eos, 1);
}


static void
eos_defaults_to_the_familys_ids_where_the_vocabulary_has_them(void **state)
{
    char          text[4096], more[4096];
    vlm_config_t  c;

    (void) state;

    edit(text, sizeof(text), GOOD, "\"eos_token_id\":558,", "");
    edit(more, sizeof(more), text, "\"vocab_size\":600", "\"vocab_size\":151646");
    fixture_text(dir, "config.json", more);
    reads(&c);
    assert_int_equal(c.generation.n_eos, 2);
    assert_int_equal(c.generation.eos[0], 151645);
    assert_int_equal(c.generation.eos[1], 151643);

    edit(more, sizeof(more), text, "\"vocab_size\":600", "\"vocab_size\":151645");
    fixture_text(dir, "config.json", more);
    reads(&c);
    assert_int_equal(c.generation.n_eos, 0);
}


static int
samples(const vlm_config_t *c, float temperature, uint32_t top_k, float top_p, float penalty)
{
    const vlm_generation_config_t  *g = &c->generation;

    return g->temperature == temperature && g->top_k == top_k && g->top_p == top_p
           && g->repetition_penalty == penalty;
}


static void
keys_that_generation_config_lacks_have_the_default_of_transformers(void **state)
{
    vlm_config_t  c;

    (void) state;

    fixture_text(dir, "config.json", GOOD);
    reads(&c);
    assert_true(samples(&c, 0.7f, 50, 1, 1.05f));

    fixture_text(dir, "generation_config.json", "{\"eos_token_id\":558}");
    reads(&c);
    assert_true(samples(&c, 0, 50, 1, 1));

    fixture_text(dir, "generation_config.json", "{\"do_sample\":true}");
    reads(&c);
    assert_true(samples(&c, 1, 50, 1, 1));

    fixture_text(dir, "generation_config.json", "{\"temperature\":0.7,\"top_k\":7}");
    reads(&c);
    assert_true(samples(&c, 0, 7, 1, 1));

    fixture_text(dir, "generation_config.json",
                 "{\"do_sample\":true,\"temperature\":1e-06,\"repetition_penalty\":1.05,"
                 "\"top_k\":1,\"top_p\":0.001}");
    reads(&c);
    assert_true(samples(&c, 1e-6f, 1, 0.001f, 1.05f));

    fixture_text(dir, "generation_config.json", "{\"do_sample\":false,\"temperature\":0.7}");
    reads(&c);
    assert_true(samples(&c, 0, 50, 1, 1));
}


static void
the_base_of_the_vision_encoders_angles_is_read(void **state)
{
    vlm_config_t  c;

    (void) state;

    read_good(&c, "", "");
    assert_true(c.vision.rope_theta == 10000);

    read_good(&c, "\"depth\":3,", "\"depth\":3,\"rope_parameters\":{\"rope_theta\":500.0,"
              "\"rope_type\":\"default\"},");
    assert_true(c.vision.rope_theta == 500);
    assert_true(c.text.rope_theta == 1e6f);

    read_good(&c, "\"depth\":3,", "\"depth\":3,\"rope_parameters\":{\"rope_theta\":400.0,"
              "\"rope_type\":\"axial\"},");
    assert_true(c.vision.rope_theta == 400);
}


static void
pixel_settings_come_from_the_preprocessor_or_are_the_familys(void **state)
{
    vlm_config_t  c;

    (void) state;

    fixture_text(dir, "config.json", GOOD);
    reads(&c);
    assert_int_equal(c.pixel.said, 0);
    assert_int_equal(c.pixel.min_pixels, 3136);
    assert_int_equal(c.pixel.max_pixels, 12845056);
    assert_true(c.pixel.mean[0] == 0.48145466f && c.pixel.std[2] == 0.27577711f);

    fixture_text(dir, "preprocessor_config.json",
                 "{\"min_pixels\":784,\"max_pixels\":1003520,\"patch_size\":14,\"merge_size\":2,"
                 "\"temporal_patch_size\":2,\"image_mean\":[0.5,0.25,0.125],\"image_std\":[1,2,3],"
                 "\"do_rescale\":true,\"rescale_factor\":0.00392156862745098,\"resample\":3}");
    reads(&c);
    assert_int_equal(c.pixel.said, 1);
    assert_int_equal(c.pixel.min_pixels, 784);
    assert_int_equal(c.pixel.max_pixels, 1003520);
    assert_true(c.pixel.mean[2] == 0.125f && c.pixel.std[1] == 2.0f);

    fixture_text(dir, "preprocessor_config.json",
                 "{\"min_pixels\":null,\"size\":{\"shortest_edge\":500,\"longest_edge\":9000}}");
    reads(&c);
    assert_int_equal(c.pixel.min_pixels, 500);
    assert_int_equal(c.pixel.max_pixels, 9000);
}


/* All that transformers 5 writes for a processor. */
static void
pixel_settings_in_the_processors_own_file_come_first(void **state)
{
    vlm_config_t  c;

    (void) state;

    fixture_text(dir, "config.json", GOOD);
    fixture_text(dir, "processor_config.json",
                 "{\"image_processor\":{\"do_convert_rgb\":true,\"do_normalize\":true,"
                 "\"do_rescale\":true,\"do_resize\":true,\"data_format\":\"channels_first\","
                 "\"image_mean\":[0.5,0.5,0.5],\"image_processor_type\":\"Qwen2VLImageProcessor\","
                 "\"image_std\":[0.5,0.25,0.5],\"merge_size\":2,\"patch_size\":14,\"resample\":3,"
                 "\"rescale_factor\":0.00392156862745098,\"size\":{\"longest_edge\":401408,"
                 "\"shortest_edge\":784},\"temporal_patch_size\":2},"
                 "\"processor_class\":\"Qwen2_5_VLProcessor\",\"video_processor\":{}}");
    reads(&c);
    assert_int_equal(c.pixel.said, 1);
    assert_int_equal(c.pixel.min_pixels, 784);
    assert_int_equal(c.pixel.max_pixels, 401408);
    assert_true(c.pixel.mean[0] == 0.5f && c.pixel.std[1] == 0.25f);

    fixture_text(dir, "preprocessor_config.json", "{\"max_pixels\":9000}");
    reads(&c);
    assert_int_equal(c.pixel.max_pixels, 401408);

    fixture_text(dir, "processor_config.json", "{\"processor_class\":\"Qwen2_5_VLProcessor\"}");
    reads(&c);
    assert_int_equal(c.pixel.max_pixels, 9000);
}


static void
bounds_of_video_are_in_the_file_that_transformers_reads(void **state)
{
    vlm_config_t  c;

    (void) state;

    fixture_text(dir, "config.json", GOOD);
    reads(&c);
    assert_int_equal(c.vision.per_second, 4);      /* the class's own */
    assert_int_equal(c.video.min_pixels, 100352);
    assert_int_equal(c.video.max_pixels, 602112);
    assert_int_equal(c.video.whole, 0);

    fixture_text(dir, "processor_config.json",
                 "{\"image_processor\":{\"size\":{\"shortest_edge\":784,\"longest_edge\":9000}},"
                 "\"video_processor\":{\"size\":{\"shortest_edge\":1568,\"longest_edge\":8000}}}");
    reads(&c);
    assert_int_equal(c.video.min_pixels, 1568);
    assert_int_equal(c.video.max_pixels, 8000);

    fixture_text(dir, "preprocessor_config.json", "{\"min_pixels\":900,\"max_pixels\":7000}");
    reads(&c);
    assert_int_equal(c.pixel.max_pixels, 9000);
    assert_int_equal(c.video.min_pixels, 900);
    assert_int_equal(c.video.max_pixels, 7000);

    fixture_text(dir, "video_preprocessor_config.json",
                 "{\"size\":{\"shortest_edge\":4096,\"longest_edge\":25165824},\"fps\":2}");
    reads(&c);
    assert_int_equal(c.pixel.max_pixels, 9000);
    assert_int_equal(c.video.min_pixels, 4096);
    assert_int_equal(c.video.max_pixels, 25165824);
}


/* ---- refused values ------------------------------------------------------ */

typedef struct {
    const char  *is, *becomes, *says;
} case_t;


static const case_t  wrong[] = {
    { "\"model_type\":\"qwen2_5_vl\",", "", "no model_type" },
    { "\"qwen2_5_vl\"", "\"qwen2_vl\"", "model_type is \"qwen2_vl\", only \"qwen2_5_vl\"" },
    { "\"qwen2_5_vl\"", "5", "model_type is \"not a text\"" },
    { "\"silu\"", "\"gelu\"", "hidden_act is \"gelu\"" },
    { "\"use_sliding_window\":false", "\"use_sliding_window\":true", "use_sliding_window is true" },
    { "\"use_sliding_window\":false", "\"num_experts\":64", "num_experts is 64, expected" },
    { "\"use_sliding_window\":false", "\"partial_rotary_factor\":0.5",
      "partial_rotary_factor is 0.5, expected" },
    { "\"use_sliding_window\":false", "\"layer_types\":[\"full_attention\",\"sliding_attention\"]",
      "sliding_attention" },
    { "\"use_sliding_window\":false", "\"quantization_config\":{\"quant_method\":\"hqq\"}",
      "quantised (hqq), which is not supported" },
    { "\"hidden_size\":64,", "", "hidden_size is missing" },
    { "\"hidden_size\":64,", "\"hidden_size\":2048.5,", "hidden_size is 2048.5" },
    { "\"hidden_size\":64,", "\"hidden_size\":\"64\",", "hidden_size is not a number" },
    { "\"hidden_size\":64,", "\"hidden_size\":65537,", "from 1 to 65536" },
    { "\"hidden_size\":64,", "\"hidden_size\":-64,", "hidden_size is -64" },
    { "\"hidden_size\":64,", "\"hidden_size\":1e308,", "hidden_size is " },
    { "\"hidden_size\":64,", "\"hidden_size\":66,", "no multiple of 4 attention heads" },
    { "\"hidden_size\":64,", "\"hidden_size\":60,", "a head of 15 numbers" },
    { "\"hidden_size\":64,", "\"hidden_size\":64,\"head_dim\":15,", "a head of 15 numbers" },
    { "\"hidden_size\":64,", "\"hidden_size\":64,\"head_dim\":1024,", "head_dim is 1024" },
    { "\"hidden_size\":64,", "\"hidden_size\":64,\"head_dim\":32,", "half of a head's 32" },
    { "\"num_hidden_layers\":2", "\"num_hidden_layers\":257", "from 1 to 256" },
    { "\"num_hidden_layers\":2", "\"num_hidden_layers\":0", "from 1 to 256" },
    { "\"num_attention_heads\":4", "\"num_attention_heads\":0", "num_attention_heads is 0" },
    { "\"num_key_value_heads\":2", "\"num_key_value_heads\":3", "4 attention heads" },
    { "\"num_key_value_heads\":2", "\"num_key_value_heads\":8", "no multiple of 8 key-value" },
    { "\"intermediate_size\":96", "\"intermediate_size\":262145", "intermediate_size is 262145" },
    { "\"vocab_size\":600", "\"vocab_size\":1048577", "vocab_size is 1048577" },
    { "\"vocab_size\":600", "\"vocab_size\":568", "image_token_id is 568" },
    { "\"vision_end_token_id\":566", "\"x\":0", "151653 in a vocabulary of 600" },
    { "\"eos_token_id\":558", "\"eos_token_id\":600", "eos_token_id is 600" },
    { "\"eos_token_id\":558", "\"eos_token_id\":[1,\"x\"]", "eos_token_id[1] is not a number" },
    { "\"eos_token_id\":558", "\"eos_token_id\":[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17]",
      "more than 16 ids" },
    { "\"max_position_embeddings\":4096", "\"max_position_embeddings\":16777217", "16777217" },
    { "\"rms_norm_eps\":1e-6", "\"rms_norm_eps\":-1e-6", "rms_norm_eps is -1e-06" },
    { "\"rms_norm_eps\":1e-6", "\"rms_norm_eps\":\"1e-6\"", "rms_norm_eps is not a number" },
    { "\"rope_theta\":1000000.0", "\"rope_theta\":0", "rope_theta is 0" },
    { "\"type\":\"mrope\"", "\"type\":\"yarn\"", "rope_scaling.type is \"yarn\"" },
    { "\"type\":\"mrope\"", "\"rope_type\":\"linear\"", "rope_scaling.rope_type is \"linear\"" },
    { "\"mrope_section\":[2,3,3]", "\"x\":0", "rope_scaling.mrope_section is no list" },
    { "[2,3,3]", "[2,3]", "no list of 3" },
    { "[2,3,3]", "[2,3,3,0]", "no list of 3" },
    { "[2,3,3]", "[2,3,4]", "2, 3, 4, the sum should be half of a head's 16" },
    { "[2,3,3]", "[2,-3,9]", "mrope_section[1] is -3" },
    { "[2,3,3]", "[2,3.5,2.5]", "mrope_section[1] is 3.5" },
    { "\"vision_config\":{", "\"vision\":{", "no vision_config" },
    { "\"depth\":3", "\"depth\":0", "vision_config.depth is 0" },
    { "\"depth\":3", "\"depth\":2", "fullatt_block_indexes[1] is 2" },
    { "\"depth\":3", "\"depth\":257", "vision_config.depth is 257" },
    { "\"depth\":3,\"hidden_act\":\"silu\"", "\"depth\":3,\"hidden_act\":\"quick_gelu\"",
      "vision_config.hidden_act is \"quick_gelu\"" },
    { "\"hidden_size\":32", "\"hidden_size\":33", "33 in 2 heads" },
    { "\"hidden_size\":32", "\"hidden_size\":36", "multiple of 4" },
    { "\"hidden_size\":32", "\"hidden_size\":2048", "a vision head of 1024 numbers" },
    { "\"in_chans\":3", "\"in_chans\":4", "in_chans is 4" },
    { "\"in_chans\":3", "\"in_channels\":1", "in_channels is 1" },
    { "\"out_hidden_size\":64", "\"out_hidden_size\":65", "out_hidden_size is 65" },
    { "\"patch_size\":14", "\"patch_size\":0", "patch_size is 0" },
    { "\"patch_size\":14", "\"patch_size\":65", "patch_size is 65" },
    { "\"patch_size\":14", "\"patch_size\":16", "a merged cell's 32 pixels" },
    { "\"spatial_merge_size\":2", "\"spatial_merge_size\":9", "spatial_merge_size is 9" },
    { "\"window_size\":112", "\"window_size\":14", "window_size 14 is no multiple" },
    { "\"window_size\":112", "\"window_size\":0", "window_size is 0" },
    { "[0,2]", "[0,3]", "fullatt_block_indexes[1] is 3" },
    { "[0,2]", "7", "fullatt_block_indexes is no list" },
    { "\"temporal_patch_size\":2", "\"temporal_patch_size\":5", "temporal_patch_size is 5" },
    { "\"depth\":3", "\"depth\":3,\"rope_parameters\":{\"rope_theta\":0}",
      "vision_config.rope_parameters.rope_theta is 0" },
    { "\"depth\":3", "\"depth\":3,\"rope_parameters\":{\"rope_type\":\"yarn\"}",
      "vision_config.rope_parameters.rope_type is \"yarn\"" }
};


static void
one_wrong_value_is_named_with_its_path(void **state)
{
    char    text[4096];
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        edit(text, sizeof(text), GOOD, wrong[i].is, wrong[i].becomes);
        fixture_text(dir, "config.json", text);
        fails(wrong[i].says);
    }
}


static void
the_other_files_are_held_to_the_same(void **state)
{
    size_t  i;

    static const struct {
        const char  *file, *text, *says;
    } cases[] = {
        { "generation_config.json", "{\"eos_token_id\":600}", "eos_token_id is 600" },
        { "generation_config.json", "{\"temperature\":-0.5}", "temperature is -0.5" },
        { "generation_config.json", "{\"top_p\":1.5}", "top_p is 1.5" },
        { "generation_config.json", "{\"top_k\":-1}", "top_k is -1" },
        { "generation_config.json", "{\"repetition_penalty\":0}", "repetition_penalty is 0" },
        { "generation_config.json", "[]", "not a JSON object" },
        { "generation_config.json", "{", "not JSON" },
        { "preprocessor_config.json", "{\"min_pixels\":0}", "min_pixels is 0" },
        { "preprocessor_config.json", "{\"min_pixels\":9,\"max_pixels\":8}", "min_pixels 9 is" },
        { "preprocessor_config.json", "{\"size\":{\"longest_edge\":1e10}}", "size.longest_edge" },
        { "preprocessor_config.json", "{\"image_mean\":[1,2]}", "image_mean is no list" },
        { "preprocessor_config.json", "{\"image_std\":[1,0,1]}", "image_std[1] is 0" },
        { "preprocessor_config.json", "{\"patch_size\":16}", "patch_size is 16" },
        { "preprocessor_config.json", "{\"merge_size\":1}", "merge_size is 1" },
        { "preprocessor_config.json", "{\"temporal_patch_size\":1}", "temporal_patch_size is 1" },
        { "preprocessor_config.json", "{\"do_rescale\":false}", "do_rescale is false" },
        { "preprocessor_config.json", "{\"rescale_factor\":1}", "rescale_factor is 1" },
        { "preprocessor_config.json", "{\"resample\":2}", "resample is 2" },
        { "video_preprocessor_config.json", "{\"temporal_patch_size\":4}",
          "temporal_patch_size is 4" },
        { "video_preprocessor_config.json", "{\"image_mean\":[0.5,0.5,0.5]}",
          "image_mean or image_std is not that of pictures" },
        { "video_preprocessor_config.json", "{\"size\":{\"longest_edge\":1e10}}",
          "size.longest_edge" },
        { "video_preprocessor_config.json", "[]", "not a JSON object" },
        { "processor_config.json", "{\"image_processor\":{\"patch_size\":16}}",
          "image_processor.patch_size is 16" },
        { "processor_config.json", "{\"image_processor\":{\"size\":{\"longest_edge\":0}}}",
          "image_processor.size.longest_edge is 0" },
        { "processor_config.json", "{\"image_processor\":{\"do_resize\":false}}",
          "image_processor.do_resize is false" },
        { "processor_config.json", "[]", "not a JSON object" }
    };

    (void) state;

    fixture_text(dir, "config.json", GOOD);

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        fixture_text(dir, "generation_config.json", "{}");
        fixture_text(dir, "preprocessor_config.json", "{}");
        fixture_text(dir, "processor_config.json", "{}");
        fixture_text(dir, "video_preprocessor_config.json", "{}");
        fixture_text(dir, cases[i].file, cases[i].text);
        fails(cases[i].says);
        fails(cases[i].file);
    }
}


static void
a_config_cut_at_any_byte_is_refused(void **state)
{
    size_t  n;

    (void) state;

    for (n = 0; n < sizeof(GOOD) - 1; n++) {
        fixture_write(dir, "config.json", GOOD, n);
        fails("config.json");
    }
}


static void
a_missing_config_is_reported(void **state)
{
    (void) state;

    fails("config.json: No such file");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(every_published_size_is_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configurations_saved_by_newer_transformers_say_the_same,
                                        set_up, tear_down),
        cmocka_unit_test(a_directory_saved_by_transformers_is_read),
        cmocka_unit_test_setup_teardown(settings_that_may_be_absent_have_the_classes_defaults,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_head_may_be_wider_than_its_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            eos_is_what_generation_config_says_else_config_else_the_familys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            eos_defaults_to_the_familys_ids_where_the_vocabulary_has_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(
            keys_that_generation_config_lacks_have_the_default_of_transformers,
            set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_base_of_the_vision_encoders_angles_is_read, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            pixel_settings_come_from_the_preprocessor_or_are_the_familys, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pixel_settings_in_the_processors_own_file_come_first,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(bounds_of_video_are_in_the_file_that_transformers_reads,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(one_wrong_value_is_named_with_its_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_other_files_are_held_to_the_same, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_config_cut_at_any_byte_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_missing_config_is_reported, set_up, tear_down)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
