/*
 * The rates at which pairs of a head turn, a position.  Formulas are those of transformers'
 * modeling_rope_utils.py, in f32 where it has f32.
 */

#include <math.h>

#include "model/model.h"

#define TURN  (2 * M_PI)


/* Slow pairs turn by factor less, fast ones as ever, those between by a share of both. */
static float
llama3(const vlm_rope_scaling_t *s, float rate)
{
    float  length = (float) TURN / rate, original = (float) s->original, share;

    if (length < original / s->fast) {
        return rate;
    }

    if (length > original / s->slow) {
        return rate / s->factor;
    }

    share = (original / length - s->slow) / (s->fast - s->slow);

    return (1 - share) * rate / s->factor + share * rate;
}


/* The pair that turns so many times within the positions of the first training. */
static double
pair_of(const vlm_text_config_t *t, double turns)
{
    return t->head_dim * log(t->scaling.original / (turns * TURN))
           / (2 * log((double) t->rope_theta));
}


/* Between two pairs the share of the slower rate grows from 0 to 1. */
static float
yarn(const vlm_text_config_t *t, uint32_t pair, float rate)
{
    float                      share;
    double                     low, high;
    const vlm_rope_scaling_t  *s = &t->scaling;

    low = pair_of(t, (double) s->fast);
    high = pair_of(t, (double) s->slow);

    if (s->whole) {
        low = floor(low);
        high = ceil(high);
    }

    low = low > 0 ? low : 0;
    high = high < t->head_dim - 1 ? high : t->head_dim - 1;
    high = high == low ? high + 0.001 : high;

    share = (float) ((pair - low) / (high - low));
    share = share < 0 ? 0 : share > 1 ? 1 : share;

    return rate / s->factor * share + rate * (1 - share);
}


void
vlm_rope_rates(const vlm_text_config_t *t, float *rate)
{
    uint32_t                   i;
    const vlm_rope_scaling_t  *s = &t->scaling;

    for (i = 0; i < t->head_dim / 2; i++) {
        rate[i] = 1 / powf(t->rope_theta, (float) (2 * i) / (float) t->head_dim);
        rate[i] = s->kind == VLM_SCALING_LINEAR ? rate[i] / s->factor
                  : s->kind == VLM_SCALING_LLAMA3 ? llama3(s, rate[i])
                  : s->kind == VLM_SCALING_YARN ? yarn(t, i, rate[i])
                  : s->kind == VLM_SCALING_TABLE ? rate[i] / s->divisor[i] : rate[i];
    }
}


float
vlm_rope_size(const vlm_text_config_t *t)
{
    return t->scaling.size > 0 ? t->scaling.size * t->scaling.size : 1;
}
