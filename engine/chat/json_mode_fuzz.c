/*
 * Fuzz target: any bytes, without those that are refused.  In every state the object ends within
 * the promised number of bytes, and the accepted bytes are UTF-8 and an object to the parser.
 */

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/utf8.h"
#include "chat/json_mode.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


/* A byte that makes the way to the end one shorter. */
static uint8_t
shorter(const vlm_json_mode_t *m)
{
    uint32_t         c;
    vlm_json_mode_t  next;

    for (c = 0; c < 256; c++) {
        next = *m;

        if (vlm_json_mode_next(&next, (uint8_t) c)
            && vlm_json_mode_left(&next) + 1 == vlm_json_mode_left(m))
        {
            return (uint8_t) c;
        }
    }

    check(0);

    return 0;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char             *text;
    size_t            i, n, left;
    uint8_t           c;
    vlm_err_t         err = { VLM_OK, "" };
    vlm_json_t       *j;
    vlm_json_mode_t   m = { 0 };

    text = malloc(bytes + 256);
    check(text != NULL);

    for (i = 0, n = 0; i < bytes; i++) {
        if (vlm_json_mode_next(&m, data[i])) {
            text[n++] = (char) data[i];
        }
    }

    for (left = vlm_json_mode_left(&m); left > 0; left--) {
        c = shorter(&m);
        check(vlm_json_mode_next(&m, c));
        check(n < bytes + 256);
        text[n++] = (char) c;
    }

    check(vlm_json_mode_done(&m));
    check(vlm_utf8_whole(text, n) == n);

    j = vlm_json_named(text, n, "answer", &err);
    check(vlm_json_is_object(j));
    vlm_json_free(j);
    free(text);

    return 0;
}
