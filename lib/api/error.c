/* Writes errors: see error.h. */

#include "api/error.h"

#include <string.h>


/* The last entry of each hundred is for all its other statuses. */
static const struct {
    unsigned     status;
    const char  *type;
    const char  *code;                 /* or NULL */
} errors[] = {
    { 401, "invalid_request_error", "invalid_api_key" },
    { 403, "invalid_request_error", "permission_denied" },
    { 405, "invalid_request_error", "method_not_supported" },
    { 413, "invalid_request_error", "content_too_large" },
    { 415, "invalid_request_error", "unsupported_content_encoding" },
    { 429, "rate_limit_exceeded", "rate_limit_exceeded" },
    { 499, "invalid_request_error", NULL },
    { 503, "server_error", "engine_unavailable" },
    { 504, "server_error", "timeout" },
    { 507, "server_error", "storage_full" },
    { 599, "server_error", NULL }
};


/* A path that ends with a slash stands for those below it, too.  The LoRA service was written with
   FastAPI; the PDF service's own clients read "detail", and those of the gateway in front of it
   "error". */
static const struct {
    const char        *path;
    vlm_error_form_t   form;
} forms[] = {
    { "/v1/", VLM_ERROR_OPENAI },
    { "/generate-lite", VLM_ERROR_DETAIL },
    { "/cleanup-memory", VLM_ERROR_DETAIL },
    { "/adapter/", VLM_ERROR_DETAIL },
    { "/rl/", VLM_ERROR_DETAIL },
    { "/ask", VLM_ERROR_BOTH },
    { "/summarize", VLM_ERROR_BOTH },
    { "/compare", VLM_ERROR_BOTH },
    { "/process-pdf", VLM_ERROR_BOTH }
};


static const struct {
    unsigned     status;
    const char  *text;
} texts[] = {
    { 400, "Bad request" },
    { 401, "Unauthorized" },
    { 403, "Forbidden" },
    { 404, "Not found" },
    { 405, "Method not allowed" },
    { 408, "The request did not arrive in time" },
    { 411, "The request has no Content-Length" },
    { 412, "The file does not meet the conditions of the request" },
    { 414, "The request's URI is too long" },
    { 416, "The range is beyond the end of the file" },
    { 429, "Too many requests" },
    { 500, "Internal server error" },
    { 501, "The method or the encoding of the body is not supported" },
    { 502, "The upstream server sent an invalid response" },
    { 503, "Service unavailable" },
    { 504, "The model did not answer in time" },
    { 507, "The disk of this server is full" }
};


void
vlm_error_put(vlm_json_out_t *w, unsigned status, const char *code, const char *param,
              const char *text, int chunk)
{
    size_t  i;

    for (i = 0; errors[i].status != 599; i++) {
        if (errors[i].status == status || (errors[i].status == 499 && status < 500)) {
            break;
        }
    }

    vlm_json_open(w, '{');
    vlm_json_add_open(w, "error", '{');

    vlm_json_add_string(w, "message", text);
    vlm_json_add_string(w, "type", errors[i].type);
    vlm_json_add_string(w, "param", status < 500 ? param : NULL);
    vlm_json_add_string(w, "code", code != NULL ? code : errors[i].code);

    vlm_json_shut(w, '}');

    if (chunk) {
        vlm_json_add_open(w, "choices", '[');
        vlm_json_open(w, '{');
        vlm_json_add_int(w, "index", 0);
        vlm_json_add_open(w, "delta", '{');
        vlm_json_shut(w, '}');
        vlm_json_add_string(w, "finish_reason", "error");
        vlm_json_shut(w, '}');
        vlm_json_shut(w, ']');
    }

    vlm_json_shut(w, '}');
}


vlm_error_form_t
vlm_error_form(const char *path, size_t bytes)
{
    size_t  i, n;

    for (i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        n = strlen(forms[i].path);

        if ((bytes == n || (bytes > n && forms[i].path[n - 1] == '/'))
            && strncmp(path, forms[i].path, n) == 0)
        {
            return forms[i].form;
        }
    }

    return VLM_ERROR_PLAIN;
}


void
vlm_error_put_text(vlm_json_out_t *w, vlm_error_form_t form, const char *text)
{
    vlm_json_open(w, '{');

    if (form != VLM_ERROR_PLAIN) {
        vlm_json_add_string(w, "detail", text);
    }

    if (form != VLM_ERROR_DETAIL) {
        vlm_json_add_string(w, "error", text);
    }

    vlm_json_shut(w, '}');
}


const char *
vlm_error_text(unsigned status)
{
    size_t  i;

    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].status == status) {
            return texts[i].text;
        }
    }

    return NULL;
}
