/* UTF-8, strictly. */

#include "base/utf8.h"

#include <string.h>


size_t
vlm_utf8(const unsigned char *p, size_t len, uint32_t *code)
{
    size_t    i, n;
    uint32_t  c, low;

    c = p[0];

    if (c < 0x80) {
        *code = c;
        return 1;
    }

    if (c >= 0xc2 && c <= 0xdf) {
        n = 2;
        c &= 0x1f;
        low = 0x80;

    } else if (c >= 0xe0 && c <= 0xef) {
        n = 3;
        c &= 0x0f;
        low = 0x800;

    } else if (c >= 0xf0 && c <= 0xf4) {
        n = 4;
        c &= 0x07;
        low = 0x10000;

    } else {
        return 0;
    }

    if (n > len) {
        return 0;
    }

    for (i = 1; i < n; i++) {

        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }

        c = (c << 6) | (p[i] & 0x3f);
    }

    if (c < low || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) {
        return 0;
    }

    *code = c;

    return n;
}


size_t
vlm_utf8_put(unsigned char *p, uint32_t code)
{
    size_t  i, n;

    if (code < 0x80) {
        p[0] = (unsigned char) code;
        return 1;
    }

    n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    for (i = n - 1; i > 0; i--, code >>= 6) {
        p[i] = (unsigned char) (0x80 | (code & 0x3f));
    }

    p[0] = (unsigned char) ((0xf00u >> n) & 0xff) | (unsigned char) code;

    return n;
}


size_t
vlm_utf8_whole(const char *text, size_t len)
{
    size_t                i, n;
    uint32_t              code;
    uint64_t              word;
    const unsigned char  *p;

    p = (const unsigned char *) text;

    for (i = 0; i < len; i += n) {

        /* eight bytes of ASCII at once */

        if (len - i >= sizeof(word)) {
            memcpy(&word, p + i, sizeof(word));

            if ((word & 0x8080808080808080u) == 0) {
                n = sizeof(word);
                continue;
            }
        }

        n = vlm_utf8(p + i, len - i, &code);

        if (n == 0) {
            break;
        }
    }

    return i;
}
