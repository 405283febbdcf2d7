/* Errors as values: the only place that formats a sentence for the host. */

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int
vlm_fail(vlm_err_t *err, vlm_code_t code, const char *fmt, ...)
{
    va_list  args;

    if (err == NULL || err->code != VLM_OK) {
        return -1;
    }

    err->code = code;

    va_start(args, fmt);
    (void) vsnprintf(err->text, sizeof(err->text), fmt, args);
    va_end(args);

    return -1;
}


const char *
vlm_code_name(vlm_code_t code)
{
    static const char *const  names[] = {
        "ok", "input", "limit", "cancelled", "model", "memory", "device"
    };

    return (unsigned) code < sizeof(names) / sizeof(names[0]) ? names[code] : "unknown";
}
