
/* Base64 and data URLs, as clients write them and as they should not. */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"


/* into a buffer of exactly the documented size, for the sanitizer */

static int
decode(const char *text, char *dst, size_t *n)
{
    int     rc;
    char   *room;
    size_t  len;

    len = strlen(text);
    room = malloc(vlm_base64_room(len));
    assert_non_null(room);

    rc = vlm_base64_decode(room, n, text, len);

    if (rc == 0) {
        assert_true(*n <= vlm_base64_room(len));
        memcpy(dst, room, *n);
        dst[*n] = '\0';
    }

    free(room);

    return rc;
}


static void
becomes(const char *text, const char *bytes)
{
    char    dst[256];
    size_t  n;

    assert_int_equal(decode(text, dst, &n), 0);
    assert_string_equal(dst, bytes);
}


static void
every_length_is_decoded_with_and_without_its_padding(void **state)
{
    (void) state;

    becomes("", "");
    becomes("Zg==", "f");
    becomes("Zg", "f");
    becomes("Zm8=", "fo");
    becomes("Zm8", "fo");
    becomes("Zm9v", "foo");
    becomes("Zm9vYg==", "foob");
    becomes("Zm9vYmE=", "fooba");
    becomes("Zm9vYmFy", "foobar");
}


static void
both_alphabets_are_one(void **state)
{
    char    one[8], other[8];
    size_t  n, m;

    (void) state;

    assert_int_equal(decode("-_-_", one, &n), 0);
    assert_int_equal(decode("+/+/", other, &m), 0);
    assert_int_equal(n, 3);
    assert_int_equal(m, 3);
    assert_memory_equal(one, other, 3);
    assert_memory_equal(one, "\xfb\xff\xbf", 3);
}


static void
lines_of_a_mail_are_read(void **state)
{
    (void) state;

    becomes("Zm9v\r\nYmFy\r\n", "foobar");
    becomes(" Z m 9 v\n\tYg = =\n", "foob");
}


static void
text_that_is_not_base64_is_refused(void **state)
{
    char         dst[256];
    size_t       i, n;

    static const char  *const bad[] = {
        "Z", "Zm9vY", "=", "==", "Zg=", "Zg===", "Zm9v=", "Zm9v==", "Zg==Zg==",
        "Zg=g", "Zm9v!", "Zm%3D", "data:,Zg==", "\x80", "Zm9v\v"
    };

    (void) state;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(decode(bad[i], dst, &n), -1);
    }
}


static void
url(const char *text, const char *base64)
{
    size_t       n;
    const char  *p;

    p = vlm_base64_url(text, strlen(text), &n);

    if (base64 == NULL) {
        assert_null(p);
        return;
    }

    assert_non_null(p);
    assert_int_equal(n, strlen(base64));
    assert_memory_equal(p, base64, n);
}


static void
a_data_url_has_its_base64_behind_the_first_comma(void **state)
{
    (void) state;

    url("data:image/png;base64,Zg==", "Zg==");
    url("DATA:image/jpeg;charset=x;BASE64,Zg,", "Zg,");
    url("data:;base64,", "");

    url("data:image/png,Zg==", NULL);
    url("data:image/png;base64", NULL);
    url("data:base64,Zg==", NULL);
    url("data:,", NULL);
    url("data", NULL);
    url("", NULL);
    url("http://example.com/;base64,Zg==", NULL);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(every_length_is_decoded_with_and_without_its_padding),
        cmocka_unit_test(both_alphabets_are_one),
        cmocka_unit_test(lines_of_a_mail_are_read),
        cmocka_unit_test(text_that_is_not_base64_is_refused),
        cmocka_unit_test(a_data_url_has_its_base64_behind_the_first_comma),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
