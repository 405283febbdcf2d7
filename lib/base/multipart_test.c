
/* multipart/form-data, as browsers and as attackers send it. */


#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/multipart.h"


#define TYPE  "multipart/form-data; boundary=xYz"


typedef vlm_multipart_t       multipart_t;
typedef vlm_multipart_part_t  part_t;


static int
init(multipart_t *mp, const char *type, const char *body)
{
    return vlm_multipart_init(mp, type, strlen(type), body,
                              strlen(body));
}


/* all parts, on a copy that ends where the body does */

static int
walk(const char *type, const char *body, size_t len, const char **error)
{
    int          rc, n;
    char        *copy;
    part_t       part;
    multipart_t  mp;

    copy = malloc(len + (len == 0));
    assert_non_null(copy);
    memcpy(copy, body, len);

    n = 0;
    rc = vlm_multipart_init(&mp, type, strlen(type), copy, len);

    if (rc == 0) {
        while ((rc = vlm_multipart_next(&mp, &part)) == 1) {
            n++;
        }
    }

    *error = mp.error;
    free(copy);

    return rc == 0 ? n : -1;
}


static void
refused(const char *body, const char *why)
{
    const char  *error;

    assert_int_equal(walk(TYPE, body, strlen(body), &error), -1);
    assert_non_null(error);
    assert_string_equal(error, why);
}


static void
a_form_is_read_part_by_part(void **state)
{
    part_t       p;
    multipart_t  mp;

    (void) state;

    assert_int_equal(init(&mp, TYPE,
        "--xYz\r\n"
        "Content-Disposition: form-data; name=\"note\"\r\n\r\n"
        "hello\r\n"
        "--xYz\r\n"
        "content-disposition: form-data; name=file; filename=\"a cat.png\""
        "\r\nContent-Type: image/png\r\n\r\n"
        "\x89PNG\r\n--xY\r\n\r\n--xYz--\r\nepilogue"), 0);

    assert_int_equal(vlm_multipart_next(&mp, &p), 1);
    assert_string_equal(p.name, "note");
    assert_false(p.is_file);
    assert_int_equal(p.bytes, 5);
    assert_memory_equal(p.data, "hello", 5);

    assert_int_equal(vlm_multipart_next(&mp, &p), 1);
    assert_string_equal(p.name, "file");
    assert_true(p.is_file);
    assert_string_equal(p.filename, "a cat.png");
    assert_int_equal(p.bytes, 12);
    assert_memory_equal(p.data, "\x89PNG\r\n--xY\r\n", 12);

    assert_int_equal(vlm_multipart_next(&mp, &p), 0);
    assert_int_equal(vlm_multipart_next(&mp, &p), 0);
}


static void
a_boundary_may_be_quoted_and_come_late(void **state)
{
    size_t       i;
    multipart_t  mp;

    static const char *const  good[] = {
        "multipart/form-data; boundary=xYz",
        "Multipart/Form-Data;boundary=\"xYz\"",
        "multipart/form-data; charset=utf-8; Boundary = \"xYz\" ; a=b",
    };

    (void) state;

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_int_equal(init(&mp, good[i], "--xYz--"), 0);
    }

    assert_int_equal(init(&mp, "multipart/form-data; boundary=\"a b=;c\"",
                          "--a b=;c--"), 0);

    assert_int_equal(init(&mp, "application/json", "{}"), 1);
    assert_int_equal(init(&mp, "multipart/form-dataX; boundary=xYz", ""), 1);
    assert_int_equal(init(&mp, "", ""), 1);
    assert_int_equal(vlm_multipart_init(&mp, NULL, 0, "", 0), 1);

    assert_int_equal(init(&mp, "multipart/form-data", "--xYz--"), -1);
    assert_string_equal(mp.error, "The content type has no boundary");
    assert_int_equal(init(&mp, "multipart/form-data; boundary=", ""), -1);
    assert_int_equal(init(&mp, "multipart/form-data; boundary=\"\"", ""), -1);
    assert_int_equal(init(&mp, "multipart/form-data; boundary=\"x", ""), -1);
    assert_int_equal(init(&mp, "multipart/form-data; boundary="
        "12345678901234567890123456789012345678901234567890"
        "123456789012345678901", ""), -1);
    assert_string_equal(mp.error,
                        "The boundary is not 1 to 70 characters long");
}


static void
names_are_unescaped_as_browsers_escape_them(void **state)
{
    size_t       i;
    char         body[512];
    part_t       p;
    multipart_t  mp;

    static const struct { const char *sent, *read; }  cases[] = {
        { "filename=\"a\\\"b.png\"", "a\"b.png" },
        { "filename=\"a%22b.png\"", "a\"b.png" },
        { "filename=\"C:\\dir\\b.png\"", "C:\\dir\\b.png" },
        { "filename=\"a\\\\b\"", "a\\b" },
        { "filename=\"a;b=c.png\"", "a;b=c.png" },
        { "filename=plain.png", "plain.png" },
        { "filename=\"\"", "" },
        { "FileName=\"x\"", "x" },
        { "filename=\"x\"; filename*=UTF-8''na%C3%AFve%20.png",
          "na\xc3\xafve .png" },
        { "filename*=utf-8'en'y.png; filename=\"x\"", "y.png" },
        { "filename=\"x\"; filename*=latin9''%a4", "x" },
        { "filename=\"x\"; filename*=UTF-8''%zz", "x" },
        { "filename=\"x\"; filename*=UTF-8''%4", "x" },
        { "filename=\"x\"; filename*=nothing", "x" },
        { "filename=\"\xe5\x9b\xbe.png\"", "\xe5\x9b\xbe.png" },
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void) snprintf(body, sizeof(body), "--xYz\r\nContent-Disposition:"
                        " form-data; name=\"file\"; %s\r\n\r\nd\r\n--xYz--",
                        cases[i].sent);

        assert_int_equal(init(&mp, TYPE, body), 0);
        assert_int_equal(vlm_multipart_next(&mp, &p), 1);
        assert_true(p.is_file);
        assert_string_equal(p.filename, cases[i].read);
        assert_int_equal(p.filename_len, strlen(cases[i].read));
        assert_string_equal(p.name, "file");
        assert_int_equal(p.bytes, 1);
    }
}


static void
a_part_may_be_empty_and_a_preamble_stand_before_it(void **state)
{
    const char  *e;

    (void) state;

#define H  "Content-Disposition: form-data; name=a\r\n\r\n"
#define W(body)  walk(TYPE, body, sizeof(body) - 1, &e)

    assert_int_equal(W("--xYz--"), 0);
    assert_int_equal(W("--xYz--\r\n"), 0);
    assert_int_equal(W("--xYz\r\n" H "\r\n--xYz--"), 1);
    assert_int_equal(W("--xYz\r\n" H "--xYz--"), 1);
    assert_int_equal(W("preamble\r\n--xYz\r\n" H "\r\n--xYz--"), 1);
    assert_int_equal(W("\r\n--xYz \t\r\n" H "d\r\n--xYz--"), 1);
    assert_int_equal(W("--xYz\r\n" H "\0\0\0\r\n--xYz\r\n" H "x\r\n--xYz--"),
                     2);
}


static void
a_truncated_or_malformed_form_is_refused(void **state)
{
    (void) state;

    refused("", "The body has no boundary");
    refused("hello", "The body has no boundary");
    refused("x--xYz--", "The body has no boundary");
    refused("--xYz", "A boundary is not followed by a line break");
    refused("--xYz-", "A boundary is not followed by a line break");
    refused("--xYzzz\r\n" H "d\r\n--xYz--",
            "A boundary is not followed by a line break");
    refused("--xYz\r\n", "The body ends within the headers of a part");
    refused("--xYz\r\n" "Content-Disposition: form-data; name=a",
            "The body ends within the headers of a part");
    refused("--xYz\r\n" H, "The body ends before its last boundary");
    refused("--xYz\r\n" H "data", "The body ends before its last boundary");
    refused("--xYz\r\n" H "data\r\n--xY",
            "The body ends before its last boundary");
    refused("--xYz\r\n" H "data\r\n--xYz",
            "A boundary is not followed by a line break");
    refused("--xYz\r\nno colon\r\n\r\nd\r\n--xYz--",
            "A header of a part has no colon");
    refused("--xYz\r\nA: b\r\n\r\nd\r\n--xYz--",
            "A part has no Content-Disposition");
    refused("--xYz\r\n\r\nd\r\n--xYz--", "A part has no Content-Disposition");
    refused("--xYz\r\nContent-Disposition: form-data; name=\"a\r\n\r\nd"
            "\r\n--xYz--", "A part's Content-Disposition is malformed");
    refused("--xYz\r\nContent-Disposition: form-data; name\r\n\r\nd"
            "\r\n--xYz--", "A part's Content-Disposition is malformed");
}


static void
many_parts_and_long_headers_are_refused(void **state)
{
    int          i;
    char        *body, *p;
    const char  *e;

    static const char  part[] = "--xYz\r\n" H "d\r\n";

    (void) state;

    body = malloc(200 * sizeof(part));
    assert_non_null(body);

    for (i = 0; i < 65; i++) {
        memcpy(body + (size_t) i * (sizeof(part) - 1), part,
               sizeof(part) - 1);
    }

    p = body + 64 * (sizeof(part) - 1);
    memcpy(p, "--xYz--", 7);
    assert_int_equal(walk(TYPE, body, (size_t) (p + 7 - body), &e), 64);

    memcpy(p, part, sizeof(part) - 1);
    p += sizeof(part) - 1;
    memcpy(p, "--xYz--", 7);
    assert_int_equal(walk(TYPE, body, (size_t) (p + 7 - body), &e), -1);
    assert_string_equal(e, "The body has more than 64 parts");

    free(body);

    body = malloc(20000);
    assert_non_null(body);

    memset(body, 'a', 20000);
    memcpy(body, "--xYz\r\n", 7);
    memcpy(body + 20000 - 7, "--xYz--", 7);
    assert_int_equal(walk(TYPE, body, 20000, &e), -1);
    assert_string_equal(e, "The headers of a part are longer than 8192"
                        " bytes");

    for (p = body + 7; p < body + 19000; p += 4) {
        memcpy(p, "a:\r\n", 4);
    }

    assert_int_equal(walk(TYPE, body, 20000, &e), -1);
    assert_string_equal(e, "The headers of a part are longer than 8192"
                        " bytes");

    p = body + sprintf(body, "--xYz\r\nContent-Disposition: form-data;"
                             " name=file; filename=\"%01024d\"\r\n\r\n"
                             "\r\n--xYz--", 0);
    assert_int_equal(walk(TYPE, body, (size_t) (p - body), &e), -1);
    assert_string_equal(e, "A name in a part is longer than 1023 bytes");

    free(body);
}


/* any cut of a good body is refused, and none is read past its end */

static void
every_truncation_is_refused(void **state)
{
    size_t       n;
    const char  *e;

    static const char  body[] = "--xYz\r\n" H "data\r\n--xYz\r\n"
        "Content-Disposition: form-data; name=\"f\"; filename=\"x\\\"%22\";"
        " filename*=UTF-8''%41\r\n\r\n\r\n--xYz--";

    (void) state;

    assert_int_equal(walk(TYPE, body, sizeof(body) - 1, &e), 2);

    for (n = 0; n < sizeof(body) - 1; n++) {
        assert_int_equal(walk(TYPE, body, n, &e), -1);
    }

    for (n = 20; n < sizeof(TYPE) - 1; n++) {
        char         type[sizeof(TYPE)];
        multipart_t  mp;

        memcpy(type, TYPE, n);
        type[n] = '\0';
        assert_int_not_equal(init(&mp, type, body), 0);
    }
}


#define PART(head, data)  "--xYz\r\nContent-Disposition: form-data; " head "\r\n\r\n" data "\r\n"


static void
a_form_has_a_file_and_a_text(void **state)
{
    size_t                 n;
    const char            *e;
    vlm_multipart_form_t   form;

    static const char  body[] = PART("name=text", "first") PART("name=file", "no file")
        PART("name=file; filename=a.pdf", "%PDF") PART("name=text; filename=b", "no text")
        PART("name=file; filename=b.pdf", "second") PART("name=text", "second") "--xYz--";

    (void) state;

    assert_int_equal(vlm_multipart_form(&form, TYPE, sizeof(TYPE) - 1, body, sizeof(body) - 1,
                                        "file", "text", &e), 0);
    assert_string_equal(form.file.filename, "a.pdf");
    assert_int_equal(form.file.bytes, 4);
    assert_memory_equal(form.file.data, "%PDF", 4);
    assert_int_equal(form.text_bytes, 5);
    assert_memory_equal(form.text, "first", 5);

    assert_int_equal(vlm_multipart_form(&form, TYPE, sizeof(TYPE) - 1, body, sizeof(body) - 1,
                                        "picture", NULL, &e), 0);
    assert_null(form.file.data);
    assert_null(form.text);

    /* what comes behind the file is read, too */

    for (n = 0; n < sizeof(body) - 1; n++) {
        assert_int_equal(vlm_multipart_form(&form, TYPE, sizeof(TYPE) - 1, body, n, "file", "text",
                                            &e), -1);
        assert_non_null(e);
    }

    assert_int_equal(vlm_multipart_form(&form, "text/plain", 10, body, sizeof(body) - 1, "file",
                                        "text", &e), 0);
    assert_null(form.file.data);

    assert_int_equal(vlm_multipart_form(&form, "multipart/form-data", 19, body, sizeof(body) - 1,
                                        "file", "text", &e), -1);
    assert_non_null(e);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_form_has_a_file_and_a_text),
        cmocka_unit_test(a_form_is_read_part_by_part),
        cmocka_unit_test(a_boundary_may_be_quoted_and_come_late),
        cmocka_unit_test(names_are_unescaped_as_browsers_escape_them),
        cmocka_unit_test(a_part_may_be_empty_and_a_preamble_stand_before_it),
        cmocka_unit_test(a_truncated_or_malformed_form_is_refused),
        cmocka_unit_test(many_parts_and_long_headers_are_refused),
        cmocka_unit_test(every_truncation_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
