/* Log-probabilities of tokens in OpenAI's two forms: see logprobs.h. */

#include "api/logprobs.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define PIECE  160                     /* bytes of a token that are shown in the arrays; the form
                                          "bytes:" has four characters for each */
#define NAME   (4 * PIECE + 8)


static const char *
piece_of(const vlm_pieces_t *p, uint32_t id, size_t *bytes)
{
    const char  *piece;

    *bytes = 0;
    piece = p->piece(p->data, id, bytes);

    return piece != NULL ? piece : "";
}


/* ---- an object for each token ------------------------------------------------------------- */

static void
put_object(vlm_json_out_t *w, const vlm_logprob_t *p, const vlm_pieces_t *pieces)
{
    size_t       i, bytes;
    const char  *piece;

    piece = piece_of(pieces, p->id, &bytes);

    vlm_json_add_text(w, "token", piece, bytes);
    vlm_json_add_logprob(w, "logprob", p->logprob);
    vlm_json_add_open(w, "bytes", '[');

    for (i = 0; i < bytes; i++) {
        vlm_json_put_int(w, (unsigned char) piece[i]);
    }

    vlm_json_shut(w, ']');
}


void
vlm_logprobs_objects(vlm_json_out_t *w, const char *key, const vlm_token_t *t, size_t n,
                     int always, const vlm_pieces_t *pieces)
{
    uint32_t  i;

    vlm_json_add_open(w, key, '[');

    for ( /* void */ ; n > 0; t++, n--) {
        vlm_json_open(w, '{');
        put_object(w, &t->picked, pieces);

        if (always || t->n_top > 0) {
            vlm_json_add_open(w, "top_logprobs", '[');

            for (i = 0; i < t->n_top; i++) {
                vlm_json_open(w, '{');
                put_object(w, &t->top[i], pieces);
                vlm_json_shut(w, '}');
            }

            vlm_json_shut(w, ']');
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


/* ---- four arrays -------------------------------------------------------------------------- */

static void
name_of(char name[NAME], uint32_t id, const vlm_pieces_t *pieces)
{
    size_t       i, bytes, shown, len;
    const char  *piece;

    piece = piece_of(pieces, id, &bytes);
    shown = bytes < PIECE ? bytes : PIECE;

    if (vlm_utf8_whole(piece, bytes) == bytes && memchr(piece, '\0', bytes) == NULL) {
        shown = vlm_utf8_whole(piece, shown);
        memcpy(name, piece, shown);
        name[shown] = '\0';
        return;
    }

    len = (size_t) sprintf(name, "bytes:");

    for (i = 0; i < shown; i++) {
        len += (size_t) sprintf(name + len, "\\x%02x", (unsigned char) piece[i]);
    }
}


static void
put_tops(vlm_json_out_t *w, const vlm_token_t *t, size_t n, const vlm_pieces_t *pieces)
{
    char    name[NAME];
    size_t  i, k;

    vlm_json_add_open(w, "top_logprobs", '[');

    for (i = 0; i < n; i++) {
        vlm_json_open(w, '{');

        for (k = 0; k < t[i].n_top; k++) {
            name_of(name, t[i].top[k].id, pieces);
            vlm_json_add_logprob(w, name, t[i].top[k].logprob);
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


/* Every byte but a continuation byte begins a character of the answer. */
static void
put_offsets(vlm_json_out_t *w, const vlm_token_t *t, size_t n, size_t *offset,
            const vlm_pieces_t *pieces)
{
    size_t       i, k, bytes;
    const char  *piece;

    vlm_json_add_open(w, "text_offset", '[');

    for (i = 0; i < n; i++) {
        vlm_json_put_int(w, (int64_t) *offset);
        piece = piece_of(pieces, t[i].picked.id, &bytes);

        for (k = 0; k < bytes; k++) {
            *offset += ((unsigned char) piece[k] & 0xc0) != 0x80;
        }
    }

    vlm_json_shut(w, ']');
}


void
vlm_logprobs_arrays(vlm_json_out_t *w, const vlm_token_t *t, size_t n, int tops, size_t *offset,
                    const vlm_pieces_t *pieces)
{
    char    name[NAME];
    size_t  i;

    vlm_json_add_open(w, "tokens", '[');

    for (i = 0; i < n; i++) {
        name_of(name, t[i].picked.id, pieces);
        vlm_json_put_text(w, name, strlen(name));
    }

    vlm_json_shut(w, ']');
    vlm_json_add_open(w, "token_logprobs", '[');

    for (i = 0; i < n; i++) {
        vlm_json_put_logprob(w, t[i].picked.logprob);
    }

    vlm_json_shut(w, ']');

    if (tops) {
        put_tops(w, t, n, pieces);

    } else {
        vlm_json_add_string(w, "top_logprobs", NULL);
    }

    put_offsets(w, t, n, offset, pieces);
}
