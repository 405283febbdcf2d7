/* The order of a picture's cells: window by window. */

#include "family/qwen2_5_vl/family.h"
#include "image/patch.h"


static uint32_t
lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}


void
vlm_qwen2_5_vl_order(const vlm_vision_config_t *c, vlm_layout_t *l)
{
    uint32_t  wy, wx, cy, cx, rows, columns;

    for (wy = 0; wy < l->rows; wy += rows) {
        rows = lesser(c->window, l->rows - wy);

        for (wx = 0; wx < l->columns; wx += columns) {
            columns = lesser(c->window, l->columns - wx);
            vlm_layout_segment(l);

            for (cy = 0; cy < rows; cy++) {
                for (cx = 0; cx < columns; cx++) {
                    vlm_layout_cell(l, wy + cy, wx + cx);
                }
            }
        }
    }
}
