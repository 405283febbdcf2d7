
/*
 * A request that can never fit the context is refused while its body is
 * parsed, before it waits.  The check counts the tokens of its texts and
 * pictures alone, without the template and the history; a request that passes
 * is checked again when its prompt is made.
 *
 * The check needs the tokenizer: in the first moments of a load it is skipped,
 * and the second check refuses.  All of it runs in threads.
 */


#include "line.h"


static ngx_int_t
ngx_http_vlm_fit_refuse(ngx_http_vlm_ctx_t *ctx, uint64_t least, uint32_t room)
{
    ctx->error.err.code = VLM_ELIMIT;

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  "context_length_exceeded",
                                  "This model's maximum context length is "
                                  "%uD tokens. The prompt has at least %uL, "
                                  "and an answer needs one.", room + 1, least);
}


ngx_int_t
ngx_http_vlm_fit(ngx_http_vlm_ctx_t *ctx, const ngx_http_vlm_fit_t *parts,
    size_t n)
{
    size_t      i, n_ids;
    uint32_t   *ids, room;
    uint64_t    most, least, bytes;
    vlm_err_t   err;
    ngx_int_t   rc;

    if (!ctx->opened) {
        return NGX_OK;
    }

    room = ctx->engine->conf.vlm.context - 1;
    most = 0;
    least = 0;

    /* a token has at least one byte, so most requests need not be counted; nor
       is a text too long even if all its tokens were the longest */

    for (i = 0; i < n; i++) {

        if (parts[i].text) {
            most += parts[i].len;
            least += vlm_tokens_least(ctx->engine->life.vlm, parts[i].len);

        } else {
            most += parts[i].tokens;
            least += parts[i].tokens;
        }
    }

    if (most <= room) {
        return NGX_OK;
    }

    if (least > room) {
        return ngx_http_vlm_fit_refuse(ctx, least, room);
    }

    least = 0;

    for (i = 0; i < n && least <= room; i++) {

        if (parts[i].text == NULL) {
            least += parts[i].tokens;
            continue;
        }

        bytes = vlm_tokenize_memory(parts[i].len);

        rc = ngx_http_vlm_input_memory(ctx, bytes, "The text");
        if (rc != NGX_OK) {
            return rc;
        }

        /* invalid UTF-8 is refused when the prompt is made */

        if (vlm_tokenize(ctx->engine->life.vlm, parts[i].text, parts[i].len,
                         &ids, &n_ids, &err)
            == 0)
        {
            least += n_ids;
            free(ids);
        }

        vlm_budget_give(&ctx->engine->budget, bytes);
    }

    return least <= room ? NGX_OK : ngx_http_vlm_fit_refuse(ctx, least, room);
}
