/* Counts the deaths of workers against the requests in flight: see suspects.h. */

#include "base/suspects.h"


/* The index of a hash; VLM_SUSPECTS: there is none. */
static size_t
find(const vlm_suspect_t *s, uint64_t hash)
{
    size_t  i;

    for (i = 0; i < VLM_SUSPECTS && s[i].hash != hash; i++) { /* void */ }

    return i;
}


/* The place to use: a free one, or that of the oldest entry. */
static size_t
free_place(const vlm_suspect_t *s)
{
    size_t  i, at = 0;

    for (i = 1; i < VLM_SUSPECTS && s[at].hash != 0; i++) {
        if (s[i].hash == 0 || s[i].when < s[at].when) {
            at = i;
        }
    }

    return at;
}


void
vlm_suspects_add(vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash, uint64_t now)
{
    size_t  i = find(s, hash);

    if (i < VLM_SUSPECTS && s[i].when == now) {
        return;
    }

    if (i == VLM_SUSPECTS) {
        i = free_place(s);
        s[i].hash = hash;
        s[i].deaths = 0;
    }

    s[i].deaths++;
    s[i].when = now;
}


int
vlm_suspects_known(const vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash, uint64_t now)
{
    const size_t  i = find(s, hash);

    /* the time of the process that counted the death may be a moment ahead */

    return i < VLM_SUSPECTS && s[i].deaths >= VLM_SUSPECTS_DEATHS
           && now < s[i].when + VLM_SUSPECTS_TIME;
}


void
vlm_suspects_clear(vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash)
{
    const size_t  i = find(s, hash);

    if (i < VLM_SUSPECTS) {
        s[i].hash = 0;
    }
}


size_t
vlm_suspects_begin(volatile uint64_t flight[VLM_SUSPECTS_FLIGHT], uint64_t hash)
{
    size_t    i;
    uint64_t  none;

    for (i = 0; i < VLM_SUSPECTS_FLIGHT; i++) {
        none = 0;

        if (__atomic_compare_exchange_n(&flight[i], &none, hash, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST))
        {
            return i + 1;
        }
    }

    return 0;
}


void
vlm_suspects_end(volatile uint64_t flight[VLM_SUSPECTS_FLIGHT], size_t place)
{
    flight[place - 1] = 0;
}


void
vlm_suspects_death(vlm_suspect_t s[VLM_SUSPECTS], volatile uint64_t flight[VLM_SUSPECTS_FLIGHT],
                   uint64_t now)
{
    size_t    i;
    uint64_t  hash;

    for (i = 0; i < VLM_SUSPECTS_FLIGHT; i++) {
        hash = flight[i];
        flight[i] = 0;

        if (hash != 0) {
            vlm_suspects_add(s, hash, now);
        }
    }
}
