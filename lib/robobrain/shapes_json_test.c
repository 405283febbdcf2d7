/* Shapes as JSON: known shapes on a picture that is not square, for models of either kind. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "robobrain/shapes_json.h"

static const vlm_view_t  pixels = { 1200, 300, 600, 200, 0 };  /* of the resized picture */
static const vlm_view_t  shares = { 1200, 300, 600, 200, 1000 };


static void
check(const vlm_view_t *view, vlm_task_t task, const char *text, const char *want_marks,
      const char *want_coordinates)
{
    int             i;
    vlm_json_out_t  w;

    for (i = 0; i < 2; i++) {
        vlm_json_init(&w, SIZE_MAX);
        vlm_json_open(&w, '{');
        (i == 0 ? vlm_shapes_add_marks : vlm_shapes_add_coordinates)(&w, view, task, text,
                                                                     strlen(text));
        vlm_json_shut(&w, '}');
        vlm_json_put_raw(&w, "", 1);
        assert_int_equal(vlm_json_done(&w), 0);
        assert_string_equal(w.data, i == 0 ? want_marks : want_coordinates);
        vlm_json_release(&w);
    }
}


static void
a_box_has_its_label_and_two_corners(void **state)
{
    (void) state;

    check(&pixels, VLM_GROUNDING, "[{\"bbox_2d\": [30, 20, 61, 200], \"label\": \"mug\"}]",
          "{\"marks\":[{\"type\":\"box\",\"xy\":[60.0,30.0,122.0,300.0],\"label\":\"mug\"}]}",
          "{\"coordinates\":[[30.0,20.0,61.0,200.0]]}");

    check(&shares, VLM_GROUNDING, "[250, 500, 1000, 1000]",
          "{\"marks\":[{\"type\":\"box\",\"xy\":[300.0,150.0,1200.0,300.0],\"label\":null}]}",
          "{\"coordinates\":[[300.0,150.0,1200.0,300.0]]}");
}


static void
points_are_in_their_order_to_a_hundredth_of_a_pixel(void **state)
{
    (void) state;

    check(&shares, VLM_POINTING, "[(333, 333), (1, 7.77)]",
          "{\"marks\":[{\"type\":\"point\",\"xy\":[399.6,99.9],\"label\":null},"
          "{\"type\":\"point\",\"xy\":[1.2,2.33],\"label\":null}]}",
          "{\"coordinates\":[[399.6,99.9],[1.2,2.33]]}");

    check(&pixels, VLM_POINTING, "(0.781, 0.305)",
          "{\"marks\":[{\"type\":\"point\",\"xy\":[937.2,91.5],\"label\":null}]}",
          "{\"coordinates\":[[0.781,0.305]]}");
}


static void
a_path_keeps_the_depths_that_the_model_wrote(void **state)
{
    (void) state;

    check(&shares, VLM_TRAJECTORY, "[(500, 100, 1.234), (250, 1000, 0.5)]",
          "{\"marks\":[{\"type\":\"path\",\"xy\":[600.0,30.0,300.0,300.0],\"label\":null,"
          "\"depth\":[1.234,0.5]}]}",
          "{\"coordinates\":[[600.0,30.0,1.234],[300.0,300.0,0.5]]}");

    check(&pixels, VLM_TRAJECTORY, "[[5, 6], [70, 40]]",
          "{\"marks\":[{\"type\":\"path\",\"xy\":[10.0,9.0,140.0,60.0],\"label\":null}]}",
          "{\"coordinates\":[[5.0,6.0],[70.0,40.0]]}");
}


static void
an_answer_without_shapes_has_none(void **state)
{
    (void) state;

    check(&shares, VLM_GROUNDING, "nothing", "{\"marks\":[]}", "{\"coordinates\":null}");
    check(&pixels, VLM_GENERAL, "(1, 2)", "{\"marks\":[]}", "{\"coordinates\":null}");
}


static void
check_marks(const vlm_view_t *view, vlm_task_t task, const char *text, const char *want)
{
    vlm_json_out_t  w;

    vlm_json_init(&w, 65536);
    vlm_json_open(&w, '{');
    vlm_shapes_add_marks(&w, view, task, text, strlen(text));
    vlm_json_shut(&w, '}');
    assert_int_equal(vlm_json_done(&w), 0);
    w.data[w.len - 1] = '\0';
    assert_string_equal(w.data, want);
    vlm_json_release(&w);
}


static void
marks_have_a_type_and_pixels_of_the_picture(void **state)
{
    (void) state;

    check_marks(&pixels, VLM_GROUNDING, "[{\"bbox_2d\": [61, 200, 30, 20], \"label\": \"mug\"}]",
                "{\"marks\":[{\"type\":\"box\",\"xy\":[60.0,30.0,122.0,300.0],"
                "\"label\":\"mug\"}]}");
    check_marks(&shares, VLM_POINTING, "[(500, 500), (250, 100)]",
                "{\"marks\":[{\"type\":\"point\",\"xy\":[600.0,150.0],\"label\":null},"
                "{\"type\":\"point\",\"xy\":[300.0,30.0],\"label\":null}]}");
    check_marks(&shares, VLM_TRAJECTORY, "[(500, 100, 1.5), (250, 1000, 0.5)]",
                "{\"marks\":[{\"type\":\"path\",\"xy\":[600.0,30.0,300.0,300.0],\"label\":null,"
                "\"depth\":[1.5,0.5]}]}");
    check_marks(&shares, VLM_TRAJECTORY, "[(500, 100), (250, 1000)]",
                "{\"marks\":[{\"type\":\"path\",\"xy\":[600.0,30.0,300.0,300.0],\"label\":null}]}");
    check_marks(&shares, VLM_GENERAL, "(1, 2)", "{\"marks\":[]}");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_box_has_its_label_and_two_corners),
        cmocka_unit_test(points_are_in_their_order_to_a_hundredth_of_a_pixel),
        cmocka_unit_test(a_path_keeps_the_depths_that_the_model_wrote),
        cmocka_unit_test(marks_have_a_type_and_pixels_of_the_picture),
        cmocka_unit_test(an_answer_without_shapes_has_none)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
