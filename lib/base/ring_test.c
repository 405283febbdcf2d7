/* A text is found by its id until 128 later ones have come. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/ring.h"

static vlm_ring_t  ring;


static const char *
id_of(unsigned n)
{
    static char  id[VLM_RING_ID + 1];

    (void) snprintf(id, sizeof(id), "%032x", n);

    return id;
}


static void
a_text_is_found_by_its_id(void **state)
{
    char  text[VLM_RING_TEXT];

    (void) state;

    memset(&ring, 0, sizeof(ring));

    assert_int_equal(vlm_ring_get(&ring, id_of(0), text), 0);
    assert_int_equal(vlm_ring_get(&ring, (char [VLM_RING_ID]) { 0 }, text), 0);

    vlm_ring_put(&ring, id_of(1), "one", 3);
    vlm_ring_put(&ring, id_of(2), "two", 3);

    assert_int_equal(vlm_ring_get(&ring, id_of(1), text), 3);
    assert_memory_equal(text, "one", 3);
    assert_int_equal(vlm_ring_get(&ring, id_of(2), text), 3);
    assert_memory_equal(text, "two", 3);
    assert_int_equal(vlm_ring_get(&ring, id_of(3), text), 0);
}


/* A hop that was tried twice has one id for both. */
static void
of_texts_with_one_id_the_latest_is_found(void **state)
{
    char      text[VLM_RING_TEXT];
    unsigned  i;

    (void) state;

    memset(&ring, 0, sizeof(ring));

    /* side by side, and around the end of the ring */

    for (i = 0; i < VLM_RING; i++) {
        vlm_ring_put(&ring, id_of(i), "first", 5);
        vlm_ring_put(&ring, id_of(i), "last", 4);
        assert_int_equal(vlm_ring_get(&ring, id_of(i), text), 4);
        assert_memory_equal(text, "last", 4);
        vlm_ring_put(&ring, id_of(VLM_RING + i), "other", 5);
    }
}


static void
the_oldest_text_makes_room(void **state)
{
    char      text[VLM_RING_TEXT];
    unsigned  i;

    (void) state;

    memset(&ring, 0, sizeof(ring));

    for (i = 0; i < VLM_RING; i++) {
        vlm_ring_put(&ring, id_of(i), "text", 4);
    }

    assert_int_equal(vlm_ring_get(&ring, id_of(0), text), 4);
    vlm_ring_put(&ring, id_of(i), "last", 4);
    assert_int_equal(vlm_ring_get(&ring, id_of(0), text), 0);
    assert_int_equal(vlm_ring_get(&ring, id_of(1), text), 4);
    assert_int_equal(vlm_ring_get(&ring, id_of(i), text), 4);
    assert_memory_equal(text, "last", 4);
}


static void
a_text_that_is_too_long_is_cut(void **state)
{
    char  text[VLM_RING_TEXT], lengthy[VLM_RING_TEXT + 10];

    (void) state;

    memset(&ring, 0, sizeof(ring));
    memset(lengthy, 'x', sizeof(lengthy));

    vlm_ring_put(&ring, id_of(1), lengthy, sizeof(lengthy));
    assert_int_equal(vlm_ring_get(&ring, id_of(1), text), VLM_RING_TEXT);
    assert_memory_equal(text, lengthy, VLM_RING_TEXT);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_text_is_found_by_its_id),
        cmocka_unit_test(of_texts_with_one_id_the_latest_is_found),
        cmocka_unit_test(the_oldest_text_makes_room),
        cmocka_unit_test(a_text_that_is_too_long_is_cut)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
