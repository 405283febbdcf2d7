/*
 * Ids to text, one at a time.
 *
 * Broken bytes are replaced as the reference does (Python's errors="replace", which is Unicode's
 * recommendation): the longest beginning of a character that could still have become one is one
 * U+FFFD, and every other byte is one of its own.
 */

#include "text/detok.h"

#include <string.h>


/* Length of the character that starts with this byte; 0: no character does. */
static uint32_t
char_bytes(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }

    if (first < 0xc2 || first > 0xf4) {            /* overlong; past U+10FFFF */
        return 0;
    }

    return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}


/* 1 if this byte may follow the n that are held. */
static int
may_follow(const uint8_t *held, uint32_t n, uint8_t byte)
{
    uint8_t  low, high;

    low = 0x80;
    high = 0xbf;

    if (n == 1) {
        switch (held[0]) {
        case 0xe0: low = 0xa0; break;              /* overlong below */
        case 0xed: high = 0x9f; break;             /* surrogates above */
        case 0xf0: low = 0x90; break;              /* overlong below */
        case 0xf4: high = 0x8f; break;             /* past U+10FFFF above */
        }
    }

    return byte >= low && byte <= high;
}


static size_t
replace(char *out)
{
    memcpy(out, "\xef\xbf\xbd", 3);

    return 3;
}


size_t
vlm_detok_bytes(vlm_detok_t *d, const uint8_t *bytes, size_t n, char *out)
{
    size_t  i, at;

    at = 0;

    for (i = 0; i < n; i++) {
        if (d->n_held != 0 && !may_follow(d->held, d->n_held, bytes[i])) {
            at += replace(out + at);
            d->n_held = 0;
        }

        if (d->n_held == 0 && char_bytes(bytes[i]) == 0) {
            at += replace(out + at);
            continue;
        }

        d->held[d->n_held++] = bytes[i];

        if (d->n_held == char_bytes(d->held[0])) {
            memcpy(out + at, d->held, d->n_held);
            at += d->n_held;
            d->n_held = 0;
        }
    }

    return at;
}


size_t
vlm_detok_next(vlm_detok_t *d, const vlm_tokenizer_t *t, uint32_t id, char *out)
{
    size_t       n;
    const char  *bytes;

    if (vlm_token_is_special(t, id)) {
        return 0;
    }

    bytes = vlm_token_bytes(t, id, &n);

    return bytes == NULL ? 0 : vlm_detok_bytes(d, (const uint8_t *) bytes, n, out);
}


size_t
vlm_detok_end(vlm_detok_t *d, char *out)
{
    if (d->n_held == 0) {
        return 0;
    }

    d->n_held = 0;

    return replace(out);
}
