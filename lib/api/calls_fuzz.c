/* Fuzz target: an answer with calls, in steps of the first byte, and whole: both find the same. */

#include <stdlib.h>
#include <string.h>

#include "api/calls.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t              n, step, content[2] = { 0, 0 };
    uint32_t            calls[2] = { 0, 0 };
    vlm_calls_e         kind;
    vlm_calls_t         c[2];
    vlm_calls_piece_t   p;

    if (bytes < 2) {
        return 0;
    }

    step = 1 + data[0] % 32;
    vlm_calls_start(&c[0], "<c>", "</c>", data[1] & 1);
    vlm_calls_start(&c[1], "<c>", "</c>", data[1] & 1);
    data += 2;
    bytes -= 2;

    for (n = 0; n < bytes + step; n += step) {
        while ((kind = vlm_calls_next(&c[0], (const char *) data, n < bytes ? n : bytes,
                                      n >= bytes, &p)) != VLM_CALLS_NONE)
        {
            check(kind == VLM_CALLS_CALL || (p.bytes > 0 && p.text >= (const char *) data));
            calls[0] += kind == VLM_CALLS_CALL;
            content[0] += p.bytes;
            vlm_json_free(p.call);
        }
    }

    while ((kind = vlm_calls_next(&c[1], (const char *) data, bytes, 1, &p)) != VLM_CALLS_NONE) {
        calls[1] += kind == VLM_CALLS_CALL;
        content[1] += p.bytes;
        vlm_json_free(p.call);
    }

    check(calls[0] == calls[1] && content[0] == content[1]);

    return 0;
}
