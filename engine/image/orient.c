/*
 * Turns a picture upright.  Each orientation is a walk over the stored pixels, with its own start
 * and its own distances to the neighbours on the right and below.
 */

#include "image/orient.h"

#include <stddef.h>
#include <stdlib.h>

#define TILE  32                       /* pixels on a side: both pictures' lines stay in cache */


int
vlm_orient_turns(uint32_t orientation)
{
    return orientation >= 5 && orientation <= 8;
}


/* out [height][width][3] from pixels that lie right and down bytes apart, from in on. */
static void
walk(uint8_t *out, uint32_t width, uint32_t height, const uint8_t *in, ptrdiff_t right,
     ptrdiff_t down)
{
    uint32_t        x, y, x0, y0, x1, y1;
    uint8_t        *o;
    const uint8_t  *i;

    for (y0 = 0; y0 < height; y0 += TILE) {
        y1 = height - y0 < TILE ? height : y0 + TILE;

        for (x0 = 0; x0 < width; x0 += TILE) {
            x1 = width - x0 < TILE ? width : x0 + TILE;

            for (y = y0; y < y1; y++) {
                o = out + ((size_t) y * width + x0) * 3;
                i = in + (ptrdiff_t) y * down + (ptrdiff_t) x0 * right;

                for (x = x0; x < x1; x++, o += 3, i += right) {
                    o[0] = i[0];
                    o[1] = i[1];
                    o[2] = i[2];
                }
            }
        }
    }
}


uint8_t *
vlm_orient(uint8_t *rgb, uint32_t *width, uint32_t *height, uint32_t orientation, vlm_err_t *err)
{
    uint8_t   *out;
    uint32_t   swap;
    ptrdiff_t  first, row, last_x, last_y;

    if (orientation < 2 || orientation > 8) {
        return rgb;
    }

    out = malloc((size_t) *width * *height * 3);

    if (out == NULL) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory to turn a picture of %ux%u pixels", *width,
                        *height);
        free(rgb);
        return NULL;
    }

    row = (ptrdiff_t) *width * 3;
    last_x = row - 3;                              /* from a row's first pixel to its last */
    last_y = row * ((ptrdiff_t) *height - 1);      /* from the first row to the last */

    /* The corner that becomes the upper left one. */
    first = (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8
             ? last_x : 0)
          + (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7
             ? last_y : 0);

    if (vlm_orient_turns(orientation)) {
        swap = *width;
        *width = *height;
        *height = swap;

        walk(out, *width, *height, rgb + first, orientation == 5 || orientation == 8 ? row : -row,
             orientation == 5 || orientation == 6 ? 3 : -3);

    } else {
        walk(out, *width, *height, rgb + first, orientation == 4 ? 3 : -3,
             orientation == 2 ? row : -row);
    }

    free(rgb);

    return out;
}
