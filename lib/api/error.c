/* Writes errors in OpenAI's form: see error.h. */

#include "api/error.h"


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


void
vlm_error_put(vlm_json_out_t *w, unsigned status, const char *code, const char *param,
              const char *text)
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
    vlm_json_shut(w, '}');
}
