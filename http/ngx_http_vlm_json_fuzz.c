
/*
 * Any bytes as a JSON body: parsed, walked, written, and parsed again.  What
 * was written must be readable and come out the same.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ngx_http_vlm_json.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
write_value(ngx_http_vlm_json_out_t *w, const ngx_http_vlm_json_t *j)
{
    ngx_http_vlm_json_init(w, 64 << 20);
    ngx_http_vlm_json_put_value(w, j);

    if (ngx_http_vlm_json_done(w) != 0) {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int64_t                   n;
    ngx_http_vlm_json_t      *j, *k;
    ngx_http_vlm_json_err_t   err;
    ngx_http_vlm_json_out_t   one, two;

    (void) ngx_http_vlm_json_utf8((const char *) data, bytes);

    if (ngx_http_vlm_json_escape(NULL, (const char *) data, bytes)
        > 6 * bytes)
    {
        abort();
    }

    j = ngx_http_vlm_json_parse(data, bytes, &err);

    if (j == NULL) {
        return 0;
    }

    (void) ngx_http_vlm_json_is_true(j);
    (void) ngx_http_vlm_json_int(j, -100, 100, &n);
    (void) ngx_http_vlm_json_text(ngx_http_vlm_json_get(j, "message"));

    write_value(&one, j);

    k = ngx_http_vlm_json_parse(one.data, one.len, &err);

    if (k == NULL) {
        abort();
    }

    write_value(&two, k);

    if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0) {
        abort();
    }

    ngx_http_vlm_json_release(&one);
    ngx_http_vlm_json_release(&two);
    ngx_http_vlm_json_free(j);
    ngx_http_vlm_json_free(k);

    return 0;
}
