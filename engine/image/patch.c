/*
 * The place of each patch of a picture, and its pixels.  lay_cell() alone decides the order; all
 * other code reads row[] and column[].
 */

#include "image/patch.h"

#include <stdlib.h>


static uint32_t
blocks(uint32_t n, uint32_t size)
{
    return (n + size - 1) / size;
}


/* The merge x merge patches of the cell at cy, cx become patches n and following. */
static void
lay_cell(vlm_picture_t *p, uint32_t cy, uint32_t cx, uint32_t merge, uint32_t n)
{
    uint32_t  y, x;

    p->cell[cy * (p->grid_w / merge) + cx] = n / (merge * merge);

    for (y = 0; y < merge; y++) {
        for (x = 0; x < merge; x++, n++) {
            p->row[n] = cy * merge + y;
            p->column[n] = cx * merge + x;
        }
    }
}


static void
lay_windows(vlm_picture_t *p, const vlm_vision_config_t *vc)
{
    uint32_t  wy, wx, cy, cx, cells_h, cells_w, n, i;

    cells_h = p->grid_h / vc->merge;
    cells_w = p->grid_w / vc->merge;
    n = 0;
    i = 0;

    for (wy = 0; wy < cells_h; wy += vc->window) {
        for (wx = 0; wx < cells_w; wx += vc->window) {
            p->border[i++] = n;

            for (cy = wy; cy < cells_h && cy - wy < vc->window; cy++) {
                for (cx = wx; cx < cells_w && cx - wx < vc->window; cx++) {
                    lay_cell(p, cy, cx, vc->merge, n);
                    n += vc->merge * vc->merge;
                }
            }
        }
    }

    p->border[i] = n;
}


int
vlm_patch_layout(vlm_picture_t *p, uint32_t width, uint32_t height, const vlm_vision_config_t *vc,
                 vlm_err_t *err)
{
    p->grid_h = height / vc->patch;
    p->grid_w = width / vc->patch;
    p->n_patches = p->grid_h * p->grid_w;
    p->n_cells = p->n_patches / (vc->merge * vc->merge);
    p->n_windows = blocks(p->grid_h / vc->merge, vc->window)
                   * blocks(p->grid_w / vc->merge, vc->window);

    p->row = malloc(p->n_patches * sizeof(*p->row));
    p->column = malloc(p->n_patches * sizeof(*p->column));
    p->border = malloc(((size_t) p->n_windows + 1) * sizeof(*p->border));
    p->cell = malloc(p->n_cells * sizeof(*p->cell));

    if (p->row == NULL || p->column == NULL || p->border == NULL || p->cell == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the %u patches of a picture",
                        p->n_patches);
    }

    lay_windows(p, vc);

    return 0;
}


/* One patch, u8 [3][patch][patch], from its upper left pixel in rows of stride bytes. */
static void
cut_one(uint8_t *out, const uint8_t *rgb, size_t stride, uint32_t patch)
{
    size_t    plane;
    uint32_t  y, x;

    plane = (size_t) patch * patch;

    for (y = 0; y < patch; y++, rgb += stride, out += patch) {
        for (x = 0; x < patch; x++) {
            out[x] = rgb[3 * x];
            out[x + plane] = rgb[3 * x + 1];
            out[x + 2 * plane] = rgb[3 * x + 2];
        }
    }
}


int
vlm_patch_cut(vlm_picture_t *p, const uint8_t *rgb, const vlm_vision_config_t *vc, vlm_err_t *err)
{
    size_t    bytes, stride;
    uint32_t  n;

    bytes = (size_t) 3 * vc->patch * vc->patch;
    stride = (size_t) p->grid_w * vc->patch * 3;

    p->pixels = malloc(bytes * p->n_patches);

    if (p->pixels == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the %u patches of a picture",
                        p->n_patches);
    }

    for (n = 0; n < p->n_patches; n++) {
        cut_one(p->pixels + n * bytes,
                rgb + p->row[n] * vc->patch * stride + (size_t) p->column[n] * vc->patch * 3,
                stride, vc->patch);
    }

    return 0;
}
