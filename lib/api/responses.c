/* Requests of the Responses interface, as requests of chats. */

#include "api/responses.h"

#include <string.h>

typedef struct {
    vlm_json_t   *messages;
    vlm_json_t   *calls;               /* of the last message, if it is an assistant's; or NULL */
    vlm_json_t   *assistant;           /* that message; or NULL */
    const char  **param;
    vlm_err_t    *err;
} reader_t;


static int
no_memory(vlm_err_t *err)
{
    return vlm_fail(err, VLM_EMEMORY, "no memory for the request");
}


static int
refuse(reader_t *r, const char *param, const char *what)
{
    *r->param = param;

    return vlm_fail(r->err, VLM_EINPUT, "%s %s", param, what);
}


static int
is(const char *text, const char *other)
{
    return text != NULL && strcmp(text, other) == 0;
}


/* A member of the request under another name, if it is there. */
static int
pass(vlm_json_t *to, const char *name, const vlm_json_t *value)
{
    return value == NULL ? 0 : vlm_json_refer(to, name, value);
}


/* Parts of a content, in the form of a chat; others are passed on as they are. */
static vlm_json_t *
parts_of(const vlm_json_t *content)
{
    int                rc;
    const char        *type;
    vlm_json_t        *list, *part, *url;
    const vlm_json_t  *one;

    list = vlm_json_make('[');

    for (one = vlm_json_first(content); list != NULL && one != NULL; one = vlm_json_next(one)) {
        type = vlm_json_text(vlm_json_get(one, "type"));

        if (is(type, "input_text") || is(type, "output_text")) {
            part = vlm_json_make('{');
            rc = part == NULL || vlm_json_take(part, "type", vlm_json_make_text("text")) != 0
                 || pass(part, "text", vlm_json_get(one, "text")) != 0;

        } else if (is(type, "input_image")) {
            part = vlm_json_make('{');
            url = vlm_json_make('{');
            rc = url == NULL || pass(url, "url", vlm_json_get(one, "image_url")) != 0
                 || pass(url, "detail", vlm_json_get(one, "detail")) != 0
                 || pass(url, "max_pixels", vlm_json_get(one, "max_pixels")) != 0
                 || pass(url, "min_pixels", vlm_json_get(one, "min_pixels")) != 0;
            rc |= part == NULL || vlm_json_take(part, "type", vlm_json_make_text("image_url")) != 0;

            if (rc == 0) {
                rc = vlm_json_take(part, "image_url", url);
            } else {
                vlm_json_free(url);
            }

        } else {
            part = NULL;
            rc = vlm_json_refer(list, NULL, one);
        }

        if (rc != 0) {
            vlm_json_free(part);
            vlm_json_free(list);
            return NULL;
        }

        if (part != NULL && vlm_json_take(list, NULL, part) != 0) {
            vlm_json_free(list);
            return NULL;
        }
    }

    return list;
}


/* A message, which is the last one from now on. */
static int
add_message(reader_t *r, const char *role, const vlm_json_t *named, const vlm_json_t *content)
{
    int          rc;
    vlm_json_t  *m;

    m = vlm_json_make('{');
    r->calls = NULL;
    r->assistant = NULL;

    rc = m == NULL
         || (named != NULL ? vlm_json_refer(m, "role", named)
                           : vlm_json_take(m, "role", vlm_json_make_text(role))) != 0
         || (vlm_json_is_array(content) ? vlm_json_take(m, "content", parts_of(content))
             : pass(m, "content", content)) != 0;

    if (rc != 0) {
        vlm_json_free(m);
        return no_memory(r->err);
    }

    if (vlm_json_take(r->messages, NULL, m) != 0) {
        return no_memory(r->err);
    }

    if (is(role, "assistant") || is(vlm_json_text(named), "assistant")) {
        r->assistant = m;
    }

    return 0;
}


/* A call of the assistant's last message, which may have other calls. */
static int
add_call(reader_t *r, const vlm_json_t *item)
{
    int          rc;
    vlm_json_t  *call, *function, *list;

    if (r->assistant == NULL && add_message(r, "assistant", NULL, NULL) != 0) {
        return -1;
    }

    if (r->calls == NULL) {
        list = vlm_json_make('[');

        if (list == NULL || vlm_json_take(r->assistant, "tool_calls", list) != 0) {
            return no_memory(r->err);
        }

        r->calls = list;
    }

    call = vlm_json_make('{');
    function = vlm_json_make('{');
    rc = call == NULL || function == NULL
         || pass(function, "name", vlm_json_get(item, "name")) != 0
         || pass(function, "arguments", vlm_json_get(item, "arguments")) != 0;

    if (rc != 0) {
        vlm_json_free(call);
        vlm_json_free(function);
        return no_memory(r->err);
    }

    if (vlm_json_take(call, "function", function) != 0) {
        vlm_json_free(call);
        return no_memory(r->err);
    }

    return vlm_json_take(r->calls, NULL, call) == 0 ? 0 : no_memory(r->err);
}


static int
add_item(reader_t *r, const vlm_json_t *item)
{
    const char  *type;

    type = vlm_json_text(vlm_json_get(item, "type"));

    if (is(type, "function_call")) {
        return add_call(r, item);
    }

    if (is(type, "function_call_output")) {
        return add_message(r, "tool", NULL, vlm_json_get(item, "output"));
    }

    if (is(type, "reasoning")) {
        return 0;                      /* of an earlier answer: the model does not read it */
    }

    if (type != NULL && !is(type, "message")) {
        return refuse(r, "input", "has an item of a type that is not message, function_call, "
                      "function_call_output or reasoning");
    }

    if (!vlm_json_is_object(item)) {
        return refuse(r, "input", "has an item that is not an object");
    }

    return vlm_json_is_null(vlm_json_get(item, "role"))
           ? refuse(r, "input", "has a message without a role")
           : add_message(r, NULL, vlm_json_get(item, "role"), vlm_json_get(item, "content"));
}


static int
add_input(reader_t *r, const vlm_json_t *request)
{
    const vlm_json_t  *input, *item, *instructions;

    input = vlm_json_get(request, "input");
    instructions = vlm_json_get(request, "instructions");

    if (!vlm_json_is_null(instructions) && add_message(r, "system", NULL, instructions) != 0) {
        return -1;
    }

    if (vlm_json_is_string(input)) {
        return add_message(r, "user", NULL, input);
    }

    if (!vlm_json_is_array(input) || vlm_json_count(input) == 0) {
        return refuse(r, "input", "is neither a string nor an array of items");
    }

    for (item = vlm_json_first(input); item != NULL; item = vlm_json_next(item)) {
        if (add_item(r, item) != 0) {
            return -1;
        }
    }

    return 0;
}


/* Tools, whose function is the tool itself there. */
static vlm_json_t *
tools_of(const vlm_json_t *tools)
{
    vlm_json_t        *list, *tool, *function;
    const vlm_json_t  *one, *m;

    list = vlm_json_make('[');

    for (one = vlm_json_first(tools); list != NULL && one != NULL; one = vlm_json_next(one)) {
        tool = vlm_json_make('{');
        function = vlm_json_make('{');

        if (tool == NULL || function == NULL
            || pass(tool, "type", vlm_json_get(one, "type")) != 0
            || vlm_json_take(list, NULL, tool) != 0)
        {
            vlm_json_free(function);
            vlm_json_free(list);
            return NULL;
        }

        for (m = vlm_json_is_object(one) ? vlm_json_first(one) : NULL; m != NULL;
             m = vlm_json_next(m))
        {
            if (strcmp(vlm_json_key(m), "type") != 0
                && vlm_json_refer(function, vlm_json_key(m), m) != 0)
            {
                vlm_json_free(function);
                vlm_json_free(list);
                return NULL;
            }
        }

        if (vlm_json_take(tool, "function", function) != 0) {
            vlm_json_free(list);
            return NULL;
        }
    }

    return list;
}


/* text.format: its schema stands beside the type. */
static vlm_json_t *
format_of(const vlm_json_t *format)
{
    vlm_json_t  *f;

    f = vlm_json_make('{');

    if (f == NULL || pass(f, "type", vlm_json_get(format, "type")) != 0
        || pass(f, "schema", vlm_json_get(format, "schema")) != 0)
    {
        vlm_json_free(f);
        return NULL;
    }

    return f;
}


/* Fields that a chat has, too, and what becomes of others. */
static int
add_fields(reader_t *r, vlm_json_t *chat, const vlm_json_t *request)
{
    size_t             i;
    const vlm_json_t  *tools, *format;
    static const char  *const same[] = {
        "model", "stream", "temperature", "top_p", "seed", "tool_choice", "parallel_tool_calls",
        "top_k", "repetition_penalty", "presence_penalty", "frequency_penalty", "stop", "task",
        "timings"
    };
    static const char  *const absent[] = {
        "previous_response_id", "conversation", "prompt", "background"
    };

    for (i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
        if (vlm_json_is_true(vlm_json_get(request, absent[i]))) {
            return refuse(r, absent[i], "is not supported: this server stores no responses, send "
                          "the whole conversation as input");
        }
    }

    for (i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
        if (pass(chat, same[i], vlm_json_get(request, same[i])) != 0) {
            return no_memory(r->err);
        }
    }

    tools = vlm_json_get(request, "tools");
    format = vlm_json_get(vlm_json_get(request, "text"), "format");

    if (pass(chat, "max_tokens", vlm_json_get(request, "max_output_tokens")) != 0
        || (vlm_json_is_array(tools) ? vlm_json_take(chat, "tools", tools_of(tools))
            : pass(chat, "tools", tools)) != 0
        || (vlm_json_is_object(format) ? vlm_json_take(chat, "response_format", format_of(format))
            : pass(chat, "response_format", format)) != 0)
    {
        return no_memory(r->err);
    }

    return 0;
}


vlm_json_t *
vlm_responses_chat(const vlm_json_t *request, const char **param, vlm_err_t *err)
{
    reader_t     r = { .param = param, .err = err };
    vlm_json_t  *chat;

    *param = NULL;
    chat = vlm_json_make('{');
    r.messages = vlm_json_make('[');

    if (chat == NULL || r.messages == NULL) {
        vlm_json_free(chat);
        vlm_json_free(r.messages);
        (void) no_memory(err);
        return NULL;
    }

    if (vlm_json_take(chat, "messages", r.messages) != 0) {
        vlm_json_free(chat);
        (void) no_memory(err);
        return NULL;
    }

    if (add_fields(&r, chat, request) != 0 || add_input(&r, request) != 0) {
        vlm_json_free(chat);
        return NULL;
    }

    return chat;
}
