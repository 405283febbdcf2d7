/* Origins of web pages: a scheme, a host and a port, such as https://robots.example:8443. */

#ifndef VLM_ORIGIN_H
#define VLM_ORIGIN_H

#include <stddef.h>

/*
 * May this text of a configuration, with its zero, be an origin as browsers send it?  Patterns with
 * "*", and the scheme's own port, would be equal to none.
 */
int vlm_origin_valid(const char *text);

/* Is it [bytes] this origin, or a page's URL with this origin?  Letters have no case. */
int vlm_origin_is(const char *text, size_t bytes, const char *origin, size_t len);

/*
 * Is the origin, [bytes], that of a server which its client has addressed as "host" or "host:port",
 * [len]?  The scheme is the origin's, since a proxy in front of the server may end TLS; a port that
 * one of them leaves out is the scheme's.
 */
int vlm_origin_own(const char *origin, size_t bytes, const char *host, size_t len);

/*
 * Does a page of another origin send the request, as its browser says by Sec-Fetch-Site and
 * Sec-Fetch-Mode?  mode: NULL, if that was not sent.  safe: the method is GET or HEAD; such a
 * request of a person who follows a link, or types an address, does not count.
 */
int vlm_origin_foreign(const char *site, const char *mode, int safe);

/*
 * A page may have its own name lead to this server (DNS rebinding): then its origin is the server's
 * own.  So such a request is answered only at a host, [len] and in lower case, that is
 *
 *   fixed     an address, or localhost: nobody else can have a page there
 *   named     a name of server_name, [bytes], which may be "*.example", ".example" or "example.*"
 *   listed    that of an origin, [bytes], of vlm_cors
 */
int vlm_origin_fixed(const char *host, size_t len);
int vlm_origin_named(const char *name, size_t bytes, const char *host, size_t len);
int vlm_origin_listed(const char *origin, size_t bytes, const char *host, size_t len);

#endif
