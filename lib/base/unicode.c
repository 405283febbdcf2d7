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


static size_t
decompose(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED], int options)
{
    utf8proc_ssize_t  i, n;
    utf8proc_int32_t  found[VLM_UNICODE_DECOMPOSED];

    n = utf8proc_decompose_char((utf8proc_int32_t) code, found, VLM_UNICODE_DECOMPOSED,
                                UTF8PROC_DECOMPOSE | options, NULL);

    for (i = 0; i < n && i < VLM_UNICODE_DECOMPOSED; i++) {
        out[i] = (uint32_t) found[i];
    }

    return (size_t) i;
}


size_t
vlm_unicode_decompose(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED])
{
    return decompose(code, out, UTF8PROC_COMPAT);
}


size_t
vlm_unicode_fold(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED])
{
    return decompose(code, out, UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
}


size_t
vlm_unicode_canonical(uint32_t code, uint32_t out[VLM_UNICODE_DECOMPOSED])
{
    return decompose(code, out, 0);
}


uint32_t
vlm_unicode_lower(uint32_t code)
{
    return (uint32_t) utf8proc_tolower((utf8proc_int32_t) code);
}


int
vlm_unicode_mark(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t) code) == UTF8PROC_CATEGORY_MN;
}


int
vlm_unicode_punctuation(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t) code)) {

    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return 1;

    default:
        return 0;
    }
}


int
vlm_unicode_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0x85 || code == 0xa0
           || code == 0x1680 || (code >= 0x2000 && code <= 0x200a) || code == 0x2028
           || code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}


int
vlm_unicode_other(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t) code)) {

    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
        return 1;

    default:
        return 0;
    }
}


int
vlm_unicode_in_word(uint32_t code)
{
    switch (utf8proc_category((utf8proc_int32_t) code)) {

    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return 1;

    default:
        return 0;
    }
}


int
vlm_unicode_invisible(uint32_t code)
{
    return utf8proc_category((utf8proc_int32_t) code) == UTF8PROC_CATEGORY_CF;
}


int
vlm_unicode_unspaced(uint32_t code)
{
    return (code >= 0x0e00 && code <= 0x0e7f)                      /* Thai */
           || code == 0x3005 || code == 0x3007                     /* marks of Han */
           || (code >= 0x3040 && code <= 0x30ff)                   /* Kana */
           || (code >= 0x31f0 && code <= 0x31ff)
           || (code >= 0x3400 && code <= 0x4dbf)                   /* Han */
           || (code >= 0x4e00 && code <= 0x9fff)
           || (code >= 0xf900 && code <= 0xfaff)
           || (code >= 0x20000 && code <= 0x3ffff);
}
