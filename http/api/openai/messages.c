
/*
 * OpenAI's "messages" and "prompt": roles, texts, pictures, and videos as
 * lists of frames.
 *
 * A picture must be within the request.  A URL of one is refused, because this
 * server opens no connections on behalf of a client; so is the file of a
 * video, because it has no decoder for one.
 */


#include "openai.h"


#define NGX_HTTP_VLM_OPENAI_FPS  2.0               /* as transformers assumes */


static ngx_int_t
ngx_http_vlm_openai_role(ngx_http_vlm_ctx_t *ctx,
    const vlm_json_t *json, ngx_uint_t i, vlm_role_t *role)
{
    const char  *text;

    ngx_http_vlm_fail_param(ctx, "messages.%ui.role", i);

    text = vlm_json_text(vlm_json_get(json, "role"));

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "messages.%ui has no role", i);
    }

    if (ngx_http_vlm_messages_role(text, role) == NGX_OK
        && (*role != VLM_TOOL || ctx->engine->conf.facts.call))
    {
        return NGX_OK;
    }

    if (ngx_strcmp(text, "developer") == 0) {
        *role = VLM_SYSTEM;
        return NGX_OK;
    }

    if (ngx_strcmp(text, "tool") == 0 || ngx_strcmp(text, "function") == 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "unsupported_value", "messages.%ui is of "
                                      "a tool: this model does not have tools",
                                      i);
    }

    return ngx_http_vlm_fail_input(ctx, "messages.%ui has a role that is not "
                                   "system, developer, user, assistant or "
                                   "tool", i);
}


/* {"url": ...}, or the URL alone, as some clients send it */

static ngx_int_t
ngx_http_vlm_openai_picture(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *image)
{
    const char  *url;

    url = vlm_json_text(image);

    if (url == NULL) {
        url = vlm_json_text(vlm_json_get(image, "url"));
    }

    if (url == NULL) {
        return ngx_http_vlm_fail_input(ctx, "%s has no image_url with a url",
                                       ctx->error.param);
    }

    if (ngx_strncasecmp((u_char *) url, (u_char *) "data:", 5) != 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "image_url_not_supported",
                                      "%s is not a data URL: this server "
                                      "fetches nothing, send the image as "
                                      "\"data:image/jpeg;base64,...\"",
                                      ctx->error.param);
    }

    return ngx_http_vlm_messages_picture(ngx_http_vlm_asked(ctx), url, image);
}


/* {"video_url": {"url": ...}}, or {"video": [...]}; fps stands in either
   object */

static ngx_int_t
ngx_http_vlm_openai_video(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *part,
    const vlm_json_t *video)
{
    size_t             n;
    vlm_frame_text_t   frames[NGX_HTTP_VLM_FRAMES];
    const vlm_json_t  *fields, *fps;

    switch (vlm_frames_read(video, frames, NGX_HTTP_VLM_FRAMES, &n)) {

    case VLM_FRAMES_MISSING:
        return ngx_http_vlm_fail_input(ctx, "%s has no video_url with a url",
                                       ctx->error.param);

    case VLM_FRAMES_NO_DATA:
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "unsupported_video_format", "%s is not a "
                                      "data URL of frames: this server fetches "
                                      "nothing and decodes no video files, "
                                      "send the frames as \"data:video/jpeg;"
                                      "base64,FRAME,FRAME,...\"",
                                      ctx->error.param);

    case VLM_FRAMES_WRONG:
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "image_url_not_supported",
                                      "Frame %uz of %s is not a data URL: "
                                      "this server fetches nothing, send "
                                      "it as \"data:image/jpeg;base64,"
                                      "...\"", n, ctx->error.param);

    case VLM_FRAMES_READ:
        break;
    }

    fields = vlm_json_is_object(video) ? video : part;
    fps = vlm_json_get(fields, "fps");

    if (vlm_json_is_null(fps)) {
        fps = vlm_json_get(part, "fps");
    }

    return ngx_http_vlm_messages_video(ngx_http_vlm_asked(ctx), frames, n,
                                       vlm_json_is_null(fps)
                                       ? NGX_HTTP_VLM_OPENAI_FPS
                                       : vlm_json_number(fps, 0),
                                       fields);
}


static ngx_int_t
ngx_http_vlm_openai_part(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *part,
    ngx_uint_t i, ngx_uint_t k)
{
    const char  *type, *text;

    ngx_http_vlm_fail_param(ctx, "messages.%ui.content.%ui", i, k);

    type = vlm_json_text(vlm_json_get(part, "type"));

    if (type == NULL) {
        return ngx_http_vlm_fail_input(ctx, "%s is not an object with a type",
                                       ctx->error.param);
    }

    if (ngx_strcmp(type, "image_url") == 0) {
        return ngx_http_vlm_openai_picture(ctx, vlm_json_get(part, type));
    }

    if (ngx_strcmp(type, "video_url") == 0 || ngx_strcmp(type, "video") == 0) {
        return ngx_http_vlm_openai_video(ctx, part, vlm_json_get(part, type));
    }

    /* an earlier answer that was a refusal has a part of that type */

    if (ngx_strcmp(type, "text") != 0 && ngx_strcmp(type, "refusal") != 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "unsupported_value", "%s has a type that "
                                      "is not text, image_url, video_url "
                                      "or video",
                                      ctx->error.param);
    }

    text = vlm_json_text(vlm_json_get(part, type));

    if (text == NULL) {
        return ngx_http_vlm_fail_input(ctx, "%s has no %s that is a string",
                                       ctx->error.param, type);
    }

    return ngx_http_vlm_messages_text(ngx_http_vlm_asked(ctx), text);
}


/* a string, or an array of parts */

static ngx_int_t
ngx_http_vlm_openai_content(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *content,
    ngx_uint_t i)
{
    ngx_uint_t                  k;
    const char                 *text;
    const vlm_json_t           *part;

    ngx_http_vlm_fail_param(ctx, "messages.%ui.content", i);

    text = vlm_json_text(content);

    if (text) {
        return ngx_http_vlm_messages_text(ngx_http_vlm_asked(ctx), text);
    }

    if (!vlm_json_is_array(content)) {
        return ngx_http_vlm_fail_input(ctx, "messages.%ui.content is neither a "
                                       "string nor an array of parts", i);
    }

    k = 0;

    for (part = vlm_json_first(content); part; part = vlm_json_next(part)) {
        if (ngx_http_vlm_openai_part(ctx, part, i, k++) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_vlm_openai_message(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json,
    ngx_uint_t i)
{
    char               place[48];
    vlm_role_t         role;
    const vlm_json_t  *content;

    role = VLM_USER;

    ngx_http_vlm_fail_param(ctx, "messages.%ui", i);

    if (!vlm_json_is_object(json)) {
        return ngx_http_vlm_fail_input(ctx, "messages.%ui is not an object", i);
    }

    if (ngx_http_vlm_openai_role(ctx, json, i, &role) != NGX_OK
        || ngx_http_vlm_messages_begin(ngx_http_vlm_asked(ctx), role) != NGX_OK)
    {
        return NGX_ERROR;
    }

    content = vlm_json_get(json, "content");

    /* clients send an earlier answer back, which may have had no content; a
       call is behind the content, and none is behind an empty one */

    if (role != VLM_ASSISTANT) {
        return ngx_http_vlm_openai_content(ctx, content, i);
    }

    if (vlm_json_is_true(content)
        && ngx_http_vlm_openai_content(ctx, content, i) != NGX_OK)
    {
        return NGX_ERROR;
    }

    (void) snprintf(place, sizeof(place), "messages.%u", (unsigned) i);

    ngx_http_vlm_fail_param(ctx, "%s.tool_calls", place);

    return ngx_http_vlm_tools_calls(ctx, vlm_json_get(json, "tool_calls"),
                                    place);
}


ngx_int_t
ngx_http_vlm_openai_messages(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    ngx_uint_t                  i;
    const vlm_json_t           *messages, *one;

    messages = vlm_json_get(json, "messages");

    ngx_http_vlm_fail_param(ctx, "messages");

    if (vlm_json_is_null(messages)) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      "missing_required_parameter",
                                      "messages are missing");
    }

    if (!vlm_json_is_array(messages)) {
        return ngx_http_vlm_fail_input(ctx, "messages are not an array");
    }

    if (vlm_json_count(messages) == 0) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST, "empty_array",
                                      "messages are an empty array");
    }

    i = 0;

    for (one = vlm_json_first(messages); one; one = vlm_json_next(one)) {
        if (ngx_http_vlm_openai_message(ctx, one, i++) != NGX_OK) {
            return NGX_ERROR;
        }
    }

    return NGX_OK;
}


/* a string, or an array of one; the text is kept like a message */

ngx_int_t
ngx_http_vlm_openai_text(ngx_http_vlm_ctx_t *ctx, const vlm_json_t *json)
{
    const char                 *text;
    const vlm_json_t           *prompt;

    prompt = vlm_json_get(json, "prompt");

    ngx_http_vlm_fail_param(ctx, "prompt");

    if (vlm_json_is_array(prompt) && vlm_json_count(prompt) == 1) {
        prompt = vlm_json_first(prompt);
    }

    text = vlm_json_text(prompt);

    if (text == NULL) {
        return ngx_http_vlm_fail_code(ctx, NGX_HTTP_BAD_REQUEST,
                                      vlm_json_is_null(prompt)
                                      ? "missing_required_parameter" : NULL,
                                      "prompt is neither a string nor an "
                                      "array of one: several prompts and "
                                      "token IDs are not supported");
    }

    if (ngx_http_vlm_messages_begin(ngx_http_vlm_asked(ctx), VLM_USER)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_vlm_messages_text(ngx_http_vlm_asked(ctx), text);
}
