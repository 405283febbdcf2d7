/* Compares origins of web pages: see origin.h. */

#define _GNU_SOURCE                    /* memmem() */

#include "base/origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>


/* Does it end with the port that browsers leave out of an origin of this scheme? */
static int
has_own_port(const char *text, const char *scheme, const char *port)
{
    size_t  len = strlen(text), n = strlen(port);

    return strncasecmp(text, scheme, strlen(scheme)) == 0 && len > n
           && strcmp(text + len - n, port) == 0;
}


int
vlm_origin_valid(const char *text)
{
    const char  *host = strstr(text, "://");

    return host != NULL && host[3] != '\0' && strpbrk(host + 3, "/*") == NULL
           && !has_own_port(text, "https://", ":443") && !has_own_port(text, "http://", ":80");
}


int
vlm_origin_is(const char *text, size_t bytes, const char *origin, size_t len)
{
    return bytes >= len && strncasecmp(text, origin, len) == 0
           && (bytes == len || text[len] == '/');
}


/* The bytes of the host in "host:port"; port becomes its port, or stays as it is. */
static size_t
split(const char *text, size_t bytes, const char **port, size_t *n)
{
    size_t  at;

    for (at = bytes; at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9'; at--) { /* void */ }

    if (at == 0 || text[at - 1] != ':') {
        return bytes;
    }

    if (at < bytes) {
        *port = text + at;
        *n = bytes - at;
    }

    return at - 1;
}


int
vlm_origin_own(const char *origin, size_t bytes, const char *host, size_t len)
{
    size_t       skip, n[2];
    const char  *port[2];

    if (bytes > 8 && strncasecmp(origin, "https://", 8) == 0) {
        skip = 8;
        port[0] = "443";

    } else if (bytes > 7 && strncasecmp(origin, "http://", 7) == 0) {
        skip = 7;
        port[0] = "80";

    } else {
        return 0;
    }

    port[1] = port[0];
    n[0] = n[1] = strlen(port[0]);

    origin += skip;
    bytes = split(origin, bytes - skip, &port[0], &n[0]);
    len = split(host, len, &port[1], &n[1]);

    return bytes == len && strncasecmp(origin, host, len) == 0
           && n[0] == n[1] && strncmp(port[0], port[1], n[0]) == 0;
}


int
vlm_origin_foreign(const char *site, const char *mode, int safe)
{
    return (strcmp(site, "cross-site") == 0 || strcmp(site, "same-site") == 0)
           && !(safe && mode != NULL && strcmp(mode, "navigate") == 0);
}


static int
ends_with(const char *text, size_t bytes, const char *end, size_t len)
{
    return bytes > len && memcmp(text + bytes - len, end, len) == 0;
}


int
vlm_origin_fixed(const char *host, size_t len)
{
    char            text[INET6_ADDRSTRLEN];
    struct in6_addr address;
    const int       six = len > 2 && host[0] == '[' && host[len - 1] == ']';

    if (six) {
        host++;
        len -= 2;
    }

    if (len < sizeof(text)) {
        memcpy(text, host, len);
        text[len] = '\0';

        if (inet_pton(six ? AF_INET6 : AF_INET, text, &address) == 1) {
            return 1;
        }
    }

    return !six && ((len == 9 && memcmp(host, "localhost", 9) == 0)
                    || ends_with(host, len, ".localhost", 10));
}


int
vlm_origin_named(const char *name, size_t bytes, const char *host, size_t len)
{
    if (bytes > 2 && name[0] == '*') {
        return ends_with(host, len, name + 1, bytes - 1);
    }

    if (bytes > 1 && name[0] == '.') {
        return ends_with(host, len, name, bytes)
               || (len == bytes - 1 && memcmp(host, name + 1, len) == 0);
    }

    if (bytes > 2 && name[bytes - 1] == '*') {
        return len > bytes - 1 && memcmp(host, name, bytes - 1) == 0;
    }

    return len > 0 && len == bytes && memcmp(host, name, len) == 0;
}


int
vlm_origin_listed(const char *origin, size_t bytes, const char *host, size_t len)
{
    size_t       n;
    const char  *port, *text = memmem(origin, bytes, "://", 3);

    if (text == NULL) {
        return 0;
    }

    text += 3;
    bytes = split(text, bytes - (size_t) (text - origin), &port, &n);

    return len > 0 && len == bytes && strncasecmp(text, host, len) == 0;
}
