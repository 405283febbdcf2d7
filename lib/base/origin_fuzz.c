/* Fuzz target: an Origin, a line end and a Host; each text ends where its memory does. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/origin.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


static char *
copy(const uint8_t *data, size_t bytes)
{
    char  *text = malloc(bytes > 0 ? bytes : 1);

    check(text != NULL);

    return memcpy(text, data, bytes);
}


/* An origin is the server's own with any letters in upper case, too, and with its port written. */
static void
check_own(const char *origin, size_t bytes, const char *host, size_t len)
{
    char    upper[256], longer[sizeof(upper) + 4];
    size_t  i;

    if (!vlm_origin_own(origin, bytes, host, len) || bytes >= sizeof(upper)) {
        return;
    }

    for (i = 0; i < bytes; i++) {
        upper[i] = (char) (origin[i] >= 'a' && origin[i] <= 'z' ? origin[i] - 32 : origin[i]);
    }

    check(vlm_origin_own(upper, bytes, host, len));
    check(vlm_origin_is(upper, bytes, origin, bytes));

    if (memchr(origin + 6, ':', bytes - 6) == NULL) {
        memcpy(longer, origin, bytes);
        memcpy(longer + bytes, upper[4] == 'S' ? ":443" : ":80", 4);
        check(vlm_origin_own(longer, bytes + (upper[4] == 'S' ? 4 : 3), host, len));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char           *origin, *host;
    const uint8_t  *end = memchr(data, '\n', bytes);
    const size_t    n = end != NULL ? (size_t) (end - data) : bytes;
    const size_t    len = end != NULL ? bytes - n - 1 : 0;

    origin = copy(data, n);
    host = copy(data + bytes - len, len);

    check_own(origin, n, host, len);
    (void) vlm_origin_is(host, len, origin, n);

    free(origin);
    free(host);

    return 0;
}
