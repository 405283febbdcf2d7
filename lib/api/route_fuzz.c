/* Fuzz target: any path, matched with patterns of each kind; the piece lies within it. */

#include <stdint.h>
#include <string.h>

#include "api/route.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


static void
match(const char *pattern, const char *path, size_t bytes)
{
    int          rc;
    size_t       n;
    const char  *piece;

    rc = vlm_route_match(pattern, path, bytes, &piece, &n);

    if (piece != NULL) {
        check(piece >= path && n > 0 && n <= bytes && (size_t) (piece - path) <= bytes - n);
        check(strstr(pattern, "**") != NULL || strstr(pattern, "*/") != NULL
              || memchr(piece, '/', n) == NULL);

    } else {
        check(n == 0 && (rc == 0 || strchr(pattern, '*') == NULL));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t  i;

    static const char *const  patterns[] = {
        "/a", "/a/*", "/a/*/b", "/a/*/b/*", "/a/**", "/*", "/**", "*/*"
    };

    for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        match(patterns[i], (const char *) data, bytes);
    }

    return 0;
}
