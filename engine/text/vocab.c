/*
 * A vocabulary in two hash tables with linear probing, at most three quarters full: bytes to an id,
 * and a pair of ids to their join.  A lookup touches one cache line most of the time.
 */

#include "text/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define FREE       VLM_MAX_ID          /* in slots, and as the id of a free pair */
#define MAX_POOL   (256u << 20)        /* bytes of all tokens: four times the largest file */
#define MIN_SLOTS  16


static uint32_t
fold(uint64_t h)
{
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;

    return (uint32_t) (h >> 32);
}


static uint32_t
hash_bytes(const uint8_t *p, size_t n)
{
    uint64_t  h, word;

    h = n;

    for ( /* void */ ; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
        memcpy(&word, p, sizeof(word));
        h = (h ^ word) * 0xff51afd7ed558ccdu;
        h ^= h >> 29;
    }

    word = 0;
    memcpy(&word, p, n);

    return fold((h ^ word) * 0xff51afd7ed558ccdu);
}


static uint32_t
hash_pair(uint32_t left, uint32_t right)
{
    return fold(((uint64_t) left << 32 | right) * 0xff51afd7ed558ccdu);
}


/* A power of two that n entries fill to three quarters at most. */
static uint32_t
table_size(uint64_t n)
{
    uint32_t  size;

    for (size = MIN_SLOTS; (uint64_t) size * 3 < n * 4; size *= 2) { /* void */ }

    return size;
}


int
vlm_vocab_open(vlm_vocab_t *v, uint64_t n_tokens, uint64_t n_pairs, vlm_err_t *err)
{
    uint32_t  i;

    memset(v, 0, sizeof(*v));

    if (n_tokens > VLM_MAX_ID || n_pairs > VLM_MAX_ID) {
        return vlm_fail(err, VLM_EMODEL, "a vocabulary of %" PRIu64 " tokens and %" PRIu64
                        " merges, at most %u of each are supported", n_tokens, n_pairs, VLM_MAX_ID);
    }

    v->slot_mask = table_size(n_tokens) - 1;
    v->pair_mask = table_size(n_pairs) - 1;

    v->slots = malloc(vlm_mul((uint64_t) v->slot_mask + 1, sizeof(uint32_t)));
    v->pairs = malloc(vlm_mul((uint64_t) v->pair_mask + 1, sizeof(vlm_pair_t)));

    if (v->slots == NULL || v->pairs == NULL) {
        vlm_vocab_close(v);
        return vlm_fail(err, VLM_EMEMORY, "no memory for a vocabulary of %" PRIu64 " tokens",
                        n_tokens);
    }

    for (i = 0; i <= v->slot_mask; i++) {
        v->slots[i] = FREE;
    }

    for (i = 0; i <= v->pair_mask; i++) {
        v->pairs[i].id = FREE;
    }

    return 0;
}


void
vlm_vocab_close(vlm_vocab_t *v)
{
    free(v->pool);
    free(v->tokens);
    free(v->slots);
    free(v->pairs);

    memset(v, 0, sizeof(*v));
}


static int
grow_ids(vlm_vocab_t *v, uint32_t id, vlm_err_t *err)
{
    uint32_t      room;
    vlm_entry_t  *tokens;

    if (id >= VLM_MAX_ID) {
        return vlm_fail(err, VLM_EMODEL, "token id %u, at most %u is expected", id,
                        VLM_MAX_ID - 1);
    }

    if (id >= v->ids_room) {
        room = v->ids_room == 0 ? 1024 : v->ids_room;
        while (room <= id) {
            room *= 2;
        }

        tokens = realloc(v->tokens, vlm_mul(room, sizeof(vlm_entry_t)));
        if (tokens == NULL) {
            return vlm_fail(err, VLM_EMEMORY, "no memory for %u token ids", room);
        }

        memset(tokens + v->ids_room, 0, (size_t) (room - v->ids_room) * sizeof(vlm_entry_t));
        v->tokens = tokens;
        v->ids_room = room;
    }

    if (id >= v->n_ids) {
        v->n_ids = id + 1;
    }

    return 0;
}


static int
grow_pool(vlm_vocab_t *v, size_t n, vlm_err_t *err)
{
    uint64_t   room;
    uint8_t   *pool;

    if (n > VLM_MAX_TOKEN_BYTES || vlm_add(v->pool_bytes, n) > MAX_POOL) {
        return vlm_fail(err, VLM_EMODEL, "a token of %zu bytes after %" PRIu64
                        " bytes of others, at most %u and %u are supported", n, v->pool_bytes,
                        VLM_MAX_TOKEN_BYTES, MAX_POOL);
    }

    if (n <= v->pool_room - v->pool_bytes && v->pool != NULL) {
        return 0;
    }

    room = vlm_mul(vlm_add(v->pool_room, VLM_MAX_TOKEN_BYTES), 2);

    pool = realloc(v->pool, room);
    if (pool == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for %" PRIu64 " bytes of tokens", room);
    }

    v->pool = pool;
    v->pool_room = room;

    return 0;
}


int
vlm_vocab_name(vlm_vocab_t *v, uint32_t id, const void *name, size_t n, vlm_token_kind_t kind,
               vlm_err_t *err)
{
    vlm_entry_t  *t;

    if (grow_ids(v, id, err) != 0 || grow_pool(v, n, err) != 0) {
        return -1;
    }

    t = &v->tokens[id];
    t->at = (uint32_t) v->pool_bytes;
    t->bytes = (uint16_t) n;
    t->kind = (uint8_t) kind;

    memcpy(v->pool + v->pool_bytes, name, n);
    v->pool_bytes += n;

    if (n > v->max_bytes) {
        v->max_bytes = (uint32_t) n;
    }

    return 0;
}


/* The slot where these bytes are, or the free one where they belong. */
static uint32_t
find_slot(const vlm_vocab_t *v, const void *bytes, size_t n)
{
    uint32_t            i, id;
    const vlm_entry_t  *t;

    for (i = hash_bytes(bytes, n) & v->slot_mask; ; i = (i + 1) & v->slot_mask) {
        id = v->slots[i];
        if (id == FREE) {
            return i;
        }

        t = &v->tokens[id];
        if (t->bytes == n && memcmp(v->pool + t->at, bytes, n) == 0) {
            return i;
        }
    }
}


int
vlm_vocab_add(vlm_vocab_t *v, uint32_t id, const void *bytes, size_t n, vlm_token_kind_t kind,
              vlm_err_t *err)
{
    uint32_t  slot;

    if (id < v->n_ids && v->tokens[id].kind != VLM_TOKEN_NONE) {
        return vlm_fail(err, VLM_EMODEL, "two tokens with the id %u", id);
    }

    if (kind != VLM_TOKEN_BYTES) {
        return vlm_vocab_name(v, id, bytes, n, kind, err);
    }

    slot = find_slot(v, bytes, n);
    if (v->slots[slot] != FREE) {
        return vlm_fail(err, VLM_EMODEL, "ids %u and %u are the same token", v->slots[slot], id);
    }

    if (v->n_slots == v->slot_mask) {
        return vlm_fail(err, VLM_EMODEL, "more than the %u tokens that were counted", v->n_slots);
    }

    if (vlm_vocab_name(v, id, bytes, n, kind, err) != 0) {
        return -1;
    }

    v->slots[slot] = id;
    v->n_slots++;

    return 0;
}


int64_t
vlm_vocab_find(const vlm_vocab_t *v, const void *bytes, size_t n)
{
    uint32_t  id;

    id = v->slots[find_slot(v, bytes, n)];

    return id == FREE ? -1 : (int64_t) id;
}


/* The slot where this pair is, or the free one where it belongs. */
static vlm_pair_t *
find_pair(const vlm_vocab_t *v, uint32_t left, uint32_t right)
{
    uint32_t     i;
    vlm_pair_t  *p;

    for (i = hash_pair(left, right) & v->pair_mask; ; i = (i + 1) & v->pair_mask) {
        p = &v->pairs[i];
        if (p->id == FREE || (p->left == left && p->right == right)) {
            return p;
        }
    }
}


int
vlm_vocab_join(vlm_vocab_t *v, uint32_t left, uint32_t right, uint32_t rank, uint32_t id,
               vlm_err_t *err)
{
    vlm_pair_t  *p;

    if (left >= v->n_ids || right >= v->n_ids || id >= v->n_ids) {
        return vlm_fail(err, VLM_EMODEL, "merge of the ids %u and %u to %u, %u is the largest",
                        left, right, id, v->n_ids - 1);
    }

    p = find_pair(v, left, right);

    if (p->id == FREE) {
        if (v->n_pairs == v->pair_mask) {
            return vlm_fail(err, VLM_EMODEL, "more than the %u merges that were counted",
                            v->n_pairs);
        }

        v->n_pairs++;
    }

    p->left = left;
    p->right = right;
    p->rank = rank;
    p->id = id;

    return 0;
}


const vlm_pair_t *
vlm_vocab_pair(const vlm_vocab_t *v, uint32_t left, uint32_t right)
{
    const vlm_pair_t  *p;

    p = find_pair(v, left, right);

    return p->id == FREE ? NULL : p;
}


const vlm_entry_t *
vlm_vocab_token(const vlm_vocab_t *v, uint32_t id)
{
    if (id >= v->n_ids || v->tokens[id].kind == VLM_TOKEN_NONE) {
        return NULL;
    }

    return &v->tokens[id];
}
