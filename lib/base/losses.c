
/*
 * The back-off after losses of a model, and the time that a bad device is left alone.  The
 * functions decide by numbers alone; http/life/device.c calls them.
 */


#include "base/losses.h"


static unsigned vlm_losses_since(const vlm_losses_t *l,
    uint64_t now, uint64_t since);


void
vlm_losses_add(vlm_losses_t *l, uint64_t now)
{
    l->when[l->total++ % VLM_LOSSES] = now;
}


unsigned
vlm_losses_recent(const vlm_losses_t *l, uint64_t now)
{
    return vlm_losses_since(l, now, 0);
}


static unsigned
vlm_losses_since(const vlm_losses_t *l, uint64_t now,
    uint64_t since)
{
    unsigned  i, n, known;

    known = l->total < VLM_LOSSES ? (unsigned) l->total
                                           : VLM_LOSSES;

    for (i = 0, n = 0; i < known; i++) {
        n += now - l->when[i] < VLM_LOSSES_TIME
             && l->when[i] >= since;
    }

    return n;
}


/* the first loss is taken for an accident and causes no wait; nor does a load long after the last
   loss */

uint64_t
vlm_losses_pause(const vlm_losses_t *l, uint64_t now)
{
    unsigned  i, n;
    uint64_t  ms, gone;

    n = vlm_losses_recent(l, now);

    if (n < 2) {
        return 0;
    }

    ms = VLM_LOSSES_PAUSE;

    for (i = 2; i < n && ms < VLM_LOSSES_LONG; i++) {
        ms *= 2;
    }

    if (ms > VLM_LOSSES_LONG) {
        ms = VLM_LOSSES_LONG;
    }

    gone = l->when[(l->total - 1) % VLM_LOSSES];
    gone = now > gone ? now - gone : 0;

    return gone < ms ? ms - gone : 0;
}


uint64_t
vlm_losses_fallback(vlm_losses_t *l, uint64_t now,
    uint64_t first)
{
    if (now < l->until) {
        return l->until - now;
    }

    /* losses before the last time on the CPU have been counted already */

    if (vlm_losses_since(l, now, l->until)
        < VLM_LOSSES_MANY)
    {
        return 0;
    }

    if (l->away == 0 || now - l->until >= VLM_LOSSES_GOOD) {
        l->away = first;

    } else if (l->away <= VLM_LOSSES_FAR / 2) {
        l->away *= 2;

    } else if (l->away < VLM_LOSSES_FAR) {
        l->away = VLM_LOSSES_FAR;
    }

    l->until = now + l->away;

    return l->away;
}
