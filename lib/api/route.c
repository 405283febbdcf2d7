/* Paths of requests: see route.h. */

#include "api/route.h"

#include <string.h>


int
vlm_route_match(const char *pattern, const char *path, size_t bytes, const char **piece,
                size_t *piece_bytes)
{
    const char  *end, *from, *slash;

    end = path + bytes;
    *piece = NULL;
    *piece_bytes = 0;

    for ( /* void */ ; *pattern != '\0'; pattern++) {

        if (*pattern != '*') {
            if (path == end || *path++ != *pattern) {
                return 0;
            }

            continue;
        }

        from = path;
        slash = pattern[1] == '*' ? NULL : memchr(path, '/', (size_t) (end - path));
        path = slash != NULL ? slash : end;

        if (path == from) {
            return 0;
        }

        if (*piece == NULL) {
            *piece = from;
        }

        *piece_bytes = (size_t) (path - *piece);
        pattern += pattern[1] == '*';
    }

    return path == end;
}
