/*
 * A circuit breaker.  After a number of failures in a row requests are refused for a pause; then
 * one of them is let through as a probe, whose success closes the breaker and whose failure begins
 * the pause again.
 *
 * The record lies in shared memory: any thread of any process may read it, one process writes it at
 * a time.  Times are ms of one clock, which processes may have read some ms ago.
 */

#ifndef VLM_BREAKER_H
#define VLM_BREAKER_H

#include <stddef.h>
#include <stdint.h>

typedef enum {
    VLM_BREAKER_CLOSED = 0,
    VLM_BREAKER_OPEN,                  /* every request is refused */
    VLM_BREAKER_PROBING                /* one request may pass */
} vlm_breaker_state_t;

typedef struct {
    volatile uint64_t  failures;       /* in a row */
    volatile uint64_t  when;           /* of the last one */
    volatile uint64_t  probe;          /* one is in flight; set by the caller */
    volatile uint64_t  opened;         /* times so far */
    volatile uint64_t  told;           /* 1: that it is open */
} vlm_breaker_t;

/* limit: failures that open it; 0: none do */
vlm_breaker_state_t vlm_breaker_state(const vlm_breaker_t *b, uint64_t limit, uint64_t pause,
                                      uint64_t now);

/* 1: with this failure it is open, which no call has said yet; else 0 */
int vlm_breaker_failed(vlm_breaker_t *b, uint64_t limit, uint64_t now);

/* 1: this success has closed it; else 0 */
int vlm_breaker_worked(vlm_breaker_t *b, uint64_t limit);

/* Why a request is refused, as a sentence; returns the seconds until the pause ends, 0: a probe is
   in flight. */
uint64_t vlm_breaker_reason(const vlm_breaker_t *b, uint64_t pause, uint64_t now, char *text,
                            size_t bytes);

#endif
