/*
 * The work of masks on the published vocabulary of 151,665 tokens: adversarial grammars, schemas and
 * expressions, each followed through answers whose tokens lead to as many readings as possible.
 */

#include "grammar/grammar_fixture.h"

#define TOKENS  24                     /* of an answer */

typedef enum { GBNF, SCHEMA, REGEX } kind_t;

typedef struct {
    kind_t       kind;
    const char  *text;
} form_t;

/* Of each pattern "%" is replaced, in 62 alternatives. */
static const char  *const patterns[] = {
    "^.*x%$", "^(a|b|ab)*%$", "^[a-y]*%[a-y]*$", "^\\\\w+( \\\\w+)*%$", "^.{0,40}%$"
};

static const form_t  forms[] = {
    { GBNF, "root ::= . root [a-z] | . root [^a] | . root? | ." },
    { GBNF, "root ::= (\"a\" root \"b\" | [a-z ] root [a-z] | [^q] root? | \"-\")" },
    { GBNF, "root ::= . root . | ." },
    { GBNF, "root ::= . root? . root? | ." },
    { GBNF, "root ::= [a-z] root [a-z] root [a-z] | [a-z ]" },
    { GBNF, "root ::= . a | .\na ::= . root . | . b | .\nb ::= . a . | . root | ." },
    { GBNF, "root ::= . (root | root [a-z] | root [b-z] | root [c-z])? | ." },
    { GBNF, "root ::= [^\\n] (root [^\\n]{0,3})? | ." },
    { GBNF, "root ::= \"a\" root \"a\" | \"a\" root | \"a\"" },
    { GBNF, "root ::= \" \" root \" \" | \" \" root | [ \\n\\t]+" },
    { GBNF, "root ::= . (root [a-m])? | . (root [n-z])? | . (root [^a-z])? | ." },
    { GBNF, "root ::= (.{1,30} root .{1,30}) | .{1,30}" },
    { GBNF, "root ::= .{1,9} root? .{0,9} | .{2,40}" },
    { GBNF, "root ::= s\ns ::= n v (n v)* s? | n\nn ::= [a-z ]+\nv ::= [a-z ]+ s? [a-z ]+" },
    { GBNF, "root ::= e\ne ::= t ([+ ] t)* | .\nt ::= f ([* ] f)* | .\nf ::= . e . | . e | ." },
    { GBNF, "root ::= x (x | y)*\nx ::= . y? . | .\ny ::= . x . | . x" },
    { GBNF, "root ::= ([a-z] | [a-z] root | [a-z] root root)" },
    { GBNF, "root ::= \"(\" root* \")\" | . root* | ." },
    { GBNF, "root ::= [\\x80-\\U0010ffff] root? . | . root? [\\x80-\\U0010ffff] | ." },
    { GBNF, "root ::= . root . | . root .. | . root ... | . root .... | ." },
    { GBNF, "root ::= a | b | c\na ::= . root?\nb ::= . root? .\nc ::= . root? . ." },
    { GBNF, "root ::= [a-z]* (\"x\" root \"y\")? [a-z]* root?  \".\" | \"!\"" },
    { GBNF, "root ::= .+ | . root .+" },
    { GBNF, "root ::= (. | . .) (root | root [^z])?" },
    { GBNF, "root ::= \"a\"? . root? \"a\"? . | ." },
    { REGEX, "(a|a)*(a|a)*(a|a)*b" },
    { REGEX, "(.*a){8}.*" },
    { REGEX, "(.*a.{9})" },
    { REGEX, "(\\w+\\s?)*\\w{3,12}" },
    { REGEX, "[^a]*a.{0,10}b.*" },
    { REGEX, "((a?){12}(b?){12}){3}.*" },
    { REGEX, ".{1,4000}" },
    { REGEX, "(\\S{1,8} ){0,60}" },
    { SCHEMA, "{\"type\":\"string\",\"pattern\":\"^(.*[aeiou].*){6}$\"}" },
    { SCHEMA, "{\"type\":\"string\",\"minLength\":3000,\"maxLength\":3001}" },
    { SCHEMA, "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":9},{\"type\":\"string\",\"maxLength\":99},"
              "{\"type\":\"string\",\"maxLength\":999},{\"type\":\"string\",\"minLength\":9999}]}" },
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"anyOf\":[{\"pattern\":\"a\"},{\"pattern\":\"b\"},"
              "{\"pattern\":\"c\"},{\"type\":\"array\",\"items\":{\"pattern\":\"d\"}}]}}" },
    { SCHEMA, "{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},"
              "{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/a\"}},{\"type\":\"object\","
              "\"additionalProperties\":{\"$ref\":\"#/$defs/a\"}}]}}}" },
    { SCHEMA, "{\"anyOf\":[{\"type\":\"object\",\"additionalProperties\":{\"pattern\":\"a\"}},"
              "{\"type\":\"object\",\"additionalProperties\":{\"pattern\":\"b\"}},"
              "{\"type\":\"object\",\"additionalProperties\":{\"pattern\":\"c\"}},"
              "{\"type\":\"object\",\"additionalProperties\":{\"pattern\":\"d\"}}]}" },
    { SCHEMA, "{\"anyOf\":[{\"items\":{\"items\":{\"items\":{\"pattern\":\"x\"}}}},"
              "{\"items\":{\"items\":{\"items\":{\"pattern\":\"y\"}}}},"
              "{\"items\":{\"items\":{\"items\":{\"pattern\":\"z\"}}}}]}" },
    { SCHEMA, "{\"type\":\"number\",\"minimum\":-1e9,\"maximum\":123456.789}" },
    { SCHEMA, "{\"type\":\"integer\",\"multipleOf\":997}" },
    { SCHEMA, "{\"type\":\"object\",\"propertyNames\":{\"pattern\":\"^(a|b|ab|ba)*$\"}}" },
    { SCHEMA, "{\"type\":\"object\",\"patternProperties\":{\"a\":{\"type\":\"string\"},"
              "\"b\":{\"type\":\"integer\"}}}" },
    { SCHEMA, "{\"allOf\":[{\"pattern\":\"a.*b\"},{\"pattern\":\"b.*c\"},{\"pattern\":\"c.*a\"}]}" },
};

#define N_FORMS     (sizeof(forms) / sizeof(forms[0]))
#define N_PATTERNS  (sizeof(patterns) / sizeof(patterns[0]))


static vlm_grammar_t *
make(const form_t *f)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    if (f->kind == GBNF) {
        return vlm_gbnf_make(qwen.pieces, f->text, &err);
    }

    if (f->kind == REGEX) {
        return vlm_regex_make(qwen.pieces, f->text, &err);
    }

    j = vlm_json_parse(f->text, strlen(f->text), &err);
    assert_non_null(j);
    g = vlm_schema_make(qwen.pieces, j, &err);
    vlm_json_free(j);

    return g;
}


/* The longest of some that are allowed: it makes the most of the readings. */
static uint32_t
pick_long(void)
{
    size_t    bytes, most;
    uint32_t  i, id, best;

    for (best = 0, most = 0, i = 0; i < 32; i++) {
        id = pick_any(&qwen, "", 0);
        (void) vlm_token_bytes(qwen.tokenizer, id, &bytes);

        if (bytes > most && bytes < 12) {
            most = bytes;
            best = id;
        }
    }

    return best;
}


/* An answer of tokens, each mask of which is counted.  Returns the most work of one. */
static uint64_t
follow(const vlm_grammar_t *g, double *seconds)
{
    double       since;
    size_t       bytes;
    uint32_t     i;
    uint64_t     most;
    const char  *p;

    vlm_match_start(&match, g);

    for (most = 0, *seconds = 0, i = 0; i < TOKENS && !vlm_match_done(&match); i++) {
        since = processor_time();
        vlm_walk_allow(walker, VLM_MASK_MOST, NULL);

        if (vlm_mask(qwen.pieces, &match, walker, 4000, allowed) != 0) {
            since = processor_time() - since;
            *seconds = since > *seconds ? since : *seconds;
            return vlm_walk_work(walker);
        }

        most = vlm_walk_work(walker) > most ? vlm_walk_work(walker) : most;
        since = processor_time() - since;
        *seconds = since > *seconds ? since : *seconds;

        p = vlm_token_bytes(qwen.tokenizer, pick_long(), &bytes);

        if (p == NULL || vlm_match_read(&match, walker, p, bytes) != 0) {
            break;
        }
    }

    return most;
}


static void
masks_of_adversarial_forms_are_bounded(void **state)
{
    double          seconds;
    size_t          i;
    uint64_t        work;
    vlm_grammar_t  *g;

    (void) state;

    for (i = 0; i < N_FORMS; i++) {
        g = make(&forms[i]);

        if (g == NULL) {
            printf("refused      %s\n", forms[i].text);
            continue;
        }

        work = follow(g, &seconds);
        printf("%8u steps %6.1f ms threads %u %s\n", (unsigned) work, seconds * 1000, match.n_threads, forms[i].text);
        assert_true(work <= VLM_MASK_MOST + (1u << 20));
        vlm_grammar_free(g);
    }
}


static void
masks_of_62_patterns_are_bounded(void **state)
{
    int             k;
    char            text[16384];
    double          seconds;
    size_t          i, n;
    uint64_t        work;
    const char     *p;
    vlm_grammar_t  *g;
    const form_t    form = { SCHEMA, text };

    (void) state;

    for (i = 0; i < N_PATTERNS; i++) {
        n = (size_t) sprintf(text, "{\"anyOf\":[");

        for (k = 0; k < 62; k++) {
            n += (size_t) sprintf(text + n, "%s{\"pattern\":\"", k == 0 ? "" : ",");

            for (p = patterns[i]; *p != '\0'; p++) {
                n += (size_t) sprintf(text + n, *p == '%' ? "%c%c" : "%c", *p == '%' ? 'a' + k % 26 : *p, 'a' + k / 26);
            }

            n += (size_t) sprintf(text + n, "\"}");
        }

        (void) sprintf(text + n, "]}");
        g = make(&form);

        if (g != NULL) {
            work = follow(g, &seconds);
            printf("%8u steps %6.1f ms threads %u %s\n", (unsigned) work, seconds * 1000, match.n_threads, patterns[i]);
            assert_true(work <= VLM_MASK_MOST + (1u << 20));
        } else printf("refused %s\n", patterns[i]);

        vlm_grammar_free(g);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(masks_of_adversarial_forms_are_bounded),
        cmocka_unit_test(masks_of_62_patterns_are_bounded),
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
