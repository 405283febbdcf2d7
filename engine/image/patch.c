/*
 * The place of each patch of a picture, and its pixels.  A family decides the order of the cells,
 * vlm_layout_cell() that of a cell's patches; all other code reads row[] and column[].
 */

#include "image/patch.h"

#include <stdlib.h>
#include <string.h>


void
vlm_layout_segment(vlm_layout_t *l)
{
    if (l->placing) {
        l->p->border[l->p->n_segments] = l->n;
    }

    l->p->n_segments++;
}


void
vlm_layout_cell(vlm_layout_t *l, uint32_t cy, uint32_t cx)
{
    uint32_t        y, x;
    vlm_picture_t  *p = l->p;

    if (!l->placing) {
        return;
    }

    p->cell[cy * l->columns + cx] = l->n / (l->merge * l->merge);

    for (y = 0; y < l->merge; y++) {
        for (x = 0; x < l->merge; x++, l->n++) {
            p->row[l->n] = cy * l->merge + y;
            p->column[l->n] = cx * l->merge + x;
        }
    }
}


int
vlm_patch_layout(vlm_picture_t *p, uint32_t width, uint32_t height, const vlm_vision_config_t *vc,
                 vlm_err_t *err)
{
    uint32_t      i, n;
    vlm_layout_t  l;

    p->grid_h = height / vc->patch;
    p->grid_w = width / vc->patch;
    p->n_patches = p->grid_h * p->grid_w;
    p->n_cells = p->n_patches / (vc->merge * vc->merge);
    p->n_segments = p->longest = 0;

    memset(&l, 0, sizeof(l));
    l.p = p;
    l.merge = vc->merge;
    l.rows = p->grid_h / vc->merge;
    l.columns = p->grid_w / vc->merge;
    vc->order(vc, &l);                 /* counts the segments */

    p->row = malloc(p->n_patches * sizeof(*p->row));
    p->column = malloc(p->n_patches * sizeof(*p->column));
    p->border = malloc(((size_t) p->n_segments + 1) * sizeof(*p->border));
    p->cell = malloc(p->n_cells * sizeof(*p->cell));

    if (p->row == NULL || p->column == NULL || p->border == NULL || p->cell == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the %u patches of a picture",
                        p->n_patches);
    }

    p->n_segments = 0;
    l.placing = 1;
    vc->order(vc, &l);
    p->border[p->n_segments] = l.n;

    for (i = 0; i < p->n_segments; i++) {
        n = p->border[i + 1] - p->border[i];
        p->longest = n > p->longest ? n : p->longest;
    }

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
vlm_patch_cut(vlm_picture_t *p, const uint8_t *rgb, uint32_t slice, const vlm_vision_config_t *vc,
              vlm_err_t *err)
{
    size_t    bytes, stride;
    uint32_t  n;

    bytes = (size_t) 3 * vc->patch * vc->patch;
    stride = (size_t) p->grid_w * vc->patch * 3;

    if (p->pixels == NULL) {
        p->pixels = malloc(bytes * p->slices * p->n_patches);
    }

    if (p->pixels == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the %u patches of a picture",
                        p->n_patches);
    }

    for (n = 0; n < p->n_patches; n++) {
        cut_one(p->pixels + ((size_t) n * p->slices + slice) * bytes,
                rgb + p->row[n] * vc->patch * stride + (size_t) p->column[n] * vc->patch * 3,
                stride, vc->patch);
    }

    return 0;
}
