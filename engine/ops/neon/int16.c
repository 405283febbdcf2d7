/* Attention in int16 with vectors of 4; ../int16.h has the algorithm. */

#include "ops/neon/vec.h"
#include "ops/plain/int16.h"

#define VLM_ISA(name)  name##_neon
#define COLUMN         2
#define FEW_STRIP      4

#define SIXTEEN(x)     vreinterpretq_s16_s32(x)


/* sum and the products of a's and b's pairs. */
static inline __attribute__((always_inline)) int_t
int_dot(int_t sum, int_t a, int_t b)
{
    int_t  low, high;

    low = vmull_s16(vget_low_s16(SIXTEEN(a)), vget_low_s16(SIXTEEN(b)));
    high = vmull_high_s16(SIXTEEN(a), SIXTEEN(b));

    return int_add(sum, vpaddq_s32(low, high));
}


/*
 * A tile of 4 x 2 vectors.  The two products of a pair are summed apart, which takes the two
 * instructions of the products alone, and are added at the end.
 */
static inline void
dot_two(const int32_t *x, const pair_t *const y[4], size_t step, uint32_t n, int32_t *sum)
{
    int        m, i;
    int_t      low[4][2], high[4][2];
    size_t     at;
    uint32_t   d;
    int16x8_t  of[2], one;

    for (m = 0; m < 4; m++) {
        low[m][0] = low[m][1] = high[m][0] = high[m][1] = int_zero();
    }

    for (d = 0, at = 0; d < n; d++, x += VLM_INT16_ROWS, at += step) {
        of[0] = SIXTEEN(int_load(x));
        of[1] = SIXTEEN(int_load(x + WIDTH));

        for (m = 0; m < 4; m++) {
            one = SIXTEEN(int_set(y[m][at]));

            for (i = 0; i < 2; i++) {
                low[m][i] = vmlal_s16(low[m][i], vget_low_s16(of[i]), vget_low_s16(one));
                high[m][i] = vmlal_high_s16(high[m][i], of[i], one);
            }
        }
    }

    for (m = 0; m < 4; m++) {
        for (i = 0; i < 2; i++) {
            int_store(sum + (m * 2 + i) * WIDTH, vpaddq_s32(low[m][i], high[m][i]));
        }
    }
}

#define DOT_TILE(x, y, step, n, sum)  dot_two(x, y, step, n, sum)


#include "ops/int16.h"
