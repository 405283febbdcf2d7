/* Rules: their costs, and what a byte makes of a thread that is in one.  See the header. */

#include "grammar/rules.h"

#include <stdlib.h>
#include <string.h>

#define add    vlm_cost_add
#define FAR    60000                   /* tokens that an end may take */

typedef struct {                       /* of a rule */
    uint32_t  *left;                   /* [n_states] tokens to its end */
    uint32_t  *need;                   /* [n_states] rules within each other, on that way */
    uint32_t   enter, enter_need;      /* the same of its shortest text that is not empty */
    uint32_t   ways;                   /* that lead on from its beginning; 0: not yet known */
    int        open;                   /* they are being counted */
    uint8_t    rule_of[256];           /* [n_classes] the rule that a class stands for, from 1 */
} cost_t;

typedef struct {
    vlm_maker_t        *k;
    vlm_dfa_t *const   *rule;          /* [n] */
    uint32_t            n;
    cost_t             *cost;          /* [n] */
    uint32_t            wrong;         /* the rule with which something is wrong */
} rules_t;


/* 1: the byte is no rule's code. */
static int
is_text(uint32_t c)
{
    return c < 0xc0 || (c > 0xc1 && c < 0xf5);
}


/* ---- costs ---------------------------------------------------------------- */


/* 1: nothing but the end is behind the state, so that a rule before it need not come back. */
static int
is_last(const vlm_dfa_t *d, uint32_t state)
{
    return d->left[state] == 0 && !d->more[state];
}


/* The tokens of a way on from a state, and the rules within each other on it. */
static uint32_t
way(const rules_t *r, uint32_t i, uint32_t state, uint32_t class, uint32_t *need)
{
    uint32_t          to, of;
    const cost_t     *c = &r->cost[i];
    const vlm_dfa_t  *d = r->rule[i];

    to = d->next[(size_t) state * d->n_classes + class];
    of = c->rule_of[class];

    if (to == VLM_DFA_NONE) {
        *need = VLM_GRAMMAR_NEVER;
        return VLM_GRAMMAR_NEVER;
    }

    *need = c->need[to];

    if (of == 0) {
        return add(1, c->left[to]);
    }

    c = &r->cost[of - 1];
    *need = add(c->enter_need, !is_last(d, to)) > *need ? add(c->enter_need, !is_last(d, to))
            : *need;

    return add(c->enter, r->cost[i].left[to]);
}


/* The least of both from a state on, of ways that are not empty. */
static void
least(const rules_t *r, uint32_t i, uint32_t state, uint32_t *left, uint32_t *need)
{
    uint32_t  class, n, tokens;

    *left = *need = VLM_GRAMMAR_NEVER;

    for (class = 0; class < r->rule[i]->n_classes; class++) {
        tokens = way(r, i, state, class, &n);

        if (tokens < *left || (tokens == *left && tokens < VLM_GRAMMAR_NEVER && n < *need)) {
            *left = tokens;
            *need = n;
        }
    }
}


/* One round: 1 if something changed, -1 with an error.  Tokens settle first, and then rules. */
static int
lower(rules_t *r, int rules)
{
    int        changed;
    cost_t    *c;
    uint32_t   i, s, left, need;

    for (changed = 0, i = 0; i < r->n; i++) {
        c = &r->cost[i];

        if (vlm_grammar_step(r->k, r->rule[i]->n_states * r->rule[i]->n_classes) != 0) {
            return -1;
        }

        for (s = r->rule[i]->n_states; s-- > 0; ) {
            least(r, i, s, &left, &need);

            if (s == 0) {
                changed |= rules ? need != c->enter_need : left != c->enter;
                c->enter = left;
                c->enter_need = rules ? need : 0;
            }

            if (r->rule[i]->left[s] != 0) {
                changed |= rules ? need != c->need[s] : left != c->left[s];
                c->left[s] = left;
                c->need[s] = rules ? need : 0;
            }
        }
    }

    return changed;
}


static int
settle_costs(rules_t *r)
{
    int        rc;
    uint32_t   i, s;

    for (i = 0; i < r->n; i++) {
        r->cost[i].enter = VLM_GRAMMAR_NEVER;

        for (s = 0; s < r->rule[i]->n_states; s++) {
            r->cost[i].left[s] = r->rule[i]->left[s] == 0 ? 0 : VLM_GRAMMAR_NEVER;
        }
    }

    do {
        rc = lower(r, 0);
    } while (rc == 1);

    for (i = 0; i < r->n && rc == 0; i++) {
        r->cost[i].enter_need = VLM_GRAMMAR_NEVER;

        for (s = 0; s < r->rule[i]->n_states; s++) {
            r->cost[i].need[s] = r->rule[i]->left[s] == 0 ? 0 : VLM_GRAMMAR_NEVER;
        }
    }

    while (rc == 0 && (rc = lower(r, 1)) == 1) {
        rc = 0;
    }

    return rc;
}


/* How many rules may begin at a state, within each other: 1 is the state itself. */
static uint32_t
ways_from(rules_t *r, uint32_t i, uint32_t state)
{
    uint32_t          c, of, n;
    cost_t           *callee;
    const vlm_dfa_t  *d = r->rule[i];

    for (n = 1, c = 0; c < d->n_classes; c++) {
        of = r->cost[i].rule_of[c];

        if (of == 0 || d->next[(size_t) state * d->n_classes + c] == VLM_DFA_NONE) {
            continue;
        }

        callee = &r->cost[of - 1];

        if (callee->open) {
            r->wrong = of - 1;         /* it begins with itself */
            return VLM_GRAMMAR_NEVER;
        }

        if (callee->ways == 0) {
            callee->open = 1;
            callee->ways = ways_from(r, of - 1, 0);
            callee->open = 0;
        }

        n = add(n, callee->ways);
    }

    return n;
}


/* The reason why a rule is refused, or NULL. */
static const char *
find_wrong(rules_t *r, uint32_t i)
{
    uint32_t       s, ways;
    const cost_t  *c = &r->cost[i];

    for (s = 0; s < r->rule[i]->n_states; s++) {
        r->wrong = i;
        ways = ways_from(r, i, s);

        if (ways >= VLM_GRAMMAR_NEVER) {
            return "begins a rule with itself";
        }

        if (ways > VLM_GRAMMAR_CHOICES) {
            return "has a place where more than 64 rules may begin";
        }

        if (c->left[s] > FAR || c->need[s] > VLM_GRAMMAR_DEPTH) {
            return c->left[s] >= VLM_GRAMMAR_NEVER ? "has a rule that comes to no end"
                   : "has a rule whose shortest text is too long or too deep";
        }
    }

    return c->enter > FAR || c->enter_need > VLM_GRAMMAR_DEPTH
           ? "has a rule of no text, or of too long a one" : NULL;
}


/* ---- nodes ---------------------------------------------------------------- */


static void
set_far(vlm_dfa_t *d)
{
    uint32_t  s;

    for (d->far = 0, s = 0; s < d->n_states; s++) {
        d->far = d->all[s] && d->left[s] > d->far ? d->left[s] : d->far;
    }
}


/*
 * Sets the bytes that a rule may begin with, those of rules that begin it among them.  No rule
 * begins with itself, so as many rounds as there are rules are enough.
 */
static void
set_begins(const rules_t *r, vlm_node_t **node)
{
    uint32_t          i, j, k, c, round;
    const vlm_dfa_t  *d;

    for (round = 0; round < r->n; round++) {
        for (i = 0; i < r->n; i++) {
            d = node[i]->dfa;

            for (c = 0; c < 256; c++) {
                if (is_text(c) && vlm_dfa_next(d, 0, c) != VLM_DFA_NONE) {
                    node[i]->begins[c / 8] |= 1u << (c % 8);
                }
            }

            for (j = 0; j < r->n; j++) {
                for (k = 0; k < 32 && vlm_dfa_next(d, 0, vlm_rule_code(j)) != VLM_DFA_NONE; k++) {
                    node[i]->begins[k] |= node[j]->begins[k];
                }
            }
        }
    }
}


static int
make_nodes(rules_t *r)
{
    uint32_t      i, s;
    uint8_t      *need;
    vlm_dfa_t    *d;
    vlm_node_t  **node;

    node = vlm_grammar_take(r->k, r->n * sizeof(*node));

    for (i = 0; node != NULL && i < r->n; i++) {
        node[i] = vlm_grammar_node(r->k, VLM_NODE_RULE);
        d = vlm_dfa_keep(r->k, r->rule[i], 0);
        need = d == NULL ? NULL : vlm_grammar_take(r->k, d->n_states);

        if (node[i] == NULL || need == NULL) {
            return -1;
        }

        for (s = 0; s < d->n_states; s++) {
            d->left[s] = (uint16_t) r->cost[i].left[s];
            need[s] = (uint8_t) r->cost[i].need[s];
        }

        set_far(d);
        node[i]->dfa = d;
        node[i]->need_of = need;
        node[i]->part = node;
        node[i]->n = r->n;
        node[i]->need = r->cost[i].enter_need;
    }

    if (node == NULL) {
        return -1;
    }

    set_begins(r, node);

    return vlm_grammar_end(r->k, node[0]);
}


static int
open_costs(rules_t *r)
{
    uint32_t          i, j;
    cost_t           *c;
    const vlm_dfa_t  *d;

    r->cost = calloc(r->n, sizeof(*r->cost));

    for (i = 0; r->cost != NULL && i < r->n; i++) {
        d = r->rule[i];
        c = &r->cost[i];
        c->left = calloc(d->n_states, sizeof(*c->left));
        c->need = calloc(d->n_states, sizeof(*c->need));

        if (c->left == NULL || c->need == NULL) {
            return -1;
        }

        /* A class is a rule's own where the automaton has that rule. */

        for (j = 0; j < r->n; j++) {
            c->rule_of[d->class_of[vlm_rule_code(j)]] = (uint8_t) (j + 1);
        }
    }

    return r->cost == NULL ? -1 : 0;
}


static void
close_costs(rules_t *r)
{
    uint32_t  i;

    for (i = 0; r->cost != NULL && i < r->n; i++) {
        free(r->cost[i].left);
        free(r->cost[i].need);
    }

    free(r->cost);
}


int
vlm_rules_make(vlm_maker_t *k, vlm_dfa_t *const *rule, uint32_t n, uint32_t *wrong,
               const char **sentence)
{
    int       rc;
    uint32_t  i;
    rules_t   r = { .k = k, .rule = rule, .n = n };

    *sentence = NULL;
    rc = open_costs(&r) == 0 ? settle_costs(&r)
         : vlm_fail(k->err, VLM_EMEMORY, "no memory for a grammar");

    for (i = 0; rc == 0 && i < n; i++) {
        *sentence = find_wrong(&r, i);
        rc = *sentence != NULL ? -1 : 0;
    }

    rc = rc != 0 ? -1 : make_nodes(&r);
    *wrong = r.wrong;
    close_costs(&r);

    return rc;
}


/* ---- bytes ---------------------------------------------------------------- */


/* A thread at a state: at once behind the rules that end there. */
static int
put(vlm_walk_t *w, vlm_thread_t *t)
{
    const vlm_cell_t  *c;

    while (is_last(t->node->dfa, t->count)) {
        if (t->cell == VLM_NO_CELL) {
            t->at = DONE;
            t->node = NULL;
            t->count = 0;
            break;
        }

        c = &w->cell[t->cell];
        t->node = c->container;
        t->count = c->index;
        t->below = c->below;
        t->cell = c->cell;
        t->depth--;
    }

    return vlm_thread_put(w, t);
}


/*
 * 1: the byte was read at this place already, which another reading of the answer had come to.  Of
 * two places with one number the later is noted, so that some work may be done twice.
 */
static int
is_visited(vlm_walk_t *w, const vlm_thread_t *t, int begins)
{
    uint64_t       h;
    vlm_visit_t   *v;
    const uint8_t  how = (uint8_t) (begins | t->kept << 1);

    h = ((uintptr_t) t->node ^ (uint64_t) t->count << 20 ^ (uint64_t) t->cell << 40 ^ how)
        * VLM_HASH;
    v = &w->visit[(h >> 40) % VLM_WALK_VISITS];

    if (v->stamp == w->stamp && v->node == t->node && v->state == t->count && v->cell == t->cell
        && v->how == how)
    {
        return 1;
    }

    *v = (vlm_visit_t) { .node = t->node, .state = t->count, .stamp = w->stamp, .cell = t->cell,
                         .how = how };

    return 0;
}


static void step(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c, int begins);


/* A byte of a rule that is read from a state to another. */
static void
step_rule(vlm_walk_t *w, const vlm_thread_t *from, const vlm_node_t *rule, uint32_t to, uint8_t c)
{
    int                last;
    vlm_cell_t         cell;
    vlm_thread_t       t = *from;
    const vlm_node_t  *n = from->node;

    last = is_last(n->dfa, to);

    if ((uint32_t) t.depth + rule->need + !last > VLM_GRAMMAR_DEPTH
        || (uint32_t) t.depth + n->need_of[to] > VLM_GRAMMAR_DEPTH)
    {
        return;
    }

    if (!last) {
        cell = (vlm_cell_t) { .container = n, .index = to, .below = t.below, .cell = t.cell };
        t.cell = vlm_walk_cell(w, &cell);
        t.below = vlm_cost_add(t.below, n->dfa->left[to]);
        t.depth++;
    }

    t.node = rule;
    t.count = 0;
    step(w, &t, c, 1);
}


static void
step(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c, int begins)
{
    uint32_t           i, to;
    vlm_thread_t       t = *from;
    const vlm_node_t  *n = from->node;
    const vlm_cell_t  *cell;

    vlm_walk_count(w, 1);

    if (w->spent || is_visited(w, from, begins)) {
        return;
    }

    to = vlm_dfa_next(n->dfa, t.count, c);

    if (to != VLM_DFA_NONE && t.depth + n->need_of[to] <= VLM_GRAMMAR_DEPTH) {
        t.count = to;
        (void) put(w, &t);
    }

    for (i = 0; i < n->n; i++) {
        to = vlm_dfa_next(n->dfa, from->count, vlm_rule_code(i));

        if (to != VLM_DFA_NONE && n->part[i]->begins[c / 8] >> (c % 8) & 1) {
            step_rule(w, from, n->part[i], to, c);
        }
    }

    /* Behind its end the rule around it goes on; a rule of no byte is not entered. */

    if (!begins && n->dfa->left[from->count] == 0 && from->cell != VLM_NO_CELL) {
        t = *from;
        cell = &w->cell[t.cell];
        t.node = cell->container;
        t.count = cell->index;
        t.below = cell->below;
        t.cell = cell->cell;
        t.depth--;
        step(w, &t, c, 0);
    }
}


void
vlm_rules_step(vlm_walk_t *w, const vlm_thread_t *from, uint8_t c, int begins)
{
    vlm_thread_t  t = *from;

    if (is_text(c)) {
        t.at = IN_RULE;
        t.run = 0;
        step(w, &t, c, begins);
    }
}
