/* Patches, ids, borders and cells against transformers' processor and window index. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "image/fixture.h"
#include "image/patch.h"


static void
check_sum(const void *data, size_t bytes, const char *sum, const char *what, uint32_t width,
          uint32_t height)
{
    if (strcmp(fixture_sha(data, bytes), sum) != 0) {
        fail_msg("%s of %ux%u differ", what, width, height);
    }
}


static void
patches_and_ids_equal_transformers_for_any_grid_patch_merge_and_window(void **state)
{
    int                  n;
    FILE                *f;
    char                 sum[5][65];
    uint8_t             *rgb;
    uint32_t             w, h, seed;
    vlm_err_t            err;
    vlm_picture_t       *p;
    vlm_vision_config_t  vc;

    (void) state;

    f = fopen(FIXTURES "/patch.txt", "r");
    assert_non_null(f);
    vc = fixture_vision;

    for (n = 0; fscanf(f, "%u %u %u %u %u %u %64s %64s %64s %64s %64s", &w, &h, &vc.patch,
                       &vc.merge, &vc.window, &seed, sum[0], sum[1], sum[2], sum[3], sum[4]) == 11;
         n++)
    {
        memset(&err, 0, sizeof(err));
        rgb = fixture_noise(w, h, seed);
        p = calloc(1, sizeof(*p));
        assert_int_equal(vlm_patch_layout(p, w, h, &vc, &err), 0);
        p->slices = 1;
        assert_int_equal(vlm_patch_cut(p, rgb, 0, &vc, &err), 0);

        assert_int_equal(p->grid_w, w / vc.patch);
        assert_int_equal(p->grid_h, h / vc.patch);
        check_sum(p->pixels, (size_t) w * h * 3, sum[0], "pixels", w, h);
        check_sum(p->row, p->n_patches * 4, sum[1], "rows", w, h);
        check_sum(p->column, p->n_patches * 4, sum[2], "columns", w, h);
        check_sum(p->border, (p->n_segments + 1) * 4, sum[3], "borders", w, h);
        check_sum(p->cell, p->n_cells * 4, sum[4], "cells", w, h);

        vlm_picture_free(p);
        free(rgb);
    }

    fclose(f);
    assert_true(n >= 15);
}


/* 5 x 3 cells, windows of 4: by hand. */
static void
edge_windows_are_smaller_and_cells_find_their_place(void **state)
{
    uint32_t        i;
    vlm_err_t       err;
    vlm_picture_t  *p;

    static const uint32_t  border[3] = { 0, 48, 60 };
    static const uint32_t  cell[15] = { 0, 1, 2, 3, 12, 4, 5, 6, 7, 13, 8, 9, 10, 11, 14 };

    (void) state;

    memset(&err, 0, sizeof(err));
    p = calloc(1, sizeof(*p));
    assert_int_equal(vlm_patch_layout(p, 140, 84, &fixture_vision, &err), 0);

    assert_int_equal(p->n_patches, 60);
    assert_int_equal(p->n_cells, 15);
    assert_int_equal(p->n_segments, 2);
    assert_memory_equal(p->border, border, sizeof(border));
    assert_memory_equal(p->cell, cell, sizeof(cell));

    for (i = 48; i < 60; i++) {                    /* the second window is the last column */
        assert_int_equal(p->column[i], 8 + i % 2);
        assert_int_equal(p->row[i], (i - 48) / 2);
    }

    vlm_picture_free(p);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(patches_and_ids_equal_transformers_for_any_grid_patch_merge_and_window),
        cmocka_unit_test(edge_windows_are_smaller_and_cells_find_their_place)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
