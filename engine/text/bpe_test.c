/* The merges: the same as by a naive search for the lowest rank, in n log n counted steps. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "text/bpe.h"

#define N_LETTERS  4                   /* a, b, c, d: few, so that merges meet each other */
#define N_MERGES   60
#define LONG       (1u << 20)

typedef struct {
    vlm_vocab_t  vocab;
    uint32_t     byte_id[256];
} small_t;


/* 256 bytes with their own ids; no merges yet. */
static void
open_small(small_t *s, uint32_t n_merges)
{
    uint8_t    byte;
    uint32_t   i;
    vlm_err_t  err = { 0 };

    assert_int_equal(vlm_vocab_open(&s->vocab, 256 + n_merges, n_merges, &err), 0);

    for (i = 0; i < 256; i++) {
        byte = (uint8_t) i;
        s->byte_id[i] = i;
        assert_int_equal(vlm_vocab_add(&s->vocab, i, &byte, 1, VLM_TOKEN_BYTES, &err), 0);
    }
}


/* Joins two ids to a new one, unless there is such a token already.  1: it was new. */
static int
add_merge(small_t *s, uint32_t left, uint32_t right, uint32_t rank)
{
    size_t              n;
    uint8_t             bytes[VLM_MAX_TOKEN_BYTES];
    uint32_t            id;
    vlm_err_t           err = { 0 };
    const vlm_entry_t  *a, *b;

    a = vlm_vocab_token(&s->vocab, left);
    b = vlm_vocab_token(&s->vocab, right);
    n = (size_t) a->bytes + b->bytes;

    memcpy(bytes, s->vocab.pool + a->at, a->bytes);
    memcpy(bytes + a->bytes, s->vocab.pool + b->at, b->bytes);

    if (n > 40 || vlm_vocab_find(&s->vocab, bytes, n) != -1) {
        return 0;
    }

    id = s->vocab.n_ids;
    assert_int_equal(vlm_vocab_add(&s->vocab, id, bytes, n, VLM_TOKEN_BYTES, &err), 0);
    assert_int_equal(vlm_vocab_join(&s->vocab, left, right, rank, id, &err), 0);

    return 1;
}


/* The definition: the pair of lowest rank, the leftmost of them, is joined until none is left. */
static size_t
naive(const vlm_vocab_t *v, uint32_t *ids, size_t n)
{
    size_t             i, at;
    const vlm_pair_t  *p, *best;

    for ( ;; ) {
        best = NULL;
        at = 0;

        for (i = 0; i + 1 < n; i++) {
            p = vlm_vocab_pair(v, ids[i], ids[i + 1]);
            if (p != NULL && (best == NULL || p->rank < best->rank)) {
                best = p;
                at = i;
            }
        }

        if (best == NULL) {
            return n;
        }

        ids[at] = best->id;
        memmove(ids + at + 1, ids + at + 2, (n - at - 2) * sizeof(uint32_t));
        n--;
    }
}


static uint32_t
dice(uint32_t *seed, uint32_t n)
{
    *seed = *seed * 1664525 + 1013904223;

    return (*seed >> 8) % n;
}


static void
random_merges_on_random_pieces_equal_the_definition(void **state)
{
    size_t     k, n;
    small_t    s;
    uint8_t    piece[300];
    uint32_t   seed, i, round, left, right, want[300];
    vlm_bpe_t  w = { 0 };
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    seed = 1;

    for (round = 0; round < 200; round++) {
        open_small(&s, N_MERGES);

        for (i = 0; i < N_MERGES; i++) {
            left = dice(&seed, N_LETTERS + s.vocab.n_ids - 256);
            right = dice(&seed, N_LETTERS + s.vocab.n_ids - 256);
            left = left < N_LETTERS ? 'a' + left : 256 + left - N_LETTERS;
            right = right < N_LETTERS ? 'a' + right : 256 + right - N_LETTERS;
            add_merge(&s, left, right, round % 2 ? i : N_MERGES - i);
        }

        for (i = 0; i < 20; i++) {
            n = dice(&seed, sizeof(piece) + 1);
            for (k = 0; k < n; k++) {
                piece[k] = (uint8_t) ('a' + dice(&seed, i % 5 == 0 ? 1 : N_LETTERS));
                want[k] = piece[k];
            }

            ids.n = 0;
            assert_int_equal(vlm_bpe_encode(&w, &s.vocab, s.byte_id, piece, n, &ids, &err), 0);

            n = naive(&s.vocab, want, n);
            assert_int_equal(ids.n, n);
            if (n != 0) {
                assert_memory_equal(ids.ids, want, n * sizeof(uint32_t));
            }
        }

        vlm_vocab_close(&s.vocab);
    }

    free(ids.ids);
    vlm_bpe_free(&w);
}


static void
equal_ranks_are_joined_from_the_left(void **state)
{
    small_t    s;
    vlm_bpe_t  w = { 0 };
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    open_small(&s, 1);
    assert_int_equal(add_merge(&s, 'a', 'a', 0), 1);
    assert_int_equal(vlm_bpe_encode(&w, &s.vocab, s.byte_id, (const uint8_t *) "aaaaa", 5, &ids,
                                    &err), 0);
    assert_int_equal(ids.n, 3);
    assert_int_equal(ids.ids[0], 256);
    assert_int_equal(ids.ids[1], 256);
    assert_int_equal(ids.ids[2], 'a');

    free(ids.ids);
    vlm_bpe_free(&w);
    vlm_vocab_close(&s.vocab);
}


static void
a_lower_rank_inside_wins_over_a_longer_token(void **state)
{
    small_t    s;
    vlm_bpe_t  w = { 0 };
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    open_small(&s, 3);
    assert_int_equal(add_merge(&s, 'b', 'c', 0), 1);           /* 256 */
    assert_int_equal(add_merge(&s, 'a', 'b', 1), 1);           /* 257 */
    assert_int_equal(add_merge(&s, 257, 'c', 2), 1);           /* "abc" is a token ... */
    assert_int_equal(vlm_bpe_encode(&w, &s.vocab, s.byte_id, (const uint8_t *) "abc", 3, &ids,
                                    &err), 0);
    assert_int_equal(ids.n, 2);                                /* ... that its text never becomes */
    assert_int_equal(ids.ids[0], 'a');
    assert_int_equal(ids.ids[1], 256);

    free(ids.ids);
    vlm_bpe_free(&w);
    vlm_vocab_close(&s.vocab);
}


static uint64_t
count_steps(const small_t *s, const uint8_t *piece, size_t n, size_t n_ids)
{
    uint64_t   steps;
    vlm_bpe_t  w = { 0 };
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    assert_int_equal(vlm_bpe_encode(&w, &s->vocab, s->byte_id, piece, n, &ids, &err), 0);
    steps = w.steps;

    if (n_ids != 0) {
        assert_int_equal(ids.n, n_ids);
    }

    free(ids.ids);
    vlm_bpe_free(&w);

    return steps;
}


/* 3n entries, each sifted through at most log2(2n) levels, both ways. */
static uint64_t
most_steps(uint64_t n)
{
    uint64_t  log;

    for (log = 1; (1u << log) < 2 * n; log++) { /* void */ }

    return 6 * n * log;
}


static void
a_long_run_of_one_letter_takes_n_log_n_steps(void **state)
{
    size_t    n;
    small_t   s;
    uint8_t  *piece;
    uint64_t  steps, before;

    (void) state;

    open_small(&s, 5);                 /* a, aa, a4, a8, a16, a32 */
    add_merge(&s, 'a', 'a', 0);
    for (n = 256; n < 260; n++) {
        add_merge(&s, (uint32_t) n, (uint32_t) n, (uint32_t) n);
    }

    piece = malloc(LONG);
    assert_non_null(piece);
    memset(piece, 'a', LONG);

    before = 0;

    for (n = 1024; n <= LONG; n *= 4) {
        steps = count_steps(&s, piece, n, n / 32);
        assert_true(steps <= most_steps(n));
        assert_true(before == 0 || steps < before * 6);        /* four times n: never the square */
        before = steps;
    }

    free(piece);
    vlm_vocab_close(&s.vocab);
}


static void
the_worst_order_of_ranks_takes_n_log_n_steps(void **state)
{
    size_t     n, k;
    small_t    s;
    uint8_t   *piece;
    uint32_t   i, seed;
    uint64_t   steps;

    (void) state;

    open_small(&s, N_MERGES);
    seed = 7;

    for (i = 0; i < N_MERGES; i++) {   /* later merges first, so that late entries rise far */
        add_merge(&s, 'a' + dice(&seed, N_LETTERS),
                  i < 8 ? 'a' + dice(&seed, N_LETTERS)
                        : 256 + dice(&seed, s.vocab.n_ids - 256), N_MERGES - i);
    }

    piece = malloc(LONG);
    assert_non_null(piece);
    for (k = 0; k < LONG; k++) {
        piece[k] = (uint8_t) ('a' + dice(&seed, N_LETTERS));
    }

    for (n = 1023; n <= LONG; n = n * 4 + 1) {
        steps = count_steps(&s, piece, n, 0);
        assert_true(steps <= most_steps(n));
    }

    free(piece);
    vlm_vocab_close(&s.vocab);
}


static void
nothing_is_nothing_and_too_much_is_refused(void **state)
{
    small_t    s;
    vlm_bpe_t  w = { 0 };
    vlm_ids_t  ids = { 0 };
    vlm_err_t  err = { 0 };

    (void) state;

    open_small(&s, 0);

    assert_int_equal(vlm_bpe_encode(&w, &s.vocab, s.byte_id, NULL, 0, &ids, &err), 0);
    assert_int_equal(ids.n, 0);

    assert_int_equal(vlm_bpe_encode(&w, &s.vocab, s.byte_id, (const uint8_t *) "", SIZE_MAX, &ids,
                                    &err), -1);
    assert_int_equal(err.code, VLM_ELIMIT);

    vlm_vocab_close(&s.vocab);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(random_merges_on_random_pieces_equal_the_definition),
        cmocka_unit_test(equal_ranks_are_joined_from_the_left),
        cmocka_unit_test(a_lower_rank_inside_wins_over_a_longer_token),
        cmocka_unit_test(a_long_run_of_one_letter_takes_n_log_n_steps),
        cmocka_unit_test(the_worst_order_of_ranks_takes_n_log_n_steps),
        cmocka_unit_test(nothing_is_nothing_and_too_much_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
