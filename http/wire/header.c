
/*
 * Headers of a request and of its answer that nginx has no field for.
 */


#include "wire.h"


ngx_int_t
ngx_http_vlm_add_header(ngx_http_request_t *r, const char *key,
    const char *value)
{
    ngx_table_elt_t  *h;

    h = ngx_list_push(&r->headers_out.headers);
    if (h == NULL) {
        return NGX_ERROR;
    }

    ngx_memzero(h, sizeof(ngx_table_elt_t));

    h->hash = 1;
    h->key.data = (u_char *) key;
    h->key.len = ngx_strlen(key);
    h->value.data = (u_char *) value;
    h->value.len = ngx_strlen(value);

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_retry_after(ngx_http_request_t *r, ngx_uint_t seconds)
{
    u_char  *value;

    value = ngx_pnalloc(r->pool, NGX_INT_T_LEN + 1);
    if (value == NULL) {
        return NGX_ERROR;
    }

    (void) ngx_sprintf(value, "%ui%Z", seconds);

    return ngx_http_vlm_add_header(r, "Retry-After", (char *) value);
}


ngx_uint_t
ngx_http_vlm_accepts(ngx_http_request_t *r, const char *type)
{
    ngx_table_elt_t  *accept;

    accept = ngx_http_vlm_header(r, "accept");

    return accept && ngx_strcasestrn(accept->value.data, (char *) type,
                                     ngx_strlen(type) - 1)
                     != NULL;
}


ngx_table_elt_t *
ngx_http_vlm_header_in(ngx_list_t *headers, const char *name)
{
    size_t            len;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    len = ngx_strlen(name);
    part = &headers->part;
    h = part->elts;

    for (i = 0; /* void */ ; i++) {

        if (i >= part->nelts) {

            if (part->next == NULL) {
                return NULL;
            }

            part = part->next;
            h = part->elts;
            i = 0;
        }

        if (h[i].hash && h[i].key.len == len
            && ngx_strncmp(h[i].lowcase_key, name, len) == 0)
        {
            return &h[i];
        }
    }
}
