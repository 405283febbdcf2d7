/* A circuit breaker: see breaker.h. */

#include "base/breaker.h"

#include <inttypes.h>
#include <stdio.h>


static int
is_closed(const vlm_breaker_t *b, uint64_t limit)
{
    return limit == 0 || b->failures < limit;
}


/* 0 where now is before the last failure: processes read one clock at different moments. */
static uint64_t
since(const vlm_breaker_t *b, uint64_t now)
{
    const uint64_t  when = b->when;

    return now > when ? now - when : 0;
}


vlm_breaker_state_t
vlm_breaker_state(const vlm_breaker_t *b, uint64_t limit, uint64_t pause, uint64_t now)
{
    if (is_closed(b, limit)) {
        return VLM_BREAKER_CLOSED;
    }

    return since(b, now) < pause ? VLM_BREAKER_OPEN : VLM_BREAKER_PROBING;
}


int
vlm_breaker_failed(vlm_breaker_t *b, uint64_t limit, uint64_t now)
{
    uint64_t  failures;

    b->when = now;
    failures = __atomic_add_fetch(&b->failures, 1, __ATOMIC_SEQ_CST);

    if (limit == 0 || failures < limit) {
        b->told = 0;
        return 0;
    }

    /* A reload may have lowered the limit below the failures that there were. */

    if (__atomic_exchange_n(&b->told, 1, __ATOMIC_SEQ_CST)) {
        return 0;
    }

    (void) __atomic_add_fetch(&b->opened, 1, __ATOMIC_SEQ_CST);

    return 1;
}


int
vlm_breaker_worked(vlm_breaker_t *b, uint64_t limit)
{
    const int  was_closed = is_closed(b, limit);

    b->failures = 0;
    b->told = 0;

    return !was_closed;
}


uint64_t
vlm_breaker_reason(const vlm_breaker_t *b, uint64_t pause, uint64_t now, char *text, size_t bytes)
{
    const uint64_t  ms = since(b, now), failures = b->failures;
    uint64_t        seconds;

    if (ms >= pause) {
        (void) snprintf(text, bytes, "The engine has failed %" PRIu64 " times in a row, one "
                        "request tries it now", failures);
        return 0;
    }

    seconds = (pause - ms + 999) / 1000;

    (void) snprintf(text, bytes, "The engine has failed %" PRIu64 " times in a row, it is tried "
                    "again in %" PRIu64 " seconds", failures, seconds);

    return seconds;
}
