/*
 * Requests that were in flight when their worker died, by the hashes of their bodies.  A request
 * with two deaths, and no answer in between, is not run a third time within the hour.
 *
 * The record lies in shared memory: one thread of one process writes it, any thread may ask.  Times
 * are ms of one clock, which processes may have read some ms ago.
 */

#ifndef VLM_SUSPECTS_H
#define VLM_SUSPECTS_H

#include <stddef.h>
#include <stdint.h>

#define VLM_SUSPECTS         64        /* that are recorded */
#define VLM_SUSPECTS_FLIGHT  64        /* requests in flight */
#define VLM_SUSPECTS_DEATHS  2
#define VLM_SUSPECTS_TIME    (3600 * 1000)     /* ms */

typedef struct {
    volatile uint64_t  hash;           /* 0: a free place */
    volatile uint64_t  when;           /* ms, of the last death */
    volatile uint64_t  deaths;
} vlm_suspect_t;

/*
 * Requests in flight, by their hashes, which are not 0: that is a free place.  Any thread of any
 * process: takes a place and returns its number, from 1; 0: none is free, and the request goes on
 * unrecorded.
 */
size_t vlm_suspects_begin(volatile uint64_t flight[VLM_SUSPECTS_FLIGHT], uint64_t hash);

/* The request of that place, from 1, has ended, and its worker lives. */
void vlm_suspects_end(volatile uint64_t flight[VLM_SUSPECTS_FLIGHT], size_t place);

/* Their worker has died: counts that against each of them, and frees their places. */
void vlm_suspects_death(vlm_suspect_t s[VLM_SUSPECTS],
                        volatile uint64_t flight[VLM_SUSPECTS_FLIGHT], uint64_t now);

/* A worker has died with this request.  Several with one hash at a time are one death; without a
   free place the entry that is the oldest is replaced. */
void vlm_suspects_add(vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash, uint64_t now);

/* Is this a request that is not to be run? */
int vlm_suspects_known(const vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash, uint64_t now);

/* The request was answered. */
void vlm_suspects_clear(vlm_suspect_t s[VLM_SUSPECTS], uint64_t hash);

#endif
