/*
 * Fills a tokenizer, one token, merge or name at a time, and checks it when all are there.
 *
 * Published vocabularies are written in the byte-level alphabet, a printable character for each
 * byte; this file undoes it, so that all other code sees bytes.
 */

#include "text/fill.h"

#include <stdlib.h>
#include <string.h>

#define FOREIGN  SIZE_MAX              /* not spelled in the byte-level alphabet */


/* The byte for a character of the byte-level alphabet; -1: it is not in the alphabet. */
static int
letter_byte(uint32_t c)
{
    if ((c >= 0x21 && c <= 0x7e) || (c >= 0xa1 && c <= 0xff && c != 0xad)) {
        return (int) c;                /* printable: the byte itself */
    }

    if (c < 0x100 || c > 0x143) {
        return -1;
    }

    c -= 0x100;                        /* the others, in their order */

    return c <= 0x20 ? (int) c : c <= 0x42 ? (int) (c - 0x21 + 0x7f) : 0xad;
}


/* Undoes the alphabet; out has room for n bytes.  Returns the number of bytes, or FOREIGN. */
static size_t
spell_bytes(const char *s, size_t n, uint8_t *out)
{
    int             byte;
    size_t          i, at;
    uint32_t        c;
    const uint8_t  *p;

    p = (const uint8_t *) s;
    at = 0;

    for (i = 0; i < n; i++) {
        c = p[i];
        if ((c & 0xe0) == 0xc0 && i + 1 < n && (p[i + 1] & 0xc0) == 0x80) {
            c = (c & 0x1f) << 6 | (p[++i] & 0x3f);

        } else if (c >= 0x80) {
            return FOREIGN;
        }

        byte = letter_byte(c);
        if (byte == -1) {
            return FOREIGN;
        }

        out[at++] = (uint8_t) byte;
    }

    return at;
}


int
vlm_fill_token(vlm_tokenizer_t *t, const char *text, double number, vlm_err_t *err)
{
    size_t   n, bytes;
    uint8_t  raw[2 * VLM_MAX_TOKEN_BYTES];

    if (!(number >= 0 && number < VLM_MAX_ID) || number != (double) (uint32_t) number) {
        return vlm_fail(err, VLM_EMODEL, "the id of \"%s\" is not a whole number below %u",
                        vlm_printable(text), VLM_MAX_ID);
    }

    n = strlen(text);
    if (n > sizeof(raw)) {
        return vlm_fail(err, VLM_EMODEL, "the token \"%s\" is %zu bytes long, at most %zu "
                        "are supported", vlm_printable(text), n, sizeof(raw));
    }

    bytes = spell_bytes(text, n, raw);

    if (bytes == FOREIGN) {
        return vlm_vocab_add(&t->vocab, (uint32_t) number, text, n, VLM_TOKEN_FOREIGN, err);
    }

    return vlm_vocab_add(&t->vocab, (uint32_t) number, raw, bytes, VLM_TOKEN_BYTES, err);
}


int
vlm_fill_merge(vlm_tokenizer_t *t, const char *left, size_t n_left, const char *right,
               size_t n_right, uint32_t rank, vlm_err_t *err)
{
    size_t   a, b;
    int64_t  left_id, right_id, id;
    uint8_t  raw[4 * VLM_MAX_TOKEN_BYTES];

    if (rank >= VLM_MAX_ID) {
        return vlm_fail(err, VLM_EMODEL, "more than %u merges", VLM_MAX_ID);
    }

    if (n_left == 0 || n_right == 0 || n_left > sizeof(raw) / 2 || n_right > sizeof(raw) / 2) {
        return vlm_fail(err, VLM_EMODEL, "merge %u has halves of %zu and %zu bytes, expected "
                        "1 to %zu", rank, n_left, n_right, sizeof(raw) / 2);
    }

    a = spell_bytes(left, n_left, raw);
    b = a == FOREIGN ? FOREIGN : spell_bytes(right, n_right, raw + a);
    left_id = right_id = id = -1;

    if (b != FOREIGN) {
        left_id = vlm_vocab_find(&t->vocab, raw, a);
        right_id = vlm_vocab_find(&t->vocab, raw + a, b);
        id = vlm_vocab_find(&t->vocab, raw, a + b);
    }

    if (left_id < 0 || right_id < 0 || id < 0) {
        return vlm_fail(err, VLM_EMODEL, "merge %u of \"%s\" and \"%s\": the vocabulary does "
                        "not have all three", rank, vlm_printable_part(left, n_left),
                        vlm_printable_part(right, n_right));
    }

    return vlm_vocab_join(&t->vocab, (uint32_t) left_id, (uint32_t) right_id, rank, (uint32_t) id,
                          err);
}


int
vlm_fill_merge_line(vlm_tokenizer_t *t, const char *line, size_t n, uint32_t rank,
                    vlm_err_t *err)
{
    const char  *blank;

    blank = memchr(line, ' ', n);
    if (blank == NULL) {
        return vlm_fail(err, VLM_EMODEL, "merge %u is \"%s\", expected two tokens and a blank",
                        rank, vlm_printable_part(line, n));
    }

    return vlm_fill_merge(t, line, (size_t) (blank - line), blank + 1,
                     n - (size_t) (blank + 1 - line), rank, err);
}


/* 1 if the token of this id, if there is one, is the name itself. */
static int
is_same_token(const vlm_tokenizer_t *t, uint32_t id, const char *name, size_t n)
{
    size_t              bytes;
    uint8_t             raw[VLM_MAX_TOKEN_BYTES];
    const uint8_t      *have;
    const vlm_entry_t  *token;

    token = vlm_vocab_token(&t->vocab, id);
    if (token == NULL) {
        return 1;
    }

    have = t->vocab.pool + token->at;

    if (token->kind != VLM_TOKEN_BYTES) {
        return token->kind == VLM_TOKEN_FOREIGN && token->bytes == n && memcmp(have, name, n) == 0;
    }

    bytes = spell_bytes(name, n, raw);

    return bytes == token->bytes && memcmp(have, raw, bytes) == 0;
}


int
vlm_fill_name(vlm_tokenizer_t *t, double number, const char *name, int special, vlm_err_t *err)
{
    size_t    n;
    uint32_t  id, room, *added;

    if (!(number >= 0 && number < VLM_MAX_ID) || number != (double) (uint32_t) number) {
        return vlm_fail(err, VLM_EMODEL, "an added token's id is not a whole number below %u",
                        VLM_MAX_ID);
    }

    id = (uint32_t) number;
    n = name == NULL ? 0 : strlen(name);

    if (n == 0 || n > VLM_MAX_TOKEN_BYTES) {
        return vlm_fail(err, VLM_EMODEL, "the content of added token %u has %zu bytes, expected 1 "
                        "to %u", id, n, VLM_MAX_TOKEN_BYTES);
    }

    if (!is_same_token(t, id, name, n)) {
        return vlm_fail(err, VLM_EMODEL, "added token \"%s\" has the id %u of another token",
                        vlm_printable(name), id);
    }

    if (t->n_added == t->added_room) {
        room = t->added_room == 0 ? 64 : t->added_room * 2;
        added = realloc(t->added, room * sizeof(uint32_t));
        if (added == NULL) {
            return vlm_fail(err, VLM_EMEMORY, "no memory for %u added tokens", room);
        }

        t->added = added;
        t->added_room = room;
    }

    t->added[t->n_added++] = id;

    return vlm_vocab_name(&t->vocab, id, name, n, special ? VLM_TOKEN_SPECIAL : VLM_TOKEN_ADDED,
                          err);
}


int
vlm_fill_bytes(vlm_tokenizer_t *t, vlm_err_t *err)
{
    int64_t   id;
    uint8_t   byte;
    uint32_t  i;

    for (i = 0; i < 256; i++) {
        byte = (uint8_t) i;

        id = vlm_vocab_find(&t->vocab, &byte, 1);
        if (id < 0 && (i == '\n' || (i >= 0x20 && i < 0x7f))) {
            return vlm_fail(err, VLM_EMODEL, "the vocabulary has no token for the byte 0x%02x: "
                            "not a byte-level BPE", i);
        }

        t->byte_id[i] = id < 0 ? VLM_MAX_ID : (uint32_t) id;
    }

    return 0;
}


int
vlm_fill_check(const vlm_tokenizer_t *t, vlm_err_t *err)
{
    uint32_t           i;
    const vlm_pair_t  *pair;

    for (i = 0; i < 256; i++) {
        if (t->byte_id[i] != VLM_MAX_ID
            && t->vocab.tokens[t->byte_id[i]].kind == VLM_TOKEN_SPECIAL)
        {
            return vlm_fail(err, VLM_EMODEL, "special token %u is also the byte 0x%02x",
                            t->byte_id[i], i);
        }
    }

    for (i = 0; i <= t->vocab.pair_mask; i++) {
        pair = &t->vocab.pairs[i];
        if (pair->id != VLM_MAX_ID && t->vocab.tokens[pair->id].kind == VLM_TOKEN_SPECIAL) {
            return vlm_fail(err, VLM_EMODEL, "special token %u is also what merge %u makes",
                            pair->id, pair->rank);
        }
    }

    return 0;
}
