
/*
 * What can never fit the context is refused while its body is parsed, before
 * it waits: by the tokens of its texts and pictures alone, without a template
 * or a history around them.  What does fit by that is looked at once more when
 * its prompt is made.
 *
 * Only with a tokenizer: who comes in the first moments of a load is told
 * later.  All of it runs in threads.
 */


#include "ngx_http_vlm_fit.h"


ngx_int_t
ngx_http_vlm_fit(ngx_http_vlm_ctx_t *ctx, const ngx_http_vlm_fit_t *parts,
    size_t n)
{
    size_t      i, n_ids;
    uint32_t   *ids, room;
    uint64_t    most, least;
    vlm_err_t   err;

    if (!ctx->opened) {
        return NGX_OK;
    }

    room = ctx->engine->conf.context - 1;
    most = 0;

    /* a token has a byte at least: most requests need not be counted */

    for (i = 0; i < n; i++) {
        most += parts[i].text ? parts[i].len : parts[i].tokens;
    }

    if (most <= room) {
        return NGX_OK;
    }

    least = 0;

    for (i = 0; i < n && least <= room; i++) {

        if (parts[i].text == NULL) {
            least += parts[i].tokens;
            continue;
        }

        /* what is no text is told so when its prompt is made */

        if (vlm_tokenize(ctx->engine->vlm, parts[i].text, parts[i].len, &ids,
                         &n_ids, &err)
            == 0)
        {
            least += n_ids;
            free(ids);
        }
    }

    if (least <= room) {
        return NGX_OK;
    }

    ctx->err.code = VLM_ELIMIT;
    ctx->code = "context_length_exceeded";

    return ngx_http_vlm_ask_fail(ctx, NGX_HTTP_BAD_REQUEST,
                                 "This model's maximum context length is "
                                 "%uD tokens. The prompt has at least %uL, "
                                 "and an answer needs one.", room + 1, least);
}
