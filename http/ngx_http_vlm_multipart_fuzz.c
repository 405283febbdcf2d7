
/*
 * Any bytes as a form: the first line is the content type, the rest the body.
 * Parts must lie within the body, and names within their bounds; each file
 * name is made secure.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ngx_http_vlm_file.h"
#include "ngx_http_vlm_multipart.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(const ngx_http_vlm_multipart_part_t *part, const char *body,
    size_t len)
{
    char    name[NGX_HTTP_VLM_FILE_SECURE + 1];
    size_t  n;

    if (part->data < body || part->bytes > len
        || (size_t) (part->data - body) > len - part->bytes
        || part->name_len >= NGX_HTTP_VLM_MULTIPART_NAME
        || part->filename_len >= NGX_HTTP_VLM_MULTIPART_NAME)
    {
        abort();
    }

    if (part->is_file) {
        n = ngx_http_vlm_file_secure(name, part->filename,
                                     part->filename_len);

        if (n > NGX_HTTP_VLM_FILE_SECURE || strlen(name) != n
            || strchr(name, '/') != NULL || name[0] == '.')
        {
            /* a cut name may begin with a dot, behind its uuid */

            if (n != NGX_HTTP_VLM_FILE_SECURE) {
                abort();
            }
        }
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t                          type_len, len;
    const char                     *type, *body;
    ngx_http_vlm_multipart_t        mp;
    ngx_http_vlm_multipart_part_t   part;

    type = (const char *) data;
    body = memchr(data, '\n', bytes);
    body = body == NULL ? type + bytes : body + 1;

    type_len = (size_t) (body - type);
    len = bytes - type_len;

    if (ngx_http_vlm_multipart_init(&mp, type, type_len, body, len) != 0) {
        return 0;
    }

    while (ngx_http_vlm_multipart_next(&mp, &part) == 1) {
        check(&part, body, len);
    }

    return 0;
}
