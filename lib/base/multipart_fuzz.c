
/*
 * Any bytes as a form: the first line is the content type, the rest the body.
 * Parts must lie within the body, and names within their bounds; each file
 * name is made secure.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "store/disk.h"
#include "base/multipart.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
check(const vlm_multipart_part_t *part, const char *body,
    size_t len)
{
    char    name[VLM_DISK_SECURE + 1];
    size_t  n;

    if (part->data < body || part->bytes > len
        || (size_t) (part->data - body) > len - part->bytes
        || part->name_len >= VLM_MULTIPART_NAME
        || part->filename_len >= VLM_MULTIPART_NAME)
    {
        abort();
    }

    if (part->is_file) {
        n = vlm_disk_secure(name, part->filename,
                            part->filename_len);

        if (n > VLM_DISK_SECURE || strlen(name) != n
            || strchr(name, '/') != NULL || name[0] == '.')
        {
            /* a cut name may begin with a dot, behind its uuid */

            if (n != VLM_DISK_SECURE) {
                abort();
            }
        }
    }
}


static void
check_form(const char *type, size_t type_len, const char *body, size_t len)
{
    const char            *error;
    vlm_multipart_form_t   form;

    if (vlm_multipart_form(&form, type, type_len, body, len, "file", "text", &error) != 0) {
        return;
    }

    if (form.file.data != NULL) {
        check(&form.file, body, len);
    }

    if (form.text != NULL && (form.text < body || form.text_bytes > len
                              || (size_t) (form.text - body) > len - form.text_bytes))
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t                          type_len, len;
    const char                     *type, *body;
    vlm_multipart_t                 mp;
    vlm_multipart_part_t            part;

    type = (const char *) data;
    body = memchr(data, '\n', bytes);
    body = body == NULL ? type + bytes : body + 1;

    type_len = (size_t) (body - type);
    len = bytes - type_len;

    if (vlm_multipart_init(&mp, type, type_len, body, len) != 0) {
        return 0;
    }

    while (vlm_multipart_next(&mp, &part) == 1) {
        check(&part, body, len);
    }

    check_form(type, type_len, body, len);

    return 0;
}
