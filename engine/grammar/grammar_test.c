/*
 * Grammars of schemas over real vocabularies: the mask is the set that a check of each token gives,
 * any choice of allowed tokens ends in time, and what is accepted is what the schema describes.
 */

#include "grammar/grammar_fixture.h"

static const char  *const schemas[] = {
    "{\"type\":\"object\"}",
    "{}",
    "{\"type\":\"string\",\"minLength\":3,\"maxLength\":7}",
    "{\"type\":[\"integer\",\"null\"]}",
    "{\"enum\":[\"red\",\"green\",12,1,{\"a\":[1.5,null]},\"r\\u00e9d\"]}",
    "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":2,\"maxItems\":4}",
    "{\"properties\":{\"name\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},"
        "\"nick\":{\"type\":\"string\",\"maxLength\":4},\"x\":{\"type\":\"number\"}},"
        "\"required\":[\"n\"]}",
    "{\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2},\"\":{\"const\":3},"
        "\"\\\"q\":{\"type\":\"null\"},\"\\u00e9\":{\"type\":\"null\"}},"
        "\"additionalProperties\":{\"type\":\"string\"}}",
    "{\"anyOf\":[{\"properties\":{\"t\":{\"const\":\"a\"},\"v\":{\"type\":\"integer\"}},"
        "\"required\":[\"t\",\"v\"]},{\"properties\":{\"t\":{\"const\":\"b\"},\"v\":{\"type\":"
        "\"string\"}},\"required\":[\"t\"]},{\"type\":\"string\",\"maxLength\":5},"
        "{\"type\":\"string\",\"minLength\":2},{\"enum\":[\"yes\",\"no\"]}]}",
    "{\"$ref\":\"#/$defs/tree\",\"$defs\":{\"tree\":{\"properties\":{\"v\":{\"type\":\"integer\"},"
        "\"kids\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/tree\"}}},"
        "\"required\":[\"kids\"]}}}",
    "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"string\"},{\"type\":\"integer\"}],"
        "\"items\":{\"anyOf\":[{\"type\":\"array\",\"items\":{\"type\":\"integer\"},"
        "\"minItems\":1},{\"type\":\"array\",\"items\":{\"type\":[\"integer\",\"string\"]}}]},"
        "\"minItems\":3}",
    "{\"properties\":{\"l\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]},"
        "\"r\":{\"oneOf\":[{\"type\":\"null\"},{\"$ref\":\"#\"}]}},\"required\":[\"l\",\"r\"]}"
};

#define N_SCHEMAS  (sizeof(schemas) / sizeof(schemas[0]))


static void
walk_often(const vocab_t *v, uint32_t times, uint32_t each)
{
    char            text[BUDGET * 256];
    size_t          i, bytes;
    uint32_t        k;
    vlm_err_t       err;
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    for (i = 0; i < N_SCHEMAS; i++) {
        g = must_compile(v, schemas[i]);

        for (k = 0; k < times; k++) {
            bytes = walk(v, g, vlm_grammar_least(g) + k % (BUDGET - vlm_grammar_least(g)), text,
                         each);
            assert_int_equal(vlm_utf8_whole(text, bytes), bytes);
            memset(&err, 0, sizeof(err));
            j = vlm_json_named(text, bytes, "answer", &err);

            if (j == NULL) {
                fail_msg("%s: %.*s", err.text, (int) bytes, text);
            }

            vlm_json_free(j);
        }

        vlm_grammar_free(g);
    }
}


static void
random_walks_within_any_budget_end_and_parse(void **state)
{
    (void) state;
    walk_often(&demo, 300, 0);
    walk_often(&qwen, 30, 0);
}


static void
the_mask_is_what_a_check_of_each_token_says(void **state)
{
    (void) state;
    walk_often(&demo, 40, 1);
    walk_often(&qwen, 2, 6);
}


static void
what_a_schema_describes_is_accepted_and_nothing_else(void **state)
{
    size_t          i, k;
    vlm_grammar_t  *g;
    static const struct {
        const char  *schema, *yes[6], *no[8];
    } cases[] = {
        { "{\"type\":\"object\"}", { "{}", "{ \"a\" : [1, {}] }", "{\"a\\u0041\":\"\\n\"}" },
          { "[]", " {}", "{\"a\":1,}", "{\"a\"}", "{\"a\":01}", "{\"a\":1e100}",
            "{\"\\ud800\":1}" } },
        { "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
          { "\"ab\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\\u0041\\n\\\"\"" },
          { "\"a\"", "\"abcd\"", "\"a\\n\\nb\"", "ab" } },
        { "{\"type\":\"integer\"}", { "0", "-7", "120" }, { "1.0", "1e3", "01", "-", "+1", " 1" } },
        { "{\"type\":\"number\"}", { "0", "-7.25", "1e+9" }, { "1.", ".5", "1e", "NaN" } },
        { "{\"enum\":[1,1.0,12,\"a\",null]}", { "1", "12", "\"a\"", "null" },
          { "2", "123", "\"b\"", "1.0", "nul" } },
        { "{\"type\":\"integer\",\"enum\":[895364772075444712345678,9007199254740993]}",
          { "895364772075444712345678", "9007199254740993" },
          { "895364772075444712345679", "8.953647720754447e+23", "9007199254740992" } },
        { "{\"enum\":[1,\"a\",true],\"type\":[\"string\",\"boolean\"]}", { "\"a\"", "true" },
          { "1", "false" } },
        { "{\"const\":{\"b\":[1,{}],\"a\":\"x\"}}", { "{\"b\":[1,{}],\"a\":\"x\"}" },
          { "{\"a\":\"x\",\"b\":[1,{}]}", "{}" } },
        { "{\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{\"type\":\"null\"}},"
          "\"required\":[\"b\"]}",
          { "{\"a\":1,\"b\":null}", "{\"b\":null}", "{ \"b\" :\n null }" },
          { "{}", "{\"a\":1}", "{\"b\":null,\"a\":1}", "{\"b\":null,\"c\":1}", "{\"a\":\"\",",
            "{\"b\":null,}", "{\"b\":null,\"b\":null}" } },
        { "{\"properties\":{\"a\":{\"type\":\"integer\"}},\"additionalProperties\":true}",
          { "{}", "{\"a\":1}", "{\"b\":\"\"}", "{\"a\":1,\"aa\":[]}", "{\"\":1}" },
          { "{\"a\":\"\"}", "{\"b\":1,\"a\":1}", "{\"\\u0061\":\"\"}", "{\"b\":1,\"a\":\"\"}" } },
        { "{\"type\":\"object\",\"required\":[\"z\"]}", { "{\"z\":1}", "{\"z\":{},\"y\":1}" },
          { "{}", "{\"y\":1}", "{\"y\":1,\"z\":1}" } },
        { "{\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"z\"]}",
          { "{\"z\":1}", "{\"a\":null,\"z\":{}}" },
          { "{}", "{\"a\":null}", "{\"z\":1,\"a\":null}", "{\"z\":1,\"y\":1}" } },
        { "{\"id\":\"r\",\"self\":{},\"x-a\":1,"
          "\"properties\":{\"a\":{\"$id\":\"b\",\"type\":\"null\"}},"
          "\"items\":{\"$ref\":\"#\"},\"additionalItems\":false}",
          { "{\"a\":null}", "[]", "[{}]" }, { "{\"a\":1}", "[1]", "{\"x-a\":1}" } },
        { "{\"items\":{\"type\":\"boolean\"},\"minItems\":1,\"maxItems\":2}",
          { "[true]", "[ true , false ]" }, { "[]", "[true,true,true]", "[1]", "[true,]" } },
        { "{\"items\":false,\"prefixItems\":[true,{\"type\":\"null\"}]}",
          { "[]", "[1]", "[{},null]" }, { "[1,2]", "[1,null,3]" } },
        { "{\"type\":\"array\",\"maxItems\":0}", { "[]" }, { "[1]" } },
        { "{\"type\":\"string\",\"nullable\":true}", { "\"\"", "null" }, { "1" } },
        { "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":1},{\"const\":\"abc\"},"
          "{\"type\":\"integer\"}]}", { "\"a\"", "\"abc\"", "\"\"", "5" }, { "\"ab\"", "1.5" } },
        { "{\"allOf\":[{\"$ref\":\"#/definitions/x~1y\"}],\"definitions\":{\"x/y\":true}}",
          { "1", "\"\"", "[{}]" }, { "x" } },
        { "{\"oneOf\":[{\"properties\":{\"k\":{\"const\":1},\"v\":true},\"required\":[\"k\"]},"
          "{\"properties\":{\"k\":{\"const\":2}},\"required\":[\"k\"]}]}",
          { "{\"k\":1,\"v\":7}", "{\"k\":2}" }, { "{\"k\":2,\"v\":7}", "{}" } },
        { "{\"$ref\":\"#/$defs/n\",\"$defs\":{\"n\":{\"properties\":{\"n\":{\"$ref\":"
          "\"#/$defs/n\"}}}}}", { "{}", "{\"n\":{\"n\":{}}}" }, { "{\"n\":1}", "{\"n\":{}" } }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = must_compile(&demo, cases[i].schema);

        for (k = 0; k < 6 && cases[i].yes[k] != NULL; k++) {
            if (!accepts(g, cases[i].yes[k])) {
                fail_msg("refused: %s by %s", cases[i].yes[k], cases[i].schema);
            }
        }

        for (k = 0; k < 8 && cases[i].no[k] != NULL; k++) {
            if (accepts(g, cases[i].no[k])) {
                fail_msg("accepted: %s by %s", cases[i].no[k], cases[i].schema);
            }
        }

        vlm_grammar_free(g);
    }
}


static void
what_is_not_supported_is_refused_with_its_place(void **state)
{
    size_t          i;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    static const char  *const cases[][2] = {
        { "{\"patternProperties\":{}}",
          "the schema's #/patternProperties is a keyword that is not supported" },
        { "{\"properties\":{\"a/b\":{\"items\":{\"if\":true}}}}", "/items/if is a" },
        { "{\"anyOf\":[{},{\"not\":{}}]}", "#/anyOf/1/not is a keyword" },
        { "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"contains\":2}}}", "#/$defs/a/contains" },
        { "{\"type\":\"text\"}", "#/type is none of null" },
        { "{\"type\":[]}", "#/type is an empty list" },
        { "{\"minLength\":-1}", "#/minLength is not a whole number" },
        { "{\"minItems\":3,\"maxItems\":2}", "#/minItems is more than" },
        { "{\"properties\":[]}", "#/properties is not an object" },
        { "{\"properties\":{},\"required\":[\"a\"],\"additionalProperties\":false}",
          "#/required names a member" },
        { "{\"properties\":{\"a\":{\"self\":1}}}", "#/properties/a/self is a keyword" },
        { "{\"properties\":{\"a\":{\"id\":\"b\",\"items\":{\"$ref\":\"#\"}}}}",
          "#/properties/a/id is a keyword" },
        { "{\"allOf\":[{\"$id\":\"b\",\"items\":{\"$ref\":\"#\"}},{\"title\":\"a\"}]}",
          "#/$id is a keyword" },
        { "{\"items\":[{}],\"additionalItems\":false}", "#/additionalItems is a keyword" },
        { "{\"required\":\"a\"}", "#/required is not an array" },
        { "{\"required\":[1]}", "#/required is not an array" },
        { "{\"enum\":[]}", "#/enum has no value" },
        { "{\"enum\":[1],\"type\":\"string\"}", "#/enum has no value of the schema's type" },
        { "{\"enum\":[1e30]}", "#/enum has a number beyond 2^53" },
        { "{\"enum\":[\"a\"],\"maxLength\":3}", "#/maxLength is not supported beside" },
        { "{\"anyOf\":[]}", "#/anyOf is not an array of schemas" },
        { "{\"$ref\":\"other.json\"}", "#/$ref leads to no place" },
        { "{\"$ref\":\"#/a/b\"}", "#/$ref leads to no place" },
        { "{\"items\":7}", "#/items is neither an object nor true" },
        { "{\"properties\":{\"a\":false}}", "#/properties/a is neither" },
        { "{\"$ref\":\"#\"}", "no value that comes to an end" },
        { "{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "no value that comes" },
        { "{\"oneOf\":[{\"type\":\"integer\"},{\"type\":\"number\"}]}",
          "#/oneOf has numbers 0 and 1, which may have a value in common" },
        { "{\"oneOf\":[{\"enum\":[1,\"a\"]},{\"enum\":[\"b\",1.0]}]}", "a value in common" },
        { "{\"oneOf\":[{\"type\":\"object\"},{\"properties\":{\"a\":{}},\"required\":[\"a\"]}]}",
          "may have a value in common" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = compile(&demo, cases[i][0], &err);

        if (g != NULL || err.code != VLM_EINPUT || strstr(err.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], g != NULL ? "accepted" : err.text);
        }
    }
}


/* Schemas that are large, or that would take long. */

static char *
repeat(const char *head, const char *part, uint32_t n, const char *tail)
{
    char      *text, *p;
    uint32_t   i;

    text = malloc(strlen(head) + n * (strlen(part) + 16) + strlen(tail) + 1);
    assert_non_null(text);
    p = text + sprintf(text, "%s", head);

    for (i = 0; i < n; i++) {
        p += sprintf(p, i == 0 ? "" : ",");
        p += sprintf(p, part, i);
    }

    (void) strcpy(p, tail);

    return text;
}


/* Schemas in "$defs" by numbers, each of which refers to the next one twice; the last is null. */
static char *
chain(const char *part, uint32_t n)
{
    char      *text, *p;
    uint32_t   i;

    text = malloc((n + 1) * (strlen(part) + 32) + 64);
    assert_non_null(text);
    p = text + sprintf(text, "{\"$ref\":\"#/$defs/0\",\"$defs\":{");

    for (i = 0; i < n; i++) {
        p += sprintf(p, "\"%u\":", i);
        p += sprintf(p, part, i + 1, i + 1);
        *p++ = ',';
    }

    (void) sprintf(p, "\"%u\":{\"type\":\"null\"}}}", n);

    return text;
}


/* A text n times, what stands within all, and as often another text. */
static char *
nest(const char *open, uint32_t n, const char *within, const char *close)
{
    char      *text, *p;
    uint32_t   i;

    text = malloc(n * (strlen(open) + strlen(close)) + strlen(within) + 1);
    assert_non_null(text);

    for (p = text, i = 0; i < 2 * n + 1; i++) {
        p += sprintf(p, "%s", i < n ? open : i == n ? within : close);
    }

    return text;
}


static void
assert_limit(char *text, const char *says)
{
    double          since;
    vlm_err_t       err;
    vlm_grammar_t  *g;

    since = processor_time();
    g = compile(&demo, text, &err);

    if (g != NULL || err.code != VLM_ELIMIT || strstr(err.text, says) == NULL) {
        fail_msg("%.80s: %s", text, g != NULL ? "accepted" : err.text);
    }

    assert_true(processor_time() - since < 5);
    free(text);
}


static void
schemas_beyond_a_bound_are_refused_with_it(void **state)
{
    (void) state;

    assert_limit(repeat("{\"enum\":[", "\"some text of some length %u\"", 3000, "]}"),
                 "more than 65536 bytes");
    assert_limit(repeat("{\"anyOf\":[", "{\"type\":\"string\",\"maxLength\":%u}", 65, "]}"),
                 "one of 65 kinds of value may stand, the limit is 64");
    assert_limit(repeat("{\"$defs\":{\"e\":{\"enum\":[", "\"%u some longer text\"", 2000,
                        "]},\"a\":{\"anyOf\":[{\"const\":1},{\"$ref\":\"#/$defs/e\"}]},"
                        "\"b\":{\"anyOf\":[{\"const\":2},{\"$ref\":\"#/$defs/a\"}]},"
                        "\"c\":{\"anyOf\":[{\"const\":3},{\"$ref\":\"#/$defs/b\"}]},"
                        "\"d\":{\"anyOf\":[{\"const\":4},{\"$ref\":\"#/$defs/c\"}]},"
                        "\"f\":{\"anyOf\":[{\"const\":5},{\"$ref\":\"#/$defs/d\"}]},"
                        "\"g\":{\"anyOf\":[{\"const\":6},{\"$ref\":\"#/$defs/f\"}]},"
                        "\"h\":{\"anyOf\":[{\"const\":7},{\"$ref\":\"#/$defs/g\"}]},"
                        "\"i\":{\"anyOf\":[{\"const\":8},{\"$ref\":\"#/$defs/h\"}]}},"
                        "\"$ref\":\"#/$defs/i\"}"), "more than 16777216 bytes of memory");
}


static void
assert_quick(char *schema)
{
    double          since;
    vlm_err_t       err;
    vlm_grammar_t  *g;

    since = processor_time();
    g = compile(&demo, schema, &err);
    assert_true(g != NULL || err.code != VLM_OK);
    assert_true(processor_time() - since < 5);
    vlm_grammar_free(g);
    free(schema);
}


/* 330 alternatives, each of which holds together with thirty schemas of two equal texts. */
static char *
merge_often(char *one)
{
    char  *text, *parts, *kinds;

    parts = repeat("", "{\"$ref\":\"#/x-d\"},{\"$ref\":\"#/x-e\"}", 15, "");
    kinds = repeat("", "{\"$ref\":\"#/x-q\"}", 330, "");
    text = malloc(2 * strlen(one) + strlen(parts) + strlen(kinds) + 100);
    assert_non_null(text);
    (void) sprintf(text, "{\"x-d\":%s,\"x-e\":%s,\"x-q\":{\"allOf\":[%s]},\"type\":\"string\","
                   "\"anyOf\":[%s]}", one, one, parts, kinds);
    free(one);
    free(parts);
    free(kinds);

    return text;
}


#define NEXT  "{\"$ref\":\"#/$defs/%u\"}"

static void
schemas_that_grow_by_themselves_are_made_or_refused_in_bounded_time(void **state)
{
    char  *head;

    (void) state;

    /* Chains of references, most of which stand twice in the schema before. */

    assert_quick(chain("{\"title\":\"%u\",\"$ref\":\"#/$defs/%u\"}", 1200));
    assert_quick(chain("{\"anyOf\":[" NEXT "," NEXT "]}", 700));
    assert_quick(chain("{\"allOf\":[" NEXT "," NEXT "]}", 60));
    assert_quick(chain("{\"properties\":{\"a\":" NEXT "},"
                       "\"anyOf\":[" NEXT ",{\"required\":[\"a\"]}]}", 60));
    assert_quick(chain("{\"properties\":{\"a\":" NEXT ",\"b\":" NEXT "},"
                       "\"required\":[\"a\",\"b\"]}", 600));
    assert_quick(chain("{\"items\":" NEXT ",\"minItems\":2000000000,"
                       "\"prefixItems\":[" NEXT "]}", 500));

    /* Alternatives within each other, and texts with long beginnings in common. */

    assert_quick(nest("{\"anyOf\":[{\"type\":\"null\"},{\"items\":", 20, "true", "}]}"));
    assert_quick(nest("{\"anyOf\":[{\"minLength\":2},", 30, "true", "]}"));
    assert_quick(nest("{\"oneOf\":[{\"const\":1},{\"properties\":{\"a\":", 13, "true", "}}]}"));
    assert_quick(repeat("{\"enum\":[", "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%u\"", 1300,
                        "]}"));
    assert_quick(repeat("{\"oneOf\":[", "{\"const\":%u}", 3000, "]}"));

    /* Large values, and many keys, in schemas that hold together again and again. */

    assert_quick(merge_often(repeat("{\"enum\":[\"a\",", "0.1234567", 2400, "]}")));
    assert_quick(merge_often(repeat("{", "\"x-%u\":0", 2400, "}")));
    assert_quick(merge_often(repeat("{\"type\":[", "\"string\"", 2400, "]}")));
    assert_limit(merge_often(repeat("{\"required\":[", "\"a\"", 4500, "]}")),
                 "more than 16777216 bytes of memory");

    /* A key is copied with each reference. */

    head = repeat("{\"type\":\"string\",\"x-d\":{\"properties\":{\"", "aaaaaaaa", 3000,
                  "\":true}},\"anyOf\":[");
    assert_limit(repeat(head, "{\"$ref\":\"#/x-d\"}", 1500, "]}"),
                 "more than 16777216 bytes of memory");
    free(head);
}


static void
thirty_schemas_with_forty_members_each_hold_together(void **state)
{
    char           *text, *p;
    uint32_t        i, k;
    vlm_err_t       err;
    vlm_grammar_t  *g;

    (void) state;

    text = malloc(64 << 10);
    assert_non_null(text);
    p = text + sprintf(text, "{\"allOf\":[");

    for (i = 0; i < 30; i++) {
        p += sprintf(p, "%s{\"properties\":{", i == 0 ? "" : ",");

        for (k = 0; k < 40; k++) {
            p += sprintf(p, "%s\"m%u\":{\"type\":\"null\"}", k == 0 ? "" : ",", 40 * i + k);
        }

        p += sprintf(p, "}}");
    }

    (void) sprintf(p, "]}");
    g = compile(&demo, text, &err);

    if (g == NULL) {
        fail_msg("%s", err.text);
    }

    vlm_grammar_free(g);
    free(text);
}


static void
large_schemas_compile_and_their_masks_are_quick(void **state)
{
    size_t          i, k, n, bytes;
    char            text[BUDGET * 256], *schema[3];
    double          since, took;
    uint64_t        slow, masks;
    const char     *p;
    vlm_grammar_t  *g;

    (void) state;

    schema[0] = repeat("{\"properties\":{", "\"member number %u\":{\"type\":\"string\"}", 1200,
                       "}}");
    schema[1] = repeat("{\"enum\":[", "\"a text of some length %u\"", 2000, "]}");
    schema[2] = repeat("{\"items\":{\"anyOf\":[", "{\"properties\":{\"k\":{\"const\":%u},\"v\":"
                       "{\"type\":\"string\"}},\"required\":[\"k\",\"v\"]}", 64, "]}}");

    for (slow = masks = 0, i = 0; i < 3; i++) {
        since = processor_time();
        g = must_compile(&qwen, schema[i]);
        took = processor_time() - since;
        print_message("%zu bytes: compiled in %.0f us\n", strlen(schema[i]), took * 1e6);
        assert_true(took < 2);
        vlm_match_start(&match, g);

        for (n = k = 0; k < 100 && !vlm_match_done(&match); k++, masks++) {
            since = processor_time();
            vlm_mask(qwen.pieces, &match, walker, 150, allowed);
            slow += processor_time() - since > 1e-3;
            p = vlm_token_bytes(qwen.tokenizer, pick_any(&qwen, text, n), &bytes);
            assert_int_equal(vlm_match_read(&match, walker, p, bytes), 0);
            memcpy(text + n, p, bytes);
            n += bytes;
        }

        vlm_grammar_free(g);
        free(schema[i]);
    }

    print_message("%llu of %llu masks took more than 1 ms\n", (unsigned long long) slow,
                  (unsigned long long) masks);
}


static void
control_tokens_are_never_allowed_and_ends_only_where_one_may_be(void **state)
{
    char             *text;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_walk_t       *w = walker;
    vlm_tokens_t     *pieces;
    vlm_grammar_t    *g;
    vlm_tokenizer_t  *t;
    const uint32_t    eos[] = { 256, 300 };
    const vocab_t     v = { NULL, NULL, 0 };
    vocab_t           sample;

    (void) state;
    (void) v;

    /* 300 and 301 are added tokens whose names a string may spell; 256 and 257 are texts. */

    text = vlm_sample(", \"ab\": 256, \"abc\": 257", "", VLM_SAMPLE_REST);
    t = vlm_sample_read(text, &err);
    free(text);
    assert_non_null(t);
    pieces = vlm_tokens_open(t, vlm_vocab_size(t), eos, 2, &err);
    sample = (vocab_t) { t, pieces, vlm_vocab_size(t) };

    g = must_compile(&sample, "{\"type\":[\"string\",\"integer\"]}");
    vlm_match_start(&match, g);
    assert_int_equal(vlm_match_read(&match, w, "\"", 1), 0);
    vlm_mask(pieces, &match, w, 100, allowed);
    assert_true(is_allowed(257));
    assert_false(is_allowed(256) || is_allowed(300) || is_allowed(301));

    /* A number may go on, or be whole. */

    vlm_match_start(&match, g);
    assert_int_equal(vlm_match_read(&match, w, "17", 2), 0);
    vlm_mask(pieces, &match, w, 0, allowed);
    assert_true(is_allowed(256) && is_allowed(300) && is_allowed('3'));
    assert_false(is_allowed('.') || is_allowed(' ') || is_allowed(301));
    vlm_grammar_free(g);

    vlm_tokens_close(pieces);
    pieces = vlm_tokens_open(t, 200, NULL, 0, &err);   /* fewer logits than ids */
    assert_int_equal(vlm_tokens_check(pieces, &err), -1);
    assert_non_null(strstr(err.text, "no token for the byte 0xc8 alone"));
    vlm_tokens_close(pieces);
    vlm_tokenizer_close(t);
}


static void
fixed_texts_are_counted_in_tokens_of_the_vocabulary(void **state)
{
    vlm_grammar_t  *g;

    (void) state;

    g = must_compile(&qwen, "{\"properties\":{\"description\":{\"const\":\"a picture\"}},"
                     "\"required\":[\"description\"]}");
    assert_true(vlm_grammar_least(g) < 12);        /* of 29 bytes */
    vlm_grammar_free(g);

    g = must_compile(&qwen, "{\"minLength\":5,\"type\":\"string\"}");
    assert_int_equal(vlm_grammar_least(g), 7);
    vlm_grammar_free(g);
}


static void
a_choice_is_one_of_its_texts_without_quotes(void **state)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;
    const char      text[] = "[\"yes\", \"no\", \"not sure\", \"\\u00e9\\n\"]";

    (void) state;

    j = vlm_json_parse(text, strlen(text), &err);
    g = vlm_choice_make(demo.pieces, j, &err);
    vlm_json_free(j);
    assert_non_null(g);

    assert_true(accepts(g, "yes") && accepts(g, "no") && accepts(g, "not sure"));
    assert_true(accepts(g, "\xc3\xa9\n"));
    assert_false(accepts(g, "ye") || accepts(g, " yes") || accepts(g, "yes ") || accepts(g, "\""));
    vlm_grammar_free(g);

    g = vlm_choice_make(demo.pieces, NULL, &err);
    assert_null(g);
    assert_non_null(strstr(err.text, "is not an array of strings"));
}


/* Each level of nesting doubles the ways to read what stands there; the last is the shortest. */
static void
ambiguity_without_end_stays_bounded_and_its_end_in_reach(void **state)
{
    char            text[BUDGET * 256], *p, *schema;
    uint32_t        i;
    vlm_grammar_t  *g;

    (void) state;

    schema = malloc(100000);
    assert_non_null(schema);
    p = schema + sprintf(schema, "{\"$ref\":\"#/$defs/a0\",\"$defs\":{");

    for (i = 0; i < 40; i++) {
        p += sprintf(p, "\"a%u\":{\"anyOf\":[{\"minItems\":4,\"items\":{\"$ref\":\"#/$defs/a%u\"}},"
                     "{\"minItems\":1,\"items\":{\"$ref\":\"#/$defs/a%u\"}}]},", i, i + 1, i + 1);
    }

    (void) sprintf(p, "\"a40\":{\"type\":\"string\"}}}");
    g = must_compile(&demo, schema);
    assert_int_equal(vlm_grammar_least(g), 82);

    for (i = 0; i < 100; i++) {
        (void) walk(&demo, g, vlm_grammar_least(g) + i, text, 0);
    }

    vlm_match_start(&match, g);
    assert_int_equal(vlm_match_read(&match, walker, "[[[[[[[[[[[[[[[[[[[[", 20), 0);
    assert_int_equal(match.n_threads, VLM_GRAMMAR_CHOICES);
    vlm_grammar_free(g);
    free(schema);
}


static void
sixty_four_brackets_may_be_open_and_what_is_open_can_be_closed(void **state)
{
    uint32_t        i;
    vlm_grammar_t  *g;
    const char     *again = "{\"r\":[],\"k\":";

    (void) state;

    g = must_compile(&demo, "{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}");
    vlm_match_start(&match, g);

    for (i = 0; i < VLM_GRAMMAR_DEPTH; i++) {
        assert_int_equal(vlm_match_read(&match, walker, "[", 1), 0);
    }

    assert_int_equal(vlm_match_read(&match, walker, "[", 1), -1);
    assert_int_equal(vlm_match_left(&match), VLM_GRAMMAR_DEPTH);
    vlm_grammar_free(g);

    /* The array that each object must have is one bracket more. */

    g = must_compile(&demo, "{\"properties\":{\"r\":{\"type\":\"array\"},\"k\":{\"$ref\":\"#\"}},"
                     "\"required\":[\"r\"]}");
    vlm_match_start(&match, g);

    for (i = 1; i < VLM_GRAMMAR_DEPTH - 1; i++) {
        assert_int_equal(vlm_match_read(&match, walker, again, strlen(again)), 0);
    }

    assert_int_equal(vlm_match_read(&match, walker, "{\"r\":[]", 7), 0);
    assert_int_equal(vlm_match_read(&match, walker, ",", 1), -1);
    assert_int_equal(vlm_match_read(&match, walker, "}}}", 3), 0);
    vlm_grammar_free(g);
}


/* The same comparison behind texts that a walk seldom reaches, with few tokens to come. */
static void
the_mask_is_exact_where_the_end_is_near(void **state)
{
    size_t          i;
    uint32_t        k, left;
    vlm_grammar_t  *g;
    static const char  *const cases[][2] = {
        { "{\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2}},"
          "\"additionalProperties\":{\"type\":\"string\"}}", "{\"" },
        { "{\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2}},"
          "\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":1,\"ab\":2,\"a" },
        { "{\"properties\":{\"a\":{\"const\":1},\"ab\":{\"const\":2}},"
          "\"additionalProperties\":{\"type\":\"string\"}}", "{\"ab\":2,\"" },
        { "{\"type\":\"string\",\"minLength\":6}", "\"ab" },
        { "{\"type\":\"string\",\"maxLength\":6}", "\"ab" },
        { "{\"type\":\"string\",\"minLength\":3,\"maxLength\":6}", "\"\\u00" },
        { "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":4},{\"const\":\"abcdef\"}]}", "\"abc" },
        { "{\"type\":\"object\"}", "{\"\xe2\x82" },
        { "{\"items\":{\"type\":\"number\"},\"minItems\":3}", "[1.5e" },
        { "{\"prefixItems\":[{\"type\":\"null\"}],\"minItems\":4,\"items\":{\"enum\":[1,12]}}",
          "[null,1" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        g = must_compile(&demo, cases[i][0]);
        vlm_match_start(&match, g);
        assert_int_equal(vlm_match_read(&match, walker, cases[i][1], strlen(cases[i][1])), 0);
        left = vlm_match_left(&match);

        for (k = 0; k < 12; k++) {
            vlm_mask(demo.pieces, &match, walker, left < 4 ? k : left - 4 + k, allowed);
            compare(&demo, left < 4 ? k : left - 4 + k, cases[i][1], strlen(cases[i][1]));
        }

        vlm_grammar_free(g);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(what_a_schema_describes_is_accepted_and_nothing_else),
        cmocka_unit_test(what_is_not_supported_is_refused_with_its_place),
        cmocka_unit_test(random_walks_within_any_budget_end_and_parse),
        cmocka_unit_test(the_mask_is_what_a_check_of_each_token_says),
        cmocka_unit_test(schemas_beyond_a_bound_are_refused_with_it),
        cmocka_unit_test(schemas_that_grow_by_themselves_are_made_or_refused_in_bounded_time),
        cmocka_unit_test(thirty_schemas_with_forty_members_each_hold_together),
        cmocka_unit_test(large_schemas_compile_and_their_masks_are_quick),
        cmocka_unit_test(control_tokens_are_never_allowed_and_ends_only_where_one_may_be),
        cmocka_unit_test(fixed_texts_are_counted_in_tokens_of_the_vocabulary),
        cmocka_unit_test(a_choice_is_one_of_its_texts_without_quotes),
        cmocka_unit_test(ambiguity_without_end_stays_bounded_and_its_end_in_reach),
        cmocka_unit_test(sixty_four_brackets_may_be_open_and_what_is_open_can_be_closed),
        cmocka_unit_test(the_mask_is_exact_where_the_end_is_near)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
