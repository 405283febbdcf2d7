/* Patches of a resized picture, in the order of the family: see picture.h. */

#ifndef VLM_PATCH_H
#define VLM_PATCH_H

#include "image/picture.h"
#include "vlm.h"

/* A picture while a vlm_order_fn goes through its merged cells: once to count, once to place. */
struct vlm_layout_s {
    uint32_t        rows, columns;     /* of merged cells */
    uint32_t        merge;
    vlm_picture_t  *p;
    int             placing;
    uint32_t        n;                 /* patches placed so far */
};

void vlm_layout_segment(vlm_layout_t *l);          /* the cells from here on are another segment */
void vlm_layout_cell(vlm_layout_t *l, uint32_t cy, uint32_t cx);   /* the next */

/*
 * Computes all of a picture that follows from its size alone: grid, counts, row, column, border and
 * cell.  Sides are multiples of patch * merge.  -1: VLM_EMEMORY; p owns the arrays allocated so
 * far.
 */
int vlm_patch_layout(vlm_picture_t *p, uint32_t width, uint32_t height,
                     const vlm_vision_config_t *vc, vlm_err_t *err);

/*
 * Fills one of p->slices in p->pixels from rgb, u8 [height][width][3], after vlm_patch_layout().
 * The first one allocates the memory of all.
 */
int vlm_patch_cut(vlm_picture_t *p, const uint8_t *rgb, uint32_t slice,
                  const vlm_vision_config_t *vc, vlm_err_t *err);

#endif
