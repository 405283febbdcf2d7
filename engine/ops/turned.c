/* Norms of a turned stream whose gain is that of the stream before it was turned. */

#include "format/turn.h"
#include "ops/kernels.h"


void
vlm_norm_turned(const vlm_kernels_t *k, const vlm_norm_t *norm, const vlm_turn_t *turn,
                const float *x, float *y, float *work)
{
    uint32_t    i;
    vlm_norm_t  bare = *norm;

    bare.gain = bare.shift = NULL;
    k->norm(&bare, x, turn->n, y);
    vlm_turn_back(turn, y, work);

    for (i = 0; i < turn->n; i++) {
        y[i] = norm->shift == NULL ? y[i] * norm->gain[i] : y[i] * norm->gain[i] + norm->shift[i];
    }

    vlm_turn_row(turn, y, work);
}
