/* The text of /generate-lite, against Python's for 10,000 texts (t/fixtures/lite/make.py). */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "api/lite.h"
#include "base/sha256.h"
#include "base/utf8.h"

#define RESULTS  "t/fixtures/lite/texts.txt"
#define TEXT     2048                  /* bytes: 250 characters, and a prompt */


static uint32_t
next(uint64_t *numbers, uint32_t n)
{
    *numbers = *numbers * 6364136223846793005u + 1442695040888963407u;

    return (uint32_t) ((*numbers >> 33) % n);
}


static uint32_t
character(uint64_t *numbers, int kind)
{
    uint32_t  code, row;

    static const uint32_t  special[] = {
        0x0a, 0x09, 0x0d, 0x20, 0x22, 0x27, 0x7f, 0x85, 0xa0, 0xad, 0x34f, 0x61c, 0x200b, 0x200c,
        0x200d, 0x2028, 0x2029, 0x3000, 0xfeff, 0xe000
    };
    static const uint32_t  ranges[][2] = {
        { 0x20, 0x7e }, { 0x20, 0x7e }, { 0x61, 0x7a }, { 0x900, 0xd7f }, { 0x1, 0x24ff },
        { 0x600, 0x6ff }, { 0x2500, 0xd7ff }, { 0xe000, 0xffff }, { 0x10000, 0x10e7f },
        { 0x1f300, 0x1f6d0 }, { 0xe0000, 0xe01ef }
    };

    if (next(numbers, 6) == 0) {
        code = special[next(numbers, kind != 3 ? 20 : 8)];

    } else {
        row = next(numbers, kind != 3 ? 11 : 3);
        code = ranges[row][0] + next(numbers, ranges[row][1] - ranges[row][0] + 1);
    }

    return code == 0xcf3 || code == 0xece ? 'x' : code;
}


static size_t
encode(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char) c;
        return 1;
    }

    if (c < 0x800) {
        out[0] = (char) (0xc0 | c >> 6);
        out[1] = (char) (0x80 | (c & 0x3f));
        return 2;
    }

    if (c < 0x10000) {
        out[0] = (char) (0xe0 | c >> 12);
        out[1] = (char) (0x80 | (c >> 6 & 0x3f));
        out[2] = (char) (0x80 | (c & 0x3f));
        return 3;
    }

    out[0] = (char) (0xf0 | c >> 18);
    out[1] = (char) (0x80 | (c >> 12 & 0x3f));
    out[2] = (char) (0x80 | (c >> 6 & 0x3f));
    out[3] = (char) (0x80 | (c & 0x3f));

    return 4;
}


static const char *const  prompts[] = {
    "Tell a story", "Say it, TRANSLATEd: hello", "translate to Hindi: good day", "Translate!"
};


static void
add_text(vlm_sha256_t *sum, uint64_t *numbers, int kind)
{
    char      text[TEXT], *shown;
    size_t    len, bytes;
    uint32_t  n;

    bytes = kind == 2 ? (size_t) sprintf(text, "%s ", prompts[kind]) : 0;

    for (n = next(numbers, 250); n > 0; n--) {
        bytes += encode(text + bytes, character(numbers, kind));
    }

    shown = vlm_lite_text(text, bytes, prompts[kind], &len);
    assert_non_null(shown);
    assert_int_equal(vlm_utf8_whole(shown, len), len);

    vlm_sha256_add(sum, text, bytes);
    vlm_sha256_add(sum, "", 1);
    vlm_sha256_add(sum, shown, len + 1);
    free(shown);
}


static void
ten_thousand_texts_are_shown_as_python_shows_them(void **state)
{
    int           i;
    char          hex[65], line[64];
    FILE         *f;
    size_t        hundred, n;
    uint8_t       out[32];
    uint64_t      numbers = 3;
    vlm_sha256_t  sum;

    (void) state;

    f = fopen(RESULTS, "r");
    assert_non_null(f);

    for (hundred = 0; hundred < 100; hundred++) {
        vlm_sha256_start(&sum);

        for (i = 0; i < 100; i++) {
            add_text(&sum, &numbers, i % 4);
        }

        vlm_sha256_end(&sum, out);

        for (n = 0; n < 16; n++) {
            sprintf(hex + 2 * n, "%02x", out[n]);
        }

        assert_non_null(fgets(line, sizeof(line), f));
        line[strcspn(line, "\n")] = '\0';
        assert_string_equal(hex, line);
    }

    fclose(f);
}


static void
expect(const char *text, size_t bytes, const char *prompt, const char *expected)
{
    char    *shown;
    size_t   len;

    shown = vlm_lite_text(text, bytes, prompt, &len);
    assert_non_null(shown);
    assert_string_equal(shown, expected);
    assert_int_equal(len, strlen(expected));
    free(shown);
}


static void
examples(void **state)
{
    size_t  i;

    static const struct {
        const char  *text, *prompt, *shown;
    } one[] = {
        { "", "", "" },
        { "a\nb", "Say", "ab" },
        { "  a \t b\xc2\xa0" "c  ", "Say", "a bc" },
        { "Translate: hi", "Translate: hi", "" },
        { " नमस्ते दोस्त, आप कैसे? a b c", "Translate to Hindi: x", "नमस्ते दोस्त आप कैसे" },
        { "a 'short' \"and here is a longer one\"", "tRANSLATE", "and here is a longer one" },
        { "a'b", "translate", "a'b" }
    };

    (void) state;

    for (i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
        expect(one[i].text, strlen(one[i].text), one[i].prompt, one[i].shown);
    }
}


static void
bytes_that_are_not_utf8_are_left_out(void **state)
{
    (void) state;

    expect("a\xff\xe2\x82", 4, "Say", "a");
    expect("\xe0\xa4", 2, "translate", "");
    expect("a\0b", 3, "Say", "ab");
}


static void
a_translation_without_spaces_is_cut_in_the_middle(void **state)
{
    char    text[2 * 151], expected[2 * 150 + 4];
    size_t  i;

    (void) state;

    for (i = 0; i < sizeof(text); i += 2) {
        memcpy(text + i, "é", 2);
    }

    memcpy(expected, text, 2 * 150);
    memcpy(expected + 2 * 150, "...", 4);

    expect(text, sizeof(text), "translate", expected);

    expected[2 * 150] = '\0';
    expect(text, 2 * 150, "translate", expected);
}


static void
an_answer_has_its_parameters(void **state)
{
    vlm_json_out_t  w;

    static vlm_lite_t  lite = {
        .text = { [VLM_LITE_PROMPT] = "Say it", [VLM_LITE_BASE_MODEL] = "gpt2" },
        .number = { [VLM_LITE_MAX_NEW_TOKENS] = 50, [VLM_LITE_TEMPERATURE] = 0.7 }
    };

    static const char  *texts[][2] = { { " so  be it", "so be it" }, { "\n\t", "Say it" } };

    (void) state;

    for (size_t i = 0; i < 2; i++) {
        char  expected[256];

        (void) snprintf(expected, sizeof(expected), "{\"prompt\":\"Say it\","
                        "\"generated_text\":\"%s\",\"adapter_path\":null,"
                        "\"parameters\":{\"max_new_tokens\":50,\"temperature\":0.7,"
                        "\"base_model\":\"gpt2\"}}\n", texts[i][1]);

        vlm_json_init(&w, 4096);
        vlm_lite_put(&w, &lite, texts[i][0], strlen(texts[i][0]));
        assert_int_equal(vlm_json_done(&w), 0);
        assert_int_equal(w.len, strlen(expected));
        assert_memory_equal(w.data, expected, w.len);
        vlm_json_release(&w);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ten_thousand_texts_are_shown_as_python_shows_them),
        cmocka_unit_test(examples),
        cmocka_unit_test(bytes_that_are_not_utf8_are_left_out),
        cmocka_unit_test(a_translation_without_spaces_is_cut_in_the_middle),
        cmocka_unit_test(an_answer_has_its_parameters)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
