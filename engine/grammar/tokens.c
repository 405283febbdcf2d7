/*
 * Sorts the vocabulary, and finds in it.
 *
 * A token's kind follows from a string's rules alone, from between two characters, so a mask can
 * take all tokens of a kind at once where the grammar asks for nothing more than a string.
 */

#include "grammar/tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "base/utf8.h"

typedef struct {                       /* a token while they are sorted */
    const uint8_t  *bytes;
    uint32_t        n, id;
    uint8_t         kind, chars;
} entry_t;

static int fill(vlm_tokens_t *p, const entry_t *entries, uint32_t n);


static int
is_one_of(uint32_t id, const uint32_t *ids, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n && ids[i] != id; i++) { /* void */ }

    return i < n;
}


/* The length of an escape at p, as far as there are bytes; 0: it is none. */
static uint32_t
escape(const uint8_t *p, uint32_t n)
{
    uint32_t  i;

    if (n == 1) {
        return 1;
    }

    if (p[1] != 'u') {
        return p[1] != '\0' && strchr("\"\\/bfnrt", p[1]) != NULL ? 2 : 0;
    }

    for (i = 2; i < n && i < 6; i++) {
        if (strchr("0123456789abcdefABCDEF", p[i]) == NULL || p[i] == '\0') {
            return 0;
        }

        if (i == 3 && (p[2] | 0x20) == 'd' && p[3] > '7') {
            return 0;                  /* half of a surrogate pair */
        }
    }

    return i;
}


/* 1: n bytes, fewer than it has, begin some character. */
static int
begins_character(const uint8_t *p, uint32_t n)
{
    uint8_t   buf[4] = { 0 };
    uint32_t  low, i, code;

    if (p[0] < 0xc2 || n > 3) {
        return 0;
    }

    memcpy(buf, p, n);

    for (low = 0x80; low < 0xc0; low += 0x10) {
        for (i = n; i < 4; i++) {
            buf[i] = (uint8_t) (i == n ? low : 0x80);
        }

        if (vlm_utf8(buf, 4, &code) > n) {
            return 1;
        }
    }

    return 0;
}


/* A token with an error in it is counted as closing: those are tried byte by byte. */
static void
sort_kind(entry_t *e)
{
    size_t    n;
    uint32_t  i, code;

    e->kind = VLM_PLAIN;

    for (i = 0; i < e->n; i += (uint32_t) n, e->chars++) {
        if (e->bytes[i] == '"' || e->bytes[i] < 0x20) {
            e->kind = VLM_CLOSING;
            return;
        }

        if (e->bytes[i] == '\\') {
            n = escape(e->bytes + i, e->n - i);
            e->kind = VLM_INSIDE;

        } else {
            n = vlm_utf8(e->bytes + i, e->n - i, &code);

            if (n == 0 && begins_character(e->bytes + i, e->n - i)) {
                e->kind = VLM_INSIDE;
                n = e->n - i;
            }
        }

        if (n == 0) {
            e->kind = VLM_CLOSING;
            return;
        }
    }
}


/* Lists all tokens that may be part of an answer; returns how many. */
static uint32_t
collect(const vlm_tokenizer_t *t, uint32_t n_ids, const uint32_t *eos, uint32_t n_eos,
        entry_t *entries)
{
    size_t       bytes;
    uint32_t     id, n;
    const char  *p;

    for (n = 0, id = 0; id < n_ids; id++) {
        p = vlm_token_bytes(t, id, &bytes);

        if (p == NULL || bytes == 0 || bytes > VLM_PIECE_BYTES || !vlm_token_is_text(t, id)
            || is_one_of(id, eos, n_eos))
        {
            continue;
        }

        memset(&entries[n], 0, sizeof(*entries));
        entries[n].bytes = (const uint8_t *) p;
        entries[n].n = (uint32_t) bytes;
        entries[n].id = id;
        sort_kind(&entries[n++]);
    }

    return n;
}


static int
by_bytes(const void *a, const void *b)
{
    int             order;
    const entry_t  *x = a, *y = b;

    order = memcmp(x->bytes, y->bytes, x->n < y->n ? x->n : y->n);

    return order != 0 ? order : x->n < y->n ? -1 : x->n > y->n;
}


vlm_tokens_t *
vlm_tokens_open(const vlm_tokenizer_t *t, uint32_t n_ids, const uint32_t *eos, uint32_t n_eos,
                vlm_err_t *err)
{
    uint32_t       i, n;
    entry_t       *entries;
    vlm_tokens_t  *p;

    n = n_ids < vlm_vocab_size(t) ? n_ids : vlm_vocab_size(t);
    entries = vlm_malloc(vlm_mul(vlm_add(n, 1), sizeof(*entries)));
    p = calloc(1, sizeof(*p));

    if (p != NULL) {
        p->n_words = (uint32_t) (((uint64_t) n_ids + 31) / 32);
        p->eos = calloc((size_t) n_eos + 1, sizeof(uint32_t));
    }

    if (entries == NULL || p == NULL || p->eos == NULL) {
        goto no_memory;
    }

    for (i = 0; i < n_eos; i++) {
        if (eos[i] < n_ids) {
            p->eos[p->n_eos++] = eos[i];
        }
    }

    n = collect(t, n, eos, n_eos, entries);
    qsort(entries, n, sizeof(*entries), by_bytes);

    if (fill(p, entries, n) != 0) {
        goto no_memory;
    }

    free(entries);

    return p;

no_memory:

    (void) vlm_fail(err, VLM_EMEMORY, "no memory to sort %u tokens", n_ids);
    free(entries);
    vlm_tokens_close(p);

    return NULL;
}


void
vlm_tokens_close(vlm_tokens_t *p)
{
    uint32_t  i;

    for (i = 0; p != NULL && i < VLM_TRIES; i++) {
        free(p->trie[i].node);
        free(p->trie[i].id);
        free(p->trie[i].chars);
        free(p->trie[i].bits);
    }

    if (p != NULL) {
        free(p->eos);
        free(p);
    }
}


/* How many bytes of e the one before it has, too, and whether these are all of e. */
static uint32_t
count_shared(const entry_t *last, const entry_t *e)
{
    uint32_t  n;

    for (n = 0; last != NULL && n < last->n && n < e->n && last->bytes[n] == e->bytes[n]; n++) {
        /* void */
    }

    return n;
}


static int
is_odd(const entry_t *e)
{
    uint32_t  i;

    if (memchr(e->bytes, 0x7f, e->n) != NULL) {
        return 1;
    }

    for (i = 0; i + 2 < e->n; i++) {
        if (e->bytes[i] == 0xe2 && e->bytes[i + 1] == 0x80 && (e->bytes[i + 2] & 0xfe) == 0xa8) {
            return 1;
        }
    }

    return 0;
}


/* Counts the nodes and ids of a kind; with memory in t it makes them. */
static void
fill_trie(vlm_trie_t *t, const entry_t *entries, uint32_t n_entries, uint8_t kind)
{
    uint32_t        i, d, n, ids, shared, open[VLM_PIECE_BYTES + 1];
    const entry_t  *e, *last;

    n = ids = 0;
    last = NULL;

    for (i = 0; i < n_entries; i++) {
        e = &entries[i];

        if (e->kind != kind) {
            continue;
        }

        shared = count_shared(last, e);

        for (d = shared; t->node != NULL && last != NULL && d < last->n; d++) {
            t->node[open[d]].skip = n;
        }

        for (d = shared; d < e->n; d++, n++) {
            if (t->node != NULL) {
                t->node[n].first = ids;
                t->node[n].byte = e->bytes[d];
                t->node[n].depth = (uint8_t) (d + 1);
                open[d] = n;
            }
        }

        for (d = 0; t->node != NULL && d < e->n && is_odd(e); d++) {
            t->node[open[d]].odd = 1;
        }

        if (t->node != NULL) {
            t->id[ids] = e->id;
            t->chars[ids] = e->chars;
        }

        ids++;
        last = e;
    }

    for (d = 0; t->node != NULL && last != NULL && d < last->n; d++) {
        t->node[open[d]].skip = n;
    }

    if (t->node != NULL) {
        t->node[n].first = ids;
        t->node[n].skip = n;
    }

    t->n = n;
    t->n_ids = ids;
}


static int
open_trie(vlm_trie_t *t, const entry_t *entries, uint32_t n, uint8_t kind, uint32_t n_words)
{
    uint32_t  i;

    fill_trie(t, entries, n, kind);

    t->node = calloc((size_t) t->n + 1, sizeof(*t->node));
    t->id = calloc((size_t) t->n_ids + 1, sizeof(*t->id));
    t->chars = calloc((size_t) t->n_ids + 1, 1);
    t->bits = calloc((size_t) n_words + 1, sizeof(*t->bits));

    if (t->node == NULL || t->id == NULL || t->chars == NULL || t->bits == NULL) {
        return -1;
    }

    fill_trie(t, entries, n, kind);

    for (i = 0; i < t->n_ids; i++) {
        t->bits[t->id[i] / 32] |= 1u << (t->id[i] % 32);
    }

    for (i = 0; i < 256; i++) {
        t->start[i] = t->n;
    }

    for (i = 0; i < t->n; i = t->node[i].skip) {
        t->start[t->node[i].byte] = i;
    }

    return 0;
}


static int
fill(vlm_tokens_t *p, const entry_t *entries, uint32_t n)
{
    int       byte;
    uint8_t   kind, single[256] = { 0 };
    uint32_t  i;

    for (kind = 0; kind < VLM_TRIES; kind++) {
        if (open_trie(&p->trie[kind], entries, n, kind, p->n_words) != 0) {
            return -1;
        }
    }

    for (i = 0; i < n; i++) {
        if (entries[i].n == 1) {
            single[entries[i].bytes[0]] = 1;
        }
    }

    for (byte = 0; byte < 256 && single[byte]; byte++) { /* void */ }

    p->missing = byte < 256 ? byte : -1;

    return 0;
}


int
vlm_tokens_check(const vlm_tokens_t *p, vlm_err_t *err)
{
    if (p->missing == -1) {
        return 0;
    }

    return vlm_fail(err, VLM_EINPUT, "this model cannot be held to a grammar: its vocabulary has "
                    "no token for the byte 0x%02x alone", (unsigned) p->missing);
}


int
vlm_tokens_ends(const vlm_tokens_t *p, uint32_t id)
{
    return is_one_of(id, p->eos, p->n_eos);
}


uint32_t
vlm_tokens_child(const vlm_trie_t *t, uint32_t at, uint8_t byte)
{
    uint32_t  i, end;

    if (at == t->n) {
        return t->start[byte];
    }

    end = t->node[at].skip;

    for (i = at + 1; i < end && t->node[i].byte < byte; i = t->node[i].skip) { /* void */ }

    return i < end && t->node[i].byte == byte ? i : t->n;
}


void
vlm_tokens_count(const vlm_tokens_t *p, const char *text, size_t bytes, uint32_t *tokens)
{
    size_t             i, k;
    uint32_t           at, kind;
    const vlm_trie_t  *t;

    tokens[bytes] = 0;

    for (i = bytes; i-- > 0; ) {
        tokens[i] = tokens[i + 1] + 1;             /* a byte is a token */

        for (kind = 0; kind < VLM_TRIES; kind++) {
            t = &p->trie[kind];
            at = t->n;

            for (k = i; k < bytes; ) {
                at = vlm_tokens_child(t, at, (uint8_t) text[k++]);

                if (at == t->n) {
                    break;
                }

                if (t->node[at].first < t->node[at + 1].first && tokens[k] + 1 < tokens[i]) {
                    tokens[i] = tokens[k] + 1;
                }
            }
        }
    }
}
