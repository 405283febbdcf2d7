/* Answers over pictures: their places and colours, and the pixels that stay unchanged. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "robobrain/draw.h"
#include "robobrain/draw_text.h"

#define GREY  100                      /* of a canvas before anything is drawn */

static const uint8_t  white[] = { 255, 255, 255 }, red[] = { 226, 28, 44 };
static const uint8_t  green[] = { 30, 215, 96 }, orange[] = { 255, 140, 0 };
static const uint8_t  grey[] = { GREY, GREY, GREY };


static vlm_canvas_t
canvas(uint32_t width, uint32_t height)
{
    vlm_canvas_t  c = { malloc((size_t) width * height * 3), width, height };

    memset(c.rgb, GREY, (size_t) width * height * 3);

    return c;
}


static const uint8_t *
pixel(const vlm_canvas_t *c, uint32_t x, uint32_t y)
{
    return c->rgb + ((size_t) y * c->width + x) * 3;
}


#define assert_pixel(c, x, y, want)  assert_memory_equal(pixel(c, x, y), want, 3)


/* The box around all that was drawn; 0: nothing was. */
static int
drawn(const vlm_canvas_t *c, uint32_t box[4])
{
    uint32_t  x, y;

    box[0] = box[1] = UINT32_MAX;
    box[2] = box[3] = 0;

    for (y = 0; y < c->height; y++) {
        for (x = 0; x < c->width; x++) {
            if (memcmp(pixel(c, x, y), grey, 3) != 0) {
                box[0] = x < box[0] ? x : box[0];
                box[1] = y < box[1] ? y : box[1];
                box[2] = x > box[2] ? x : box[2];
                box[3] = y > box[3] ? y : box[3];
            }
        }
    }

    return box[0] != UINT32_MAX;
}


/* Pixels that are covered, in parts of one, by black on a canvas of white. */
static double
covered(const vlm_canvas_t *c)
{
    size_t  i;
    double  sum;

    for (sum = 0, i = 0; i < (size_t) c->width * c->height; i++) {
        sum += (255 - c->rgb[3 * i]) / 255.0;
    }

    return sum;
}


static vlm_canvas_t
white_canvas(uint32_t width, uint32_t height)
{
    vlm_canvas_t  c = canvas(width, height);

    memset(c.rgb, 255, (size_t) width * height * 3);

    return c;
}


static void
a_fill_covers_as_much_as_geometry_says(void **state)
{
    vlm_canvas_t       c;
    const vlm_ink_t    black = { 0, 0, 0, 255 };
    const vlm_spot_t   p[] = { { 10.3, 10.6 }, { 80.2, 25.1 }, { 30.7, 90.9 } };

    (void) state;

    c = white_canvas(101, 103);
    vlm_draw_disc(&c, (vlm_spot_t) { 50.3, 51.8 }, 30.4, black);
    assert_float_equal(covered(&c), M_PI * 30.4 * 30.4, 5);
    free(c.rgb);

    c = white_canvas(101, 103);
    vlm_draw_triangle(&c, p, black);
    assert_float_equal(covered(&c), (69.9 * 80.3 - 20.4 * 14.5) / 2, 5);
    free(c.rgb);

    c = white_canvas(101, 103);
    vlm_draw_line(&c, (vlm_spot_t) { 20, 80 }, (vlm_spot_t) { 80, 35 }, 7, black);
    assert_float_equal(covered(&c), 75 * 7 + M_PI * 3.5 * 3.5, 3);
    free(c.rgb);

    c = white_canvas(101, 103);
    vlm_draw_round_box(&c, (vlm_spot_t) { 20.5, 30.25 }, (vlm_spot_t) { 80.5, 70.75 }, 10, black);
    assert_float_equal(covered(&c), 60 * 40.5 - (4 - M_PI) * 100, 3);
    free(c.rgb);

    c = white_canvas(101, 103);
    vlm_draw_box(&c, (vlm_spot_t) { 9.6, 20.4 }, (vlm_spot_t) { 20.4, 29.6 }, black);
    vlm_draw_frame(&c, (vlm_spot_t) { 40, 40 }, (vlm_spot_t) { 60, 70 }, 3, black);
    assert_float_equal(covered(&c), 10 * 10 + 20 * 30 - 14 * 24, 0);
    free(c.rgb);
}


static void
crossing_strokes_show_no_crossing(void **state)
{
    int                 i;
    vlm_canvas_t        c, d;
    const vlm_ink_t     half = { 0, 0, 0, 128 };
    const vlm_stroke_t  s[] = {
        { { 10, 10 }, { 40, 40 } }, { { 40, 10 }, { 10, 40 } }, { { 10, 10 }, { 40, 40 } }
    };

    (void) state;

    c = white_canvas(50, 50);
    d = white_canvas(50, 50);
    vlm_draw_strokes(&c, s, 3, 5, half);
    vlm_draw_strokes(&d, s, 2, 5, half);
    assert_memory_equal(c.rgb, d.rgb, 50 * 50 * 3);

    for (i = 12; i < 38; i++) {
        assert_int_equal(pixel(&c, i, i)[0], 127);
    }

    free(c.rgb);
    free(d.rgb);
}


static void
a_line_ends_where_the_canvas_does_and_nothing_is_bent(void **state)
{
    uint32_t         i;
    vlm_canvas_t     c;
    const vlm_ink_t  black = { 0, 0, 0, 255 };

    (void) state;

    c = white_canvas(64, 64);
    vlm_draw_line(&c, (vlm_spot_t) { -1e6, -1e6 }, (vlm_spot_t) { 1e6, 1e6 }, 3, black);

    for (i = 0; i < 64; i++) {
        assert_int_equal(pixel(&c, i, i)[0], 0);
        assert_int_equal(pixel(&c, i, (i + 10) % 64)[0], 255);
    }

    free(c.rgb);
}


static void
a_point_is_a_red_disc_with_a_white_rim_and_a_number(void **state)
{
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);            /* a unit is 2 pixels */
    vlm_shape_t   s = { .kind = VLM_SHAPE_POINT, .x = 300, .y = 200 };

    (void) state;

    vlm_draw_shapes(&c, &s, 1);
    assert_in_range(pixel(&c, 301, 200)[1], 200, 255);         /* the stroke of the 1 */
    assert_pixel(&c, 293, 200, red);
    assert_pixel(&c, 306, 200, red);
    assert_pixel(&c, 300, 207, red);
    assert_in_range(pixel(&c, 309, 200)[1], 245, 255);
    assert_in_range(pixel(&c, 290, 200)[1], 245, 255);

    assert_int_equal(drawn(&c, box), 1);
    assert_in_range(box[0], 288, 290);
    assert_in_range(box[2], 309, 311);
    assert_in_range(box[1], 188, 190);
    assert_in_range(box[3], 209, 211);
    free(c.rgb);
}


static void
points_are_numbered_in_their_order(void **state)
{
    uint32_t      y;
    vlm_canvas_t  c = canvas(600, 400), d = canvas(600, 400);
    vlm_shape_t   s[3];

    (void) state;

    memset(s, 0, sizeof(s));
    s[0].x = 100;
    s[1].x = 200;
    s[2].x = 300;
    s[0].y = s[1].y = s[2].y = 200;
    vlm_draw_shapes(&c, s, 3);

    /* The third alone is a 1: it differs from the 3, and equals the first. */

    vlm_draw_shapes(&d, s + 2, 1);

    for (y = 180; y < 220; y++) {
        assert_memory_equal(pixel(&c, 80, y), pixel(&d, 280, y), 40 * 3);
    }

    assert_memory_not_equal(pixel(&c, 280, 200), pixel(&d, 280, 200), 40 * 3);
    free(c.rgb);
    free(d.rgb);
}


static void
a_box_is_a_green_frame_with_a_light_inside(void **state)
{
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);
    vlm_shape_t   s = { .kind = VLM_SHAPE_BOX, .x = 400, .y = 300, .x2 = 100, .y2 = 50 };

    (void) state;

    vlm_draw_shapes(&c, &s, 1);                    /* its corners are given in the wrong order */
    assert_pixel(&c, 100, 200, green);
    assert_pixel(&c, 399, 200, green);
    assert_pixel(&c, 250, 50, green);
    assert_pixel(&c, 250, 299, green);
    assert_in_range(pixel(&c, 250, 150)[1], GREY + 10, GREY + 25);
    assert_in_range(pixel(&c, 250, 150)[0], GREY - 15, GREY - 5);

    assert_int_equal(drawn(&c, box), 1);
    assert_in_range(box[0], 96, 98);
    assert_in_range(box[1], 46, 48);
    assert_in_range(box[2], 401, 403);
    assert_in_range(box[3], 301, 303);
    free(c.rgb);
}


/* The height of the tag over a box from (100, 100), or 0. */
static uint32_t
tag_height(const char *label, size_t n)
{
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);
    vlm_shape_t   s[2];

    memset(s, 0, sizeof(s));
    s[0].kind = s[1].kind = VLM_SHAPE_BOX;
    s[0].x = s[1].x = 100;
    s[0].y = s[1].y = 100;
    s[0].x2 = s[1].x2 = 300;
    s[0].y2 = s[1].y2 = 200;
    strcpy(s[0].label, label);

    vlm_draw_shapes(&c, s, n);
    drawn(&c, box);
    free(c.rgb);

    return 98 - box[1] > 2 ? 98 - box[1] : 0;
}


static void
a_box_has_its_label_or_its_number_on_a_tag(void **state)
{
    (void) state;

    assert_in_range(tag_height("cup", 1), 10, 20);
    assert_in_range(tag_height("\xe6\x9d\xaf", 1), 10, 20);    /* 1: the font lacks the label */
    assert_in_range(tag_height("", 2), 10, 20);
    assert_int_equal(tag_height("", 1), 0);        /* one box needs no number */
}


static void
a_long_label_is_shortened_to_the_picture(void **state)
{
    uint32_t      x, n_green;
    vlm_canvas_t  c = canvas(120, 200);
    vlm_shape_t   s = { .kind = VLM_SHAPE_BOX, .x = 60, .y = 100, .x2 = 110, .y2 = 150 };

    (void) state;

    memset(s.label, 'W', sizeof(s.label) - 1);
    vlm_draw_shapes(&c, &s, 1);

    for (n_green = 0, x = 0; x < 120; x++) {
        n_green += memcmp(pixel(&c, x, 83), green, 3) == 0;
    }

    assert_in_range(n_green, 90, 120);             /* the tag's edge, below its letters */
    free(c.rgb);
}


static void
a_path_goes_from_a_green_disc_to_an_orange_tip(void **state)
{
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);
    vlm_shape_t   s[] = {
        { VLM_SHAPE_PATH, 100, 200, 0, 0, 0, "" }, { VLM_SHAPE_PATH, 300, 200, 0, 0, 0, "" },
        { VLM_SHAPE_PATH, 300, 200, 0, 0, 0, "" }, { VLM_SHAPE_PATH, 500, 200, 0, 0, 0, "" }
    };

    (void) state;

    vlm_draw_shapes(&c, s, 4);
    assert_pixel(&c, 100, 200, green);
    assert_pixel(&c, 93, 200, white);
    assert_pixel(&c, 200, 200, orange);
    assert_pixel(&c, 200, 202, white);
    assert_pixel(&c, 490, 197, orange);            /* the arrow is wider than the line */
    assert_pixel(&c, 497, 200, orange);

    assert_int_equal(drawn(&c, box), 1);
    assert_in_range(box[2], 499, 504);             /* nothing beyond the tip but its edge */
    free(c.rgb);
}


static void
a_path_that_stays_where_it_is_has_no_arrow(void **state)
{
    int           i;
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);
    vlm_shape_t   s[VLM_MAX_SHAPES];

    (void) state;

    for (i = 0; i < VLM_MAX_SHAPES; i++) {
        s[i] = (vlm_shape_t) { VLM_SHAPE_PATH, 300, 200, 0, 0, 0, "" };
    }

    vlm_draw_shapes(&c, s, VLM_MAX_SHAPES);
    assert_pixel(&c, 300, 200, green);
    drawn(&c, box);
    assert_in_range(box[2] - box[0], 12, 17);
    free(c.rgb);
}


static void
marks_grow_with_the_picture(void **state)
{
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(3000, 1000);          /* a unit is 10 pixels */
    vlm_shape_t   s = { .kind = VLM_SHAPE_POINT, .x = 1000, .y = 500 };

    (void) state;

    vlm_draw_shapes(&c, &s, 1);
    assert_int_equal(drawn(&c, box), 1);
    assert_in_range(box[0], 943, 947);
    assert_in_range(box[2], 1052, 1056);
    assert_in_range(box[1], 443, 447);
    assert_in_range(box[3], 552, 556);
    free(c.rgb);
}


static void
shapes_beyond_the_picture_or_without_numbers_draw_nothing(void **state)
{
    size_t        i;
    uint32_t      box[4];
    vlm_canvas_t  c = canvas(600, 400);
    static const vlm_shape_t  s[] = {
        { VLM_SHAPE_POINT, -100, 200, 0, 0, 0, "" }, { VLM_SHAPE_POINT, 300, 1e30f, 0, 0, 0, "" },
        { VLM_SHAPE_POINT, NAN, 200, 0, 0, 0, "" }, { VLM_SHAPE_POINT, 300, INFINITY, 0, 0, 0, "" },
        { VLM_SHAPE_POINT, -INFINITY, NAN, 0, 0, 0, "" },
        { VLM_SHAPE_POINT, -1e30f, -1e30f, 0, 0, 0, "" },
        { VLM_SHAPE_BOX, 700, 100, 800, 200, 0, "a" },
        { VLM_SHAPE_BOX, 100, -200, 200, -100, 0, "a" },
        { VLM_SHAPE_BOX, NAN, 100, 200, 200, 0, "a" }, { VLM_SHAPE_BOX, 0, 0, INFINITY, 9, 0, "a" },
        { VLM_SHAPE_PATH, NAN, 0, 0, 0, 0, "" }, { VLM_SHAPE_PATH, 1e30f, -1e38f, 0, 0, 0, "" },
        { VLM_SHAPE_PATH, 3e38f, -1e38f, 0, 0, 0, "" },
        { VLM_SHAPE_PATH, 0, -INFINITY, 0, 0, 0, "" },
        { VLM_SHAPE_PATH, 5000, -5000, 0, 0, 0, "" }
    };

    (void) state;

    for (i = 0; i < sizeof(s) / sizeof(s[0]); i++) {
        vlm_draw_shapes(&c, &s[i], 1);
    }

    vlm_draw_shapes(&c, s, sizeof(s) / sizeof(s[0]));
    assert_int_equal(drawn(&c, box), 0);
    free(c.rgb);
}


static void
a_shape_that_reaches_beyond_the_picture_is_cut_at_its_edge(void **state)
{
    vlm_canvas_t  c = canvas(600, 400);
    vlm_shape_t   s[] = {
        { VLM_SHAPE_BOX, -1e30f, 100, 1e30f, 300, 0, "wide" },
        { VLM_SHAPE_PATH, 300, -1e6f, 0, 0, 0, "" }, { VLM_SHAPE_PATH, 300, 1e6f, 0, 0, 0, "" },
        { VLM_SHAPE_POINT, 0, 0, 0, 0, 0, "" }
    };

    (void) state;

    vlm_draw_shapes(&c, s, 4);
    assert_pixel(&c, 0, 99, green);
    assert_pixel(&c, 599, 300, green);
    assert_pixel(&c, 300, 0, orange);
    assert_pixel(&c, 300, 399, orange);
    assert_pixel(&c, 6, 3, red);
    assert_pixel(&c, 550, 50, grey);
    free(c.rgb);
}


static void
the_smallest_picture_is_drawn_on(void **state)
{
    vlm_canvas_t  c = canvas(1, 1);
    vlm_shape_t   s[] = {
        { VLM_SHAPE_BOX, 0, 0, 1, 1, 0, "label" }, { VLM_SHAPE_PATH, 0, 0, 0, 0, 0, "" },
        { VLM_SHAPE_PATH, 1, 1, 0, 0, 0, "" }, { VLM_SHAPE_POINT, 3, 0, 0, 0, 0, "" }
    };

    (void) state;

    vlm_draw_shapes(&c, s, 4);
    assert_memory_not_equal(c.rgb, grey, 3);
    free(c.rgb);
}


static void
every_printable_character_has_a_glyph_of_its_own(void **state)
{
    char             a, b, text[1];
    double           width;
    uint32_t         box[4];
    vlm_canvas_t     c[0x7f];
    const vlm_ink_t  black = { 0, 0, 0, 255 };

    (void) state;

    for (a = 0x20; a < 0x7f; a++) {
        text[0] = a;
        c[(int) a] = canvas(80, 80);
        width = vlm_text_width(text, 1, 40);
        assert_true(width > 0 && width < 56);
        vlm_text_draw(&c[(int) a], text, 1, (vlm_spot_t) { 10, 10 }, 40, black);

        if (drawn(&c[(int) a], box)) {
            assert_true(box[0] >= 9 && box[2] <= 10 + width + 1 && box[1] >= 9 && box[3] <= 62);

        } else {
            assert_int_equal(a, ' ');
        }

        for (b = 0x20; b < a; b++) {
            assert_memory_not_equal(c[(int) a].rgb, c[(int) b].rgb, 80 * 80 * 3);
        }
    }

    for (a = 0x20; a < 0x7f; a++) {
        free(c[(int) a].rgb);
    }

    assert_true(vlm_text_width("a\n", 2, 40) < 0);
    assert_true(vlm_text_width("\xc3\xa4", 2, 40) < 0);
    assert_true(vlm_text_width("\x7f", 1, 40) < 0);
    assert_true(vlm_text_width("", 0, 40) == 0);
}



int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_fill_covers_as_much_as_geometry_says),
        cmocka_unit_test(crossing_strokes_show_no_crossing),
        cmocka_unit_test(a_line_ends_where_the_canvas_does_and_nothing_is_bent),
        cmocka_unit_test(a_point_is_a_red_disc_with_a_white_rim_and_a_number),
        cmocka_unit_test(points_are_numbered_in_their_order),
        cmocka_unit_test(a_box_is_a_green_frame_with_a_light_inside),
        cmocka_unit_test(a_box_has_its_label_or_its_number_on_a_tag),
        cmocka_unit_test(a_long_label_is_shortened_to_the_picture),
        cmocka_unit_test(a_path_goes_from_a_green_disc_to_an_orange_tip),
        cmocka_unit_test(a_path_that_stays_where_it_is_has_no_arrow),
        cmocka_unit_test(marks_grow_with_the_picture),
        cmocka_unit_test(shapes_beyond_the_picture_or_without_numbers_draw_nothing),
        cmocka_unit_test(a_shape_that_reaches_beyond_the_picture_is_cut_at_its_edge),
        cmocka_unit_test(the_smallest_picture_is_drawn_on),
        cmocka_unit_test(every_printable_character_has_a_glyph_of_its_own)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
