/* Paths and the patterns of a table. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "api/route.h"


/* Matches a copy without a zero behind it, in memory that the sanitizers watch. */
static int
match(const char *pattern, const char *path, char piece[64])
{
    int          rc;
    char        *copy;
    size_t       n, bytes = strlen(path);
    const char  *at;

    copy = malloc(bytes != 0 ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, path, bytes);

    rc = vlm_route_match(pattern, copy, bytes, &at, &n);

    assert_in_range(n, 0, 63);

    if (n > 0) {
        assert_true(at >= copy && at + n <= copy + bytes);
        memcpy(piece, at, n);
    }

    piece[n] = '\0';
    free(copy);

    return rc;
}


static void
a_star_is_one_component(void **state)
{
    char  piece[64];

    (void) state;

    assert_true(match("/api/history/*", "/api/history/abc", piece));
    assert_string_equal(piece, "abc");
    assert_true(match("/api/session/*/reset", "/api/session/a b/reset", piece));
    assert_string_equal(piece, "a b");
    assert_true(match("/api/documents/*/pages/*", "/api/documents/a/pages/1.png", piece));
    assert_string_equal(piece, "a/pages/1.png");

    assert_false(match("/api/history/*", "/api/history/", piece));
    assert_false(match("/api/history/*", "/api/history/a/b", piece));
    assert_false(match("/api/session/*/reset", "/api/session//reset", piece));
    assert_false(match("/api/session/*/reset", "/api/session/a", piece));
    assert_false(match("/api/session/*/reset", "/api/session/a/reset/", piece));
}


static void
two_stars_are_all_that_follows(void **state)
{
    char  piece[64];

    (void) state;

    assert_true(match("/v1/models/**", "/v1/models/org/name/", piece));
    assert_string_equal(piece, "org/name/");
    assert_false(match("/v1/models/**", "/v1/models/", piece));
}


static void
a_path_without_stars_is_itself(void **state)
{
    char  piece[64];

    (void) state;

    assert_true(match("/api/chat", "/api/chat", piece));
    assert_string_equal(piece, "");
    assert_false(match("/api/chat", "/api/chat/", piece));
    assert_false(match("/api/chat", "/api/cha", piece));
    assert_false(match("/api/chat", "", piece));
    assert_false(match("/api/chat", "/api/CHAT", piece));
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_star_is_one_component),
        cmocka_unit_test(two_stars_are_all_that_follows),
        cmocka_unit_test(a_path_without_stars_is_itself),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
