/* A request's bounds on the pixels of its pictures. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/pixels.h"

#define LIMIT  1003520


static int
take(const char *text, vlm_pixels_t *p, vlm_err_t *err)
{
    int          rc;
    vlm_json_t  *json;

    memset(err, 0, sizeof(*err));
    json = vlm_json_parse(text, strlen(text), err);
    assert_non_null(json);
    rc = vlm_pixels_read(p, json, LIMIT, err);
    vlm_json_free(json);

    return rc;
}


static void
the_bounds_are_the_numbers_given(void **state)
{
    size_t        i;
    vlm_err_t     err;
    vlm_pixels_t  p;

    static const struct {
        const char  *text;
        uint64_t     min, max;
    } cases[] = {
        { "{}", 0, 0 }, { "[]", 0, 0 }, { "\"data:\"", 0, 0 },
        { "{\"min_pixels\":null,\"max_pixels\":null,\"detail\":null}", 0, 0 },
        { "{\"max_pixels\":1003520}", 0, 1003520 }, { "{\"max_pixels\":1}", 0, 1 },
        { "{\"min_pixels\":50176}", 50176, 0 },
        { "{\"min_pixels\":50176,\"max_pixels\":50176}", 50176, 50176 },
        { "{\"detail\":\"auto\"}", 0, 0 }, { "{\"detail\":\"high\",\"max_pixels\":9}", 0, 9 },
        { "{\"detail\":\"low\"}", 0, 262144 },
        { "{\"detail\":\"low\",\"max_pixels\":50176}", 0, 50176 },
        { "{\"detail\":\"low\",\"max_pixels\":300000,\"min_pixels\":7}", 7, 262144 }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (take(cases[i].text, &p, &err) != 0) {
            fail_msg("%s: %s", cases[i].text, err.text);
        }

        assert_int_equal(p.min, cases[i].min);
        assert_int_equal(p.max, cases[i].max);
    }
}


static void
what_is_no_bound_is_refused_with_the_numbers(void **state)
{
    size_t        i;
    vlm_err_t     err;
    vlm_pixels_t  p;

    static const struct {
        const char  *text, *error;
    } cases[] = {
        { "{\"max_pixels\":1003521}",
          "max_pixels is 1003521, it may be a whole number from 1 to 1003520" },
        { "{\"min_pixels\":1e300}",
          "min_pixels is 1.0000000000000001e+300, it may be a whole number from 1 to 1003520" },
        { "{\"max_pixels\":0}", "max_pixels is 0, it may be a whole number from 1 to 1003520" },
        { "{\"max_pixels\":-5}", "max_pixels is -5, it may be a whole number from 1 to 1003520" },
        { "{\"max_pixels\":1.5}", "max_pixels is 1.5, it may be a whole number from 1 to 1003520" },
        { "{\"max_pixels\":\"9\"}", "max_pixels is not a number" },
        { "{\"min_pixels\":[]}", "min_pixels is not a number" },
        { "{\"min_pixels\":9,\"max_pixels\":8}", "min_pixels is 9, more than max_pixels 8" },
        { "{\"min_pixels\":262145,\"detail\":\"low\"}",
          "min_pixels is 262145, more than max_pixels 262144" },
        { "{\"detail\":\"Low\"}", "detail is not low, high or auto" },
        { "{\"detail\":1}", "detail is not low, high or auto" }
    };

    (void) state;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(take(cases[i].text, &p, &err), -1);
        assert_int_equal(err.code, VLM_EINPUT);
        assert_string_equal(err.text, cases[i].error);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_bounds_are_the_numbers_given),
        cmocka_unit_test(what_is_no_bound_is_refused_with_the_numbers)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
