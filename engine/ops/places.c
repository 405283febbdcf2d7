/* Learned positions of patches: see the header. */

#include "ops/places.h"


/*
 * Where patch i of n lies among `side` places: between *low, which is returned with its weight, and
 * the one after it.
 */
static float
place_between(uint32_t i, uint32_t n, uint32_t side, uint32_t *low)
{
    uint64_t  at;

    if (n < 2) {
        *low = 0;
        return 1;
    }

    at = (uint64_t) i * (side - 1);
    *low = (uint32_t) (at / (n - 1));

    return 1 - (float) (at % (n - 1)) / (float) (n - 1);
}


void
vlm_place_patches(void *job, uint32_t begin, uint32_t end, uint32_t thread)
{
    float                 up, left, weight[4];
    uint32_t              p, i, y, x, row, column, side;
    const float          *from[4];
    vlm_places_job_t     *j = job;
    const vlm_patches_t  *a = j->patches;

    (void) thread;

    side = j->places->side;

    for (p = begin; p < end; p++) {
        up = place_between(a->row[p], a->rows, side, &row);
        left = place_between(a->column[p], a->columns, side, &column);

        for (i = 0; i < 4; i++) {
            y = row + i / 2 < side ? row + i / 2 : side - 1;
            x = column + i % 2 < side ? column + i % 2 : side - 1;
            from[i] = j->places->at + ((size_t) y * side + x) * j->E;
            weight[i] = (i / 2 == 0 ? up : 1 - up) * (i % 2 == 0 ? left : 1 - left);
        }

        j->k->add_four(from, weight, j->E, j->x + (size_t) p * j->E);
    }
}
