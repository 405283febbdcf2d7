/* Errors as values: the only place that formats a sentence for the host. */

#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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


/* Bytes of the character at the front, if it can be shown as it is; else 0. */
static size_t
plain_char(const unsigned char *p, size_t bytes)
{
    size_t  i, n;

    if (p[0] < 0x80) {
        return p[0] >= 0x20 && p[0] != 0x7f && p[0] != '"' && p[0] != '\\';
    }

    n = p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (n > bytes || (p[0] == 0xc2 && bytes > 1 && p[1] < 0xa0)) {
        return 0;
    }

    for (i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }

    return n;
}


const char *
vlm_show(char out[VLM_PRINTABLE], const char *text, size_t bytes)
{
    char    one[5];
    size_t  at, n, used;

    used = 0;
    bytes = text == NULL ? 0 : strnlen(text, bytes);

    for (at = 0; at < bytes; at += n) {
        n = plain_char((const unsigned char *) text + at, bytes - at);

        if (n != 0) {
            memcpy(one, text + at, n);
            one[n] = '\0';

        } else {
            (void) snprintf(one, sizeof(one),
                            text[at] == '"' || text[at] == '\\' ? "\\%c" : "\\x%02x",
                            (unsigned char) text[at]);
            n = 1;
        }

        if (used + strlen(one) + sizeof("...") > VLM_PRINTABLE) {
            memcpy(out + used, "...", 3);
            used += 3;
            break;
        }

        memcpy(out + used, one, strlen(one));
        used += strlen(one);
    }

    out[used] = '\0';

    return out;
}
