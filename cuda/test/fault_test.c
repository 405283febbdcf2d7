/*
 * The table of CUDA's errors, row by row, and codes that are not in it: which of them end a
 * process.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"

#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))


static void
all_are(const int *codes, size_t n, vlm_fault_t is)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (vlm_fault_of(codes[i]) != is) {
            fail_msg("error %d is of class %d, not %d", codes[i], vlm_fault_of(codes[i]), is);
        }
    }
}


static void
success_is_no_fault(void **state)
{
    (void) state;
    assert_int_equal(vlm_fault_of(0), VLM_FAULT_NONE);
}


static void
a_refused_call_leaves_the_device_usable(void **state)
{
    const int  codes[] = {
        1, 2, 9, 36, 98, 701, 720, 801, 900, 901, 902, 903, 904, 905, 906, 907, 908
    };

    (void) state;
    all_are(codes, COUNT(codes), VLM_FAULT_REFUSED);
}


static void
without_a_device_that_we_can_use_there_is_the_cpu(void **state)
{
    const int  codes[] = { 3, 34, 35, 46, 100, 101, 209, 218, 221, 222, 223, 802, 803, 804 };

    (void) state;
    all_are(codes, COUNT(codes), VLM_FAULT_UNUSABLE);
}


static void
after_what_cuda_calls_sticky_the_process_is_replaced(void **state)
{
    const int  codes[] = {
        214, 220, 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911, 999
    };

    (void) state;
    all_are(codes, COUNT(codes), VLM_FAULT_LOST);
}


static void
an_unknown_code_counts_as_lost(void **state)
{
    const int  codes[] = { -1, 4242, 1000000, INT32_MAX, INT32_MIN };

    (void) state;
    all_are(codes, COUNT(codes), VLM_FAULT_LOST);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(success_is_no_fault),
        cmocka_unit_test(a_refused_call_leaves_the_device_usable),
        cmocka_unit_test(without_a_device_that_we_can_use_there_is_the_cpu),
        cmocka_unit_test(after_what_cuda_calls_sticky_the_process_is_replaced),
        cmocka_unit_test(an_unknown_code_counts_as_lost)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
