/* Automata: explored from keys, trimmed, and put together. */

#include "grammar/dfa.h"

#include <stdlib.h>
#include <string.h>

#define SLOTS  (2 * VLM_DFA_STATES)
#define MANY   2048                    /* states of which those that allow all are not looked for */
#define KEYS   (8u << 20)              /* bytes of all keys */

typedef struct {
    uint8_t   *keys;                   /* one behind the other */
    size_t     used, room;
    uint32_t   n, rooms;               /* states; those there is room for */
    size_t    *at;                     /* [rooms + 1] where keys begin */
    uint16_t  *next;                   /* [rooms][n_classes] */
    uint16_t  *slot;                   /* [SLOTS] states by the hash of their keys */
} table_t;

typedef struct {
    const vlm_dfa_t  *a, *b;
} pair_t;


static void
close_table(table_t *t)
{
    free(t->keys);
    free(t->at);
    free(t->next);
    free(t->slot);
}


static int
no_memory(vlm_maker_t *k)
{
    return vlm_fail(k->err, VLM_EMEMORY, "no memory for a pattern");
}


static int
grow(vlm_maker_t *k, table_t *t, uint32_t n, uint32_t n_classes)
{
    void      *p;
    uint32_t   rooms;

    if (t->n == VLM_DFA_STATES || t->used + n > KEYS) {
        return vlm_fail(k->err, VLM_ELIMIT, "the schema has a pattern or bounds that take more "
                        "than %u states", t->n);
    }

    if (t->n == t->rooms) {
        rooms = t->rooms == 0 ? 64 : 2 * t->rooms;
        p = realloc(t->at, (rooms + 1) * sizeof(*t->at));
        t->at = p != NULL ? p : t->at;

        if (p != NULL) {
            p = realloc(t->next, (size_t) rooms * n_classes * sizeof(*t->next));
            t->next = p != NULL ? p : t->next;
        }

        if (p == NULL) {
            return no_memory(k);
        }

        t->rooms = rooms;
    }

    if (t->used + n > t->room) {
        p = realloc(t->keys, 2 * (t->used + n));

        if (p == NULL) {
            return no_memory(k);
        }

        t->keys = p;
        t->room = 2 * (t->used + n);
    }

    return 0;
}


/* The state of a key, which may be a new one; VLM_DFA_NONE: it failed. */
static uint32_t
state_of(vlm_maker_t *k, table_t *t, const uint8_t *key, uint32_t n, uint32_t n_classes)
{
    uint32_t  i, hash, state;

    for (hash = 2166136261u, i = 0; i < n; i++) {
        hash = (hash ^ key[i]) * 16777619u;
    }

    for (i = hash % SLOTS; t->slot[i] != VLM_DFA_NONE; i = (i + 1) % SLOTS) {
        state = t->slot[i];

        if (t->at[state + 1] - t->at[state] == n && memcmp(t->keys + t->at[state], key, n) == 0) {
            return state;
        }
    }

    if (vlm_grammar_step(k, n + n_classes) != 0 || grow(k, t, n, n_classes) != 0) {
        return VLM_DFA_NONE;
    }

    memcpy(t->keys + t->used, key, n);
    t->at[t->n] = t->used;
    t->used += n;
    t->at[t->n + 1] = t->used;
    t->slot[i] = (uint16_t) t->n;

    return t->n++;
}


static int
fill(vlm_maker_t *k, table_t *t, const vlm_explore_t *e, uint8_t *key)
{
    uint8_t   sample[256];
    uint32_t  c, i, n, to;

    for (i = 256; i-- > 0; ) {
        sample[e->class_of[i]] = (uint8_t) i;
    }

    n = e->start(e->data, key);

    if (n == 0) {
        return vlm_fail(k->err, VLM_EINPUT, "no text fits");
    }

    if (state_of(k, t, key, n, e->n_classes) == VLM_DFA_NONE) {
        return -1;
    }

    for (i = 0; i < t->n; i++) {
        for (c = 0; c < e->n_classes; c++) {
            n = e->step(e->data, t->keys + t->at[i], (uint32_t) (t->at[i + 1] - t->at[i]),
                        sample[c], key);
            to = n == 0 ? VLM_DFA_NONE : state_of(k, t, key, n, e->n_classes);

            if (n > 0 && to == VLM_DFA_NONE) {
                return -1;
            }

            if (vlm_grammar_step(k, 4 + (uint32_t) (t->at[i + 1] - t->at[i]) / 4) != 0) {
                return -1;
            }

            t->next[(size_t) i * e->n_classes + c] = (uint16_t) to;
        }
    }

    return 0;
}


static vlm_dfa_t *
make(uint32_t n_states, uint32_t n_classes, vlm_maker_t *k)
{
    size_t      bytes = (size_t) n_states * n_classes * sizeof(uint16_t);
    vlm_dfa_t  *d;

    /* One block: the structure, then next, left and more. */

    bytes += sizeof(*d) + n_states * (sizeof(uint16_t) + 2);
    d = k == NULL ? calloc(1, bytes) : vlm_grammar_take(k, bytes);

    if (d != NULL) {
        d->n_states = n_states;
        d->n_classes = n_classes;
        d->next = (uint16_t *) (d + 1);
        d->left = d->next + (size_t) n_states * n_classes;
        d->more = (uint8_t *) (d->left + n_states);
        d->all = d->more + n_states;
    }

    return d;
}


/* From the ends back: the bytes to the nearest; states that lead to none stay at "none". */
static int
set_left(vlm_maker_t *k, vlm_dfa_t *d)
{
    int        changed;
    uint32_t   i, c, to, least;

    do {
        changed = 0;

        for (i = d->n_states; i-- > 0; ) {
            for (least = d->left[i], c = 0; c < d->n_classes; c++) {
                to = d->next[(size_t) i * d->n_classes + c];

                if (to != VLM_DFA_NONE && d->left[to] + 1u < least) {
                    least = d->left[to] + 1u;
                }
            }

            changed |= least != d->left[i];
            d->left[i] = (uint16_t) least;
        }

        if (vlm_grammar_step(k, d->n_states * d->n_classes / 4 + 1) != 0) {
            return -1;
        }
    } while (changed);

    for (i = 0; i < d->n_states; i++) {
        for (c = 0; c < d->n_classes; c++) {
            to = d->next[(size_t) i * d->n_classes + c];

            if (to != VLM_DFA_NONE && d->left[to] == VLM_DFA_NONE) {
                d->next[(size_t) i * d->n_classes + c] = VLM_DFA_NONE;

            } else if (to != VLM_DFA_NONE) {
                d->more[i] = 1;
            }
        }
    }

    return d->left[0] != VLM_DFA_NONE ? 0 : vlm_fail(k->err, VLM_EINPUT, "no text fits");
}


vlm_dfa_t *
vlm_dfa_explore(vlm_maker_t *k, const vlm_explore_t *e)
{
    uint8_t    *key;
    table_t     t = { 0 };
    uint32_t    i;
    vlm_dfa_t  *d;

    key = malloc(e->key_bytes);
    t.slot = malloc(SLOTS * sizeof(*t.slot));
    d = NULL;

    if (key == NULL || t.slot == NULL) {
        (void) no_memory(k);
        goto done;
    }

    memset(t.slot, 0xff, SLOTS * sizeof(*t.slot));

    if (fill(k, &t, e, key) != 0) {
        goto done;
    }

    d = make(t.n, e->n_classes, NULL);

    if (d == NULL) {
        (void) no_memory(k);
        goto done;
    }

    memcpy(d->class_of, e->class_of, 256);
    memcpy(d->next, t.next, (size_t) t.n * e->n_classes * sizeof(*t.next));

    for (i = 0; i < t.n; i++) {
        d->left[i] = e->ends(e->data, t.keys + t.at[i], (uint32_t) (t.at[i + 1] - t.at[i]))
                     ? 0 : VLM_DFA_NONE;
    }

    if (set_left(k, d) != 0) {
        free(d);
        d = NULL;
    }

done:

    close_table(&t);
    free(key);

    return d;
}


void
vlm_dfa_free(vlm_dfa_t *d)
{
    free(d);
}


/* ---- two automata -------------------------------------------------------- */


static uint32_t
start_both(void *data, uint8_t *key)
{
    (void) data;
    memset(key, 0, 2 * sizeof(uint16_t));

    return 2 * sizeof(uint16_t);
}


static uint32_t
step_both(void *data, const uint8_t *key, uint32_t n, uint8_t byte, uint8_t *to)
{
    pair_t    *p = data;
    uint16_t   at[2];

    memcpy(at, key, n);
    at[0] = (uint16_t) vlm_dfa_next(p->a, at[0], byte);
    at[1] = (uint16_t) vlm_dfa_next(p->b, at[1], byte);
    memcpy(to, at, n);

    return at[0] == VLM_DFA_NONE || at[1] == VLM_DFA_NONE ? 0 : n;
}


static int
ends_both(void *data, const uint8_t *key, uint32_t n)
{
    pair_t    *p = data;
    uint16_t   at[2];

    memcpy(at, key, n);

    return p->a->left[at[0]] == 0 && p->b->left[at[1]] == 0;
}


vlm_dfa_t *
vlm_dfa_both(vlm_maker_t *k, const vlm_dfa_t *a, const vlm_dfa_t *b)
{
    pair_t         p = { a, b };
    uint32_t       i, j;
    vlm_explore_t  e = { .key_bytes = 2 * sizeof(uint16_t), .data = &p, .start = start_both,
                         .step = step_both, .ends = ends_both };

    if (vlm_grammar_step(k, 4096) != 0) {      /* for the classes */
        return NULL;
    }

    /* Two bytes are alike if they are so in both. */

    for (i = 0; i < 256; i++) {
        for (j = 0; j < i && (a->class_of[j] != a->class_of[i] || b->class_of[j] != b->class_of[i]);
             j++)
        {
            /* void */
        }

        e.class_of[i] = j < i ? e.class_of[j] : (uint8_t) e.n_classes++;
    }

    return vlm_dfa_explore(k, &e);
}


/* ---- states that allow all characters ------------------------------------- */


/* 1: so many continuation bytes, the first from low to high, lead to such a state. */
static int
characters(const vlm_dfa_t *d, uint32_t state, uint32_t n, uint32_t low, uint32_t high, int odd)
{
    uint32_t  c, to;

    for (c = low; state != VLM_DFA_NONE && c <= high; c++) {
        if (c > low && d->class_of[c] == d->class_of[c - 1] && !odd) {
            continue;
        }

        /* Behind e2 stand U+2028 and U+2029 as 80 a8 and 80 a9. */

        if (odd && n == 1 && (c == 0xa8 || c == 0xa9)) {
            continue;
        }

        to = vlm_dfa_next(d, state, (uint8_t) c);

        if (to == VLM_DFA_NONE
            || (n == 1 ? !d->all[to] : !characters(d, to, n - 1, 0x80, 0xbf, odd && c == 0x80)))
        {
            return 0;
        }
    }

    return state != VLM_DFA_NONE;
}


static int
allows_all(const vlm_dfa_t *d, uint32_t state)
{
    uint32_t  c, to;

    for (c = 0x20; c <= 0xf4; c++) {
        if (c == '"' || c == '\\' || (c >= 0x7f && c < 0xc2)) {
            continue;
        }

        to = vlm_dfa_next(d, state, (uint8_t) c);

        if (to == VLM_DFA_NONE
            || (c < 0x80 ? !d->all[to]
                : c < 0xe0 ? !characters(d, to, 1, 0x80, 0xbf, 0)
                : c < 0xf0 ? !characters(d, to, 2, c == 0xe0 ? 0xa0 : 0x80, c == 0xed ? 0x9f : 0xbf,
                                         c == 0xe2)
                : !characters(d, to, 3, c == 0xf0 ? 0x90 : 0x80, c == 0xf4 ? 0x8f : 0xbf, 0)))
        {
            return 0;
        }
    }

    return 1;
}


/* A state stays among them as long as all characters lead to others that do. */
static int
find_all(vlm_maker_t *k, vlm_dfa_t *d)
{
    int       changed;
    uint32_t  i;

    if (d->n_states > MANY) {
        return 0;
    }

    for (i = 0; i < d->n_states; i++) {
        d->all[i] = d->left[i] != VLM_DFA_NONE;
    }

    do {
        changed = 0;

        for (i = d->n_states; i-- > 0; ) {
            if (d->all[i] && !allows_all(d, i)) {
                d->all[i] = 0;
                changed = 1;
            }
        }

        if (vlm_grammar_step(k, 8 * d->n_states) != 0) {
            return -1;
        }
    } while (changed);

    for (i = 0; i < d->n_states; i++) {
        d->far = d->all[i] && d->left[i] > d->far ? d->left[i] : d->far;
    }

    return 0;
}


/* ---- the form that lasts ------------------------------------------------- */


/* Quotes: a state before all others, and one behind their ends.  No text has a plain quote. */
static vlm_dfa_t *
quote(vlm_maker_t *k, const vlm_dfa_t *d)
{
    uint16_t    to;
    uint32_t    i, c, n;
    vlm_dfa_t  *q;

    n = d->n_classes;
    q = make(d->n_states + 2, n + 1, k);

    if (q == NULL) {
        return NULL;
    }

    memcpy(q->class_of, d->class_of, 256);
    q->class_of['"'] = (uint8_t) n;
    memset(q->next, 0xff, (size_t) q->n_states * q->n_classes * sizeof(*q->next));

    for (i = 0; i < d->n_states; i++) {
        for (c = 0; c < n; c++) {
            to = d->next[(size_t) i * n + c];
            q->next[(size_t) (i + 1) * (n + 1) + c] = to == VLM_DFA_NONE ? to : (uint16_t) (to + 1);
        }

        /* Behind a backslash a quote is a character. */

        to = (uint16_t) vlm_dfa_next(d, i, '"');
        q->next[(size_t) (i + 1) * (n + 1) + n]
            = to != VLM_DFA_NONE ? (uint16_t) (to + 1)
              : d->left[i] == 0 ? (uint16_t) (d->n_states + 1) : VLM_DFA_NONE;
        q->left[i + 1] = (uint16_t) (d->left[i] + (d->left[i] != VLM_DFA_NONE));
        q->more[i + 1] = 1;
    }

    q->next[n] = 1;
    q->left[0] = (uint16_t) (d->left[0] + 2);
    q->more[0] = 1;

    return q;
}


vlm_dfa_t *
vlm_dfa_keep(vlm_maker_t *k, const vlm_dfa_t *d, int quoted)
{
    vlm_dfa_t  *copy;

    if (quoted) {
        copy = quote(k, d);

        return copy == NULL || find_all(k, copy) != 0 ? NULL : copy;
    }

    copy = make(d->n_states, d->n_classes, k);

    if (copy != NULL) {
        memcpy(copy->class_of, d->class_of, 256);
        memcpy(copy->next, d->next, (size_t) d->n_states * d->n_classes * sizeof(*d->next));
        memcpy(copy->left, d->left, d->n_states * sizeof(*d->left));
        memcpy(copy->more, d->more, d->n_states);
    }

    return copy == NULL || find_all(k, copy) != 0 ? NULL : copy;
}


int
vlm_dfa_has(const vlm_dfa_t *d, const char *text, size_t bytes)
{
    size_t    i;
    uint32_t  state;

    for (state = 0, i = 0; i < bytes && state != VLM_DFA_NONE; i++) {
        state = vlm_dfa_next(d, state, (uint8_t) text[i]);
    }

    return state != VLM_DFA_NONE && d->left[state] == 0;
}
