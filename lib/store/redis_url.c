
/*
 * The address of a Redis: redis://[[user]:password@]host[:port][/database], or a unix socket.
 *
 * The name for messages is made of what remains without user and password; no sentence here has a
 * part of the address in it.
 */


#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "store/db.h"
#include "store/redis.h"


#define SCHEME          "redis://"
#define PORT            6379
#define DATABASES       16383              /* the largest number of one */

#define OK              VLM_STORE_OK
#define EINPUT          VLM_STORE_EINPUT


typedef vlm_redis_conf_t  conf_t;
typedef vlm_store_err_t   err_t;


static int fail(err_t *err, const char *what);
static int user_of(conf_t *conf, const char *p, const char *end, err_t *err);
static int decode(char *dst, size_t size, const char *p, const char *end);
static int hex(char c);
static int place_of(conf_t *conf, const char *p, err_t *err);
static int socket_of(conf_t *conf, const char *p, err_t *err);
static int number(const char *p, const char *end, long max, int *n);


int
vlm_redis_parse(const char *url, conf_t *conf, err_t *err)
{
    int          rc;
    const char  *p, *at;

    memset(conf, 0, sizeof(conf_t));

    if (strncmp(url, "rediss://", 9) == 0) {
        return fail(err, "TLS to Redis is not supported: a stunnel or an ssh beside nginx has it");
    }

    if (strncmp(url, SCHEME, sizeof(SCHEME) - 1) != 0) {
        return fail(err, "an address begins with redis://");
    }

#if !(VLM_HIREDIS)
    return fail(err, "this module was built without libhiredis-dev, which store redis:// needs");
#endif

    p = url + sizeof(SCHEME) - 1;
    at = strrchr(p, '@');
    rc = OK;

    if (at != NULL) {
        rc = user_of(conf, p, at, err);
        p = at + 1;
    }

    if (rc == OK) {
        rc = strncmp(p, "unix:", 5) == 0 ? socket_of(conf, p + 5, err) : place_of(conf, p, err);
    }

    if (rc != OK) {
        return rc;
    }

    if (conf->socket[0] != '\0') {
        (void) snprintf(conf->name, sizeof(conf->name), "redis unix:%s:/%d", conf->socket,
                        conf->database);

    } else {
        (void) snprintf(conf->name, sizeof(conf->name), "redis %s:%d/%d", conf->host, conf->port,
                        conf->database);
    }

    return OK;
}


static int
fail(err_t *err, const char *what)
{
    return vlm_db_fail(err, EINPUT, "store redis: %s", what);
}


static int
user_of(conf_t *conf, const char *p, const char *end, err_t *err)
{
    const char  *colon;

    colon = memchr(p, ':', (size_t) (end - p));

    if (colon == NULL
        || decode(conf->user, sizeof(conf->user), p, colon) != 0
        || decode(conf->password, sizeof(conf->password), colon + 1, end) != 0
        || conf->password[0] == '\0')
    {
        return fail(err, "before the \"@\" come a user's name, which may be empty, a colon and a"
                    " password, each of at most 511 bytes and percent-encoded");
    }

    return OK;
}


/* percent-encoded bytes; a zero among them would end the password for some and not for others */

static int
decode(char *dst, size_t size, const char *p, const char *end)
{
    int     c;
    size_t  n;

    for (n = 0; p < end; p++) {

        c = (unsigned char) *p;

        if (c == '%') {
            if (end - p < 3 || hex(p[1]) < 0 || hex(p[2]) < 0) {
                return -1;
            }

            c = hex(p[1]) * 16 + hex(p[2]);
            p += 2;
        }

        if (c == 0 || n + 1 >= size) {
            return -1;
        }

        dst[n++] = (char) c;
    }

    dst[n] = '\0';

    return 0;
}


static int
hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}


static int
place_of(conf_t *conf, const char *p, err_t *err)
{
    size_t       len;
    const char  *end, *slash, *host_end;

    slash = strchr(p, '/');
    end = slash != NULL ? slash : p + strlen(p);

    /* an IPv6 address is in brackets */

    if (*p == '[') {
        p++;
        host_end = memchr(p, ']', (size_t) (end - p));

        if (host_end == NULL || (host_end + 1 != end && host_end[1] != ':')) {
            return fail(err, "an IPv6 address has a \"]\" at its end");
        }

        len = (size_t) (host_end - p);
        host_end++;

    } else {
        host_end = memchr(p, ':', (size_t) (end - p));
        host_end = host_end != NULL ? host_end : end;
        len = (size_t) (host_end - p);
    }

    if (len == 0 || len > VLM_REDIS_HOST) {
        return fail(err, "a host's name has 1 to 255 bytes");
    }

    memcpy(conf->host, p, len);

    if (strspn(conf->host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:")
        != len)
    {
        return fail(err, "a host's name has letters, digits, dots and dashes");
    }

    conf->port = PORT;

    if (host_end != end
        && (number(host_end + 1, end, 65535, &conf->port) != 0 || conf->port == 0))
    {
        return fail(err, "a port is a number from 1 to 65535");
    }

    if (slash != NULL && slash[1] != '\0'
        && number(slash + 1, slash + strlen(slash), DATABASES, &conf->database) != 0)
    {
        return fail(err, "a database is a number from 0 to 16383");
    }

    return OK;
}


/* as nginx writes the path of a request behind that of a socket */

static int
socket_of(conf_t *conf, const char *p, err_t *err)
{
    size_t       len;
    const char  *colon;

    colon = strchr(p, ':');
    len = colon != NULL ? (size_t) (colon - p) : strlen(p);

    if (p[0] != '/' || len > VLM_REDIS_SOCKET) {
        return fail(err, "the path of a socket begins with a slash and has at most 107 bytes");
    }

    memcpy(conf->socket, p, len);

    if (colon != NULL
        && (colon[1] != '/'
            || number(colon + 2, colon + strlen(colon), DATABASES, &conf->database) != 0))
    {
        return fail(err, "behind the path of a socket comes \":/\" and the number of a database");
    }

    return OK;
}


static int
number(const char *p, const char *end, long max, int *n)
{
    long  value;

    if (p == end || end - p > 5) {
        return -1;
    }

    for (value = 0; p < end; p++) {

        if (*p < '0' || *p > '9') {
            return -1;
        }

        value = value * 10 + (*p - '0');
    }

    if (value > max) {
        return -1;
    }

    *n = (int) value;

    return 0;
}


int
vlm_redis_resolve(conf_t *conf, err_t *err)
{
    int               rc;
    size_t            n;
    struct addrinfo   hints, *found, *one;

    if (conf->socket[0] != '\0') {
        return OK;
    }

    memset(&hints, 0, sizeof(hints));
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;

    rc = getaddrinfo(conf->host, NULL, &hints, &found);

    if (rc == 0) {

        for (n = 0, one = found; rc == 0 && one != NULL && n + 1 < VLM_REDIS_ADDRESSES;
             one = one->ai_next, n++)
        {
            rc = getnameinfo(one->ai_addr, one->ai_addrlen, conf->address[n],
                             sizeof(conf->address[n]), NULL, 0, NI_NUMERICHOST);
        }

        freeaddrinfo(found);
    }

    return rc == 0 ? OK : vlm_db_fail(err, EINPUT, "store %.100s: the address of this host was not"
                                      " found: %.60s", conf->name, gai_strerror(rc));
}
