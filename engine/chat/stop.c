/* Stop strings, across token borders: text that could still become one is held back. */

#include "chat/stop.h"

#include <string.h>


/* Is text [bytes] the beginning of stop, or all of it? */
static int
begins(const char *text, size_t bytes, const char *stop, size_t stop_bytes)
{
    return memcmp(text, stop, bytes < stop_bytes ? bytes : stop_bytes) == 0;
}


size_t
vlm_stop_scan(const char *text, size_t bytes, size_t clear, char *const *stop, size_t n, int last,
              int *hit)
{
    int     held;
    size_t  at, i, len;

    *hit = 0;

    /* The first place where a stop string begins, whole or as far as the text goes. */

    for (at = clear; at < bytes; at++) {
        for (held = 0, i = 0; i < n; i++) {
            len = strlen(stop[i]);

            if (len == 0 || !begins(text + at, bytes - at, stop[i], len)) {
                continue;
            }

            if (bytes - at >= len) {
                *hit = 1;
                return at;
            }

            held = !last;
        }

        if (held) {
            return at;
        }
    }

    return bytes;
}
