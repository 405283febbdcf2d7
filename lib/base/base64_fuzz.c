
/*
 * Any text as a data URL and as base64: the output never exceeds its room, and the base64 that was
 * found lies within the URL.
 */


#include <stdint.h>
#include <stdlib.h>

#include "base/base64.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    void        *room;
    size_t       n, len;
    const char  *text;

    text = vlm_base64_url((const char *) data, bytes, &len);

    if (text == NULL) {
        text = (const char *) data;
        len = bytes;

    } else if (text + len != (const char *) data + bytes) {
        abort();
    }

    room = malloc(vlm_base64_room(len));

    if (room != NULL
        && vlm_base64_decode(room, &n, text, len) == 0
        && n > len / 4 * 3 + 2)
    {
        abort();
    }

    free(room);

    return 0;
}
