/* Orientations out of EXIF blocks, sound and damaged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "image/exif.h"

/* A directory at 8 with two entries: ImageWidth 300, Orientation 6. */
#define LITTLE  "II*\0\x08\0\0\0\x02\0" "\0\x01\x03\0\x01\0\0\0\x2c\x01\0\0" \
                "\x12\x01\x03\0\x01\0\0\0\x06\0\0\0" "\0\0\0\0"
#define BIG     "MM\0*\0\0\0\x08\0\x02" "\x01\0\0\x03\0\0\0\x01\x01\x2c\0\0" \
                "\x01\x12\0\x03\0\0\0\x01\0\x06\0\0" "\0\0\0\0"


/* The block in memory of exactly its length. */
static uint32_t
orientation(const void *data, size_t bytes)
{
    void      *p;
    uint32_t   o;

    p = malloc(bytes == 0 ? 1 : bytes);
    memcpy(p, data, bytes);
    o = vlm_exif_orientation(p, bytes);
    free(p);

    return o;
}


static void
both_byte_orders_are_read_with_and_without_prefix(void **state)
{
    (void) state;

    assert_int_equal(orientation(LITTLE, sizeof(LITTLE) - 1), 6);
    assert_int_equal(orientation(BIG, sizeof(BIG) - 1), 6);
    assert_int_equal(orientation("Exif\0\0" LITTLE, sizeof(LITTLE) + 5), 6);
    assert_int_equal(orientation("Exif\0\0" BIG, sizeof(BIG) + 5), 6);
}


static void
a_block_cut_off_anywhere_turns_nothing(void **state)
{
    size_t  n;

    (void) state;

    for (n = 0; n < 34; n++) {                     /* 34: the end of the second entry */
        assert_int_equal(orientation(LITTLE, n), 1);
        assert_int_equal(orientation(BIG, n), 1);
    }

    assert_int_equal(orientation(LITTLE, 34), 6);
}


static void
an_invalid_orientation_leaves_the_picture_as_it_is(void **state)
{
    size_t   i;
    uint8_t  block[sizeof(LITTLE) - 1];

    static const struct { uint8_t at, value; }  damage[] = {
        { 30, 0 }, { 30, 9 }, { 31, 1 },           /* its value: none, too large */
        { 24, 4 },                                 /* its type: LONG */
        { 23, 2 },                                 /* another tag */
        { 8, 1 }, { 8, 0 },                        /* fewer entries */
        { 4, 0 }, { 4, 4 },                        /* a directory in the header itself */
        { 7, 0xff }, { 4, 37 },                    /* a directory past the end */
        { 0, 'M' }, { 2, '+' }
    };

    (void) state;

    for (i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
        memcpy(block, LITTLE, sizeof(block));
        block[damage[i].at] = damage[i].value;
        assert_int_equal(orientation(block, sizeof(block)), 1);
    }
}


static void
a_count_beyond_the_block_is_not_followed(void **state)
{
    uint8_t  block[sizeof(LITTLE) - 1];

    (void) state;

    memcpy(block, LITTLE, sizeof(block));
    memset(block + 8, 0xff, 2);
    assert_int_equal(orientation(block, sizeof(block)), 6);

    block[22] = 0;
    assert_int_equal(orientation(block, sizeof(block)), 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(both_byte_orders_are_read_with_and_without_prefix),
        cmocka_unit_test(a_block_cut_off_anywhere_turns_nothing),
        cmocka_unit_test(an_invalid_orientation_leaves_the_picture_as_it_is),
        cmocka_unit_test(a_count_beyond_the_block_is_not_followed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
