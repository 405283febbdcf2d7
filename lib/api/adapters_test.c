/* Adapters come and go in a list, and their counts stay as long as there is room. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "api/adapters.h"

#define N  2

#define find(list, name)  vlm_adapters_find(list, N, name)


static void
an_adapter_is_found_by_its_name(void **state)
{
    vlm_adapter_entry_t  list[N] = { 0 };

    (void) state;

    assert_null(find(list, "a"));

    vlm_adapters_add(list, N, "a", "dir-a", "");
    vlm_adapters_add(list, N, "b", "dir-b", "");

    assert_int_equal(find(list, "a")->listed, 1);
    assert_string_equal(find(list, "b")->dir, "dir-b");
    assert_null(find(list, "c"));
}


static void
one_that_comes_back_has_its_count(void **state)
{
    vlm_adapter_entry_t  list[N] = { 0 };

    (void) state;

    vlm_adapters_add(list, N, "a", "old", "");
    find(list, "a")->requests = 7;

    vlm_adapters_clear(list, N);
    assert_int_equal(find(list, "a")->listed, 0);

    vlm_adapters_add(list, N, "b", "dir-b", "");
    vlm_adapters_add(list, N, "a", "new", "");
    assert_int_equal(find(list, "a")->listed, 1);
    assert_int_equal(find(list, "a")->requests, 7);
    assert_string_equal(find(list, "a")->dir, "new");
}


static void
one_that_is_listed_no_more_gives_its_place(void **state)
{
    vlm_adapter_entry_t  list[N] = { 0 };

    (void) state;

    vlm_adapters_add(list, N, "a", "dir-a", "");
    vlm_adapters_add(list, N, "b", "dir-b", "");
    vlm_adapters_add(list, N, "c", "dir-c", "");
    assert_null(find(list, "c"));

    find(list, "a")->requests = 7;
    vlm_adapters_clear(list, N);
    vlm_adapters_add(list, N, "b", "dir-b", "");
    vlm_adapters_add(list, N, "c", "dir-c", "");

    assert_null(find(list, "a"));
    assert_int_equal(find(list, "c")->listed, 1);
    assert_int_equal(find(list, "c")->requests, 0);
}


static void
one_that_was_left_out_has_a_reason_and_keeps_its_place(void **state)
{
    vlm_adapter_entry_t  list[N] = { 0 };

    (void) state;

    vlm_adapters_add(list, N, "a", "dir-a", "no weights");
    vlm_adapters_add(list, N, "b", "dir-b", "");
    vlm_adapters_add(list, N, "c", "dir-c", "");
    assert_int_equal(find(list, "a")->listed, 0);
    assert_string_equal(find(list, "a")->reason, "no weights");
    assert_null(find(list, "c"));

    vlm_adapters_clear(list, N);
    assert_string_equal(find(list, "a")->reason, "");
    vlm_adapters_add(list, N, "a", "dir-a", "");
    assert_int_equal(find(list, "a")->listed, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_adapter_is_found_by_its_name),
        cmocka_unit_test(one_that_comes_back_has_its_count),
        cmocka_unit_test(one_that_is_listed_no_more_gives_its_place),
        cmocka_unit_test(one_that_was_left_out_has_a_reason_and_keeps_its_place)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
