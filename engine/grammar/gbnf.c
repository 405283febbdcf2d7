/*
 * Reads a grammar in the form of llama.cpp's GBNF.
 *
 * Rules are put into each other where they are named, so that "root" becomes one graph and then one
 * automaton.  A rule is read again for each place, as a part of an expression is for each time, so
 * that there is no tree of it.  A rule that stands within itself gets an automaton of its own.
 */

#include "grammar/reader.h"
#include "grammar/rules.h"

#include <stdlib.h>
#include <string.h>

#define NESTED   64                    /* groups and rules within each other */
#define N_RULES  1024
#define LAST     0x10ffff

#define peek     vlm_reader_peek
#define refuse   vlm_reader_refuse
#define starts   vlm_reader_starts

typedef enum {                         /* rules are noted, their names checked, and followed */
    NOTE, CHECK, READ
} stage_t;

typedef struct {
    const char  *name;                 /* [bytes] */
    size_t       bytes;
    size_t       body;                 /* where it stands */
    int          open;                 /* it is being read */
    uint32_t     own;                  /* its own automaton, from 1; 0: it has none */
} rule_t;

typedef struct {
    vlm_reader_t   r;                  /* first, so that a reader is one of these */
    rule_t        *rule;               /* [n] */
    uint32_t       n;
    stage_t        stage;
    rule_t        *own[VLM_RULES];     /* [n_own] with automata: the root and those in themselves */
    uint32_t       n_own;
    int            empty[VLM_RULES];   /* it may have no byte */
    int            calls, again;       /* some rule is read as one; something is known since */
    int            lines;              /* within brackets a line may end */
} gbnf_t;

static int alternatives(vlm_reader_t *r, vlm_strand_t *out);


/* ---- texts ---------------------------------------------------------------- */


static void
skip_blanks(vlm_reader_t *r, int lines)
{
    char  c;

    for (c = peek(r); c == ' ' || c == '\t' || c == '#' || (lines && (c == '\n' || c == '\r'));
         c = peek(r))
    {
        if (c != '#') {
            r->at++;
            continue;
        }

        while (r->at < r->bytes && peek(r) != '\n' && peek(r) != '\r') {
            r->at++;
        }
    }
}


static int
is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-'
           || c == '_';
}


static size_t
read_name(vlm_reader_t *r)
{
    size_t  from = r->at;

    while (is_of_name(peek(r))) {
        r->at++;
    }

    return r->at - from;
}


static rule_t *
find_rule(const gbnf_t *g, const char *name, size_t bytes)
{
    uint32_t  i;

    for (i = 0; i < g->n; i++) {
        if (g->rule[i].bytes == bytes && memcmp(g->rule[i].name, name, bytes) == 0) {
            return &g->rule[i];
        }
    }

    return NULL;
}


/* A character of a text or a class. */
static int
character(vlm_reader_t *r, uint32_t *code)
{
    size_t       from = r->at;
    const char  *p;
    static const char  letters[] = "t\tn\nr\r\"\"\\\\[[]]--^^";

    if (peek(r) != '\\') {
        return vlm_reader_character(r, code);
    }

    r->at++;
    p = peek(r) == '\0' ? NULL : strchr("xuU", peek(r));

    if (p != NULL) {
        r->at++;
        return vlm_reader_hex(r, *p == 'x' ? 2 : *p == 'u' ? 4 : 8, code);
    }

    for (p = letters; *p != '\0' && *p != peek(r); p += 2) { /* void */ }

    if (*p == '\0') {
        r->at = from;
        return refuse(r, "has an escape that is not supported");
    }

    r->at++;
    *code = (uint32_t) p[1];

    return 0;
}


static int
text(vlm_reader_t *r, vlm_strand_t *out)
{
    size_t        from, start = r->at;
    uint32_t      code;
    vlm_class_t   c;
    vlm_strand_t  one;

    if (vlm_strand_nothing(r->f, out) != 0) {
        return -1;
    }

    for (r->at++; peek(r) != '"'; ) {
        if (r->at == r->bytes || peek(r) == '\n') {
            r->at = start;
            return refuse(r, "has a text without an end");
        }

        from = r->at;

        if (character(r, &code) != 0) {
            return -1;
        }

        if (code == 0 || code > LAST || (code >= 0xd800 && code < 0xe000)) {
            r->at = from;
            return refuse(r, "names a character that cannot be");
        }

        c.n = 0;
        vlm_class_add(&c, code, code);

        if (vlm_nfa_class(r->f, &c, &one) != 0) {
            return -1;
        }

        vlm_strand_join(r->f, out, &one);
    }

    r->at++;

    return 0;
}


static int
bracket(vlm_reader_t *r, vlm_strand_t *out)
{
    int          invert;
    size_t       from = r->at;
    uint32_t     low, high;
    vlm_class_t  c = { 0 };

    r->at++;
    invert = peek(r) == '^';
    r->at += (size_t) invert;

    if (peek(r) == ']') {
        return refuse(r, "has a class of no character");
    }

    while (peek(r) != ']') {
        if (r->at == r->bytes || peek(r) == '\n') {
            r->at = from;
            return refuse(r, "has a class without an end");
        }

        if (character(r, &low) != 0) {
            return -1;
        }

        high = low;

        if (starts(r, "-") && !starts(r, "-]")) {
            r->at++;

            if (character(r, &high) != 0 || high < low) {
                return refuse(r, "has a range that is none");
            }
        }

        vlm_class_add(&c, low, high);

        if (c.n == VLM_NFA_RANGES) {
            return refuse(r, "has a class of too many parts");
        }
    }

    r->at++;

    if (invert) {
        vlm_class_invert(&c);
    }

    return vlm_nfa_class(r->f, &c, out);
}


/* ---- rules ---------------------------------------------------------------- */


static int
group(vlm_reader_t *r, vlm_strand_t *out)
{
    int      lines;
    size_t   from = r->at;
    gbnf_t  *g = (gbnf_t *) r;

    if (r->depth == NESTED) {
        return refuse(r, "has too many groups and rules within each other");
    }

    lines = g->lines;
    g->lines = 1;
    r->depth++;
    r->at++;

    if (alternatives(r, out) != 0) {
        return -1;
    }

    if (peek(r) != ')') {
        r->at = from;
        return refuse(r, "has a bracket that is not closed");
    }

    r->at++;
    r->depth--;
    g->lines = lines;

    return 0;
}


/* A rule with an automaton of its own, which is given to it if it stands within itself. */
static int
call(gbnf_t *g, rule_t *of, vlm_strand_t *out)
{
    int         id;
    uint8_t     code;
    vlm_nfa_t  *f = g->r.f;

    if (of->own == 0) {
        if (g->n_own == VLM_RULES) {
            return refuse(&g->r, "has more than 12 rules beside root that stand within themselves");
        }

        g->own[g->n_own++] = of;
        of->own = g->n_own;
        g->again = 1;
    }

    g->calls = 1;
    code = vlm_rule_code(of->own - 1);
    id = vlm_strand_nothing(f, out) != 0 ? -1 : vlm_nfa_link(f, VLM_LINK_BYTES, out->last, 0);

    if (id < 0) {
        return -1;
    }

    f->link[id].low = f->link[id].high = code;
    id = vlm_nfa_link(f, VLM_LINK_SPLIT, (uint16_t) id,
                      g->empty[of->own - 1] ? out->last : VLM_NFA_END);
    out->first = (uint16_t) id;

    return id < 0 ? -1 : 0;
}


/* The meaning of a rule. */
static int
rule(vlm_reader_t *r, vlm_strand_t *out)
{
    int      lines;
    size_t   from, end, n;
    gbnf_t  *g = (gbnf_t *) r;
    rule_t  *of;

    from = r->at;
    n = read_name(r);
    end = r->at;
    of = g->stage == NOTE ? NULL : find_rule(g, r->text + from, n);

    if (g->stage == NOTE || (g->stage == CHECK && of != NULL)) {
        return vlm_strand_nothing(r->f, out);
    }

    r->at = from;

    if (of == NULL || r->depth == NESTED) {
        return refuse(r, of == NULL ? "names a rule that there is not"
                      : "has too many groups and rules within each other");
    }

    if (vlm_grammar_step(r->f->k, 64 + g->n / 8) != 0) {
        return -1;
    }

    if (of->open || of->own) {
        r->at = end;
        return call(g, of, out);
    }

    lines = g->lines;
    g->lines = 0;
    of->open = 1;
    r->depth++;
    r->at = of->body;

    if (alternatives(r, out) != 0) {
        return -1;
    }

    r->at = end;
    r->depth--;
    of->open = 0;
    g->lines = lines;

    return 0;
}


static int
any(vlm_reader_t *r, vlm_strand_t *out)
{
    vlm_class_t  c = { 0 };

    r->at++;
    vlm_class_add(&c, 1, LAST);

    return vlm_nfa_class(r->f, &c, out);
}


static int
atom(vlm_reader_t *r, vlm_strand_t *out)
{
    int         rc;
    const char  c = peek(r);

    if (c == '*' || c == '+' || c == '?' || c == '{') {
        return refuse(r, "repeats nothing");
    }

    rc = c == '"' ? text(r, out) : c == '[' ? bracket(r, out) : c == '(' ? group(r, out)
         : c == '.' ? any(r, out) : is_of_name(c) ? rule(r, out)
         : refuse(r, c == '<' ? "has a token, which is not supported"
                  : "has a character that begins no part of a rule");

    if (rc == 0) {
        skip_blanks(r, ((gbnf_t *) r)->lines);
    }

    return rc;
}


/* A further alternative, perhaps on a line of its own. */
static int
goes_on(vlm_reader_t *r)
{
    size_t  from = r->at;

    skip_blanks(r, 1);

    if (peek(r) == '|') {
        r->at++;
        skip_blanks(r, 1);
        return 1;
    }

    r->at = from;

    return 0;
}


static int
is_end(const vlm_reader_t *r)
{
    const char  c = peek(r);

    return r->at == r->bytes || c == '|' || c == ')' || c == '\n' || c == '\r';
}


/* Alternatives, to the end of the rule or to a bracket that closes. */
static int
alternatives(vlm_reader_t *r, vlm_strand_t *out)
{
    int           first, last;
    gbnf_t       *g = (gbnf_t *) r;
    vlm_strand_t  one, p;

    last = vlm_nfa_link(r->f, VLM_LINK_SPLIT, VLM_NFA_END, VLM_NFA_END);
    first = -1;
    skip_blanks(r, 1);

    do {
        if (last < 0 || vlm_strand_nothing(r->f, &one) != 0) {
            return -1;
        }

        while (!is_end(r)) {
            if (vlm_reader_repeated(r, atom, 0, &p) != 0) {
                return -1;
            }

            vlm_strand_join(r->f, &one, &p);
            skip_blanks(r, g->lines);
        }

        r->f->link[one.last].a = (uint16_t) last;
        first = vlm_nfa_link(r->f, VLM_LINK_SPLIT, one.first,
                             first < 0 ? VLM_NFA_END : (uint16_t) first);

        if (first < 0) {
            return -1;
        }
    } while (goes_on(r));

    out->first = (uint16_t) first;
    out->last = (uint16_t) last;

    return 0;
}


/* ---- grammars ------------------------------------------------------------- */


/* A rule's name, and where its body is, which is read once to see that it is well formed. */
static int
note_rule(gbnf_t *g)
{
    size_t         from, bytes;
    vlm_reader_t  *r = &g->r;
    vlm_strand_t   all;

    from = r->at;
    bytes = read_name(r);

    if (bytes == 0 || g->n == N_RULES || find_rule(g, r->text + from, bytes) != NULL) {
        r->at = from;
        return refuse(r, bytes == 0 ? "has a line that is no rule"
                      : g->n == N_RULES ? "has more than 1024 rules" : "has a rule twice");
    }

    skip_blanks(r, 0);

    if (!starts(r, "::=")) {
        return refuse(r, "has no ::= behind the name of a rule");
    }

    r->at += 3;
    g->rule[g->n++] = (rule_t) { r->text + from, bytes, r->at, 0, 0 };

    if (alternatives(r, &all) != 0) {
        return -1;
    }

    r->f->n = 0;

    return peek(r) == ')' ? refuse(r, "has a bracket that closes nothing") : 0;
}


/* All rules, the first of which is the root. */
static int
note_rules(gbnf_t *g)
{
    uint32_t       i;
    vlm_reader_t  *r = &g->r;
    vlm_strand_t   all;

    g->stage = NOTE;

    for (skip_blanks(r, 1); r->at < r->bytes; skip_blanks(r, 1)) {
        if (note_rule(g) != 0) {
            return -1;
        }
    }

    g->own[0] = find_rule(g, "root", 4);

    if (g->own[0] == NULL) {
        return refuse(r, "has no rule named root");
    }

    g->own[0]->own = g->n_own = 1;
    g->stage = CHECK;

    for (i = 0; i < g->n; i++) {
        r->at = g->rule[i].body;

        if (alternatives(r, &all) != 0) {
            return -1;
        }

        r->f->n = 0;
    }

    g->stage = READ;

    return 0;
}


/* The automaton of a rule, or NULL. */
static vlm_dfa_t *
read_own(gbnf_t *g, uint32_t i)
{
    vlm_dfa_t     *d;
    vlm_strand_t   all;
    vlm_reader_t  *r = &g->r;

    r->f->n = 0;
    r->at = g->own[i]->body;
    g->own[i]->open = 1;
    d = alternatives(r, &all) == 0 ? vlm_nfa_whole(r->f, &all) : NULL;
    g->own[i]->open = 0;

    if (d != NULL && d->left[0] == 0 && !g->empty[i]) {
        g->empty[i] = 1;
        g->again = g->calls;
    }

    return d;
}


/* Reads the rules again for as long as that shows more about them.  -1: one is NULL. */
static int
read_rules(gbnf_t *g, vlm_dfa_t **rule)
{
    int       rc;
    uint32_t  i;

    do {
        g->again = 0;

        for (rc = 0, i = 0; rc == 0 && i < g->n_own; i++) {
            vlm_dfa_free(rule[i]);
            rule[i] = read_own(g, i);
            rc = rule[i] == NULL ? -1 : 0;
        }
    } while (rc == 0 && g->again);

    return rc;
}


static void
refuse_grammar(const vlm_nfa_t *f, const char *text, const vlm_err_t *own, vlm_err_t *err)
{
    size_t    i;
    unsigned  line, column;

    for (line = column = 1, i = 0; f->what != NULL && i < f->at; i++) {
        column = text[i] == '\n' ? 1 : column + 1;
        line += text[i] == '\n';
    }

    (void) (f->n == VLM_NFA_NODES ? vlm_fail(err, VLM_ELIMIT, "the grammar takes more than %u "
                                             "nodes", VLM_NFA_NODES)
            : f->what != NULL ? vlm_fail(err, VLM_EINPUT, "the grammar %s, at line %u, column %u",
                                         f->what, line, column)
            : own->code == VLM_EINPUT && strncmp(own->text, "the ", 4) != 0
              ? vlm_fail(err, VLM_EINPUT, "the grammar fits no text")
            : own->code == VLM_ELIMIT ? vlm_fail(err, VLM_ELIMIT, "the grammar takes more than %u "
                                                 "states, or than %u steps of work",
                                                 VLM_DFA_STATES, VLM_GRAMMAR_STEPS)
            : vlm_fail(err, own->code, "%s", own->text));
}


/* One automaton if no rule stands within itself. */
static vlm_grammar_t *
make(gbnf_t *g, vlm_maker_t *k)
{
    uint32_t        i;
    vlm_dfa_t      *d, *rule[VLM_RULES] = { NULL };
    const char     *sentence;
    vlm_grammar_t  *made = NULL;

    if (note_rules(g) == 0 && read_rules(g, rule) == 0) {
        if (!g->calls) {
            d = rule[0];
            rule[0] = NULL;
            made = vlm_dfa_text(k, d, "grammar");

        } else if (vlm_rules_make(k, rule, g->n_own, &i, &sentence) == 0) {
            made = k->g;

        } else if (sentence != NULL) {
            g->r.at = (size_t) (g->own[i]->name - g->r.text);
            (void) refuse(&g->r, sentence);
        }
    }

    for (i = 0; i < g->n_own; i++) {
        vlm_dfa_free(rule[i]);
    }

    return made;
}


vlm_grammar_t *
vlm_gbnf_make(const vlm_tokens_t *pieces, const char *text, vlm_err_t *err)
{
    gbnf_t          g = { .r = { NULL, text, 0, strlen(text), 0 } };
    vlm_err_t       own = { VLM_OK, "" };
    vlm_nfa_t       f;
    vlm_maker_t     k;
    vlm_grammar_t  *made;

    if (g.r.bytes > VLM_GRAMMAR_BYTES) {
        (void) vlm_fail(err, VLM_ELIMIT, "the grammar has more than %u bytes", VLM_GRAMMAR_BYTES);
        return NULL;
    }

    if (vlm_grammar_begin(&k, pieces, err) == NULL) {
        return NULL;
    }

    k.err = &own;
    g.r.f = &f;
    g.rule = calloc(N_RULES, sizeof(*g.rule));
    made = NULL;

    if (vlm_nfa_open(&f, &k, 0) == 0 && g.rule != NULL) {
        made = make(&g, &k);
    } else {
        (void) vlm_fail(&own, VLM_EMEMORY, "no memory for a grammar");
    }

    if (made == NULL) {
        refuse_grammar(&f, text, &own, err);
        vlm_grammar_free(k.g);
    }

    vlm_nfa_close(&f);
    free(g.rule);

    return made;
}
