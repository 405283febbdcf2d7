/*
 * Walks the vocabulary's tries by the grammar: a byte that is refused skips all tokens behind it,
 * and tokens whose bytes the grammar does not tell apart are one.
 *
 * Most tokens are plain, and between the characters of a string without a bound all of them may
 * come, so their bits are copied.  A bound on characters is held against the tokens' own.
 */

#include "grammar/mask.h"

#include "grammar/dfa.h"
#include "grammar/walk.h"

#include <string.h>

#define CHEAP  8                       /* such parts of the work are as one step of a thread */
#define NODES  2                       /* so are nodes on lists, which lie far apart in memory */


static void
set_all(const vlm_trie_t *t, uint32_t n_words, uint32_t *allowed)
{
    uint32_t  i;

    for (i = 0; i < n_words; i++) {
        allowed[i] |= t->bits[i];
    }
}


static void
set(vlm_walk_t *w, const vlm_trie_t *t, uint32_t first, uint32_t end, uint32_t *allowed)
{
    vlm_walk_count(w, (end - first) / CHEAP);

    for ( /* void */ ; first < end; first++) {
        allowed[t->id[first] / 32] |= 1u << (t->id[first] % 32);
    }
}


/*
 * Puts the nodes from i to end that are beside each other to the others of their classes, and
 * returns how many they are.
 */
static uint32_t
list(const vlm_trie_t *t, const vlm_grammar_t *g, vlm_walk_t *w, uint32_t i, uint32_t end)
{
    uint32_t  d, n, class;

    for (n = 0; i < end; i = t->node[i].skip, n++) {
        d = t->node[i].depth;
        class = g->class_of[t->node[i].byte];
        w->alike[i] = w->first[d][class];
        w->first[d][class] = i;
        w->listed[d][class / 64] |= 1ull << (class % 64);
    }

    return n;
}


/* Takes the nodes of one class off the lists of a depth, or returns VLM_NO_NODE. */
static uint32_t
unlist(vlm_walk_t *w, uint32_t d)
{
    uint32_t  i, k, class;

    for (k = 0; k < 4 && w->listed[d][k] == 0; k++) { /* void */ }

    if (k == 4) {
        return VLM_NO_NODE;
    }

    class = 64 * k + (uint32_t) __builtin_ctzll(w->listed[d][k]);
    w->listed[d][k] &= w->listed[d][k] - 1;
    i = w->first[d][class];
    w->first[d][class] = VLM_NO_NODE;

    return i;
}


typedef struct {                       /* what a state says of the tokens that lead to it */
    int  roomy, odd_too;               /* 1: all that begin so may come; odd ones, too */
    int  hopeless, fits;
} found_t;


/* Tokens that end at the nodes may come or not; those that go on are listed. */
static void
take(const vlm_trie_t *t, const vlm_grammar_t *g, vlm_walk_t *w, const found_t *f, uint32_t i,
     uint32_t *allowed)
{
    uint32_t            n, listed;
    const vlm_piece_t  *node;

    for (n = listed = 0; i != VLM_NO_NODE && !w->spent; i = w->alike[i], n++) {
        node = &t->node[i];

        if (node->odd ? f->odd_too : f->roomy) {
            set(w, t, node->first, t->node[node->skip].first, allowed);

        } else if (!f->hopeless) {
            if (f->fits) {
                set(w, t, node->first, node[1].first, allowed);
            }

            listed += list(t, g, w, i + 1, node->skip);
        }
    }

    vlm_walk_count(w, n / CHEAP + listed / NODES);
}


static void
walk(const vlm_trie_t *t, int plain, const vlm_grammar_t *g, vlm_walk_t *w, uint32_t n_after,
     uint32_t *allowed)
{
    found_t   f;
    uint32_t  i, d;

    (void) list(t, g, w, 0, t->n);

    for (d = 1; d > 0; ) {
        i = unlist(w, d);

        if (i == VLM_NO_NODE) {
            d--;

        } else if (vlm_walk_byte(w, d - 1, t->node[i].byte)) {     /* never, once w is spent */
            f.roomy = plain && vlm_walk_roomy(w, d, 0, n_after);
            f.odd_too = f.roomy && vlm_walk_roomy(w, d, 1, n_after);
            f.hopeless = plain && vlm_walk_hopeless(w, d, n_after);
            f.fits = vlm_walk_fits(w, d, n_after);
            take(t, g, w, &f, i, allowed);
            d++;
        }
    }
}


/* Plain tokens within a string, by their number of characters. */
static void
by_length(vlm_walk_t *w, const vlm_trie_t *t, const vlm_string_t *s, uint32_t n_after,
          uint32_t *allowed)
{
    uint32_t  i, chars, fewer;

    vlm_walk_count(w, t->n_ids / CHEAP);

    for (i = 0; i < t->n_ids; i++) {
        chars = t->chars[i];
        fewer = chars < s->least ? chars : s->least;

        if (chars <= s->most && s->left - fewer <= n_after) {
            allowed[t->id[i] / 32] |= 1u << (t->id[i] % 32);
        }
    }
}


/* Plain tokens within a pattern: its states alone are followed. */
static void
by_pattern(vlm_walk_t *w, const vlm_trie_t *t, const vlm_pattern_t *p, uint32_t n_after,
           uint32_t *allowed)
{
    uint32_t            i, n, to, state[VLM_PIECE_BYTES + 1];
    const vlm_piece_t  *node;

    if (p->tail > n_after) {
        return;
    }

    for (state[0] = p->state, n = i = 0; i < t->n && !w->spent; n++) {
        vlm_walk_count(w, n % CHEAP == 0);
        node = &t->node[i];
        to = vlm_dfa_next(p->dfa, state[node->depth - 1], node->byte);

        if (to == VLM_DFA_NONE) {
            i = node->skip;
            continue;
        }

        if (p->dfa->all[to] && !node->odd && p->dfa->far <= n_after - p->tail) {
            set(w, t, node->first, t->node[node->skip].first, allowed);
            i = node->skip;
            continue;
        }

        state[node->depth] = to;

        if (node->first < node[1].first && p->dfa->left[to] <= n_after - p->tail) {
            set(w, t, node->first, node[1].first, allowed);
        }

        i++;
    }
}


static void
plain(const vlm_tokens_t *p, const vlm_match_t *m, vlm_walk_t *w, uint32_t n_after,
      uint32_t *allowed)
{
    uint32_t           i, n, n_patterns;
    vlm_string_t       string[VLM_GRAMMAR_CHOICES];
    vlm_pattern_t      pattern[VLM_GRAMMAR_CHOICES];
    const vlm_trie_t  *t = &p->trie[VLM_PLAIN];

    if (vlm_walk_roomy(w, 0, 1, n_after)) {
        set_all(t, p->n_words, allowed);
        return;
    }

    n = vlm_walk_strings(w, string);

    for (i = 0; i < n && !w->spent; i++) {
        if (string[i].most > 0 && string[i].left - string[i].least <= n_after) {
            by_length(w, t, &string[i], n_after, allowed);
        }
    }

    n_patterns = vlm_walk_patterns(w, pattern);

    for (i = 0; i < n_patterns; i++) {
        by_pattern(w, t, &pattern[i], n_after, allowed);
    }

    if (!vlm_walk_hopeless(w, 0, n_after)) {
        walk(t, 1, m->g, w, n_after, allowed);
    }

    if (n > 0 || n_patterns > 0) {
        vlm_walk_begin(w, m);
    }
}


int
vlm_mask(const vlm_tokens_t *p, const vlm_match_t *m, vlm_walk_t *w, uint32_t n_after,
         uint32_t *allowed)
{
    uint32_t  i;

    memset(allowed, 0, p->n_words * sizeof(uint32_t));
    vlm_walk_begin(w, m);
    plain(p, m, w, n_after, allowed);

    if (vlm_walk_free(w, n_after)) {
        set_all(&p->trie[VLM_INSIDE], p->n_words, allowed);
    } else {
        walk(&p->trie[VLM_INSIDE], 0, m->g, w, n_after, allowed);
    }

    walk(&p->trie[VLM_CLOSING], 0, m->g, w, n_after, allowed);

    for (i = 0; i < p->n_eos && vlm_match_may_end(m); i++) {
        allowed[p->eos[i] / 32] |= 1u << (p->eos[i] % 32);
    }

    return w->spent ? -1 : 0;
}


int
vlm_mask_one(const vlm_match_t *m, vlm_walk_t *w, uint32_t n_after, const char *bytes, size_t n)
{
    size_t  i;

    vlm_walk_begin(w, m);

    for (i = 0; i < n && i < VLM_PIECE_BYTES; i++) {
        if (!vlm_walk_byte(w, (uint32_t) i, (uint8_t) bytes[i])) {
            return 0;
        }
    }

    return i == n && vlm_walk_fits(w, (uint32_t) n, n_after);
}


int
vlm_mask_too_much(vlm_err_t *err)
{
    return vlm_fail(err, VLM_EINPUT, "the grammar can be read in too many ways: finding the next "
                    "token takes more than %u steps; let each text match in one way",
                    VLM_MASK_MOST);
}
