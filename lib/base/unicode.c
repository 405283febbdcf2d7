/* Properties of characters: the calls of utf8proc. */

#include "base/unicode.h"

#include <utf8proc.h>


int
vlm_unicode_printable(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t) code)) {

    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return code == ' ';

    default:
        return 1;
    }
}


size_t
vlm_unicode_decompose(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED])
{
    utf8proc_ssize_t  i, n;
    utf8proc_int32_t  found[VLM_UNICODE_DECOMPOSED];

    n = utf8proc_decompose_char((utf8proc_int32_t) code, found, VLM_UNICODE_DECOMPOSED,
                                UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, NULL);

    for (i = 0; i < n && i < VLM_UNICODE_DECOMPOSED; i++) {
        out[i] = (uint32_t) found[i];
    }

    return (size_t) i;
}
