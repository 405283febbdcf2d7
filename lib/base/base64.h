
/*
 * Base64 as clients send pictures in JSON: bare, or in a data URL.
 *
 * Plain C without nginx's headers; any thread, no allocation.
 */


#ifndef _NGX_HTTP_VLM_BASE64_H_INCLUDED_
#define _NGX_HTTP_VLM_BASE64_H_INCLUDED_


#include <stddef.h>


/* bytes that a text of len characters becomes at most */

#define vlm_base64_room(len)  ((len) / 4 * 3 + 3)


/*
 * 0 and *n bytes in dst, which has room for them; or -1: not base64.  Both
 * alphabets (RFC 4648, 4 and 5) are taken, with or without "=" at the end,
 * and white space anywhere, as in the lines of a mail.
 */

int vlm_base64_decode(void *dst, size_t *n, const char *text,
    size_t len);

/*
 * The base64 of "data:image/png;base64,...", and *n, its length; NULL: not a
 * data URL, or its data are not in base64.
 */

const char *vlm_base64_url(const char *url, size_t len, size_t *n);


#endif /* _NGX_HTTP_VLM_BASE64_H_INCLUDED_ */
