/* Guessed tokens: see the header. */

#include "run/guess.h"

#define PATIENCE  8                    /* wrong guesses, less right ones, before a rest */
#define REST      32                   /* steps */


/* The latest i < n at which `length` tokens end that are those before and `last`; or n. */
static uint32_t
find_end(const uint32_t *token, uint32_t n, uint32_t last, uint32_t length)
{
    uint32_t  i, k;

    for (i = n; i-- > length - 1; ) {
        for (k = 1; token[i] == last && k < length && token[i - k] == token[n - k]; k++) {
            /* void */
        }

        if (token[i] == last && k == length) {
            return i;
        }
    }

    return n;
}


uint32_t
vlm_guess_tokens(const uint32_t *token, uint32_t n, uint32_t last, uint32_t most,
                 uint32_t guess[VLM_GUESSES])
{
    uint32_t  end, k;

    if (n < 3 || most == 0) {
        return 0;
    }

    end = find_end(token, n, last, 3);
    end = end < n ? end : find_end(token, n, last, 2);

    for (k = 0; end < n && k < most && k < VLM_GUESSES && end + 1 + k <= n; k++) {
        guess[k] = end + 1 + k < n ? token[end + 1 + k] : last;
    }

    return k;
}


int
vlm_guess_pays(vlm_guess_t *g)
{
    if (g->rest > 0) {
        g->rest--;
    }

    return g->rest == 0;
}


void
vlm_guess_count(vlm_guess_t *g, uint32_t n, uint32_t right)
{
    g->wrong += (int32_t) (n - right) - (int32_t) right;
    g->wrong = g->wrong < -PATIENCE ? -PATIENCE : g->wrong;

    if (g->wrong > PATIENCE) {
        g->wrong = 0;
        g->rest = REST;
    }
}
