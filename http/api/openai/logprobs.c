
/*
 * Log-probabilities in OpenAI's two forms: an object for each token in a chat,
 * four parallel arrays in a completion.
 *
 * A token is bytes, and may be a part of a character.  In a chat its bytes
 * stand beside its text; in a completion the text of such a token is written
 * as "bytes:\xf0\x9f", by which clients recognise it.
 */


#include "openai.h"


#define NGX_HTTP_VLM_PIECE  160            /* bytes of a token in the form
                                              "bytes:", which has four
                                              characters for each */


/* the offset of each token, in characters of the answer: every byte but a
   continuation byte begins a character */

static void
ngx_http_vlm_openai_offsets(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, vlm_token_t *t, size_t n)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    size_t       i, k, len;
    const char  *piece;

    vlm_json_add_open(w, "text_offset", '[');

    for (i = 0; i < n; i++) {
        vlm_json_put_int(w, o->offset);

        piece = ngx_http_vlm_tokens_piece(ctx, t[i].picked.id, &len);

        for (k = 0; k < len; k++) {
            o->offset += ((u_char) piece[k] & 0xc0) != 0x80;
        }
    }

    vlm_json_shut(w, ']');
}


static void
ngx_http_vlm_openai_name(ngx_http_vlm_ctx_t *ctx, uint32_t id,
    char buf[4 * NGX_HTTP_VLM_PIECE + 8])
{
    size_t       i, len;
    u_char      *p;
    const char  *piece;

    p = (u_char *) buf;

    piece = ngx_http_vlm_tokens_piece(ctx, id, &len);
    len = ngx_min(len, NGX_HTTP_VLM_PIECE);

    if (vlm_utf8_whole(piece, len) == len && memchr(piece, '\0', len) == NULL) {
        p = ngx_cpymem(p, piece, len);

    } else {
        p = ngx_sprintf(p, "bytes:");

        for (i = 0; i < len; i++) {
            p = ngx_sprintf(p, "\\x%02xd", (u_char) piece[i]);
        }
    }

    *p = '\0';
}


static void
ngx_http_vlm_openai_tops(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    vlm_token_t *t, size_t n)
{
    char    buf[4 * NGX_HTTP_VLM_PIECE + 8];
    size_t  i, k;

    vlm_json_put_key(w, "top_logprobs");

    if (ctx->sampling.top_logprobs == 0) {
        vlm_json_put_null(w);
        return;
    }

    vlm_json_open(w, '[');

    for (i = 0; i < n; i++) {
        vlm_json_open(w, '{');

        for (k = 0; k < t[i].n_top; k++) {
            ngx_http_vlm_openai_name(ctx, t[i].top[k].id, buf);
            vlm_json_add_logprob(w, buf, t[i].top[k].logprob);
        }

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}


static void
ngx_http_vlm_openai_arrays(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    vlm_token_t *t, size_t n)
{
    char    buf[4 * NGX_HTTP_VLM_PIECE + 8];
    size_t  i;

    vlm_json_add_open(w, "tokens", '[');

    for (i = 0; i < n; i++) {
        ngx_http_vlm_openai_name(ctx, t[i].picked.id, buf);
        vlm_json_put_text(w, buf, ngx_strlen(buf));
    }

    vlm_json_shut(w, ']');

    vlm_json_add_open(w, "token_logprobs", '[');

    for (i = 0; i < n; i++) {
        vlm_json_put_logprob(w, t[i].picked.logprob);
    }

    vlm_json_shut(w, ']');

    ngx_http_vlm_openai_tops(ctx, w, t, n);
    ngx_http_vlm_openai_offsets(ctx, w, t, n);
}


void
ngx_http_vlm_openai_logprobs(ngx_http_vlm_ctx_t *ctx,
    vlm_json_out_t *w, size_t n)
{
    ngx_http_vlm_openai_t *o = ctx->data;

    vlm_json_add_open(w, "logprobs", '{');

    if (o->chat) {
        ngx_http_vlm_tokens_put(ctx, w, "content", n, 1);
        vlm_json_add_string(w, "refusal", NULL);

    } else {
        ngx_http_vlm_openai_arrays(ctx, w, ngx_http_vlm_tokens_take(ctx, n), n);
    }

    vlm_json_shut(w, '}');
}
