/* Writes responses of /v1/responses, their items and their events. */

#include "api/responses_out.h"

#include <stdio.h>
#include <string.h>


/* Fields that the answer repeats; those that are absent have these values. */
static const struct {
    const char  *name;
    const char  *value;                /* JSON */
} echoes[] = {
    { "instructions", "null" }, { "max_output_tokens", "null" }, { "metadata", "{}" },
    { "parallel_tool_calls", "true" }, { "temperature", "null" },
    { "text", "{\"format\":{\"type\":\"text\"}}" }, { "tool_choice", "\"auto\"" },
    { "tools", "[]" }, { "top_p", "null" }, { "user", "null" }
};

#define N_ECHOES  (sizeof(echoes) / sizeof(echoes[0]))


int
vlm_response_take(vlm_response_t *r, const vlm_json_t *request)
{
    size_t             i;
    const vlm_json_t  *value;

    r->asked = vlm_json_make('{');

    for (i = 0; i < N_ECHOES && r->asked != NULL; i++) {
        value = vlm_json_get(request, echoes[i].name);

        if (!vlm_json_is_null(value)
            && vlm_json_take(r->asked, echoes[i].name, vlm_json_copy(value)) != 0)
        {
            return -1;
        }
    }

    return r->asked != NULL ? 0 : -1;
}


void
vlm_response_free(vlm_response_t *r)
{
    vlm_json_free(r->asked);
    r->asked = NULL;
    vlm_json_release(&r->said);
}


/* ---- items ---------------------------------------------------------------------------------- */

static void
put_part(vlm_json_out_t *w, const char *text, size_t bytes)
{
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "output_text");
    vlm_json_add_text(w, "text", text, bytes);
    vlm_json_add_open(w, "annotations", '[');
    vlm_json_shut(w, ']');
    vlm_json_add_open(w, "logprobs", '[');
    vlm_json_shut(w, ']');
    vlm_json_shut(w, '}');
}


/* The id of the response without its kind, and the number of the item. */
static void
put_id(const vlm_response_t *r, vlm_json_out_t *w, const char *key, const char *kind, uint32_t i)
{
    vlm_json_add_format(w, key, "%s_%.22s%02u", kind, r->core, i);
}


/* text NULL: it has just begun. */
static void
put_message(const vlm_response_t *r, vlm_json_out_t *w, uint32_t i, const char *text, size_t bytes)
{
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "message");
    put_id(r, w, "id", "msg", i);
    vlm_json_add_string(w, "status", text != NULL ? "completed" : "in_progress");
    vlm_json_add_string(w, "role", "assistant");
    vlm_json_add_open(w, "content", '[');

    if (text != NULL) {
        put_part(w, text, bytes);
    }

    vlm_json_shut(w, ']');
    vlm_json_shut(w, '}');
}


/* begun: without its arguments. */
static void
put_call(const vlm_response_t *r, vlm_json_out_t *w, uint32_t i, const vlm_calls_piece_t *piece,
         int begun)
{
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", "function_call");
    put_id(r, w, "id", "fc", i);
    put_id(r, w, "call_id", "call", i);
    vlm_json_add_string(w, "name", piece->name);

    if (begun) {
        vlm_json_add_string(w, "arguments", "");
    } else {
        vlm_calls_add_arguments(w, piece, 1);
    }

    vlm_json_add_string(w, "status", begun ? "in_progress" : "completed");
    vlm_json_shut(w, '}');
}


void
vlm_response_items(const vlm_response_t *r, vlm_json_out_t *w, vlm_calls_t *calls,
                   const char *text, size_t bytes)
{
    uint32_t           i = 0;
    vlm_calls_e        kind;
    vlm_json_out_t     said;
    vlm_calls_piece_t  piece;

    if (calls == NULL) {
        put_message(r, w, 0, bytes != 0 ? text : "", bytes);
        return;
    }

    vlm_json_init(&said, VLM_RESPONSES_TEXT);

    do {
        kind = vlm_calls_next(calls, text, bytes, 1, &piece);

        if (kind == VLM_CALLS_TEXT) {
            vlm_json_put_raw(&said, piece.text, piece.bytes);
            continue;
        }

        if (said.len != 0 || (kind == VLM_CALLS_NONE && i == 0)) {
            put_message(r, w, i++, said.len != 0 ? said.data : "", said.len);
            said.len = 0;
        }

        if (kind == VLM_CALLS_CALL) {
            put_call(r, w, i++, &piece, 0);
            vlm_json_free(piece.call);
        }

    } while (kind != VLM_CALLS_NONE);

    w->failed |= said.failed;
    vlm_json_release(&said);
}


/* ---- the response --------------------------------------------------------------------------- */

void
vlm_response_open(const vlm_response_t *r, vlm_json_out_t *w, vlm_response_e state,
                  const char *model, int64_t created)
{
    size_t             i;
    const vlm_json_t  *value;

    static const char *const  names[] = { "in_progress", "completed", "incomplete" };

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "id", r->id);
    vlm_json_add_string(w, "object", "response");
    vlm_json_add_int(w, "created_at", created);
    vlm_json_add_string(w, "status", names[state]);
    vlm_json_add_string(w, "error", NULL);

    if (state == VLM_RESPONSE_CUT) {
        vlm_json_add_open(w, "incomplete_details", '{');
        vlm_json_add_string(w, "reason", "max_output_tokens");
        vlm_json_shut(w, '}');

    } else {
        vlm_json_add_string(w, "incomplete_details", NULL);
    }

    for (i = 0; i < N_ECHOES; i++) {
        vlm_json_put_key(w, echoes[i].name);
        value = vlm_json_get(r->asked, echoes[i].name);

        if (value != NULL) {
            vlm_calls_put(w, value);
        } else {
            vlm_json_put_raw(w, echoes[i].value, strlen(echoes[i].value));
        }

        w->comma = 1;
    }

    vlm_json_add_string(w, "model", model);
    vlm_json_add_string(w, "previous_response_id", NULL);
    vlm_json_add_bool(w, "store", 0);
    vlm_json_add_string(w, "truncation", "disabled");
    vlm_json_add_open(w, "output", '[');
}


void
vlm_response_usage(vlm_json_out_t *w, uint32_t input, uint32_t cached, uint32_t output)
{
    vlm_json_shut(w, ']');

    vlm_json_add_open(w, "usage", '{');
    vlm_json_add_int(w, "input_tokens", input);
    vlm_json_add_open(w, "input_tokens_details", '{');
    vlm_json_add_int(w, "cached_tokens", cached);
    vlm_json_shut(w, '}');
    vlm_json_add_int(w, "output_tokens", output);
    vlm_json_add_open(w, "output_tokens_details", '{');
    vlm_json_add_int(w, "reasoning_tokens", 0);
    vlm_json_shut(w, '}');
    vlm_json_add_int(w, "total_tokens", (int64_t) input + output);
    vlm_json_shut(w, '}');
}


void
vlm_response_no_usage(vlm_json_out_t *w)
{
    vlm_json_shut(w, ']');
    vlm_json_add_string(w, "usage", NULL);
}


/* ---- events --------------------------------------------------------------------------------- */

void
vlm_response_event(vlm_response_t *r, vlm_json_out_t *w, const char *type)
{
    vlm_json_put_raw(w, "event: ", sizeof("event: ") - 1);
    vlm_json_put_raw(w, type, strlen(type));
    vlm_json_put_raw(w, "\ndata: ", sizeof("\ndata: ") - 1);
    vlm_json_open(w, '{');
    vlm_json_add_string(w, "type", type);
    vlm_json_add_int(w, "sequence_number", r->seq++);
}


void
vlm_response_end(vlm_json_out_t *w)
{
    vlm_json_shut(w, '}');
    vlm_json_put_raw(w, "\n\n", 2);
}


/* An event of the last item; kind: of an id, or NULL. */
static void
begin_at(vlm_response_t *r, vlm_json_out_t *w, const char *type, const char *kind)
{
    vlm_response_event(r, w, type);
    vlm_json_add_int(w, "output_index", r->n_items - 1);

    if (kind != NULL) {
        put_id(r, w, "item_id", kind, r->n_items - 1);
    }

    if (kind != NULL && *kind == 'm') {
        vlm_json_add_int(w, "content_index", 0);
    }
}


/* An event with a text of the last message, for which there are no log-probabilities. */
static void
put_text_event(vlm_response_t *r, vlm_json_out_t *w, const char *type, const char *key,
               const char *text, size_t bytes)
{
    begin_at(r, w, type, "msg");
    vlm_json_add_text(w, key, text, bytes);
    vlm_json_add_open(w, "logprobs", '[');
    vlm_json_shut(w, ']');
    vlm_response_end(w);
}


static void
put_part_event(vlm_response_t *r, vlm_json_out_t *w, const char *type, const char *text,
               size_t bytes)
{
    begin_at(r, w, type, "msg");
    vlm_json_put_key(w, "part");
    put_part(w, text, bytes);
    vlm_response_end(w);
}


static void
put_message_event(vlm_response_t *r, vlm_json_out_t *w, const char *type, const char *text,
                  size_t bytes)
{
    begin_at(r, w, type, NULL);
    vlm_json_put_key(w, "item");
    put_message(r, w, r->n_items - 1, text, bytes);
    vlm_response_end(w);
}


void
vlm_response_text(vlm_response_t *r, vlm_json_out_t *w, const char *text, size_t bytes)
{
    if (!r->in_text) {
        r->in_text = 1;
        r->n_items++;

        vlm_json_init(&r->said, VLM_RESPONSES_TEXT);

        put_message_event(r, w, "response.output_item.added", NULL, 0);
        put_part_event(r, w, "response.content_part.added", "", 0);
    }

    if (bytes != 0) {
        vlm_json_put_raw(&r->said, text, bytes);
        put_text_event(r, w, "response.output_text.delta", "delta", text, bytes);
    }
}


void
vlm_response_said(vlm_response_t *r, vlm_json_out_t *w)
{
    const char  *text;

    if (!r->in_text) {
        return;
    }

    r->in_text = 0;
    text = r->said.len != 0 ? r->said.data : "";
    w->failed |= r->said.failed;

    put_text_event(r, w, "response.output_text.done", "text", text, r->said.len);
    put_part_event(r, w, "response.content_part.done", text, r->said.len);
    put_message_event(r, w, "response.output_item.done", text, r->said.len);

    vlm_json_release(&r->said);
}


static void
put_call_event(vlm_response_t *r, vlm_json_out_t *w, const char *type,
               const vlm_calls_piece_t *piece, int begun)
{
    begin_at(r, w, type, NULL);
    vlm_json_put_key(w, "item");
    put_call(r, w, r->n_items - 1, piece, begun);
    vlm_response_end(w);
}


void
vlm_response_called(vlm_response_t *r, vlm_json_out_t *w, const vlm_calls_piece_t *piece)
{
    vlm_json_out_t  a;

    r->n_items++;

    vlm_json_init(&a, VLM_CALLS_ARGUMENTS);
    vlm_calls_arguments(&a, piece->arguments);
    w->failed |= a.failed;

    put_call_event(r, w, "response.output_item.added", piece, 1);

    begin_at(r, w, "response.function_call_arguments.delta", "fc");
    vlm_json_add_text(w, "delta", a.data, a.len);
    vlm_response_end(w);

    begin_at(r, w, "response.function_call_arguments.done", "fc");
    vlm_json_add_string(w, "name", piece->name);
    vlm_json_add_text(w, "arguments", a.data, a.len);
    vlm_response_end(w);

    put_call_event(r, w, "response.output_item.done", piece, 0);

    vlm_json_release(&a);
}
