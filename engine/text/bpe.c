/*
 * Byte-level BPE with a linked list and a heap.
 *
 * Each byte is a node.  The heap holds the joins that were possible when they were pushed, lowest
 * rank first, leftmost first among equals.  A join takes its right node out of the list and pushes
 * the two joins with the new neighbours; joins that lost a side are recognised when they come up.
 * At most 3n joins are ever pushed, so a piece of n bytes takes n log n steps, whatever its
 * content.
 */

#include "text/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"

#define NO_NODE   UINT32_MAX           /* before the first node, after the last */
#define MIN_ROOM  256

struct vlm_bpe_node_s {
    uint32_t  id;
    uint32_t  bytes;                   /* 0: joined to the one before */
    uint32_t  prev, next;
};

struct vlm_bpe_merge_s {
    uint64_t  key;                     /* rank above, index of the left node below */
    uint32_t  id;                      /* id of the joined token */
    uint32_t  bytes;                   /* of both nodes: tells whether they are still the same */
};


void
vlm_bpe_free(vlm_bpe_t *w)
{
    free(w->nodes);
    free(w->heap);

    memset(w, 0, sizeof(*w));
}


/*
 * Each join removes one entry and adds two at most, and there are n - 1 joins after n - 1 entries:
 * the heap never holds 2n.
 */
int
vlm_bpe_grow(vlm_bpe_t *w, size_t n, vlm_err_t *err)
{
    uint64_t  room;

    if (n <= w->room) {
        return 0;
    }

    if (n > VLM_MAX_PIECE) {
        return vlm_fail(err, VLM_ELIMIT, "a word of %zu bytes, at most %u are tokenised", n,
                        VLM_MAX_PIECE);
    }

    room = n < MIN_ROOM ? MIN_ROOM : n;

    vlm_bpe_free(w);

    w->nodes = malloc(vlm_mul(room, sizeof(vlm_bpe_node_t)));
    w->heap = malloc(vlm_mul(room * 2, sizeof(vlm_bpe_merge_t)));

    if (w->nodes == NULL || w->heap == NULL) {
        vlm_bpe_free(w);
        return vlm_fail(err, VLM_EMEMORY, "no memory to tokenise a word of %zu bytes", n);
    }

    w->room = room;

    return 0;
}


static void
push(vlm_bpe_t *w, vlm_bpe_merge_t m)
{
    size_t  i, up;

    for (i = w->n_heap++; i != 0; i = up) {
        w->steps++;
        up = (i - 1) / 2;
        if (w->heap[up].key <= m.key) {
            break;
        }

        w->heap[i] = w->heap[up];
    }

    w->heap[i] = m;
}


static vlm_bpe_merge_t
pop(vlm_bpe_t *w)
{
    size_t           i, down;
    vlm_bpe_merge_t  top, last;

    top = w->heap[0];
    last = w->heap[--w->n_heap];

    for (i = 0; ; i = down) {
        w->steps++;
        down = 2 * i + 1;
        if (down >= w->n_heap) {
            break;
        }

        if (down + 1 < w->n_heap && w->heap[down + 1].key < w->heap[down].key) {
            down++;
        }

        if (last.key <= w->heap[down].key) {
            break;
        }

        w->heap[i] = w->heap[down];
    }

    w->heap[i] = last;

    return top;
}


/* Pushes the join of a node with the next one, if the vocabulary has it. */
static void
consider(vlm_bpe_t *w, const vlm_vocab_t *v, uint32_t left)
{
    uint32_t           right;
    vlm_bpe_merge_t    m;
    const vlm_pair_t  *pair;

    right = w->nodes[left].next;
    if (right == NO_NODE) {
        return;
    }

    w->steps++;

    pair = vlm_vocab_pair(v, w->nodes[left].id, w->nodes[right].id);
    if (pair == NULL) {
        return;
    }

    m.key = (uint64_t) pair->rank << 32 | left;
    m.id = pair->id;
    m.bytes = w->nodes[left].bytes + w->nodes[right].bytes;

    push(w, m);
}


/*
 * Does the join, unless it is stale.  Nodes only grow: if the left one is still there and both
 * have as many bytes as when it was pushed, they are the same two.
 */
static void
join(vlm_bpe_t *w, const vlm_vocab_t *v, vlm_bpe_merge_t m)
{
    uint32_t         at;
    vlm_bpe_node_t  *left, *right;

    at = (uint32_t) m.key;
    left = &w->nodes[at];

    if (left->bytes == 0 || left->next == NO_NODE) {
        return;
    }

    right = &w->nodes[left->next];
    if (left->bytes + right->bytes != m.bytes) {
        return;
    }

    left->id = m.id;
    left->bytes = m.bytes;
    left->next = right->next;
    right->bytes = 0;

    if (left->next != NO_NODE) {
        w->nodes[left->next].prev = at;
    }

    if (left->prev != NO_NODE) {
        consider(w, v, left->prev);
    }

    consider(w, v, at);
}


int
vlm_bpe_encode(vlm_bpe_t *w, const vlm_vocab_t *v, const uint32_t *byte_id, const uint8_t *piece,
               size_t n, vlm_ids_t *ids, vlm_err_t *err)
{
    size_t    at;
    uint32_t  i;

    if (vlm_bpe_grow(w, n, err) != 0) {
        return -1;
    }

    for (i = 0, at = 0; at < n; at++) {
        if (byte_id[piece[at]] == VLM_MAX_ID) {
            continue;
        }

        w->nodes[i].id = byte_id[piece[at]];
        w->nodes[i].bytes = 1;
        w->nodes[i].prev = i == 0 ? NO_NODE : i - 1;
        w->nodes[i].next = i + 1;
        i++;
    }

    if (i == 0) {
        return 0;
    }

    n = i;
    w->nodes[n - 1].next = NO_NODE;
    w->n_heap = 0;

    for (i = 0; i < n; i++) {
        consider(w, v, i);
    }

    while (w->n_heap != 0) {
        join(w, v, pop(w));
    }

    for (i = 0; i != NO_NODE; i = w->nodes[i].next) {
        if (vlm_ids_add(ids, w->nodes[i].id, err) != 0) {
            return -1;
        }
    }

    return 0;
}
