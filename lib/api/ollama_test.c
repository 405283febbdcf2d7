/* A model as Ollama's clients read it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "api/ollama.h"

static const vlm_facts_t  facts = {
    .architecture = "qwen2_5_vl", .turn = "<|s|>", .turn_end = "<|e|>",
    .parameters = 3750000000, .layers = 36, .heads = 16, .kv_heads = 2, .hidden = 2048,
    .mlp = 11008, .vocab = 151936, .vision_layers = 32, .patch = 14
};

static const vlm_ollama_model_t  model = {
    .facts = &facts, .name = "brain3", .name_bytes = 5,
    .directory = "RoboBrain/", .directory_bytes = 9,
    .format = "safetensors", .weights = "int8", .bytes = 4000000000, .created = 1764283520,
    .context = 4096, .max_tokens = 768, .thinks = 1, .calls = 1
};


/* The document that was written, which the caller frees. */
static vlm_json_t *
done(vlm_json_out_t *w)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_json_t  *j;

    assert_int_equal(vlm_json_done(w), 0);
    j = vlm_json_parse(w->data, w->len, &err);
    assert_non_null(j);
    vlm_json_release(w);

    return j;
}


static vlm_json_t *
tag(const vlm_ollama_model_t *m, const char *name, const char *adapter)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, 65536);
    vlm_ollama_put_tag(&w, m, name, strlen(name), adapter);

    return done(&w);
}


static const char *
text(const vlm_json_t *j, const char *key)
{
    return vlm_json_text(vlm_json_get(j, key));
}


static void
a_tag_names_the_model_and_its_size(void **state)
{
    vlm_json_t        *j;
    const vlm_json_t  *details;

    (void) state;

    j = tag(&model, "brain", "");
    details = vlm_json_get(j, "details");

    assert_string_equal(text(j, "name"), "brain:latest");
    assert_string_equal(text(j, "model"), "brain:latest");
    assert_string_equal(text(j, "modified_at"), "2025-11-27T22:45:20.000Z");
    assert_true(vlm_json_number(vlm_json_get(j, "size"), 0) == 4e9);
    assert_string_equal(text(details, "parent_model"), "");
    assert_string_equal(text(details, "family"), "qwen25vl");
    assert_string_equal(vlm_json_text(vlm_json_first(vlm_json_get(details, "families"))),
                        "qwen25vl");
    assert_string_equal(text(details, "parameter_size"), "3.8B");
    assert_string_equal(text(details, "quantization_level"), "INT8");
    vlm_json_free(j);

    j = tag(&model, "grasp:v1", "grasp-dir");
    assert_string_equal(text(j, "name"), "grasp:v1");
    assert_string_equal(text(vlm_json_get(j, "details"), "parent_model"), "brain");
    vlm_json_free(j);
}


static void
a_digest_tells_checkpoints_and_adapters_apart(void **state)
{
    size_t              i, k;
    vlm_json_t         *j[5];
    vlm_facts_t         more = facts;
    vlm_ollama_model_t  later = model, other = model, larger = model;

    (void) state;

    later.created++;
    other.directory = "FactBrain";
    more.parameters++;
    larger.facts = &more;

    j[0] = tag(&model, "a", "");
    j[1] = tag(&model, "a", "dir");
    j[2] = tag(&later, "a", "");
    j[3] = tag(&other, "a", "");
    j[4] = tag(&larger, "a", "");

    for (i = 0; i < 5; i++) {
        assert_int_equal(strlen(text(j[i], "digest")), 64);
        assert_int_equal(strspn(text(j[i], "digest"), "0123456789abcdef"), 64);

        for (k = 0; k < i; k++) {
            assert_string_not_equal(text(j[i], "digest"), text(j[k], "digest"));
        }
    }

    vlm_json_free(j[4]);
    j[4] = tag(&model, "b", "");
    assert_string_equal(text(j[4], "digest"), text(j[0], "digest"));

    for (i = 0; i < 5; i++) {
        vlm_json_free(j[i]);
    }
}


static void
a_loaded_model_stays_for_a_hundred_years(void **state)
{
    vlm_json_t      *j;
    vlm_json_out_t   w;

    (void) state;

    vlm_json_init(&w, 65536);
    vlm_ollama_put_loaded(&w, &model, 6000000000, 5000000000, 1764283520);
    j = done(&w);

    assert_string_equal(text(j, "name"), "brain:latest");
    assert_string_equal(text(j, "expires_at"), "2125-11-03T22:45:20.000Z");
    assert_true(vlm_json_number(vlm_json_get(j, "size"), 0) == 6e9);
    assert_true(vlm_json_number(vlm_json_get(j, "size_vram"), 0) == 5e9);
    assert_true(vlm_json_number(vlm_json_get(j, "context_length"), 0) == 4096);
    vlm_json_free(j);
}


static void
a_time_has_four_digits_of_a_year_or_is_null(void **state)
{
    size_t           i;
    vlm_json_t      *j;
    vlm_json_out_t   w;

    static const struct {
        time_t       sec;
        const char  *text;
    } times[] = {
        { 0, "1970-01-01T00:00:00.007Z" },
        { -62167219200, "0000-01-01T00:00:00.007Z" },
        { 253402300799, "9999-12-31T23:59:59.007Z" },
        { 253402300800, NULL },
        { -62167219201, NULL },
        { INT64_MAX, NULL },
        { INT64_MIN, NULL }
    };

    (void) state;

    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        vlm_json_init(&w, 4096);
        vlm_json_open(&w, '{');
        vlm_ollama_add_time(&w, "t", times[i].sec, 7);
        vlm_json_shut(&w, '}');
        j = done(&w);

        if (times[i].text != NULL) {
            assert_string_equal(text(j, "t"), times[i].text);

        } else {
            assert_true(vlm_json_is_null(vlm_json_get(j, "t")));
        }

        vlm_json_free(j);
    }
}


static void
show_has_the_template_and_what_the_model_can(void **state)
{
    vlm_json_t          *j;
    vlm_facts_t          plain = facts;
    vlm_json_out_t       w;
    const vlm_json_t    *info;
    vlm_ollama_model_t   m = model;

    (void) state;

    vlm_json_init(&w, 65536);
    vlm_ollama_show(&w, &model, 0);
    j = done(&w);
    info = vlm_json_get(j, "model_info");

    assert_string_equal(text(j, "modelfile"), "FROM RoboBrain\n");
    assert_non_null(strstr(text(j, "parameters"), "num_ctx                        4096\n"));
    assert_string_equal(text(j, "template"), "{{- range .Messages }}<|s|>{{ .Role }}\n"
                        "{{ .Content }}<|e|>\n{{ end }}<|s|>assistant\n");
    assert_int_equal(vlm_json_count(vlm_json_get(j, "capabilities")), 4);
    assert_string_equal(text(info, "general.architecture"), "qwen25vl");
    assert_true(vlm_json_number(vlm_json_get(info, "qwen25vl.block_count"), 0) == 36);
    assert_true(vlm_json_number(vlm_json_get(info, "qwen25vl.context_length"), 0) == 4096);
    vlm_json_free(j);

    plain.turn = NULL;
    plain.vision_layers = 0;
    plain.parameters = 6910000;
    m.facts = &plain;
    m.thinks = 0;
    m.calls = 0;

    vlm_json_init(&w, 65536);
    vlm_ollama_show(&w, &m, 1);
    j = done(&w);

    assert_string_equal(text(j, "template"), "{{ .Prompt }}");
    assert_int_equal(vlm_json_count(vlm_json_get(j, "capabilities")), 1);
    assert_string_equal(text(vlm_json_get(j, "details"), "parent_model"), "brain");
    assert_string_equal(text(vlm_json_get(j, "details"), "parameter_size"), "6.91M");
    vlm_json_free(j);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_names_the_model_and_its_size),
        cmocka_unit_test(a_digest_tells_checkpoints_and_adapters_apart),
        cmocka_unit_test(a_loaded_model_stays_for_a_hundred_years),
        cmocka_unit_test(a_time_has_four_digits_of_a_year_or_is_null),
        cmocka_unit_test(show_has_the_template_and_what_the_model_can),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
