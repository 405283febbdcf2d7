/* The fields that control an answer: what is read, and what is refused by which name and code. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/fields.h"
#include "robobrain/task.h"

#define BRAIN     VLM_OF_BRAIN
#define CHAT      VLM_OF_CHAT
#define TEXT      VLM_OF_TEXT
#define OLLAMA    VLM_OF_OLLAMA
#define GENERATE  VLM_OF_GENERATE
#define VECTORS   VLM_OF_EMBEDDINGS
#define EMBED     VLM_OF_EMBED

static vlm_fields_t  f;
static vlm_err_t     err;


static int
read_request(const char *text, unsigned of)
{
    int          rc;
    vlm_json_t  *j;

    static const vlm_fields_model_t  model = { "toy", 512, 64, 0 };

    vlm_fields_free(&f);
    memset(&f, 0, sizeof(f));
    memset(&err, 0, sizeof(err));
    vlm_fields_init(&f);

    j = vlm_json_parse(text, strlen(text), &err);

    if (j == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    rc = vlm_fields_read(&f, j, of, &model, &err);
    vlm_json_free(j);

    return rc;
}


static void
numbers_go_to_one_place_whatever_their_name(void **state)
{
    size_t  i;

    static const struct {
        const char   *text;
        unsigned      of;
        vlm_field_e   target;
        double        value;
    } cases[] = {
        { "{\"temperature\":0.5}", BRAIN, VLM_FIELD_TEMPERATURE, 0.5 },
        { "{\"options\":{\"temperature\":99}}", OLLAMA, VLM_FIELD_TEMPERATURE, 99 },
        { "{\"repetition_penalty\":0.1}", CHAT, VLM_FIELD_REPETITION, 0.1 },
        { "{\"options\":{\"repeat_penalty\":2}}", GENERATE, VLM_FIELD_REPETITION, 2 },
        { "{\"max_tokens\":-1}", TEXT, VLM_FIELD_MAX_TOKENS, -1 },
        { "{\"options\":{\"num_predict\":-2}}", OLLAMA, VLM_FIELD_MAX_TOKENS, -2 },
        { "{\"max_completion_tokens\":7}", CHAT, VLM_FIELD_MAX_COMPLETION, 7 },
        { "{\"logprobs\":20}", TEXT, VLM_FIELD_TOP_LOGPROBS, 20 },
        { "{\"logprobs\":true}", CHAT, VLM_FIELD_LOGPROBS, 1 },
        { "{\"stream\":true,\"stream_options\":{\"include_usage\":true}}", CHAT,
          VLM_FIELD_INCLUDE, 1 },
        { "{\"stream\":false}", OLLAMA, VLM_FIELD_STREAM, 0 },
        { "{\"think\":false}", OLLAMA, VLM_FIELD_THINK, 0 },
        { "{\"keep_alive\":\"0m\"}", OLLAMA, VLM_FIELD_UNLOADS, 1 },
        { "{\"keep_alive\":\"10m\"}", OLLAMA, VLM_FIELD_UNLOADS, 0 },
        { "{\"keep_alive\":-1}", OLLAMA, VLM_FIELD_UNLOADS, 0 },
        { "{\"encoding_format\":\"base64\"}", VECTORS, VLM_FIELD_BASE64, 1 },
        { "{\"dimensions\":64,\"encoding_format\":\"float\"}", VECTORS, VLM_FIELD_BASE64, 0 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (read_request(cases[i].text, cases[i].of) != 0) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }

        assert_true(f.number[cases[i].target] == cases[i].value);
    }
}


static void
a_field_of_another_interface_and_null_are_no_fields(void **state)
{
    size_t  i;

    (void) state;

    assert_int_equal(read_request("{\"top_k\":-1,\"stop\":7,\"temperature\":null,"
                                  "\"later\":[1]}", EMBED), 0);

    for (i = VLM_FIELD_TEMPERATURE; i < VLM_FIELD_NUMBERS; i++) {
        assert_true(isnan(f.number[i]));
    }

    assert_int_equal(f.n_stop, 0);
    assert_int_equal(f.n_bias, 0);
    assert_int_equal(f.seed, 0);
    assert_int_equal(f.task, VLM_GENERAL);
    assert_null(f.constraint.form);
}


static void
texts_seeds_biases_tasks_and_formats_are_kept(void **state)
{
    (void) state;

    assert_int_equal(read_request("{\"stop\":[\"a\",\"\",\"bc\"],\"seed\":0,\"task\":\"pointing\","
                                  "\"logit_bias\":{\"7\":1,\"511\":-100,\"07\":2}}", CHAT), 0);
    assert_int_equal(f.n_stop, 2);
    assert_string_equal(f.stop[1], "bc");
    assert_true(f.seed == UINT64_MAX);
    assert_int_equal(f.task, VLM_POINTING);
    assert_int_equal(f.n_bias, 2);
    assert_int_equal(f.bias[0].id, 7);
    assert_true(f.bias[0].bias == 2);
    assert_int_equal(f.bias[1].id, 511);

    assert_int_equal(read_request("{\"seed\":-1,\"stop\":\"x\"}", CHAT), 0);
    assert_int_equal(f.seed, 0);
    assert_int_equal(f.n_stop, 1);

    assert_int_equal(read_request("{\"seed\":-9223372036854775808}", CHAT), 0);
    assert_true(f.seed == (uint64_t) INT64_MIN);

    assert_int_equal(read_request("{\"format\":\"json\"}", OLLAMA), 0);
    assert_non_null(f.constraint.form);
    assert_int_equal(read_request("{\"format\":\"\"}", OLLAMA), 0);
    assert_null(f.constraint.form);
}


static void
wrong_values_are_refused_by_their_path(void **state)
{
    size_t  i;

    static const struct {
        const char  *text;
        unsigned     of;
        const char  *param, *code, *sentence;
    } cases[] = {
        { "{\"temperature\":2.1}", CHAT, "temperature", NULL,
          "temperature is not a number from 0 to 2" },
        { "{\"top_k\":1.5}", CHAT, "top_k", NULL,
          "top_k is not a whole number from -1 to 1000" },
        { "{\"max_tokens\":0}", TEXT, "max_tokens", NULL,
          "max_tokens is not a whole number from 1 to 2147483647, or -1 for no limit" },
        { "{\"options\":{\"top_p\":\"1\"}}", OLLAMA, "options.top_p", NULL,
          "top_p is not a number from 0 to 1" },
        { "{\"stream\":1}", CHAT, "stream", NULL, "stream is not a boolean" },
        { "{\"options\":[]}", EMBED, "options", NULL, "options is not an object" },
        { "{\"messages\":\"\"}", OLLAMA, "messages", NULL, "messages is not an array" },
        { "{\"suffix\":7}", GENERATE, "suffix", NULL, "suffix is not a string" },
        { "{\"suffix\":\"x\"}", TEXT, "suffix", "unsupported_parameter",
          "suffix is not supported by this server" },
        { "{\"n\":2}", CHAT, "n", "unsupported_value",
          "n can only be 1: a request has one answer" },
        { "{\"n\":\"1\"}", CHAT, "n", NULL, "n can only be 1: a request has one answer" },
        { "{\"stop\":[7]}", CHAT, "stop", NULL,
          "stop is neither a string nor an array of strings" },
        { "{\"seed\":1.5}", CHAT, "seed", NULL,
          "seed is not a whole number from -9223372036854775808 to 9223372036854775807" },
        { "{\"logit_bias\":{\"512\":1}}", CHAT, "logit_bias.512", NULL,
          "logit_bias has a key that is no token: they are 0 to 511" },
        { "{\"logit_bias\":{\"\":1}}", CHAT, "logit_bias.", NULL,
          "logit_bias has a key that is no token: they are 0 to 511" },
        { "{\"logit_bias\":{\"99999999999999999999999\":1}}", CHAT,
          "logit_bias.99999999999999999999999", NULL,
          "logit_bias has a key that is no token: they are 0 to 511" },
        { "{\"logit_bias\":{\"7\":101}}", CHAT, "logit_bias.7", NULL,
          "logit_bias of token 7 is not a number from -100 to 100" },
        { "{\"stream_options\":{\"include_usage\":true}}", CHAT, "stream_options", NULL,
          "stream_options is for requests with \"stream\": true" },
        { "{\"format\":\"xml\"}", BRAIN, "format", NULL,
          "invalid format, expected \"json\" or a JSON schema" },
        { "{\"think\":\"high\"}", OLLAMA, "think", NULL,
          "\"toy\" does not support thinking" },
        { "{\"think\":7}", OLLAMA, "think", NULL, "think is neither a boolean nor a string" },
        { "{\"task\":\"cook\"}", CHAT, "task", NULL, "task is neither general, grounding, "
          "affordance, trajectory nor pointing" },
        { "{\"keep_alive\":[]}", OLLAMA, "keep_alive", NULL,
          "keep_alive is neither a number nor a string" },
        { "{\"encoding_format\":\"int8\"}", VECTORS, "encoding_format", NULL,
          "encoding_format is neither \"float\" nor \"base64\"" },
        { "{\"dimensions\":32}", EMBED, "dimensions", "unsupported_value",
          "dimensions can only be 64: this model's vectors are not shortened" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(read_request(cases[i].text, cases[i].of), -1);
        assert_int_equal(err.code, VLM_EINPUT);
        assert_string_equal(err.text, cases[i].sentence);
        assert_string_equal(f.param, cases[i].param);

        if (cases[i].code == NULL) {
            assert_null(f.code);
        } else {
            assert_string_equal(f.code, cases[i].code);
        }
    }
}


/* As many as there may be are read, and one more is refused with both numbers. */
static void
stop_strings_and_biases_have_limits(void **state)
{
    size_t  n, len, i;
    char    text[32768];

    (void) state;

    for (n = VLM_FIELDS_STOPS; n <= VLM_FIELDS_STOPS + 1; n++) {
        strcpy(text, "{\"stop\":[\"a\"");

        for (i = 1; i < n; i++) {
            strcat(text, ",\"a\"");
        }

        strcat(text, "]}");
        assert_int_equal(read_request(text, CHAT), n == VLM_FIELDS_STOPS ? 0 : -1);
    }

    assert_string_equal(err.text, "stop has more than 16 strings");

    for (len = VLM_FIELDS_STOP; len <= VLM_FIELDS_STOP + 1; len++) {
        strcpy(text, "{\"stop\":\"");
        memset(text + 9, 'a', len);
        strcpy(text + 9 + len, "\"}");
        assert_int_equal(read_request(text, CHAT), len == VLM_FIELDS_STOP ? 0 : -1);
    }

    assert_string_equal(err.text, "stop has a string of 1025 bytes, it may have 1024");

    for (n = VLM_MAX_BIAS; n <= VLM_MAX_BIAS + 1; n++) {
        strcpy(text, "{\"logit_bias\":{\"7\":0");
        len = strlen(text);

        for (i = 1; i < n; i++) {
            memcpy(text + len, ",\"7\":0", 6);
            len += 6;
        }

        strcpy(text + len, "}}");
        assert_int_equal(read_request(text, CHAT), n == VLM_MAX_BIAS ? 0 : -1);
    }

    assert_string_equal(err.text, "logit_bias has 1025 tokens, it may have 1024");

    /* a long key is cut where a character ends */

    assert_int_equal(read_request("{\"logit_bias\":{\"\303\274\303\274\303\274\303\274\303\274\303"
                                  "\274\303\274\303\274\303\274\303\274\303\274\303\274\303\274\303"
                                  "\274\303\274\303\274\303\274\303\274\303\274\303\274\303\274\303"
                                  "\274\303\274\303\274\303\274\303\274\303\274\":1}}", CHAT), -1);
    assert_true(strlen(f.param) < sizeof(f.param));
    assert_int_equal((unsigned char) f.param[strlen(f.param) - 1], 0xbc);

    vlm_fields_free(&f);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(numbers_go_to_one_place_whatever_their_name),
        cmocka_unit_test(a_field_of_another_interface_and_null_are_no_fields),
        cmocka_unit_test(texts_seeds_biases_tasks_and_formats_are_kept),
        cmocka_unit_test(wrong_values_are_refused_by_their_path),
        cmocka_unit_test(stop_strings_and_biases_have_limits)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
