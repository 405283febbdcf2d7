/* An arena hands out as many bytes as it counts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/arena.h"

#define PIECES  200


static uint64_t
count_of(uint32_t i)
{
    return i % 11 == 0 ? 0 : i * 37 % 101;
}


static void
the_same_calls_count_and_place_the_same(void **state)
{
    uint8_t      *base, *p, *last;
    uint32_t      i;
    vlm_arena_t   count = { NULL, 0, 0 }, place = { NULL, 0, 0 };

    (void) state;

    for (i = 0; i < PIECES; i++) {
        assert_null(vlm_place(&count, count_of(i), i % 7 + 1));
    }

    base = aligned_alloc(VLM_ALIGN, (count.used + VLM_ALIGN) / VLM_ALIGN * VLM_ALIGN);
    place.base = base;
    place.size = count.used;
    last = base;

    for (i = 0; i < PIECES; i++) {
        p = vlm_place(&place, count_of(i), i % 7 + 1);
        assert_non_null(p);
        assert_int_equal((uintptr_t) p % VLM_ALIGN, 0);
        assert_true(p >= last);        /* pieces do not overlap */
        last = p + count_of(i) * (i % 7 + 1);
        assert_true(last <= base + place.size);
    }

    assert_true(place.used == count.used);
    assert_true(last == base + place.size || count_of(PIECES - 1) == 0);
    free(base);
}


static void
one_byte_too_little_gives_nothing(void **state)
{
    uint8_t      block[256] __attribute__((aligned(VLM_ALIGN)));
    vlm_arena_t  a = { block, 199, 0 };

    (void) state;

    assert_ptr_equal(vlm_place(&a, 100, 1), block);
    assert_null(vlm_place(&a, 18, 4));             /* from 128 to 200 */

    a.used = 100;
    a.size = 200;
    assert_ptr_equal(vlm_place(&a, 18, 4), block + 128);
}


static void
a_size_beyond_64_bits_is_never_placed(void **state)
{
    uint8_t      block[64] __attribute__((aligned(VLM_ALIGN)));
    uint32_t     i;
    vlm_arena_t  a;

    const uint64_t  sizes[][2] = {
        { UINT64_MAX, 1 }, { UINT64_MAX / 2, 3 }, { (uint64_t) 1 << 32, (uint64_t) 1 << 32 },
        { UINT64_MAX - 63, 1 }
    };

    (void) state;

    for (i = 0; i < 4; i++) {
        a.base = block;
        a.size = sizeof(block);
        a.used = 1;
        assert_null(vlm_place(&a, sizes[i][0], sizes[i][1]));
        assert_true(a.used == UINT64_MAX);
        assert_null(vlm_place(&a, 1, 1));          /* and so it stays */
        assert_true(a.used == UINT64_MAX);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_same_calls_count_and_place_the_same),
        cmocka_unit_test(one_byte_too_little_gives_nothing),
        cmocka_unit_test(a_size_beyond_64_bits_is_never_placed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
