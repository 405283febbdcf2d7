/* The automaton: what a byte makes of a thread.  Every place in the grammar has its function. */

#include "grammar/rules.h"

#include <string.h>

#define put   vlm_thread_put
#define ENDS  8                        /* such looks at a thread's end are as one step */


/* ---- new states ---------------------------------------------------------- */


static int
same(const vlm_thread_t *a, const vlm_thread_t *b)
{
    return a->container == b->container && a->node == b->node && a->trie == b->trie
           && a->below == b->below && a->index == b->index && a->count == b->count
           && a->at == b->at && a->run == b->run && a->rest == b->rest && a->depth == b->depth
           && a->key == b->key && a->cell == b->cell;
}


static uint32_t
hash_thread(const vlm_thread_t *t)
{
    uint64_t  h;

    h = (uintptr_t) t->node ^ (uintptr_t) t->trie * 3 ^ (uintptr_t) t->container * 5;
    h = (h ^ t->count ^ (uint64_t) t->index << 20 ^ (uint64_t) t->cell << 40) * VLM_HASH;

    return (uint32_t) (h >> 32) ^ t->at ^ (uint32_t) t->run << 8 ^ (uint32_t) t->key << 16;
}


/* Of ways to read a rule, which may be many: the one with the longest end. */
static uint32_t
find_worst(vlm_walk_t *w, uint32_t *left)
{
    uint32_t  i, n, worst;

    for (*left = 0, worst = 0, i = 0; i < w->n; i++) {
        n = vlm_thread_left(&w->to[i]);
        worst = n > *left ? i : worst;
        *left = n > *left ? n : *left;
    }

    vlm_walk_count(w, w->n / ENDS);

    return worst;
}


int
vlm_thread_put(vlm_walk_t *w, const vlm_thread_t *t)
{
    uint32_t        i, worst, left;
    const uint32_t  hash = hash_thread(t);

    for (i = 0; i < w->n; i++) {
        if (w->hash[i] == hash && same(&w->to[i], t)) {
            w->to[i].kept |= t->kept;
            return 0;
        }
    }

    if (w->n < VLM_GRAMMAR_CHOICES) {
        w->hash[w->n] = hash;
        w->to[w->n++] = *t;
        return 1;
    }

    for (i = w->n; t->kept && i-- > 0; ) {
        if (!w->to[i].kept) {
            w->hash[i] = hash;
            w->to[i] = *t;
            return 1;
        }
    }

    /* That with the shortest end is one of those that stay. */

    if (t->kept && t->at == IN_RULE) {
        worst = find_worst(w, &left);

        if (left > vlm_thread_left(t)) {
            w->hash[worst] = hash;
            w->to[worst] = *t;
            return 1;
        }
    }

    return 0;
}


static void
go(vlm_walk_t *w, const vlm_thread_t *from, uint8_t at)
{
    vlm_thread_t  t = *from;

    t.at = at;
    t.run = 0;
    (void) put(w, &t);
}


static void
go_value(vlm_walk_t *w, const vlm_thread_t *from, const vlm_node_t *node, uint32_t index)
{
    vlm_thread_t  t = *from;

    t.node = node;
    t.index = index;
    go(w, &t, VALUE);
}


/* Behind a value; the end, if nothing is open.  The value is forgotten: threads become equal. */
static vlm_thread_t
behind(const vlm_thread_t *from)
{
    vlm_thread_t  t = *from;

    t.node = NULL;
    t.trie = NULL;
    t.count = 0;
    t.rest = 0;
    t.run = 0;
    t.key = 0;
    t.at = t.container == NULL ? DONE : AFTER;

    return t;
}


static void
ended(vlm_walk_t *w, const vlm_thread_t *from)
{
    vlm_thread_t  t = behind(from);

    (void) put(w, &t);
}


static void
go_colon(vlm_walk_t *w, const vlm_thread_t *from, const vlm_node_t *value, uint32_t index)
{
    vlm_thread_t  t = behind(from);

    t.node = value;
    t.index = index;
    t.at = COLON;
    (void) put(w, &t);
}


static void
open_bracket(vlm_walk_t *w, const vlm_thread_t *from, const vlm_node_t *node)
{
    vlm_thread_t      t = *from;
    const vlm_cell_t  c = { .container = t.container, .below = t.below, .index = t.index,
                            .cell = t.cell };

    t.cell = vlm_walk_cell(w, &c);
    t.below = vlm_thread_tail(from);
    t.container = node;
    t.index = 0;
    t.depth++;
    t.run = 0;
    t.at = node->kind == VLM_NODE_OBJECT ? FIRST_KEY : FIRST_ITEM;

    if (t.cell != VLM_NO_CELL) {
        (void) put(w, &t);
    }
}


static void
close_bracket(vlm_walk_t *w, const vlm_thread_t *from)
{
    vlm_thread_t       t = *from;
    const vlm_cell_t  *c = &w->cell[t.cell];

    t.container = c->container;
    t.below = c->below;
    t.index = c->index;
    t.cell = c->cell;
    t.depth--;
    ended(w, &t);
}


/* ---- bytes --------------------------------------------------------------- */


static int
is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}


static int
is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}


static void
go_branch(vlm_walk_t *w, const vlm_thread_t *from, const vlm_branch_t *b)
{
    vlm_thread_t  t = *from;

    if (b->child == NULL) {
        ended(w, &t);
        return;
    }

    t.trie = b;
    go(w, &t, IN_FIXED);
}


/* A byte at a state of a pattern; 0: it is none of its texts. */
static int
go_pattern(vlm_walk_t *w, const vlm_thread_t *from, uint32_t state, uint8_t c)
{
    vlm_thread_t      t = *from;
    const vlm_dfa_t  *d = t.node->dfa;

    t.count = vlm_dfa_next(d, state, c);

    if (t.count == VLM_DFA_NONE) {
        return 0;
    }

    if (d->left[t.count] == 0 && !d->more[t.count]) {
        ended(w, &t);
    } else {
        go(w, &t, IN_PATTERN);
    }

    return 1;
}


/* The first byte of a value of one node. */
static void
begin_one(vlm_walk_t *w, const vlm_thread_t *from, const vlm_node_t *node, uint8_t c)
{
    vlm_thread_t         t = *from;
    const vlm_branch_t  *b;

    if (vlm_thread_deep(from, node)) {
        return;
    }

    t.node = node;

    switch (node->kind) {
    case VLM_NODE_OBJECT:
    case VLM_NODE_ARRAY:
        if (c == (node->kind == VLM_NODE_OBJECT ? '{' : '[')) {
            open_bracket(w, from, node);
        }

        return;
    case VLM_NODE_STRING:
        if (c == '"') {
            t.count = 0;
            t.key = 0;
            go(w, &t, TEXT);
        }

        return;
    case VLM_NODE_FIXED:
        b = vlm_trie_child(node->trie, c);

        if (b != NULL) {
            go_branch(w, &t, b);
        }

        return;
    case VLM_NODE_PATTERN:
        (void) go_pattern(w, &t, 0, c);
        return;
    case VLM_NODE_RULE:
        t.count = 0;
        vlm_rules_step(w, &t, c, 1);
        return;
    default:
        if (c == '-' || is_digit(c)) {
            t.at = c == '-' ? MINUS : c == '0' ? ZERO : INTEGER;
            t.run = 1;
            (void) put(w, &t);
        }
    }
}


static void
begin(vlm_walk_t *w, const vlm_thread_t *t, const vlm_node_t *node, uint8_t c)
{
    uint32_t  i;

    if (node->kind != VLM_NODE_ANY) {
        begin_one(w, t, node, c);
        return;
    }

    for (i = 0; i < node->n; i++) {
        begin_one(w, t, node->part[i], c);
    }
}


/* 1: a member may come: one of the object's, or another. */
static int
has_key(const vlm_thread_t *t, int further)
{
    uint32_t           i;
    const vlm_node_t  *o = t->container;

    if (further) {
        return o->member[t->index].must == o->n && !vlm_thread_deep(t, o->rest);
    }

    for (i = t->index; i < o->n && i <= o->member[t->index].must; i++) {
        if (!vlm_thread_deep(t, o->member[i].value)) {
            return 1;
        }
    }

    return 0;
}


static void
begin_key(vlm_walk_t *w, const vlm_thread_t *from)
{
    vlm_thread_t  t = *from;

    t.trie = t.container->trie;

    if (has_key(from, 0)) {
        go(w, &t, IN_KEY);
    }

    if (has_key(from, 1)) {
        t.key = 1;
        t.node = t.container->rest;
        t.index = t.container->n;
        go(w, &t, TEXT);
    }
}


static void
after_value(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c)
{
    const vlm_node_t  *item, *o = t->container;

    if (o->kind == VLM_NODE_OBJECT) {
        if (c == ',' && (has_key(t, 0) || has_key(t, 1))) {
            go(w, t, KEY);

        } else if (c == '}' && o->member[t->index].must == o->n) {
            close_bracket(w, t);
        }

        return;
    }

    item = vlm_grammar_item(o, t->index);

    if (c == ',' && !vlm_thread_deep(t, item)) {
        go_value(w, t, item, t->index + 1);

    } else if (c == ']' && t->index >= o->low) {
        close_bracket(w, t);
    }
}


static void
first_item(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    vlm_thread_t       t = *from;
    const vlm_node_t  *item;

    if (c == ']') {
        if (t.container->low == 0) {
            close_bracket(w, &t);
        }

        return;
    }

    item = vlm_grammar_item(t.container, 0);

    if (!vlm_thread_deep(&t, item)) {
        t.index = 1;
        t.run = 0;
        begin(w, &t, item, c);
    }
}


/* Blanks are one space, or a line break and an indentation. */
static void
go_blank(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    vlm_thread_t  t = *from;

    if (t.run == 0 ? c == ' ' || c == '\n'
                   : t.run > 1 && t.run < VLM_MATCH_BLANKS && (c == ' ' || c == '\t'))
    {
        t.run += c == '\n' ? 2 : 1;
        (void) put(w, &t);
    }
}


/* Between values: brackets, commas, colons, and the first bytes of values. */
static void
in_structure(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c)
{
    if (is_blank(c) && w->blanks
        && (t->container != NULL || (w->blanks == 2 && t->at == VALUE)))
    {
        go_blank(w, t, c);
        return;
    }

    switch (t->at) {
    case VALUE:
        begin(w, t, t->node, c);
        return;
    case FIRST_KEY:
    case KEY:
        if (c == '"') {
            begin_key(w, t);

        } else if (c == '}' && t->at == FIRST_KEY && t->container->member->must == t->container->n)
        {
            close_bracket(w, t);
        }

        return;
    case COLON:
        if (c == ':') {
            go(w, t, VALUE);
        }

        return;
    case FIRST_ITEM:
        first_item(w, t, c);
        return;
    case AFTER:
        after_value(w, t, c);
        return;
    }
}


static void
in_fixed(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c)
{
    vlm_thread_t         end;
    const vlm_branch_t  *b;

    b = vlm_trie_child(t->trie, c);

    if (b != NULL) {
        go_branch(w, t, b);

    } else if (t->trie->ends && t->container != NULL) {
        end = behind(t);
        in_structure(w, &end, c);
    }
}


static void
in_pattern(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c)
{
    vlm_thread_t  end;

    if (!go_pattern(w, t, t->count, c) && t->node->dfa->left[t->count] == 0
        && t->container != NULL)
    {
        end = behind(t);
        in_structure(w, &end, c);
    }
}


/* A quote that belongs to a key stands behind a backslash, so that a branch has it. */
static void
in_a_key(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    uint32_t             i;
    vlm_thread_t         t = *from;
    const vlm_branch_t  *b;
    const vlm_member_t  *m = t.container->member;

    b = vlm_trie_child(t.trie, c);

    if (b != NULL) {
        if (vlm_thread_way(&t, b, NULL) != NULL) {
            t.trie = b;
            (void) put(w, &t);
        }

        return;
    }

    i = t.trie->member;

    if (c == '"' && t.trie->ends && i >= t.index && i <= m[t.index].must
        && !vlm_thread_deep(&t, m[i].value))
    {
        go_colon(w, &t, m[i].value, i + 1);
    }
}


static void
go_rest(vlm_walk_t *w, vlm_thread_t *t, uint8_t at, uint8_t rest)
{
    t->rest = rest;
    go(w, t, at);
}


/* Counts a character that begins; 0: there may be no more. */
static int
count_character(vlm_thread_t *t)
{
    if (t->key) {
        return 1;
    }

    if (t->node->high == UINT32_MAX) {
        t->count += t->count < t->node->low;       /* no more than the lower bound */
        return 1;
    }

    return t->count++ < t->node->high;
}


static void
end_string(vlm_walk_t *w, const vlm_thread_t *t)
{
    if (!t->key) {
        if (t->count >= t->node->low) {
            ended(w, t);
        }

    } else if (t->trie == NULL || !t->trie->ends) {
        go_colon(w, t, t->node, t->index);
    }
}


/* A character of a string: all of it, the quote, or the first byte of a longer one. */
static void
in_text(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    vlm_thread_t  t = *from;

    if (c == '"') {
        end_string(w, &t);
        return;
    }

    if (c < 0x20 || !count_character(&t)) {
        return;
    }

    if (t.key && t.trie != NULL) {
        t.trie = vlm_trie_child(t.trie, c);
    }

    if (c == '\\') {
        /* An escape might spell a key of the object's in another way. */

        if (!t.key || t.container->trie == NULL) {
            go_rest(w, &t, ESCAPE, 1);
        }

    } else if (c < 0x80) {
        go(w, &t, TEXT);

    } else if (c < 0xe0) {
        if (c >= 0xc2) {
            go_rest(w, &t, CHARACTER, 1);
        }

    } else if (c < 0xf0) {
        go_rest(w, &t, c == 0xe0 ? CHARACTER_E0 : c == 0xed ? CHARACTER_ED : CHARACTER, 2);

    } else if (c <= 0xf4) {
        go_rest(w, &t, c == 0xf0 ? CHARACTER_F0 : c == 0xf4 ? CHARACTER_F4 : CHARACTER, 3);
    }
}


/* Continuation bytes: no overlong form, no surrogate, nothing above U+10FFFF. */
static void
in_character(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    uint8_t       low, high;
    vlm_thread_t  t = *from;

    low = t.at == CHARACTER_E0 ? 0xa0 : t.at == CHARACTER_F0 ? 0x90 : 0x80;
    high = t.at == CHARACTER_ED ? 0x9f : t.at == CHARACTER_F4 ? 0x8f : 0xbf;

    if (c < low || c > high) {
        return;
    }

    if (t.key && t.trie != NULL) {
        t.trie = vlm_trie_child(t.trie, c);
    }

    t.rest--;
    go(w, &t, t.rest == 0 ? TEXT : CHARACTER);
}


static void
in_escape(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    vlm_thread_t  t = *from;

    if (t.at == ESCAPE) {
        if (c == 'u') {
            go_rest(w, &t, HEX_FIRST, 4);

        } else if (c != '\0' && strchr("\"\\/bfnrt", c) != NULL) {
            go(w, &t, TEXT);
        }

        return;
    }

    if ((!is_digit(c) && !((c | 0x20) >= 'a' && (c | 0x20) <= 'f'))
        || (t.at == HEX_D && !(c >= '0' && c <= '7')))
    {
        return;
    }

    t.rest--;

    go(w, &t, t.at == HEX_FIRST && (c | 0x20) == 'd' ? HEX_D : t.rest == 0 ? TEXT : HEX);
}


static uint8_t
number_place(uint8_t at, uint8_t c, int whole)
{
    int  e = (c | 0x20) == 'e' && !whole;

    if (is_digit(c)) {
        switch (at) {
        case MINUS:
            return c == '0' ? ZERO : INTEGER;
        case INTEGER:
            return INTEGER;
        case POINT:
        case FRACTION:
            return FRACTION;
        case E:
        case E_SIGN:
            return EXPONENT;
        case EXPONENT:
            return EXPONENT_END;
        }

        return NOWHERE;
    }

    switch (at) {
    case ZERO:
    case INTEGER:
        return c == '.' && !whole ? POINT : e ? E : NOWHERE;
    case FRACTION:
        return e ? E : NOWHERE;
    case E:
        return c == '+' || c == '-' ? E_SIGN : NOWHERE;
    }

    return NOWHERE;
}


/* A number may go on as long as there is room for its end; any other byte ends it. */
static void
in_number(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c)
{
    uint8_t       at;
    vlm_thread_t  t = *from;

    at = number_place(t.at, c, t.node->kind == VLM_NODE_INTEGER);

    if (at != NOWHERE) {
        if (t.run + (at < ZERO) < VLM_MATCH_NUMBER) {
            t.at = at;
            t.run++;
            (void) put(w, &t);
        }

    } else if (t.at >= ZERO && t.container != NULL) {
        t = behind(&t);
        in_structure(w, &t, c);
    }
}


void
vlm_thread_step(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c)
{
    if (t->at == TEXT) {
        in_text(w, t, c);

    } else if (t->at < DONE) {
        in_structure(w, t, c);

    } else if (t->at == IN_FIXED) {
        in_fixed(w, t, c);

    } else if (t->at == IN_KEY) {
        in_a_key(w, t, c);

    } else if (t->at == IN_PATTERN) {
        in_pattern(w, t, c);

    } else if (t->at == IN_RULE) {
        vlm_rules_step(w, t, c, 0);

    } else if (t->at >= MINUS) {
        in_number(w, t, c);

    } else if (t->at >= CHARACTER) {
        in_character(w, t, c);

    } else if (t->at >= ESCAPE) {
        in_escape(w, t, c);
    }
}
