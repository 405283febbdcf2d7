/*
 * Grammars in GBNF: what they describe is accepted and nothing else, their masks are exact, any
 * choice of tokens comes to its end, and what cannot be read is refused with line and column.
 */

#include "grammar/grammar_fixture.h"

/* A tree of things: names, texts in quotes and numbers, and what stands on each. */
#define SCENE                                                                                      \
    "# a scene\nroot ::= thing end?\n"                                                             \
    "thing ::= name | note | count | (\"floor\" | \"wall\") gap | stack\n"                         \
    "stack ::= \"<\" gap ( place (\";\" gap place)* )? \">\" gap\n"                                \
    "place ::= name \"=\" gap thing   # what stands there\n"                                       \
    "name ::=\n  [a-z]\n  | [A-Z] (\n    [a-z_]\n    [0-9]?\n  ){1,4}\n"                           \
    "note ::= \"'\" ( [^'^\\x00-\\x1F\\x7f] | \"^\" (['^] | \"#\" digit{2}) )* \"'\"\n"            \
    "digit ::= [0-9A-F]\n"                                                                         \
    "count ::= [0-9]{1,3} (\"/\" [0-9]+)?\n"                                                       \
    "gap ::= \"\" | \"\\t\" | \"\\n\" \" \"{0,9}\n"                                                \
    "end ::= \".\"\n"

/* Statements of logic. */
#define LOGIC                                                                                      \
    "root ::= (\"if \" claim \" then \" atom \"!\")+\n"                                            \
    "claim ::= side ((\" and \" | \" or \") side)*\n"                                              \
    "side ::= atom | \"not \" side | \"(\" claim \")\"\n"                                          \
    "atom ::= [p-z] [0-9]*\n"

typedef struct {
    const char  *text, *yes[6], *no[8];
} case_t;


static vlm_grammar_t *
gbnf(const vocab_t *v, const char *text)
{
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;

    g = vlm_gbnf_make(v->pieces, text, &err);

    if (g == NULL) {
        fail_msg("%s: %s", err.text, text);
    }

    return g;
}


static void
check_cases(const case_t *cases, size_t n)
{
    size_t          i, k;
    vlm_grammar_t  *g;

    for (i = 0; i < n; i++) {
        g = gbnf(&demo, cases[i].text);

        for (k = 0; k < 6 && cases[i].yes[k] != NULL; k++) {
            if (!accepts(g, cases[i].yes[k])) {
                fail_msg("refused: %s by %s", cases[i].yes[k], cases[i].text);
            }
        }

        for (k = 0; k < 8 && cases[i].no[k] != NULL; k++) {
            if (accepts(g, cases[i].no[k])) {
                fail_msg("accepted: %s by %s", cases[i].no[k], cases[i].text);
            }
        }

        vlm_grammar_free(g);
    }
}


static void
a_grammar_has_its_texts_and_no_other(void **state)
{
    static const case_t  cases[] = {
        { "root ::= \"yes\" | \"no\"", { "yes", "no" }, { "y", "yesno", "Yes", "no " } },
        { "root ::= (\"- \" line \"\\n\")+ # a list\nline ::= [^\\r\\n\\x0b]{1,12}\n",
          { "- a\n", "- a\n- b c\n" }, { "- \n", "- a", "a\n", "- a\r\n", "- 1234567890123\n" } },
        { "root ::= a\n  | b\n  | \"c\" # last\na ::= \"x\"{2} \"y\"?\nb ::= . [^.]\n",
          { "xx", "xxy", "c", "\xc3\xa9z" }, { "x", "xxxy", "a.", "ccc" } },
        { "root ::= \"\\u00e9\" \"\\x41\\\"\" [\\]\\-a-c\\U0001F600]* a-b\na-b ::= \"\"",
          { "\xc3\xa9" "A\"", "\xc3\xa9" "A\"]-b\xf0\x9f\x98\x80" }, { "A\"", "\xc3\xa9" "A\"d" } }
    };

    (void) state;

    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
rules_may_stand_within_themselves(void **state)
{
    static const case_t  cases[] = {
        { SCENE, { "<>", "<a=<b=floor;\n   Cup=\t'it^'s^#0A';c=12/7>>.", "'\xc3\xa9'", "7",
                   "<a=<a=<a=<a=<a=<a=<a=<a=<>>>>>>>>>", "Ab1c2" },
          { "<", "<a=1;>", "<a>", "<>>", "1234", "'^x'", "floo", "'\x7f'" } },
        { LOGIC, { "if p then q!", "if (p and not q1) or r then s!", "if ((((p)))) then q!",
                   "if p then q!if not not p then r!" },
          { "if p", "if (p then q!", "if p) then q!", "if p and then q!", "if not then q!" } },
        { "root ::= \"a\" root \"b\" | \"c\"", { "c", "acb", "aaacbbb" },
          { "", "ac", "acbb", "aacb" } },
        { "root ::= item\nitem ::= \"x\" item?", { "x", "xx", "xxxxxxxx" }, { "", "y" } },
        { "root ::= pair \".\"\npair ::= (\"(\" pair \")\")*", { ".", "().", "(())()." },
          { "(.", ")(.", "(()" } },
        { "root ::= \"<\" a \">\"\na ::= b? \"-\" | \"[\" a \"]\"\nb ::= (\"{\" a b \"}\")?",
          { "<->", "<[-]>", "<{-}->", "<{-{-}}->" }, { "<>", "<{}->", "<[->" } }
    };

    (void) state;

    check_cases(cases, sizeof(cases) / sizeof(cases[0]));
}


static void
a_rule_that_ends_with_itself_takes_no_depth(void **state)
{
    char            text[251];
    vlm_grammar_t  *g;

    (void) state;

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    g = gbnf(&demo, "root ::= \"x\" root | \"x\"");
    assert_true(accepts(g, text));
    vlm_grammar_free(g);

    /* Rules that do not end so are open within each other at most 64 times. */

    memset(text, '(', 100);
    memset(text + 100, ')', 100);
    text[200] = '\0';
    g = gbnf(&demo, "root ::= \"(\" root \")\" | \"()\"");
    assert_false(accepts(g, text));
    text[100 + 60] = '\0';
    assert_true(accepts(g, text + 40));
    vlm_grammar_free(g);
}


static const char *const  grammars[] = {
    SCENE, LOGIC,
    "root ::= \"a\" root \"b\" | \"c\"",
    "root ::= (\"- \" [^\\n]{1,12} \"\\n\"){1,4}",
    "root ::= pair \".\"\npair ::= (\"(\" pair \")\")*",
    "root ::= s\ns ::= \"a\" s \"a\" | \"a\" s | \"a\"",
    "root ::= t\nt ::= \"<\" [a-z]{1,3} \">\" (t | [^<>])* \"</>\"\n",
    "root ::= a | b\na ::= \"x\" (a | b) \"y\"\nb ::= \"x\" (b | a)? \"z\""
};


static void
walks_end_and_masks_are_exact(void **state)
{
    char            text[BUDGET * 256];
    size_t          i, bytes;
    uint32_t        k, least;
    vlm_grammar_t  *g;

    (void) state;

    for (i = 0; i < sizeof(grammars) / sizeof(grammars[0]); i++) {
        g = gbnf(&demo, grammars[i]);
        least = vlm_grammar_least(g);

        for (k = 0; k < 60; k++) {
            bytes = walk(&demo, g, least + k % (BUDGET - least), text, k < 6 ? 1 : 0);
            text[bytes] = '\0';
            vlm_match_start(&match, g);

            for (bytes = 0; text[bytes] != '\0'; bytes++) {
                assert_int_equal(vlm_match_read(&match, walker, text + bytes, 1), 0);
            }

            assert_true(vlm_match_may_end(&match));
        }

        vlm_grammar_free(g);
        g = gbnf(&qwen, grammars[i]);
        (void) walk(&qwen, g, vlm_grammar_least(g) + 30, text, 12);
        vlm_grammar_free(g);
    }
}


static void
what_cannot_be_read_is_refused_with_line_and_column(void **state)
{
    size_t          i;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    static const char  *const cases[][2] = {
        { "root ::= \"a", "has a text without an end, at line 1, column 10" },
        { "root ::= [a", "has a class without an end, at line 1, column 10" },
        { "root ::= a\n\nb ::= \"b\"", "names a rule that there is not, at line 1, column 10" },
        { "root ::= \"a\"\nb ::= c", "names a rule that there is not, at line 2, column 7" },
        { "root ::= (\"a\"\n | \"b\"", "has a bracket that is not closed, at line 1, column 10" },
        { "root ::= \"a\")", "has a bracket that closes nothing, at line 1, column 13" },
        { "root ::= \"a\"\n* \"b\"", "has a line that is no rule, at line 2, column 1" },
        { "root ::= * \"b\"", "repeats nothing, at line 1, column 10" },
        { "root ::= \"b\"{3,1}", "has a number of times that cannot be, at line 1, column 17" },
        { "root = \"b\"", "has no ::= behind the name of a rule, at line 1, column 6" },
        { "a ::= \"b\"", "has no rule named root, at line 1, column 10" },
        { "root ::= \"b\"\nroot ::= \"c\"", "has a rule twice, at line 2, column 1" },
        { "root ::= \"\\q\"", "has an escape that is not supported, at line 1, column 11" },
        { "root ::= \"\\x0\"", "has no hexadecimal digit, at line 1, column 14" },
        { "root ::= \"\\ud800\"", "names a character that cannot be, at line 1, column 11" },
        { "root ::= [b-a]", "has a range that is none, at line 1, column 14" },
        { "root ::= <think>", "has a token, which is not supported, at line 1, column 10" },
        { "root ::= a\na ::= a \"x\" | \"y\"", "begins a rule with itself, at line 2, column 1" },
        { "root ::= a\na ::= b? a? \"x\"\nb ::= \"c\"",
          "begins a rule with itself, at line 2, column 1" },
        { "root ::= \"x\" root", "has a rule that comes to no end, at line 1, column 1" },
        { "root ::= \"\"", "fits no text but the empty one" },
        { "root ::= [^\\x00-\\U0010FFFF]", "fits no text" },
        { "", "has no rule named root, at line 1, column 1" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        g = vlm_gbnf_make(demo.pieces, cases[i][0], &err);

        if (g != NULL || err.code != VLM_EINPUT || strstr(err.text, cases[i][1]) == NULL) {
            fail_msg("%s: %s", cases[i][0], err.text);
        }

        assert_memory_equal(err.text, "the grammar ", 12);
    }
}


static void
large_grammars_are_made_or_refused_in_bounded_time(void **state)
{
    char            text[4096];
    char           *p;
    size_t          i;
    double          since;
    vlm_err_t       err;
    vlm_grammar_t  *g;
    static const char  *const cases[] = {
        "root ::= ([ab]* \"a\" [ab]{20})+",
        "root ::= ((((\"a\"?){9}){9}){9}){9}",
        "root ::= a{9999}\na ::= b{9999}\nb ::= \"\"",
        "root ::= s\ns ::= \"a\" s s s | \"a\" s | s2 \"b\"\ns2 ::= \"a\" (s | s2)* \"c\"",
        NULL
    };

    (void) state;

    /* Each rule has the next one twice. */

    for (p = text, i = 0; i < 40; i++) {
        p += sprintf(p, "%s%zu ::= r%zu r%zu\n", i == 0 ? "root ::= r0\nr" : "r", i, i + 1, i + 1);
    }

    (void) sprintf(p, "r40 ::= \"x\"\n");

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&err, 0, sizeof(err));
        since = processor_time();
        g = vlm_gbnf_make(demo.pieces, cases[i] == NULL ? text : cases[i], &err);
        assert_true(g != NULL || err.code == VLM_ELIMIT);
        assert_true(processor_time() - since < 5);
        vlm_grammar_free(g);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_grammar_has_its_texts_and_no_other),
        cmocka_unit_test(rules_may_stand_within_themselves),
        cmocka_unit_test(a_rule_that_ends_with_itself_takes_no_depth),
        cmocka_unit_test(walks_end_and_masks_are_exact),
        cmocka_unit_test(what_cannot_be_read_is_refused_with_line_and_column),
        cmocka_unit_test(large_grammars_are_made_or_refused_in_bounded_time)
    };

    return cmocka_run_group_tests(tests, open_all, close_all);
}
