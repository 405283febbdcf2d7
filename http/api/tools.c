
/*
 * Tools of a request (lib/api/tools.c): whether this model has tools, the
 * prompt's part, and the grammar that holds an answer's calls to their schemas.
 *
 * The model's template lists the tools, and an answer is free until it begins
 * a call.  A call that is demanded is begun by the prompt's end.
 */


#include "fields.h"
#include "api/tools.h"


static ngx_int_t
ngx_http_vlm_tools_refuse(ngx_http_vlm_ctx_t *ctx, const char *name,
    ngx_uint_t chosen)
{
    ngx_http_vlm_fail_param(ctx, "%s", name);

    return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                  "unsupported_parameter", chosen
                                  ? "%V does not support tools: %s can be "
                                    "\"none\" or \"auto\""
                                  : "%V does not support tools: leave %s out, "
                                    "or have \"tools ignore\" in vlm_engine",
                                  &ctx->engine->name, name);
}


/*
 * Where the client leaves the choice to the model, an answer without a call is
 * valid, so tools may be ignored; a call that is demanded is refused in any
 * case.
 */

static ngx_int_t
ngx_http_vlm_tools_without(ngx_http_vlm_ctx_t *ctx, const char *name,
    const char *choice, const vlm_json_t *field)
{
    if (vlm_tools_demanded(field)) {
        return ngx_http_vlm_tools_refuse(ctx, choice, 1);
    }

    return ctx->engine->conf.tools == NGX_HTTP_VLM_TOOLS_IGNORE
           ? NGX_OK : ngx_http_vlm_tools_refuse(ctx, name, 0);
}


/* the tools that may be called, for the grammar, and all for the prompt */

static ngx_int_t
ngx_http_vlm_tools_take(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *list,
    const vlm_json_t *choice)
{
    int                    rc;
    char                   param[32], *text;
    vlm_err_t             *err;
    const char            *only;
    ngx_http_vlm_tools_t  *t;

    t = &((ngx_http_vlm_asked_t *) ctx->data)->tools;
    err = &ctx->error.err;

    ngx_memzero(err, sizeof(vlm_err_t));

    rc = vlm_tools_choice(choice, &only, err);

    if (rc == -1) {
        ngx_http_vlm_fail_param(ctx, "tool_choice");
        return ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }

    if (rc) {
        t->demanded = 1;
        (void) snprintf(t->tail, sizeof(t->tail), "%s",
                        ctx->engine->conf.facts.call);
    }

    t->list = vlm_tools_pick(list, only, param, err);

    if (t->list == NULL) {
        ngx_http_vlm_fail_param(ctx, "%s", param);
        return ngx_http_vlm_fail_engine(ctx, NULL, NULL);
    }

    text = vlm_tools_text(list);

    if (text == NULL) {
        return ngx_http_vlm_fail_memory(ctx, "the tools");
    }

    ngx_http_vlm_messages_tools(ngx_http_vlm_asked(ctx), text);

    return NGX_OK;
}


void
ngx_http_vlm_tools_forget(ngx_http_vlm_asked_t *in)
{
    vlm_grammar_free(in->grammar);
    vlm_grammar_free(in->tools.grammar);
    vlm_grammar_free(in->tools.between);

    in->grammar = NULL;
    in->tools.grammar = NULL;
    in->tools.between = NULL;
}


/* in the first moments of a load there is no vocabulary yet */

static ngx_int_t
ngx_http_vlm_tools_compile(ngx_http_vlm_ctx_t *ctx)
{
    vlm_err_t             *err;
    vlm_json_t            *list;
    vlm_facts_t           *facts;
    ngx_http_vlm_tools_t  *t;

    t = &((ngx_http_vlm_asked_t *) ctx->data)->tools;

    if (t->list == NULL || t->grammar || !ctx->opened) {
        return NGX_OK;
    }

    facts = &ctx->engine->conf.facts;
    err = &ctx->error.err;

    ngx_memzero(err, sizeof(vlm_err_t));

    t->grammar = vlm_grammar_make(ctx->engine->life.vlm, t->list,
                                  VLM_FORM_TOOLS, err);

    if (t->grammar && !t->single) {
        list = vlm_tools_between(facts->call, facts->call_end);

        if (list == NULL) {
            return ngx_http_vlm_fail_memory(ctx, "the tools");
        }

        t->between = vlm_grammar_make(ctx->engine->life.vlm, list,
                                      VLM_FORM_CHOICE, err);
        vlm_json_free(list);
    }

    if (t->grammar && (t->single || t->between)) {
        return NGX_OK;
    }

    ngx_http_vlm_fail_param(ctx, "tools");

    return ngx_http_vlm_fail_engine(ctx, "invalid_function_parameters",
                                    "invalid_function_parameters");
}


ngx_uint_t
ngx_http_vlm_tools_supported(ngx_http_vlm_engine_t *eng)
{
    return eng->conf.tools == NGX_HTTP_VLM_TOOLS_CALL && eng->conf.facts.call;
}


ngx_int_t
ngx_http_vlm_tools_read(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    const char *name, const char *choice)
{
    const char            *text;
    const vlm_json_t      *list, *field;
    ngx_http_vlm_asked_t  *in;

    list = vlm_json_get(json, name);
    field = choice ? vlm_json_get(json, choice) : NULL;
    text = vlm_json_text(field);

    if (!vlm_json_is_true(list) && vlm_tools_demanded(field)) {
        ngx_http_vlm_fail_param(ctx, "%s", choice);

        return ngx_http_vlm_fail_input(ctx, "%s demands a call, but the "
                                       "request has no %s", choice, name);
    }

    if (!vlm_json_is_true(list) || (text && ngx_strcmp(text, "none") == 0)) {
        return NGX_OK;
    }

    if (!ngx_http_vlm_tools_supported(ctx->engine)
        || ngx_strcmp(name, "tools") != 0)
    {
        return ngx_http_vlm_tools_without(ctx, name, choice, field);
    }

    in = ctx->data;

    ngx_http_vlm_fail_param(ctx, "%s", name);

    if (!vlm_json_is_array(list)) {
        return ngx_http_vlm_fail_input(ctx, "tools are not an array");
    }

    if (ngx_http_vlm_tools_take(ctx, list, field) != NGX_OK) {
        return NGX_ERROR;
    }

    if (in->f.constraint.form) {
        ngx_http_vlm_fail_param(ctx, "%s", in->f.constraint.name);

        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "unsupported_parameter", "%s beside "
                                      "tools is not supported, unless "
                                      "tool_choice is \"none\"",
                                      in->f.constraint.name);
    }

    field = vlm_json_get(json, "parallel_tool_calls");
    in->tools.single = vlm_json_is_bool(field) && !vlm_json_is_true(field);

    vlm_calls_start(&in->tools.calls, ctx->engine->conf.facts.call,
                    ctx->engine->conf.facts.call_end, in->tools.demanded);

    if (ngx_http_vlm_tools_compile(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_vlm_tools_forget(in);

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_tools_sampling(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_tools_t  *t;

    t = &((ngx_http_vlm_asked_t *) ctx->data)->tools;

    if (ngx_http_vlm_tools_compile(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    if (t->grammar) {
        ctx->sampling.grammar = t->grammar;
        ctx->sampling.between = t->between;
        ctx->sampling.trigger = t->demanded ? NULL
                                            : ctx->engine->conf.facts.call;
    }

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_tools_calls(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *list,
    const char *place)
{
    const char        *name;
    const vlm_json_t  *call, *function;

    if (vlm_json_is_null(list)) {
        return NGX_OK;
    }

    if (!vlm_json_is_array(list)) {
        return ngx_http_vlm_fail_input(ctx, "%s.tool_calls is not an array",
                                       place);
    }

    if (vlm_json_count(list) && ctx->engine->conf.facts.call == NULL) {
        return ngx_http_vlm_fail_input(ctx, "%s has calls of tools: this model "
                                       "does not have tools", place);
    }

    for (call = vlm_json_first(list); call; call = vlm_json_next(call)) {

        function = vlm_json_get(call, "function");
        name = vlm_json_text(vlm_json_get(function, "name"));

        if (name == NULL) {
            return ngx_http_vlm_fail_input(ctx, "%s.tool_calls has a call "
                                           "without a function's name", place);
        }

        if (ngx_http_vlm_messages_call(ngx_http_vlm_asked(ctx), name,
                                       vlm_json_get(function, "arguments"))
            != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* ---- the answer ---------------------------------------------------------- */


vlm_calls_e
ngx_http_vlm_tools_next(ngx_http_vlm_ctx_t *ctx, ngx_uint_t last,
    vlm_calls_piece_t *piece)
{
    ngx_http_vlm_asked_t *in = ctx->data;

    return vlm_calls_next(&in->tools.calls, (char *) ctx->out.answer.data,
                          ctx->out.answer.len, last, piece);
}


/* the calls of a whole answer are looked for from its beginning */

void
ngx_http_vlm_tools_again(ngx_http_vlm_ctx_t *ctx)
{
    ngx_http_vlm_tools_t  *t;

    t = &((ngx_http_vlm_asked_t *) ctx->data)->tools;

    vlm_calls_start(&t->calls, t->calls.open, t->calls.end, t->demanded);
}


void
ngx_http_vlm_tools_content(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *text)
{
    vlm_calls_e         kind;
    vlm_calls_piece_t   piece;

    ngx_http_vlm_tools_again(ctx);

    while ((kind = ngx_http_vlm_tools_next(ctx, 1, &piece)) != VLM_CALLS_NONE) {

        if (kind == VLM_CALLS_TEXT) {
            vlm_json_put_raw(text, piece.text, piece.bytes);
        }

        vlm_json_free(piece.call);
    }
}


ngx_uint_t
ngx_http_vlm_tools_whole(ngx_http_vlm_ctx_t *ctx, vlm_json_out_t *w,
    ngx_http_vlm_tools_put_t *put)
{
    ngx_uint_t          n;
    vlm_calls_e         kind;
    vlm_calls_piece_t   piece;

    ngx_http_vlm_tools_again(ctx);

    for (n = 0;
         (kind = ngx_http_vlm_tools_next(ctx, 1, &piece)) != VLM_CALLS_NONE;
         /* void */)
    {
        if (kind == VLM_CALLS_CALL) {

            if (n == 0) {
                vlm_json_add_open(w, "tool_calls", '[');
            }

            put(ctx, w, &piece, n++);
        }

        vlm_json_free(piece.call);
    }

    if (n) {
        vlm_json_shut(w, ']');
    }

    return n;
}
