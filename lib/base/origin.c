/* Compares origins of web pages: see origin.h. */

#include "base/origin.h"

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
