/*
 * Functions that the measuring programs share: a clock, medians, and one line of JSON a figure.
 *
 * A figure has a limit in the same unit, measured in the same run, and the share of that limit that
 * was reached; both are 0 for a figure without a limit.  bench/run.py collects the lines.
 */

#ifndef VLM_BENCH_H
#define VLM_BENCH_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/threads.h"

#define BENCH_ROUNDS  32               /* the maximum for one figure */

typedef struct {                       /* the values of one figure in all rounds */
    uint32_t  n;
    double    value[BENCH_ROUNDS], limit[BENCH_ROUNDS];
} bench_rounds_t;


/* limits.c: one thread uses CLOCK_PROCESS_CPUTIME_ID, so other load on its core does not count. */
extern clockid_t  bench_clock;

static inline double
bench_now(void)
{
    struct timespec  t;

    clock_gettime(bench_clock, &t);

    return (double) t.tv_sec + (double) t.tv_nsec / 1e9;
}


static inline int
bench_by_value(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


/* Sorts the values in place. */
static inline double
bench_median(double *v, uint32_t n)
{
    qsort(v, n, sizeof(*v), bench_by_value);

    return n == 0 ? 0 : (v[(n - 1) / 2] + v[n / 2]) / 2;
}


static inline void
bench_add(bench_rounds_t *r, double value, double limit)
{
    if (r->n < BENCH_ROUNDS) {
        r->value[r->n] = value;
        r->limit[r->n++] = limit;
    }
}


/* The share is the median of the rounds' shares; the limit of a time is the shortest possible. */
static inline void
bench_print(const char *name, const char *unit, bench_rounds_t *r, int is_time)
{
    double    share[BENCH_ROUNDS], value, limit;
    uint32_t  i;

    for (i = 0; i < r->n; i++) {
        share[i] = is_time ? r->limit[i] / r->value[i]
                   : r->limit[i] > 0 ? r->value[i] / r->limit[i] : 0;
    }

    value = bench_median(r->value, r->n);
    limit = bench_median(r->limit, r->n);

    printf("{\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\", \"limit\": %.6g, "
           "\"share\": %.4f}\n", name, value, unit, limit, bench_median(share, r->n));
    (void) fflush(stdout);
}


/*
 * limits.c: the limits of this machine with as many threads as the engine uses: bytes read in a
 * second, int8 operations in a second of the unit that this set of kernels uses (a product and its
 * addition are two), and f32 operations in a second.
 */
typedef struct bench_limits_s  bench_limits_t;

bench_limits_t *bench_limits_open(const char *set, uint32_t threads, uint64_t bytes);
void bench_limits_close(bench_limits_t *l);
double bench_read_rate(bench_limits_t *l);
double bench_int8_rate(bench_limits_t *l);
double bench_f32_rate(bench_limits_t *l);

#endif
