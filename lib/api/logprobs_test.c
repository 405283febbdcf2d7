/* Log-probabilities as clients of OpenAI read them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/logprobs.h"


/* A vocabulary of four: a word, both halves of a character, a zero. */
static const char *
piece(const void *data, uint32_t id, size_t *bytes)
{
    static const struct {
        const char  *text;
        size_t       bytes;
    } words[] = { { " box", 4 }, { "\xc3", 1 }, { "\xa9", 1 }, { "", 1 } };

    assert_string_equal(data, "data");

    if (id >= 4) {
        return NULL;
    }

    *bytes = words[id].bytes;
    return words[id].text;
}


static const vlm_pieces_t  pieces = { piece, "data" };


static void
check(vlm_json_out_t *w, const char *text)
{
    vlm_json_shut(w, '}');
    assert_int_equal(vlm_json_done(w), 0);
    vlm_json_put_raw(w, "", 1);
    assert_int_equal(w->data[w->len - 2], '\n');
    w->data[w->len - 2] = '\0';
    assert_string_equal(w->data, text);
    vlm_json_release(w);
}


static void
objects_have_text_and_bytes(void **state)
{
    vlm_json_out_t  w;
    vlm_token_t     t[2] = { { .picked = { 0, -0.5f } },
                             { .picked = { 1, -1.0f }, .n_top = 1, .top = { { 3, -2.0f } } } };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_logprobs_objects(&w, "content", t, 2, 0, &pieces);
    check(&w, "{\"content\":[{\"token\":\" box\",\"logprob\":-0.5,\"bytes\":[32,98,111,120]},"
              "{\"token\":\"\\ufffd\",\"logprob\":-1.0,\"bytes\":[195],"
              "\"top_logprobs\":[{\"token\":\"\\u0000\",\"logprob\":-2.0,\"bytes\":[0]}]}]}");

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_logprobs_objects(&w, "content", t, 1, 1, &pieces);
    check(&w, "{\"content\":[{\"token\":\" box\",\"logprob\":-0.5,\"bytes\":[32,98,111,120],"
              "\"top_logprobs\":[]}]}");
}


static void
arrays_name_parts_of_characters(void **state)
{
    size_t          offset = 7;
    vlm_json_out_t  w;
    vlm_token_t     t[4] = { { .picked = { 0, -0.5f }, .n_top = 1, .top = { { 2, -3.0f } } },
                             { .picked = { 1, -1.0f } }, { .picked = { 2, 0.0f } },
                             { .picked = { 3, 0.0f } } };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_logprobs_arrays(&w, t, 4, 1, &offset, &pieces);
    check(&w, "{\"tokens\":[\" box\",\"bytes:\\\\xc3\",\"bytes:\\\\xa9\",\"bytes:\\\\x00\"],"
              "\"token_logprobs\":[-0.5,-1.0,0.0,0.0],"
              "\"top_logprobs\":[{\"bytes:\\\\xa9\":-3.0},{},{},{}],"
              "\"text_offset\":[7,11,12,12]}");

    assert_int_equal(offset, 13);
}


static void
an_id_outside_the_vocabulary_is_empty(void **state)
{
    size_t          offset = 0;
    vlm_json_out_t  w;
    vlm_token_t     t = { .picked = { 9, -0.5f } };

    (void) state;

    vlm_json_init(&w, 4096);
    vlm_json_open(&w, '{');
    vlm_logprobs_arrays(&w, &t, 1, 0, &offset, &pieces);
    check(&w, "{\"tokens\":[\"\"],\"token_logprobs\":[-0.5],\"top_logprobs\":null,"
              "\"text_offset\":[0]}");

    assert_int_equal(offset, 0);
}


static const char *
long_piece(const void *data, uint32_t id, size_t *bytes)
{
    (void) id;

    *bytes = 500;
    return data;
}


static void
a_long_token_is_cut(void **state)
{
    char            text[500];
    size_t          offset = 0;
    vlm_token_t     t = { .picked = { 0, 0.0f } };
    vlm_pieces_t    one = { long_piece, text };
    vlm_json_out_t  w;

    (void) state;

    memset(text, 0x80, sizeof(text));

    vlm_json_init(&w, 65536);
    vlm_json_open(&w, '{');
    vlm_logprobs_arrays(&w, &t, 1, 0, &offset, &one);
    vlm_json_shut(&w, '}');

    assert_int_equal(vlm_json_done(&w), 0);
    assert_int_equal(strcspn(w.data, "]") - strcspn(w.data, ":") - strlen(":[\"\""),
                     strlen("bytes:") + 160 * strlen("\\\\x80"));
    vlm_json_release(&w);
}


/* A token of whole characters is text, wherever it is cut. */
static void
a_long_token_of_characters_is_cut_between_two(void **state)
{
    char            text[500], want[6 * 160 / 3 + 32];
    size_t          i, offset = 0;
    vlm_token_t     t = { .picked = { 0, 0.0f } };
    vlm_pieces_t    one = { long_piece, text };
    vlm_json_out_t  w;

    (void) state;

    for (i = 0; i < 498; i += 3) {
        memcpy(text + i, "\xe2\x82\xac", 3);
    }

    memcpy(text + i, "ab", 2);

    strcpy(want, "{\"tokens\":[\"");

    for (i = 0; i < 160 / 3; i++) {
        strcat(want, "\\u20ac");
    }

    strcat(want, "\"],");

    vlm_json_init(&w, 65536);
    vlm_json_open(&w, '{');
    vlm_logprobs_arrays(&w, &t, 1, 0, &offset, &one);
    vlm_json_shut(&w, '}');

    assert_int_equal(vlm_json_done(&w), 0);
    assert_memory_equal(w.data, want, strlen(want));
    assert_int_equal(offset, 498 / 3 + 2);
    vlm_json_release(&w);
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_have_text_and_bytes),
        cmocka_unit_test(arrays_name_parts_of_characters),
        cmocka_unit_test(an_id_outside_the_vocabulary_is_empty),
        cmocka_unit_test(a_long_token_is_cut),
        cmocka_unit_test(a_long_token_of_characters_is_cut_between_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
