/*
 * The work of masks on the published vocabulary of 151,665 tokens: adversarial grammars, schemas
 * and expressions, each followed through an answer of long tokens, which have many readings.
 */

#include "grammar/grammar_fixture.h"

#define TOKENS  12                     /* of an answer */
#define AFTER   4000                   /* tokens that may follow each */
#define SLACK   (1u << 16)             /* steps between two looks */
#define SECONDS 60                     /* of the processor, also under sanitizers */

typedef enum { GBNF, SCHEMA, REGEX } kind_t;

typedef struct {
    kind_t       kind;
    const char  *text;
} form_t;

/* "%" is another text in each of 62 alternatives. */
static const char  *const patterns[] = {
    "^.*x%$", "^(a|b|ab)*%$", "^[a-y]*%[a-y]*$", "^\\\\w+( \\\\w+)*%$", "^[^%]{0,9}%$"
};

static const form_t  forms[] = {
    { GBNF, "root ::= . root [a-z] | . root [^a] | . root? | ." },
    { GBNF, "root ::= (\"a\" root \"b\" | [a-z ] root [a-z] | [^q] root? | \"-\")" },
    { GBNF, "root ::= . root [aeiou] | . root [bcdfg] | . root [^h-m] | . root [n-z ] | . root? "
            "| ." },
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
    { GBNF, "root ::= [a-z] [a-z]* (\"x\" root \"y\")? [a-z]* (\" \" root)? \".\" | \"!\"" },
    { GBNF, "root ::= .+ | . root .+" },
    { GBNF, "root ::= (. | . .) (root | root [^z])?" },
    { GBNF, "root ::= \"a\"? . root? \"a\"? . | ." },
    { REGEX, "(a|a)*(a|a)*(a|a)*b" },
    { REGEX, "(.*a){8}.*" },
    { REGEX, "(.*a.{9})" },
    { REGEX, "(\\w+\\s?)*\\w{3,12}" },
    { REGEX, "[^a]*a.{0,10}b.*" },
    { REGEX, "((a?){12}(b?){12}){3}.*" },
    { REGEX, ".{1,400}" },
    { REGEX, "(\\S{1,8} ){0,60}" },
    { SCHEMA, "{\"type\":\"string\",\"pattern\":\"^(.*[aeiou].*){6}$\"}" },
    { SCHEMA, "{\"type\":\"string\",\"minLength\":3000,\"maxLength\":3001}" },
    { SCHEMA, "{\"anyOf\":[{\"type\":\"string\",\"maxLength\":9},"
              "{\"type\":\"string\",\"maxLength\":99},{\"type\":\"string\",\"maxLength\":999},"
              "{\"type\":\"string\",\"minLength\":9999}]}" },
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
    { SCHEMA, "{\"type\":\"integer\",\"multipleOf\":97}" },
    { SCHEMA, "{\"type\":\"object\",\"additionalProperties\":{\"anyOf\":["
              "{\"pattern\":\"^(a|b|ab|ba)*$\"},{\"pattern\":\".*\"},{\"pattern\":\"[^x]*y\"}]}}" },
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"pattern\":\"a.*b.*c.*d\"},\"minItems\":100}" },
    { SCHEMA, "{\"enum\":[\"aaaaaaaaaaaaaaaaaaaaaaaaa\",\"aaaaaaaaaaaaaaaaaaaaaaaab\","
              "1,1.5,[[[[[[]]]]]]]}" },
    { SCHEMA, "{\"anyOf\":[{\"pattern\":\"^(a+)+$\"},{\"pattern\":\"^(a|aa)+$\"},"
              "{\"pattern\":\"^(.*)*$\"}]}" },
    { SCHEMA, "{\"type\":\"array\",\"items\":{\"type\":\"array\","
              "\"items\":{\"type\":\"array\",\"items\":{}}}}" },
};

#define N_FORMS  (sizeof(forms) / sizeof(forms[0]))


static vlm_grammar_t *
make(const form_t *f, vlm_err_t *err)
{
    vlm_json_t     *j;
    vlm_grammar_t  *g;

    if (f->kind == GBNF) {
        return vlm_gbnf_make(qwen.pieces, f->text, err);
    }

    if (f->kind == REGEX) {
        return vlm_regex_make(qwen.pieces, f->text, err);
    }

    j = vlm_json_parse(f->text, strlen(f->text), err);
    assert_non_null(j);
    g = vlm_schema_make(qwen.pieces, j, err);
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


/*
 * An answer of tokens, each mask of which is within the bound or says that it is not; returns the
 * most steps of one.
 */
static uint64_t
follow(const vlm_grammar_t *g)
{
    size_t       bytes;
    uint32_t     i;
    uint64_t     work, most;
    const char  *p;

    vlm_match_start(&match, g);

    for (most = 0, i = 0; i < TOKENS && !vlm_match_done(&match); i++) {
        vlm_walk_allow(walker, VLM_MASK_MOST, NULL);

        if (vlm_mask(qwen.pieces, &match, walker, AFTER, allowed) != 0) {
            return vlm_walk_work(walker);
        }

        work = vlm_walk_work(walker);
        most = work > most ? work : most;
        p = vlm_token_bytes(qwen.tokenizer, pick_long(), &bytes);

        if (p == NULL || vlm_match_read(&match, walker, p, bytes) != 0) {
            break;
        }
    }

    return most;
}


/* The processor's time, which is 30 to 80 ns a step, bounds what is not counted. */
static void
check_form(const form_t *f)
{
    double          since;
    uint64_t        work;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    g = make(f, &err);

    if (g == NULL) {
        fail_msg("%s: %s", err.text, f->text);
    }

    since = processor_time();
    work = follow(g);

    if (work > VLM_MASK_MOST + SLACK || processor_time() - since > SECONDS) {
        fail_msg("%u steps in %f s: %s", (unsigned) work, processor_time() - since, f->text);
    }

    vlm_grammar_free(g);
}


static void
masks_of_adversarial_forms_are_bounded(void **state)
{
    size_t  i;

    (void) state;

    for (i = 0; i < N_FORMS; i++) {
        check_form(&forms[i]);
    }
}


static void
masks_of_62_patterns_are_bounded(void **state)
{
    int           k;
    char          text[16384];
    size_t        i, n;
    const char   *p;
    const form_t  form = { SCHEMA, text };

    (void) state;

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        n = (size_t) sprintf(text, "{\"anyOf\":[");

        for (k = 0; k < 62; k++) {
            n += (size_t) sprintf(text + n, "%s{\"pattern\":\"", k == 0 ? "" : ",");

            for (p = patterns[i]; *p != '\0'; p++) {
                n += (size_t) (*p == '%' ? sprintf(text + n, "%c%c", 'a' + k % 26, 'a' + k / 26)
                               : sprintf(text + n, "%c", *p));
            }

            n += (size_t) sprintf(text + n, "\"}");
        }

        (void) sprintf(text + n, "]}");
        check_form(&form);
    }
}


/*
 * Masks that take the processor for long are no quick ones, though they have few readings: nodes of
 * the vocabulary are counted, and so are looks for the reading with the longest end.
 */
static void
masks_that_take_long_are_not_quick(void **state)
{
    int             k;
    size_t          i;
    char            text[4096] = "{\"anyOf\":[{\"maxLength\":1000}";
    double          since;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;
    const form_t    long_ones[] = {
        { GBNF, "root ::= [^\\n]{1,200} \"\\n\" root?" }, { REGEX, "((((.{1,9})+)+)+)+" },
        { GBNF, "root ::= . (root .{0,40})? | ." }, { SCHEMA, text }
    };

    (void) state;

    for (i = 1; i < 60; i++) {
        (void) sprintf(text + strlen(text), ",{\"maxLength\":%u}", (unsigned) (1000 + i));
    }

    (void) strcat(text, "]}");

    for (i = 0; i < sizeof(long_ones) / sizeof(long_ones[0]); i++) {
        g = make(&long_ones[i], &err);

        if (g == NULL) {
            fail_msg("%s: %s", err.text, long_ones[i].text);
        }

        vlm_match_start(&match, g);
        vlm_walk_allow(walker, VLM_MASK_MOST, NULL);
        (void) vlm_match_read(&match, walker, long_ones[i].kind == SCHEMA ? "\"a" : "ab", 2);

        for (k = 0; k < 2; k++) {      /* the first use of the vocabulary is slower */
            vlm_match_start(&other, g);
            vlm_walk_allow(walker, VLM_MASK_QUICK, NULL);
            since = processor_time();

            if (vlm_mask(qwen.pieces, i == 1 ? &other : &match, walker, AFTER, allowed) == 0) {
                fail_msg("%f s in %u steps: %s", processor_time() - since,
                         (unsigned) vlm_walk_work(walker), long_ones[i].text);
            }

            assert_true(vlm_walk_work(walker) < 2 * VLM_MASK_QUICK);
        }

        vlm_grammar_free(g);
    }
}


/* Two readings that have the same rules open are one: their number does not grow with the text. */
static void
equal_readings_are_one(void **state)
{
    size_t          i, k;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;
    static const char  *const texts[] = {
        "root ::= a | b | c\na ::= [a-z] root?\nb ::= [a-z] root?\nc ::= [a-z] root?",
        "root ::= \"(\" root \")\" | \"(\" root \")\" | [a-z] root | [a-z]"
    };

    (void) state;

    for (i = 0; i < 2; i++) {
        g = vlm_gbnf_make(qwen.pieces, texts[i], &err);
        assert_non_null(g);
        vlm_match_start(&match, g);
        vlm_walk_allow(walker, VLM_MASK_MOST, NULL);

        for (k = 0; k < 100; k++) {
            assert_int_equal(vlm_match_read(&match, walker, "x", 1), 0);
            assert_true(match.n_threads <= 4);
        }

        assert_true(vlm_walk_work(walker) < 5000);
        vlm_grammar_free(g);
    }
}


static void
a_walk_that_is_to_quit_reads_nothing(void **state)
{
    atomic_int  quit = 0;
    vlm_err_t   err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    (void) state;

    g = make(&forms[0], &err);
    vlm_match_start(&match, g);
    vlm_walk_allow(walker, VLM_MASK_MOST, &quit);
    assert_int_equal(vlm_match_read(&match, walker, "abc", 3), 0);
    atomic_store(&quit, 1);
    assert_int_equal(vlm_mask(qwen.pieces, &match, walker, AFTER, allowed), -1);
    assert_true(vlm_walk_work(walker) < 10000);
    vlm_grammar_free(g);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(masks_of_adversarial_forms_are_bounded),
        cmocka_unit_test(masks_of_62_patterns_are_bounded),
        cmocka_unit_test(masks_that_take_long_are_not_quick),
        cmocka_unit_test(equal_readings_are_one),
        cmocka_unit_test(a_walk_that_is_to_quit_reads_nothing)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
