/* An answer so far, and the states behind it that bytes lead to. */

#include "grammar/dfa.h"
#include "grammar/walk.h"

#include <stdlib.h>
#include <string.h>

#define add      vlm_cost_add
#define ESCAPED  5                     /* tokens that the rest of an escape or a character takes */
#define LOOK     4096                  /* steps between two looks at quit: some 0.1 ms */


vlm_walk_t *
vlm_walk_open(const vlm_tokens_t *p)
{
    size_t       n;
    uint32_t     i;
    vlm_walk_t  *w;

    for (n = 0, i = 0; i < VLM_TRIES; i++) {
        n = p->trie[i].n > n ? p->trie[i].n : n;
    }

    n = sizeof(*w) + n * sizeof(*w->alike);
    w = malloc(n);

    if (w != NULL) {
        memset(w, 0, n);               /* now, and not by the first use of each page */
        memset(w->first, 0xff, sizeof(w->first));  /* VLM_NO_NODE */
        vlm_walk_allow(w, UINT64_MAX - 1, NULL);
    }

    return w;
}


void
vlm_walk_close(vlm_walk_t *w)
{
    free(w);
}


void
vlm_match_start(vlm_match_t *m, const vlm_grammar_t *g)
{
    m->g = g;
    m->n_threads = 1;
    m->n_cells = 0;

    memset(&m->thread[0], 0, sizeof(m->thread[0]));
    m->thread[0].at = VALUE;
    m->thread[0].node = g->root;
    m->thread[0].cell = VLM_NO_CELL;
}


void
vlm_match_copy(vlm_match_t *to, const vlm_match_t *m)
{
    to->g = m->g;
    to->n_threads = m->n_threads;
    to->n_cells = m->n_cells;
    memcpy(to->thread, m->thread, m->n_threads * sizeof(*m->thread));
    memcpy(to->cell, m->cell, m->n_cells * sizeof(*m->cell));
}


uint32_t
vlm_match_left(const vlm_match_t *m)
{
    uint32_t  i, n, least;

    for (least = VLM_GRAMMAR_NEVER, i = 0; i < m->n_threads; i++) {
        n = vlm_thread_left(&m->thread[i]);
        least = n < least ? n : least;
    }

    return least;
}


int
vlm_match_done(const vlm_match_t *m)
{
    return m->n_threads == 1 && m->thread[0].at == DONE;
}


static int
whole(const vlm_thread_t *t)
{
    switch (t->at) {
    case DONE:
        return 1;
    case IN_FIXED:
        return t->trie->ends;
    case IN_PATTERN:
        return t->node->dfa->left[t->count] == 0;
    case IN_RULE:
        return t->node->dfa->left[t->count] == 0 && t->below == 0;
    case VALUE:                        /* only of a pattern or a rule: the text of no byte */
        return t->node->tokens == 0;
    default:
        return t->at >= ZERO;
    }
}


static int
one_is_whole(const vlm_thread_t *t, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n && !(t[i].container == NULL && whole(&t[i])); i++) { /* void */ }

    return i < n;
}


int
vlm_match_may_end(const vlm_match_t *m)
{
    return one_is_whole(m->thread, m->n_threads);
}


void
vlm_walk_allow(vlm_walk_t *w, uint64_t most, const atomic_int *quit)
{
    w->work = 0;
    w->most = most;
    w->quit = quit;
    w->spent = 0;
    vlm_walk_look(w);
}


int
vlm_walk_spent(const vlm_walk_t *w)
{
    return w->spent;
}


uint64_t
vlm_walk_work(const vlm_walk_t *w)
{
    return w->work;
}


void
vlm_walk_look(vlm_walk_t *w)
{
    w->spent |= w->work > w->most || (w->quit != NULL && atomic_load(w->quit));
    w->look = w->work + LOOK < w->most + 1 ? w->work + LOOK : w->most + 1;
}


/* ---- cells --------------------------------------------------------------- */


static uint32_t
hash_cell(const vlm_cell_t *c)
{
    uint64_t  h;

    h = (uintptr_t) c->container ^ (uint64_t) c->index << 20 ^ (uint64_t) c->cell << 40;

    return (uint32_t) (h * VLM_HASH >> 32) % VLM_WALK_BUCKETS;
}


static void
add_cell(vlm_walk_t *w, const vlm_cell_t *c, uint32_t hash)
{
    w->cell[w->cells] = *c;
    w->before[w->cells] = w->bucket[hash];
    w->bucket[hash] = (uint16_t) w->cells++;
}


uint16_t
vlm_walk_cell(vlm_walk_t *w, const vlm_cell_t *c)
{
    uint16_t        i;
    const uint32_t  hash = hash_cell(c);

    for (i = w->bucket[hash]; i != VLM_NO_CELL; i = w->before[i]) {
        if (w->cell[i].container == c->container && w->cell[i].below == c->below
            && w->cell[i].index == c->index && w->cell[i].cell == c->cell)
        {
            return i;
        }
    }

    if (w->cells == VLM_WALK_CELLS) {
        w->spent = 1;
        return VLM_NO_CELL;
    }

    add_cell(w, c, hash);

    return (uint16_t) (w->cells - 1);
}


/* The last cell is the first of its hash. */
void
vlm_walk_forget(vlm_walk_t *w, uint32_t cells)
{
    while (w->cells > cells) {
        w->cells--;
        w->bucket[hash_cell(&w->cell[w->cells])] = w->before[w->cells];
    }
}


/* ---- states -------------------------------------------------------------- */


/* The thread with the shortest end is kept, whatever the bytes of a token do. */
void
vlm_walk_begin(vlm_walk_t *w, const vlm_match_t *m)
{
    uint32_t  i, n, best, least;

    memcpy(w->thread, m->thread, m->n_threads * sizeof(*m->thread));
    memset(w->bucket, 0xff, sizeof(w->bucket));    /* VLM_NO_CELL */

    for (w->cells = 0; w->cells < m->n_cells; ) {
        add_cell(w, &m->cell[w->cells], hash_cell(&m->cell[w->cells]));
    }

    w->blanks = m->g->blanks;
    w->n_threads[0] = m->n_threads;
    w->n_cells[0] = m->n_cells;

    for (least = UINT32_MAX, best = 0, i = 0; i < m->n_threads; i++) {
        w->thread[i].kept = 0;
        n = m->n_threads == 1 ? 0 : vlm_thread_left(&w->thread[i]);

        if (n < least) {
            least = n;
            best = i;
        }
    }

    w->thread[best].kept = 1;
}


static const vlm_thread_t *
state(const vlm_walk_t *w, uint32_t d)
{
    return &w->thread[(size_t) d * VLM_GRAMMAR_CHOICES];
}


int
vlm_walk_byte(vlm_walk_t *w, uint32_t d, uint8_t byte)
{
    uint32_t             i;
    const vlm_thread_t  *from;

    from = state(w, d);
    w->to = (vlm_thread_t *) state(w, d + 1);
    w->n = 0;
    w->stamp++;
    vlm_walk_forget(w, w->n_cells[d]);
    vlm_walk_count(w, w->n_threads[d]);

    for (i = 0; i < w->n_threads[d] && !w->spent; i++) {
        vlm_thread_step(w, &from[i], byte);
    }

    w->n_threads[d + 1] = w->n;
    w->n_cells[d + 1] = w->cells;

    return w->n > 0 && !w->spent;
}


int
vlm_walk_may_end(const vlm_walk_t *w, uint32_t d)
{
    return one_is_whole(state(w, d), w->n_threads[d]);
}


int
vlm_walk_fits(const vlm_walk_t *w, uint32_t d, uint32_t tokens)
{
    uint32_t  i;

    for (i = 0; i < w->n_threads[d] && vlm_thread_left(&state(w, d)[i]) > tokens; i++) {
        /* void */
    }

    return i < w->n_threads[d];
}


int
vlm_walk_roomy(const vlm_walk_t *w, uint32_t d, int odd, uint32_t tokens)
{
    uint32_t             i;
    const vlm_thread_t  *t;

    for (i = 0; i < w->n_threads[d]; i++) {
        t = &state(w, d)[i];

        if (t->at == IN_RULE && !odd && t->node->dfa->all[t->count]
            && add(t->node->dfa->far, t->below) <= tokens)
        {
            return 1;
        }

        if (t->at == TEXT && (t->key || t->node->high == UINT32_MAX)
            && add(vlm_thread_left(t), t->key && t->trie != NULL ? t->container->far : 0) <= tokens)
        {
            return 1;
        }
    }

    return 0;
}


int
vlm_walk_hopeless(const vlm_walk_t *w, uint32_t d, uint32_t tokens)
{
    uint32_t             i, fewer;
    const vlm_thread_t  *t;

    for (i = 0; i < w->n_threads[d]; i++) {
        t = &state(w, d)[i];

        if (t->at != TEXT) {
            return 0;
        }

        fewer = t->key ? (t->trie == NULL ? 0 : t->trie->tokens - 1)
                : t->count < t->node->low ? t->node->low - t->count : 0;

        if (vlm_thread_left(t) - fewer <= tokens) {
            return 0;
        }
    }

    return 1;
}


int
vlm_walk_free(const vlm_walk_t *w, uint32_t tokens)
{
    uint32_t             i;
    const vlm_thread_t  *t;

    for (i = 0; i < w->n_threads[0]; i++) {
        t = &w->thread[i];

        if (t->at == TEXT && (t->key ? t->container->trie == NULL : t->node->high == UINT32_MAX)
            && add(vlm_thread_left(t), ESCAPED) <= tokens)
        {
            return 1;
        }
    }

    return 0;
}


uint32_t
vlm_walk_strings(vlm_walk_t *w, vlm_string_t *string)
{
    uint32_t       i, n, others;
    vlm_thread_t  *t;

    for (n = others = i = 0; i < w->n_threads[0]; i++) {
        t = &w->thread[i];

        if (t->at != TEXT || t->key) {
            w->thread[others++] = *t;
            continue;
        }

        string[n].most = t->node->high == UINT32_MAX ? UINT32_MAX : t->node->high - t->count;
        string[n].least = t->count < t->node->low ? t->node->low - t->count : 0;
        string[n++].left = vlm_thread_left(t);
    }

    w->n_threads[0] = others;

    return n;
}


uint32_t
vlm_walk_patterns(vlm_walk_t *w, vlm_pattern_t *pattern)
{
    uint32_t       i, n, others;
    vlm_thread_t  *t;

    for (n = others = i = 0; i < w->n_threads[0]; i++) {
        t = &w->thread[i];

        if (t->at != IN_PATTERN || t->node->first == '0') {
            w->thread[others++] = *t;
            continue;
        }

        pattern[n].dfa = t->node->dfa;
        pattern[n].state = t->count;
        pattern[n++].tail = vlm_thread_tail(t);
    }

    w->n_threads[0] = others;

    return n;
}


/* Copies the cells that the threads still use, and those below them. */
static void
copy_cells(vlm_match_t *m, vlm_walk_t *w)
{
    uint32_t   i;
    uint16_t   c, around, *to = w->moved;

    memset(to, 0, w->cells * sizeof(*to));

    for (i = 0; i < m->n_threads; i++) {
        for (c = m->thread[i].cell; c != VLM_NO_CELL && !to[c]; c = w->cell[c].cell) {
            to[c] = 1;
        }
    }

    /* Every cell was made behind the one around it. */

    for (m->n_cells = 0, c = 0; c < w->cells; c++) {
        if (to[c]) {
            to[c] = (uint16_t) m->n_cells;
            m->cell[m->n_cells] = w->cell[c];
            around = w->cell[c].cell;
            m->cell[m->n_cells++].cell = around == VLM_NO_CELL ? VLM_NO_CELL : to[around];
        }
    }

    for (i = 0; i < m->n_threads; i++) {
        c = m->thread[i].cell;
        m->thread[i].cell = c == VLM_NO_CELL ? VLM_NO_CELL : to[c];
    }
}


int
vlm_match_read(vlm_match_t *m, vlm_walk_t *w, const char *bytes, size_t n)
{
    size_t  i;

    if (n == 0 || n > VLM_PIECE_BYTES) {
        return -1;
    }

    vlm_walk_begin(w, m);

    for (i = 0; i < n; i++) {
        if (!vlm_walk_byte(w, (uint32_t) i, (uint8_t) bytes[i])) {
            return -1;
        }
    }

    m->n_threads = w->n_threads[n];
    memcpy(m->thread, state(w, (uint32_t) n), m->n_threads * sizeof(*m->thread));
    copy_cells(m, w);

    return 0;
}
