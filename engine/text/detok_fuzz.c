/*
 * Fuzz target: bytes to text.  Cut anywhere, the text is the same, is UTF-8 at every moment, has
 * no more bytes than promised, and is the input itself if that was UTF-8.
 */

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/detok.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


/* Decodes in steps that the data itself chooses; returns how many bytes were written. */
static size_t
decode(const uint8_t *data, size_t bytes, int in_steps, char *out)
{
    size_t       i, n, step, at;
    vlm_detok_t  d = { 0 };

    at = 0;

    for (i = 0; i < bytes; i += step) {
        step = in_steps ? 1u + data[i] % 5 : bytes;
        step = step < bytes - i ? step : bytes - i;

        n = vlm_detok_bytes(&d, data + i, step, out + at);
        check(n <= 3 * step + VLM_DETOK_ROOM && d.n_held < 4);
        check(vlm_utf8_whole(out + at, n) == n);
        at += n;
    }

    n = vlm_detok_end(&d, out + at);
    check(n <= VLM_DETOK_ROOM);

    return at + n;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char    *whole, *stepped;
    size_t   n;

    whole = malloc(3 * bytes + VLM_DETOK_ROOM);
    stepped = malloc(3 * bytes + VLM_DETOK_ROOM);
    check(whole != NULL && stepped != NULL);

    n = decode(data, bytes, 0, whole);
    check(decode(data, bytes, 1, stepped) == n);
    check(memcmp(whole, stepped, n) == 0);

    if (vlm_utf8_whole((const char *) data, bytes) == bytes) {
        check(n == bytes && (n == 0 || memcmp(whole, data, n) == 0));
    }

    free(whole);
    free(stepped);

    return 0;
}
