/* The eight orientations of a picture that has no two pixels alike. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "image/orient.h"


/* Stored 3x2:  a b c / d e f  as it should be seen, by EXIF's definition. */
static void
each_orientation_shows_the_corner_that_exif_names_first(void **state)
{
    int        o, i;
    uint8_t   *p;
    uint32_t   w, h;
    vlm_err_t  err;

    static const char *const  seen[9] = {
        "", "abcdef", "cbafed", "fedcba", "defabc", "adbecf", "daebfc", "fcebda", "cfbead"
    };

    (void) state;

    for (o = 1; o <= 8; o++) {
        memset(&err, 0, sizeof(err));
        w = 3;
        h = 2;
        p = malloc(18);

        for (i = 0; i < 18; i++) {
            p[i] = (uint8_t) ("abcdef"[i / 3] + i % 3 * 64);
        }

        p = vlm_orient(p, &w, &h, (uint32_t) o, &err);
        assert_non_null(p);
        assert_int_equal(w, vlm_orient_turns((uint32_t) o) ? 2 : 3);
        assert_int_equal(h, vlm_orient_turns((uint32_t) o) ? 3 : 2);

        for (i = 0; i < 18; i++) {
            assert_int_equal(p[i], (uint8_t) (seen[o][i / 3] + i % 3 * 64));
        }

        free(p);
    }
}


static uint8_t *
turn(const uint8_t *in, uint32_t *w, uint32_t *h, uint32_t o)
{
    uint8_t    *p;
    vlm_err_t   err;

    memset(&err, 0, sizeof(err));
    p = malloc((size_t) *w * *h * 3);
    memcpy(p, in, (size_t) *w * *h * 3);

    return vlm_orient(p, w, h, o, &err);
}


/* Sizes around the tile's 32. */
static void
an_orientation_and_its_inverse_give_the_picture_back(void **state)
{
    size_t    i, n;
    uint8_t  *in, *there, *back;
    uint32_t  o, w, h, s;

    static const uint32_t  inverse[9] = { 0, 1, 2, 3, 4, 5, 8, 7, 6 };
    static const uint32_t  sizes[6][2] = { { 1, 1 }, { 1, 70 }, { 31, 33 }, { 32, 64 }, { 65, 7 },
                                           { 100, 97 } };

    (void) state;

    for (s = 0; s < 6; s++) {
        n = (size_t) sizes[s][0] * sizes[s][1] * 3;
        in = malloc(n);

        for (i = 0; i < n; i++) {
            in[i] = (uint8_t) (i * 151 >> 3);
        }

        for (o = 1; o <= 8; o++) {
            w = sizes[s][0];
            h = sizes[s][1];
            there = turn(in, &w, &h, o);
            back = turn(there, &w, &h, inverse[o]);
            assert_int_equal(w, sizes[s][0]);
            assert_int_equal(h, sizes[s][1]);
            assert_memory_equal(back, in, n);
            free(there);
            free(back);
        }

        free(in);
    }
}


static void
an_orientation_that_does_not_exist_changes_nothing(void **state)
{
    uint8_t    *p;
    uint32_t    w, h;
    vlm_err_t   err;

    (void) state;

    memset(&err, 0, sizeof(err));
    w = 2;
    h = 1;
    p = calloc(6, 1);
    assert_ptr_equal(vlm_orient(p, &w, &h, 0, &err), p);
    assert_ptr_equal(vlm_orient(p, &w, &h, 9, &err), p);
    assert_int_equal(w, 2);
    free(p);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(each_orientation_shows_the_corner_that_exif_names_first),
        cmocka_unit_test(an_orientation_and_its_inverse_give_the_picture_back),
        cmocka_unit_test(an_orientation_that_does_not_exist_changes_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
