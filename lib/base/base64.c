
/* Base64 to bytes, and the base64 within a data URL. */


#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/base64.h"


#define SPACE  64
#define PAD    65
#define NONE   66


static unsigned
value(unsigned char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }

    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }

    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }

    switch (c) {

    case '+':
    case '-':
        return 62;

    case '/':
    case '_':
        return 63;

    case '=':
        return PAD;

    case ' ':
    case '\t':
    case '\r':
    case '\n':
        return SPACE;

    default:
        return NONE;
    }
}


int
vlm_base64_decode(void *dst, size_t *n, const char *text, size_t len)
{
    size_t          i, n_digits, n_pads;
    uint32_t        bits;
    unsigned        v;
    unsigned char  *p;

    p = dst;
    bits = 0;
    n_digits = 0;
    n_pads = 0;

    for (i = 0; i < len; i++) {
        v = value((unsigned char) text[i]);

        if (v == SPACE) {
            continue;
        }

        if (v == PAD) {
            n_pads++;
            continue;
        }

        if (v == NONE || n_pads != 0) {
            return -1;
        }

        bits = (bits << 6) | v;
        n_digits++;

        /* the first of four digits completes no byte */

        switch (n_digits % 4) {

        case 2:
            *p++ = (unsigned char) (bits >> 4);
            break;

        case 3:
            *p++ = (unsigned char) (bits >> 2);
            break;

        case 0:
            *p++ = (unsigned char) bits;
            break;
        }
    }

    if (n_digits % 4 == 1
        || (n_pads != 0 && (n_pads > 2 || (n_digits + n_pads) % 4 != 0)))
    {
        return -1;
    }

    *n = (size_t) (p - (unsigned char *) dst);

    return 0;
}


const char *
vlm_base64_url(const char *url, size_t len, size_t *n)
{
    size_t       head;
    const char  *comma;

    if (len < 5 || strncasecmp(url, "data:", 5) != 0) {
        return NULL;
    }

    comma = memchr(url, ',', len);

    if (comma == NULL) {
        return NULL;
    }

    head = (size_t) (comma - url);

    if (head < 5 + 7 || strncasecmp(comma - 7, ";base64", 7) != 0) {
        return NULL;
    }

    *n = len - head - 1;

    return comma + 1;
}
