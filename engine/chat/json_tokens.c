/*
 * The vocabulary in the order of its bytes.  Tokens with a common beginning are checked together:
 * if a byte is refused, all tokens that have it at that place are skipped.
 *
 * Most tokens are whole characters without quote or backslash.  Between the characters of a string
 * all of these may come and none changes the state, so their bits are copied; elsewhere few of
 * their first bytes are allowed.  The others are in a list of their own, a tenth as long.
 */

#include "chat/json_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define MAX_BYTES  255                 /* of a token: longer ones are left out; published: 128 */

typedef struct {                       /* a token while they are sorted */
    const uint8_t  *bytes;
    uint32_t        n, id;
    int             plain;
} entry_t;

typedef struct {                       /* tokens [n] in the order of their bytes */
    uint32_t   n;
    uint32_t  *id;                     /* [n] */
    uint8_t   *shared;                 /* [n] bytes that it begins with as the one before did */
    uint8_t   *fresh;                  /* [n] bytes behind these */
    uint8_t   *bytes;                  /* the unshared bytes, one token after the other */
} list_t;

struct vlm_json_tokens_s {
    list_t     plain, other;
    uint32_t   n_words;
    uint32_t  *plain_bits;             /* [n_words] */
    int        missing;                /* a byte that is no token, or -1 */
};

static int is_plain(const entry_t *e);
static int fill(vlm_json_tokens_t *t, entry_t *entries, uint32_t n);
static void walk(const list_t *l, const vlm_json_mode_t *m, uint32_t n_after, uint32_t *allowed);


static int
is_one_of(uint32_t id, const uint32_t *ids, uint32_t n)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (ids[i] == id) {
            return 1;
        }
    }

    return 0;
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

        if (p == NULL || bytes == 0 || bytes > MAX_BYTES || !vlm_token_is_text(t, id)
            || is_one_of(id, eos, n_eos))
        {
            continue;
        }

        entries[n].bytes = (const uint8_t *) p;
        entries[n].n = (uint32_t) bytes;
        entries[n].id = id;
        entries[n].plain = is_plain(&entries[n]);
        n++;
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


vlm_json_tokens_t *
vlm_json_tokens_open(const vlm_tokenizer_t *tokenizer, uint32_t n_ids, const uint32_t *eos,
                     uint32_t n_eos, vlm_err_t *err)
{
    uint32_t            n;
    entry_t            *entries;
    vlm_json_tokens_t  *t;

    n_ids = n_ids < vlm_vocab_size(tokenizer) ? n_ids : vlm_vocab_size(tokenizer);
    entries = malloc(vlm_mul(vlm_add(n_ids, 1), sizeof(*entries)));
    t = calloc(1, sizeof(*t));

    if (t != NULL) {
        t->n_words = (uint32_t) (((uint64_t) n_ids + 31) / 32);
        t->plain_bits = calloc((size_t) t->n_words + 1, sizeof(uint32_t));
    }

    if (entries == NULL || t == NULL || t->plain_bits == NULL) {
        goto no_memory;
    }

    n = collect(tokenizer, n_ids, eos, n_eos, entries);
    qsort(entries, n, sizeof(*entries), by_bytes);

    if (fill(t, entries, n) != 0) {
        goto no_memory;
    }

    free(entries);

    return t;

no_memory:

    (void) vlm_fail(err, VLM_EMEMORY, "no memory to sort %u tokens", n_ids);
    free(entries);
    vlm_json_tokens_close(t);

    return NULL;
}


static void
close_list(list_t *l)
{
    free(l->id);
    free(l->shared);
    free(l->fresh);
    free(l->bytes);
}


void
vlm_json_tokens_close(vlm_json_tokens_t *t)
{
    if (t == NULL) {
        return;
    }

    close_list(&t->plain);
    close_list(&t->other);
    free(t->plain_bits);
    free(t);
}


/* Whole characters, none of which ends a string or is an escape. */
static int
is_plain(const entry_t *e)
{
    uint32_t         i;
    vlm_json_mode_t  m = { 0 };

    (void) vlm_json_mode_next(&m, '{');
    (void) vlm_json_mode_next(&m, '"');

    for (i = 0; i < e->n; i++) {
        if (e->bytes[i] == '"' || e->bytes[i] == '\\' || !vlm_json_mode_next(&m, e->bytes[i])) {
            return 0;
        }
    }

    return vlm_json_mode_in_text(&m);
}


static uint32_t
count_shared(const entry_t *a, const entry_t *b)
{
    uint32_t  n;

    for (n = 0; n < a->n && n < b->n && a->bytes[n] == b->bytes[n]; n++) { /* void */ }

    return n;
}


/* Lists the entries that are plain, or those that are not; without memory in l it only counts. */
static uint64_t
fill_list(list_t *l, const entry_t *entries, uint32_t n, int plain)
{
    uint32_t        i, shared;
    uint64_t        at;
    const entry_t  *e, *last;

    l->n = 0;
    at = 0;
    last = NULL;

    for (i = 0; i < n; i++) {
        e = &entries[i];

        if (e->plain != plain) {
            continue;
        }

        shared = last == NULL ? 0 : count_shared(last, e);
        last = e;

        if (l->bytes != NULL) {
            l->id[l->n] = e->id;
            l->shared[l->n] = (uint8_t) shared;
            l->fresh[l->n] = (uint8_t) (e->n - shared);
            memcpy(l->bytes + at, e->bytes + shared, e->n - shared);
        }

        at += e->n - shared;
        l->n++;
    }

    return at;
}


static int
open_list(list_t *l, const entry_t *entries, uint32_t n, int plain)
{
    uint64_t  bytes;

    bytes = fill_list(l, entries, n, plain);

    l->id = malloc(((size_t) l->n + 1) * sizeof(uint32_t));
    l->shared = malloc((size_t) l->n + 1);
    l->fresh = malloc((size_t) l->n + 1);
    l->bytes = malloc(bytes + 1);

    if (l->id == NULL || l->shared == NULL || l->fresh == NULL || l->bytes == NULL) {
        return -1;
    }

    (void) fill_list(l, entries, n, plain);

    return 0;
}


static int
fill(vlm_json_tokens_t *t, entry_t *entries, uint32_t n)
{
    int       byte;
    uint32_t  i, id;
    uint8_t   single[256] = { 0 };

    if (open_list(&t->plain, entries, n, 1) != 0 || open_list(&t->other, entries, n, 0) != 0) {
        return -1;
    }

    for (i = 0; i < t->plain.n; i++) {
        id = t->plain.id[i];
        t->plain_bits[id / 32] |= 1u << (id % 32);
    }

    for (i = 0; i < n; i++) {
        if (entries[i].n == 1) {
            single[entries[i].bytes[0]] = 1;
        }
    }

    for (byte = 0; byte < 256 && single[byte]; byte++) { /* void */ }

    t->missing = byte < 256 ? byte : -1;

    return 0;
}


int
vlm_json_tokens_check(const vlm_json_tokens_t *t, vlm_err_t *err)
{
    if (t->missing == -1) {
        return 0;
    }

    return vlm_fail(err, VLM_EINPUT, "this model cannot be held to JSON: its vocabulary has no "
                    "token for the byte 0x%02x alone", (unsigned) t->missing);
}


void
vlm_json_tokens_allow(const vlm_json_tokens_t *t, const vlm_json_mode_t *m, uint32_t n_after,
                      uint32_t *allowed)
{
    if (!vlm_json_mode_in_text(m)) {
        memset(allowed, 0, t->n_words * sizeof(uint32_t));
        walk(&t->plain, m, n_after, allowed);

    } else if (vlm_json_mode_left(m) <= n_after) {
        memcpy(allowed, t->plain_bits, t->n_words * sizeof(uint32_t));

    } else {
        memset(allowed, 0, t->n_words * sizeof(uint32_t));
    }

    walk(&t->other, m, n_after, allowed);
}


static void
walk(const list_t *l, const vlm_json_mode_t *m, uint32_t n_after, uint32_t *allowed)
{
    uint32_t         i, k, depth;
    const uint8_t   *p;
    vlm_json_mode_t  state[MAX_BYTES + 1];         /* after so many bytes of the token at hand */

    state[0] = *m;
    depth = 0;                         /* of them that were accepted */
    p = l->bytes;

    for (i = 0; i < l->n; p += l->fresh[i++]) {
        if (l->shared[i] > depth) {
            continue;                  /* begins with the refused bytes */
        }

        depth = l->shared[i];

        for (k = 0; k < l->fresh[i]; k++, depth++) {
            state[depth + 1] = state[depth];

            if (!vlm_json_mode_next(&state[depth + 1], p[k])) {
                break;
            }
        }

        if (k == l->fresh[i] && vlm_json_mode_left(&state[depth]) <= n_after) {
            allowed[l->id[i] / 32] |= 1u << (l->id[i] % 32);
        }
    }
}
