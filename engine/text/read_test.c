/* Tokenizer files: both forms, and every fault that a file can have. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/sample.h"

typedef struct {
    const char  *vocab, *merges, *rest;        /* of vlm_sample() */
    const char  *says;                         /* part of the sentence */
} lie_t;


static vlm_tokenizer_t *
read_sample(const char *vocab, const char *merges, const char *rest)
{
    char             *text;
    vlm_err_t         err = { 0 };
    vlm_tokenizer_t  *t;

    text = vlm_sample(vocab, merges, rest);
    assert_non_null(text);

    t = vlm_sample_read(text, &err);
    if (t == NULL) {
        fail_msg("%s", err.text);
    }

    free(text);

    return t;
}


static void
expect_refused(const lie_t *lie)
{
    char       *text;
    vlm_err_t   err = { 0 };

    text = vlm_sample(lie->vocab, lie->merges, lie->rest);
    assert_non_null(text);

    assert_null(vlm_sample_read(text, &err));
    assert_int_equal(err.code, VLM_EMODEL);

    if (strstr(err.text, lie->says) == NULL || strncmp(err.text, "tokenizer.json: ", 16) != 0) {
        fail_msg("\"%s\" does not say \"%s\"", err.text, lie->says);
    }

    free(text);
}


static void
expect_ids(const vlm_tokenizer_t *t, const char *text, size_t n, ...)
{
    size_t     i;
    va_list    args;
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    assert_int_equal(vlm_encode(t, text, strlen(text), &ids, &err), 0);
    assert_int_equal(ids.n, n);

    va_start(args, n);
    for (i = 0; i < n; i++) {
        assert_int_equal(ids.ids[i], va_arg(args, unsigned));
    }
    va_end(args);

    free(ids.ids);
}


static void
every_byte_is_spelled_by_the_byte_level_alphabet(void **state)
{
    size_t            n;
    unsigned          i;
    const char       *bytes;
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_sample("", "", "");

    for (i = 0; i < 256; i++) {
        assert_int_equal(t->byte_id[i], i);
        bytes = vlm_token_bytes(t, i, &n);
        assert_int_equal(n, 1);
        assert_int_equal((uint8_t) bytes[0], i);
    }

    assert_int_equal(vlm_vocab_size(t), 256);
    vlm_tokenizer_close(t);
}


static void
merges_may_be_texts_or_pairs(void **state)
{
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_sample(", \"he\": 256, \"hel\": 257, \"\u0120h\": 258", "\"h e\", [\"he\", \"l\"]",
                    VLM_SAMPLE_REST);
    expect_ids(t, "help", 2, 257, 'p');
    expect_ids(t, " h", 2, ' ', 'h');
    vlm_tokenizer_close(t);

    t = read_sample(", \"\u0120h\": 258", "[\"\u0120\", \"h\"]", "");
    expect_ids(t, " h", 1, 258);
    vlm_tokenizer_close(t);
}


static void
texts_are_composed_only_if_the_file_asks_for_it(void **state)
{
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_sample("", "", "\"normalizer\": {\"type\": \"NFC\"}");
    expect_ids(t, "e\xcc\x81", 2, 0xc3, 0xa9);
    vlm_tokenizer_close(t);

    t = read_sample("", "", "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
                    "[{\"type\": \"NFC\"}]}");
    expect_ids(t, "e\xcc\x81", 2, 0xc3, 0xa9);
    vlm_tokenizer_close(t);

    t = read_sample("", "", "\"normalizer\": null");
    expect_ids(t, "e\xcc\x81", 3, 'e', 0xcc, 0x81);
    vlm_tokenizer_close(t);
}


static void
the_file_s_pattern_decides_where_tokens_end(void **state)
{
    vlm_tokenizer_t  *t;

    static const char  numbers[] =
        "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
        "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[0-9]{1,2}\"}, "
        "\"behavior\": \"Isolated\", \"invert\": false}, "
        "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"use_regex\": false}]}";
    static const char  byte_level[] =
        "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": false}";

    (void) state;

    t = read_sample(", \"12\": 256", "\"1 2\"", "");        /* the family's: digit by digit */
    expect_ids(t, "12", 2, '1', '2');
    vlm_tokenizer_close(t);

    t = read_sample(", \"12\": 256", "\"1 2\"", numbers);
    expect_ids(t, "1212x", 3, 256, 256, 'x');
    vlm_tokenizer_close(t);

    t = read_sample(", \"12\": 256", "\"1 2\"", byte_level);
    expect_ids(t, "1212", 2, 256, 256);
    vlm_tokenizer_close(t);
}


static void
added_tokens_may_lie_inside_or_beyond_the_vocabulary(void **state)
{
    size_t            n;
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_sample(", \"<eot>\": 256, \"\u4e2d\": 257", "",
                    "\"added_tokens\": ["
                    "{\"id\": 256, \"content\": \"<eot>\", \"special\": true},"
                    "{\"id\": 257, \"content\": \"\u4e2d\"},"
                    "{\"id\": 4000, \"content\": \"a b\", \"special\": false}]");

    assert_int_equal(vlm_special(t, "<eot>"), 256);
    assert_int_equal(vlm_special(t, "\xe4\xb8\xad"), 257);
    assert_int_equal(vlm_special(t, "a b"), 4000);
    assert_true(vlm_token_is_special(t, 256));
    assert_false(vlm_token_is_special(t, 257));
    assert_int_equal(vlm_vocab_size(t), 4001);
    assert_null(vlm_token_bytes(t, 3999, &n));
    assert_int_equal(n, 0);

    expect_ids(t, "<eot>", 5, '<', 'e', 'o', 't', '>');

    vlm_tokenizer_close(t);
}


static void
tokens_outside_the_alphabet_decode_to_themselves_and_are_not_spelled(void **state)
{
    size_t            n;
    const char       *bytes;
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_sample(", \"\u4e2d\": 256, \"\u0144\": 257, \"a b\": 258", "", "");

    bytes = vlm_token_bytes(t, 256, &n);
    assert_int_equal(n, 3);
    assert_memory_equal(bytes, "\xe4\xb8\xad", 3);
    bytes = vlm_token_bytes(t, 258, &n);
    assert_memory_equal(bytes, "a b", 3);
    expect_ids(t, "\xe4\xb8\xad", 3, 0xe4, 0xb8, 0xad);

    vlm_tokenizer_close(t);
}


static void
an_inconsistent_vocabulary_is_refused(void **state)
{
    size_t  i;

    static const lie_t  lies[] = {
        { ", \"xy\": -1", "", "", "the id of \"xy\" is not a whole number below 16777216" },
        { ", \"xy\": 16777216", "", "", "the id of \"xy\"" },
        { ", \"xy\": 1e300", "", "", "the id of \"xy\"" },
        { ", \"xy\": 256.5", "", "", "the id of \"xy\"" },
        { ", \"xy\": \"256\"", "", "", "the id of \"xy\"" },
        { ", \"xy\": null", "", "", "the id of \"xy\"" },
        { ", \"xy\": [1]", "", "", "the id of \"xy\"" },
        { ", \"xy\": 65", "", "", "two tokens with the id 65" },
        { ", \"a\": 256", "", "", "ids 97 and 256 are the same token" }
    };

    (void) state;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        expect_refused(&lies[i]);
    }
}


static void
inconsistent_merges_are_refused(void **state)
{
    size_t  i;

    static const lie_t  lies[] = {
        { "", "\"x y\"", "", "merge 0 of \"x\" and \"y\": the vocabulary does not have all three" },
        { ", \"xy\": 256", "\"x y\", \"xy q\"", "", "merge 1 of \"xy\" and \"q\"" },
        { ", \"xy\": 256", "\"xyz y\"", "", "merge 0 of \"xyz\"" },
        { "", "\"xy\"", "", "merge 0 is \"xy\", expected two tokens and a blank" },
        { "", "\" y\"", "", "halves of 0 and 1 bytes" },
        { "", "\"x \"", "", "halves of 1 and 0 bytes" },
        { ", \"xyz\": 256", "\"x y z\"", "", "merge 0 of \"x\" and \"y z\"" },
        { "", "[\"x\"]", "", "neither text nor a pair" },
        { "", "[\"x\", \"y\", \"z\"]", "", "neither text nor a pair" },
        { "", "[\"x\", 1]", "", "neither text nor a pair" },
        { "", "[]", "", "neither text nor a pair" },
        { "", "7", "", "neither text nor a pair" },
        { "", "{\"a\": \"x\"}", "", "neither text nor a pair" },
        { "", "\"\u4e2d x\"", "", "merge 0 of \"\xe4\xb8\xad\"" }
    };

    (void) state;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        expect_refused(&lies[i]);
    }
}


static void
inconsistent_added_tokens_are_refused(void **state)
{
    size_t  i;

    static const lie_t  lies[] = {
        { "", "", "\"added_tokens\": {}", "added_tokens is not a list" },
        { "", "", "\"added_tokens\": [7]", "id is not a whole number" },
        { "", "", "\"added_tokens\": [{}]", "id is not a whole number" },
        { "", "", "\"added_tokens\": [{\"id\": 16777216, \"content\": \"x\"}]", "below 16777216" },
        { "", "", "\"added_tokens\": [{\"id\": 300}]", "added token 300 has 0 bytes" },
        { "", "", "\"added_tokens\": [{\"id\": 300, \"content\": \"\"}]", "has 0 bytes" },
        { "", "", "\"added_tokens\": [{\"id\": 300, \"content\": 5}]", "has 0 bytes" },
        { "", "", "\"added_tokens\": [{\"id\": 97, \"content\": \"<x>\"}]",
          "added token \"<x>\" has the id 97 of another token" },
        { "", "", "\"added_tokens\": [{\"id\": 300, \"content\": \"x\"}, "
                  "{\"id\": 300, \"content\": \"x\"}]", "id 300 of another" },
        { "", "", "\"added_tokens\": [{\"id\": 97, \"content\": \"a\", \"special\": true}]",
          "special token 97 is also the byte 0x61" },
        { ", \"xy\": 256", "\"x y\"",
          "\"added_tokens\": [{\"id\": 256, \"content\": \"xy\", \"special\": true}]",
          "special token 256 is also what merge 0 makes" }
    };

    (void) state;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        expect_refused(&lies[i]);
    }
}


static void
a_tokenizer_that_is_not_byte_level_bpe_is_refused_and_named(void **state)
{
    size_t  i;

    static const lie_t  others[] = {
        { "", "", "\"normalizer\": {\"type\": \"NFKC\"}", "normalizer is of type \"NFKC\"" },
        { "", "", "\"normalizer\": []", "normalizer is of type \"\"" },
        { "", "", "\"decoder\": {\"type\": \"Metaspace\"}", "decoder is of type \"Metaspace\"" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Whitespace\"}", "of type \"Whitespace\"" },
        { "", "", "\"pre_tokenizer\": 7", "pre_tokenizer is of type \"\"" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Sequence\"}", "has no ByteLevel" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"use_regex\": false}",
          "has no Split" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"ByteLevel\", \"add_prefix_space\": true}",
          "add_prefix_space is on" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Isolated\", "
                  "\"pattern\": {\"Regex\": \"(\"}}", "has no ByteLevel" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Removed\", "
                  "\"pattern\": {\"Regex\": \"x\"}}", "not a Regex that is Isolated" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Split\", \"behavior\": \"Isolated\", "
                  "\"pattern\": {\"String\": \"x\"}}", "not a Regex that is Isolated" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Split\", \"invert\": true}", "invert is on" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
                  "{\"type\": \"ByteLevel\"}, {\"type\": \"ByteLevel\"}]}", "not one Split" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
                  "{\"type\": \"Split\", \"behavior\": \"Isolated\", "
                  "\"pattern\": {\"Regex\": \"x\"}}, {\"type\": \"ByteLevel\"}]}", "splits again" },
        { "", "", "\"pre_tokenizer\": {\"type\": \"Sequence\", \"pretokenizers\": ["
                  "{\"type\": \"Split\", \"behavior\": \"Isolated\", "
                  "\"pattern\": {\"Regex\": \"(\"}}, "
                  "{\"type\": \"ByteLevel\", \"use_regex\": false}]}", "split pattern \"(\"" }
    };

    (void) state;

    for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        expect_refused(&others[i]);
    }
}


static void
a_model_of_another_kind_is_refused_and_named(void **state)
{
    size_t     i;
    vlm_err_t  err;

    static const char *const  documents[][2] = {
        { "{}", "not an object" }, { "[]", "" }, { "7", "" }, { "\"x\"", "" }, { "null", "" },
        { "{\"model\": {}}", "not an object of tokens and ids" },
        { "{\"model\": {\"vocab\": []}}", "not an object of tokens and ids" },
        { "{\"model\": {\"vocab\": {}, \"merges\": []}}", "no token for the byte 0x0a" },
        { "{\"model\": {\"vocab\": {}, \"merges\": {}}}", "model.merges is not a list" },
        { "{\"model\": {\"vocab\": {}}}", "model.merges is not a list" },
        { "{\"model\": {\"type\": \"WordPiece\"}}", "model is of type \"WordPiece\"" },
        { "{\"model\": {\"type\": 5}}", "model is of type \"\"" },
        { "{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true}}", "byte_fallback is on" },
        { "{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1}}", "dropout is on" },
        { "{\"model\": {\"type\": \"BPE\", \"end_of_word_suffix\": \"</w>\"}}",
          "end_of_word_suffix is on" }
    };

    (void) state;

    for (i = 0; i < sizeof(documents) / sizeof(documents[0]); i++) {
        memset(&err, 0, sizeof(err));
        assert_null(vlm_sample_read(documents[i][0], &err));
        assert_int_equal(err.code, VLM_EMODEL);
        if (strstr(err.text, documents[i][1]) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, documents[i][1]);
        }
    }
}


static void
a_file_that_ends_early_is_refused_at_every_length(void **state)
{
    char          *text;
    size_t         n;
    vlm_err_t      err;
    vlm_source_t   s;

    (void) state;

    text = vlm_sample(", \"he\": 256", "\"h e\"", VLM_SAMPLE_REST);
    assert_non_null(text);

    s.name = "tokenizer.json";
    s.data = text;

    for (n = 0; n < strlen(text); n++) {
        memset(&err, 0, sizeof(err));
        s.bytes = n;
        assert_null(vlm_read_json(&s, vlm_qwen_split, &err));
        assert_int_equal(err.code, VLM_EMODEL);
    }

    free(text);
}


/* Any byte may be anything: either it is refused, or it can be used. */
static void
a_file_with_one_wrong_byte_is_refused_or_usable(void **state)
{
    char             *text, was;
    size_t            i, k, n;
    vlm_ids_t         ids = { 0 };
    vlm_err_t         err;
    vlm_source_t      s;
    vlm_tokenizer_t  *t;

    static const char  wrong[] = { 0, '"', '9', '}', '\\', ' ', '\xc4', '\xff' };

    (void) state;

    text = vlm_sample(", \"he\": 256", "\"h e\"", VLM_SAMPLE_REST);
    assert_non_null(text);

    n = strlen(text);
    s.name = "tokenizer.json";
    s.data = text;
    s.bytes = n;

    for (i = 0; i < n; i++) {
        was = text[i];

        for (k = 0; k < sizeof(wrong); k++) {
            memset(&err, 0, sizeof(err));
            text[i] = wrong[k];

            t = vlm_read_json(&s, vlm_qwen_split, &err);
            assert_int_equal(t == NULL, err.code != VLM_OK);
            if (t != NULL) {
                ids.n = 0;
                assert_int_equal(vlm_encode(t, "hehe", 4, &ids, &err), 0);
                vlm_tokenizer_close(t);
            }
        }

        text[i] = was;
    }

    free(ids.ids);
    free(text);
}


static void
tokens_longer_than_the_limit_are_refused_with_the_length(void **state)
{
    char             *vocab, *text;
    size_t            i, n;
    vlm_err_t         err;
    vlm_tokenizer_t  *t;

    static const size_t  lengths[] = { 4096, 4097, 8192, 8193, 100000 };

    (void) state;

    for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        n = lengths[i];
        vocab = malloc(n + 16);
        assert_non_null(vocab);
        memcpy(vocab, ", \"", 3);
        memset(vocab + 3, 'a', n);
        strcpy(vocab + 3 + n, "\": 256");

        text = vlm_sample(vocab, "", "");
        memset(&err, 0, sizeof(err));
        t = vlm_sample_read(text, &err);

        if (n == 4096) {
            assert_non_null(t);
            assert_int_equal(vlm_token_max_bytes(t), 4096);
            vlm_tokenizer_close(t);

        } else {
            assert_null(t);
            assert_int_equal(err.code, VLM_EMODEL);
            assert_non_null(strstr(err.text, "at most"));
        }

        free(text);
        free(vocab);
    }
}


/* vocab.json from the sample's own "vocab" member. */
static vlm_tokenizer_t *
read_plain(const char *merges, const char *config, vlm_err_t *err)
{
    char             *vocab, *p;
    vlm_source_t      v, m, c;
    vlm_tokenizer_t  *t;

    vocab = malloc(16384);
    assert_non_null(vocab);
    vocab[0] = '{';
    p = vlm_sample_bytes(vocab + 1);
    strcpy(p, ", \"he\": 256, \"hel\": 257}");

    v = (vlm_source_t) { "vocab.json", vocab, strlen(vocab) };
    m = (vlm_source_t) { "merges.txt", merges, strlen(merges) };
    c = (vlm_source_t) { "tokenizer_config.json", config, config == NULL ? 0 : strlen(config) };

    t = vlm_read_plain(&v, &m, config == NULL ? NULL : &c, vlm_qwen_split, err);
    free(vocab);

    return t;
}


static void
merges_txt_may_have_a_version_and_any_line_ends(void **state)
{
    size_t            i;
    vlm_err_t         err = { 0 };
    vlm_tokenizer_t  *t;

    static const char *const  files[] = {
        "#version: 0.2\nh e\nhe l\n", "h e\nhe l", "h e\n\nhe l\n\n",
        "#version: 0.2\r\nh e\r\nhe l\r\n"
    };

    (void) state;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        t = read_plain(files[i], NULL, &err);
        assert_non_null(t);
        expect_ids(t, "hehel", 2, 256, 257);
        assert_int_equal(vlm_special(t, "<|im_end|>"), -1);
        vlm_tokenizer_close(t);
    }
}


static void
tokenizer_config_names_the_added_tokens(void **state)
{
    vlm_err_t         err = { 0 };
    vlm_tokenizer_t  *t;

    (void) state;

    t = read_plain("h e\n", "{\"added_tokens_decoder\": {"
                   "\"258\": {\"content\": \"<|im_end|>\", \"special\": true},"
                   "\"300\": {\"content\": \"<tool>\", \"special\": false}}}", &err);
    assert_non_null(t);
    assert_int_equal(vlm_special(t, "<|im_end|>"), 258);
    assert_int_equal(vlm_special(t, "<tool>"), 300);
    assert_true(vlm_token_is_special(t, 258));
    assert_false(vlm_token_is_special(t, 300));
    vlm_tokenizer_close(t);

    t = read_plain("h e\n", "{}", &err);
    assert_non_null(t);
    vlm_tokenizer_close(t);
}


static void
lies_in_the_plain_files_name_the_file(void **state)
{
    size_t     i;
    vlm_err_t  err;

    static const char *const  lies[][3] = {
        { "h x\n", NULL, "merges.txt: merge 0 of \"h\" and \"x\"" },
        { "h e\nhe", NULL, "merges.txt: merge 1 is \"he\"" },
        { " \n", NULL, "merges.txt: merge 0 has halves of 0 and 0" },
        { "h e\n", "[", "tokenizer_config.json: not JSON" },
        { "h e\n", "{\"added_tokens_decoder\": []}", "tokenizer_config.json: added_tokens" },
        { "h e\n", "{\"added_tokens_decoder\": {\"x\": {\"content\": \"y\"}}}", "id is not" },
        { "h e\n", "{\"added_tokens_decoder\": {\"\": {\"content\": \"y\"}}}", "id is not" },
        { "h e\n", "{\"added_tokens_decoder\": {\"-1\": {\"content\": \"y\"}}}", "id is not" },
        { "h e\n", "{\"added_tokens_decoder\": {\"99999999999\": {\"content\": \"y\"}}}",
          "id is not" },
        { "h e\n", "{\"added_tokens_decoder\": {\"300\": \"y\"}}", "token 300 has 0 bytes" },
        { "h e\n",
          "{\"added_tokens_decoder\": {\"256\": {\"content\": \"he\", \"special\": true}}}",
          "special token 256 is also what merge 0 makes" }
    };

    (void) state;

    for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        memset(&err, 0, sizeof(err));
        assert_null(read_plain(lies[i][0], lies[i][1], &err));
        assert_int_equal(err.code, VLM_EMODEL);
        if (strstr(err.text, lies[i][2]) == NULL) {
            fail_msg("\"%s\" does not say \"%s\"", err.text, lies[i][2]);
        }
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_byte_is_spelled_by_the_byte_level_alphabet),
        cmocka_unit_test(merges_may_be_texts_or_pairs),
        cmocka_unit_test(texts_are_composed_only_if_the_file_asks_for_it),
        cmocka_unit_test(the_file_s_pattern_decides_where_tokens_end),
        cmocka_unit_test(added_tokens_may_lie_inside_or_beyond_the_vocabulary),
        cmocka_unit_test(tokens_outside_the_alphabet_decode_to_themselves_and_are_not_spelled),
        cmocka_unit_test(an_inconsistent_vocabulary_is_refused),
        cmocka_unit_test(inconsistent_merges_are_refused),
        cmocka_unit_test(inconsistent_added_tokens_are_refused),
        cmocka_unit_test(a_tokenizer_that_is_not_byte_level_bpe_is_refused_and_named),
        cmocka_unit_test(a_model_of_another_kind_is_refused_and_named),
        cmocka_unit_test(a_file_that_ends_early_is_refused_at_every_length),
        cmocka_unit_test(a_file_with_one_wrong_byte_is_refused_or_usable),
        cmocka_unit_test(tokens_longer_than_the_limit_are_refused_with_the_length),
        cmocka_unit_test(merges_txt_may_have_a_version_and_any_line_ends),
        cmocka_unit_test(tokenizer_config_names_the_added_tokens),
        cmocka_unit_test(lies_in_the_plain_files_name_the_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
