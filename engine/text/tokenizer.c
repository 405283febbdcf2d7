/*
 * The tokenizer as the engine uses it: opened from a checkpoint directory, asked for ids.
 *
 * A text that is UTF-8 goes through norm.c (NFC), split.c (pieces), bpe.c (ids of a piece).  Added
 * tokens are reached by their name alone, never by a text.
 */

#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/bpe.h"
#include "text/norm.h"
#include "text/read.h"

#define MAX_FILE   (64u << 20)         /* bytes of one file; the family's is 7 MB */
#define MAX_TEXT   (4u << 20)          /* bytes: more than a context holds; 200 MB to sort */
#define MAX_PATH   4096
#define MIN_ROOM   64


int
vlm_ids_add(vlm_ids_t *ids, uint32_t id, vlm_err_t *err)
{
    uint64_t   room;
    uint32_t  *p;

    if (ids->n == ids->room) {
        room = ids->room == 0 ? MIN_ROOM : vlm_mul(ids->room, 2);

        p = realloc(ids->ids, vlm_mul(room, sizeof(uint32_t)));
        if (p == NULL) {
            return vlm_fail(err, VLM_EMEMORY, "no memory for %zu token ids", ids->n + 1);
        }

        ids->ids = p;
        ids->room = room;
    }

    ids->ids[ids->n++] = id;

    return 0;
}


static int
map(vlm_file_t *f, vlm_source_t *s, char *path, const char *dir, const char *name, vlm_err_t *err)
{
    if (vlm_file_path(path, MAX_PATH, dir, name, err) != 0
        || vlm_file_open(f, path, MAX_FILE, err) != 0)
    {
        return -1;
    }

    s->name = path;
    s->data = f->data == NULL ? (const void *) "" : f->data;
    s->bytes = f->bytes;

    return 0;
}


static vlm_tokenizer_t *
open_json(const char *dir, const char *pattern, vlm_err_t *err)
{
    char              path[MAX_PATH];
    vlm_file_t        f;
    vlm_source_t      s;
    vlm_tokenizer_t  *t;

    if (map(&f, &s, path, dir, "tokenizer.json", err) != 0) {
        return NULL;
    }

    t = vlm_read_json(&s, pattern, err);

    vlm_file_close(&f);

    return t;
}


static vlm_tokenizer_t *
open_plain(const char *dir, const char *pattern, vlm_err_t *err)
{
    int               named;
    char              path[3][MAX_PATH];
    vlm_file_t        f[3];
    vlm_source_t      s[3];
    vlm_tokenizer_t  *t;

    t = NULL;
    memset(f, 0, sizeof(f));
    named = vlm_file_exists(dir, "tokenizer_config.json");

    if (map(&f[0], &s[0], path[0], dir, "vocab.json", err) == 0
        && map(&f[1], &s[1], path[1], dir, "merges.txt", err) == 0
        && (!named || map(&f[2], &s[2], path[2], dir, "tokenizer_config.json", err) == 0))
    {
        t = vlm_read_plain(&s[0], &s[1], named ? &s[2] : NULL, pattern, err);
    }

    vlm_file_close(&f[0]);
    vlm_file_close(&f[1]);
    vlm_file_close(&f[2]);

    return t;
}


vlm_tokenizer_t *
vlm_tokenizer_open(const char *dir, const char *pattern, vlm_err_t *err)
{
    if (vlm_file_exists(dir, "tokenizer.json")) {
        return open_json(dir, pattern, err);
    }

    if (vlm_file_exists(dir, "vocab.json") && vlm_file_exists(dir, "merges.txt")) {
        return open_plain(dir, pattern, err);
    }

    (void) vlm_fail(err, VLM_EMODEL, "%s: neither tokenizer.json nor vocab.json with merges.txt",
                    dir);

    return NULL;
}


void
vlm_tokenizer_close(vlm_tokenizer_t *t)
{
    if (t == NULL) {
        return;
    }

    vlm_vocab_close(&t->vocab);
    vlm_split_close(t->split);
    free(t->added);
    free(t);
}


/* The ids of all pieces of the walk's text. */
static int
encode_pieces(const vlm_tokenizer_t *t, vlm_pieces_t *pieces, vlm_bpe_t *work, vlm_ids_t *ids,
              vlm_err_t *err)
{
    int          rc;
    size_t       n;
    int64_t      id;
    const char  *piece;

    while ((rc = vlm_pieces_next(pieces, &piece, &n, err)) == 1) {
        id = t->whole ? vlm_vocab_find(&t->vocab, piece, n) : -1;
        rc = id >= 0 ? vlm_ids_add(ids, (uint32_t) id, err)
             : vlm_bpe_encode(work, &t->vocab, t->byte_id, (const uint8_t *) piece, n, ids, err);
        if (rc != 0) {
            break;
        }
    }

    return rc;
}


static int
encode_text(const vlm_tokenizer_t *t, const char *text, size_t bytes, vlm_ids_t *ids,
            vlm_err_t *err)
{
    int           rc;
    vlm_bpe_t     work = { 0 };
    vlm_pieces_t  pieces;

    if (vlm_pieces_open(&pieces, t->split, text, bytes, err) != 0) {
        return -1;
    }

    rc = encode_pieces(t, &pieces, &work, ids, err);

    vlm_bpe_free(&work);
    vlm_pieces_close(&pieces);

    return rc;
}


int
vlm_encode(const vlm_tokenizer_t *t, const char *text, size_t bytes, vlm_ids_t *ids,
           vlm_err_t *err)
{
    int      rc;
    char    *composed;
    size_t   n, at;

    if (bytes > MAX_TEXT) {
        return vlm_fail(err, VLM_ELIMIT, "a text of %zu bytes, at most %u are tokenised", bytes,
                        MAX_TEXT);
    }

    at = vlm_utf8_whole(text, bytes);
    if (at != bytes) {
        return vlm_fail(err, VLM_EINPUT, "not UTF-8 at byte %zu of %zu", at, bytes);
    }

    composed = NULL;
    n = 0;

    if (t->nfc && vlm_norm_nfc(text, bytes, &composed, &n, err) != 0) {
        return -1;
    }

    at = ids->n;

    rc = composed == NULL ? encode_text(t, text, bytes, ids, err)
                          : encode_text(t, composed, n, ids, err);
    if (rc != 0) {
        ids->n = at;
    }

    free(composed);

    return rc;
}


struct vlm_encoder_s {
    const vlm_tokenizer_t  *t;
    size_t                  bytes;     /* of the longest text */
    vlm_bpe_t               work;
    vlm_pieces_t            pieces;
    vlm_ids_t               ids;       /* room for bytes */
};


vlm_encoder_t *
vlm_encoder_open(const vlm_tokenizer_t *t, size_t bytes, vlm_err_t *err)
{
    vlm_encoder_t  *e;

    e = calloc(1, sizeof(*e));
    if (e == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory to tokenise texts of %zu bytes", bytes);
        return NULL;
    }

    e->t = t;
    e->bytes = bytes;
    e->ids.room = bytes;
    e->ids.ids = malloc(vlm_mul(bytes, sizeof(uint32_t)));

    if (e->ids.ids == NULL || vlm_bpe_grow(&e->work, bytes, err) != 0
        || vlm_pieces_open(&e->pieces, t->split, "", 0, err) != 0)
    {
        vlm_encoder_close(e);
        (void) vlm_fail(err, VLM_EMEMORY, "no memory to tokenise texts of %zu bytes", bytes);
        return NULL;
    }

    return e;
}


void
vlm_encoder_close(vlm_encoder_t *e)
{
    if (e == NULL) {
        return;
    }

    free(e->ids.ids);
    vlm_bpe_free(&e->work);
    vlm_pieces_close(&e->pieces);
    free(e);
}


const uint32_t *
vlm_encoder_ids(vlm_encoder_t *e, const char *text, size_t bytes, size_t *n)
{
    if (bytes > e->bytes || vlm_utf8_whole(text, bytes) != bytes
        || (e->t->nfc && !vlm_norm_is_nfc(text, bytes)))
    {
        return NULL;
    }

    e->ids.n = 0;
    vlm_pieces_again(&e->pieces, text, bytes);

    if (encode_pieces(e->t, &e->pieces, &e->work, &e->ids, NULL) != 0) {
        return NULL;
    }

    *n = e->ids.n;

    return e->ids.ids;
}


int
vlm_encoder_piece(vlm_encoder_t *e, const char *text, size_t bytes, size_t at, size_t *start)
{
    int          rc;
    size_t       n;
    const char  *piece;

    if (bytes > e->bytes || vlm_utf8_whole(text, bytes) != bytes) {
        return -1;
    }

    vlm_pieces_again(&e->pieces, text, bytes);

    while ((rc = vlm_pieces_next(&e->pieces, &piece, &n, NULL)) == 1) {
        *start = (size_t) (piece - text);

        if (at < *start + n) {
            break;
        }
    }

    return rc < 0 ? -1 : 0;
}


int64_t
vlm_special(const vlm_tokenizer_t *t, const char *name)
{
    size_t              n;
    uint32_t            i;
    const vlm_entry_t  *token;

    n = strlen(name);

    for (i = 0; i < t->n_added; i++) {
        token = &t->vocab.tokens[t->added[i]];
        if (token->bytes == n && memcmp(t->vocab.pool + token->at, name, n) == 0) {
            return t->added[i];
        }
    }

    return -1;
}


uint32_t
vlm_vocab_size(const vlm_tokenizer_t *t)
{
    return t->vocab.n_ids;
}


const char *
vlm_token_bytes(const vlm_tokenizer_t *t, uint32_t id, size_t *bytes)
{
    const vlm_entry_t  *token;

    token = vlm_vocab_token(&t->vocab, id);
    if (token == NULL) {
        *bytes = 0;
        return NULL;
    }

    *bytes = token->bytes;

    return (const char *) t->vocab.pool + token->at;
}


int
vlm_token_is_special(const vlm_tokenizer_t *t, uint32_t id)
{
    const vlm_entry_t  *token;

    token = vlm_vocab_token(&t->vocab, id);

    return token != NULL && token->kind == VLM_TOKEN_SPECIAL;
}


int
vlm_token_is_text(const vlm_tokenizer_t *t, uint32_t id)
{
    const vlm_entry_t  *token;

    token = vlm_vocab_token(&t->vocab, id);

    return token != NULL && token->kind == VLM_TOKEN_BYTES;
}


size_t
vlm_token_max_bytes(const vlm_tokenizer_t *t)
{
    return t->vocab.max_bytes;
}
