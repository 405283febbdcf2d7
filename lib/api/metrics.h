/*
 * Metrics, written for Prometheus, or as one JSON object.
 *
 * A metric has one value, or one for each name of a label, or is a histogram.  The end of its name
 * tells what it is, as Prometheus wants it: _total is a counter, and values of _seconds are given
 * in ms.
 */

#ifndef VLM_METRICS_H
#define VLM_METRICS_H

#include "base/json_out.h"

/* A metric; or, without help, a value of the last metric's label. */
typedef struct {
    const char  *name;                 /* its end is its unit */
    const char  *label;                /* of the values behind it, or NULL */
    uint64_t     value;
    const char  *help;
} vlm_metric_t;

typedef struct {
    const char  *name;
    const char  *text;                 /* [bytes] */
    size_t       bytes;
} vlm_metric_label_t;

#define VLM_BUCKETS  17                /* from 1 ms to two minutes; the last has no bound */

/* Times; may lie in shared memory. */
typedef struct {
    volatile uint64_t  n[VLM_BUCKETS];
    volatile uint64_t  ms;             /* the sum */
} vlm_histogram_t;

typedef struct {
    vlm_json_out_t  w;                 /* vlm_json_release() frees it */
    int             json;
    const char     *name;              /* of the metric at hand */
    const char     *label;             /* its label, or NULL */
} vlm_metrics_t;

/* limit: bytes of all.  Between these two stand the metrics. */
void vlm_metrics_open(vlm_metrics_t *m, int json, size_t limit);
void vlm_metrics_shut(vlm_metrics_t *m);

/* n metrics, and values of labels. */
void vlm_metrics_put(vlm_metrics_t *m, const vlm_metric_t *metrics, size_t n);

/* A metric of this type, whose values follow: one for each name of its label. */
void vlm_metrics_begin(vlm_metrics_t *m, const char *name, const char *type, const char *help,
                       const char *label);
void vlm_metrics_value(vlm_metrics_t *m, const char *name, uint64_t value);

/* A metric that is always 1, for its n labels; in JSON they are members of an object. */
void vlm_metrics_info(vlm_metrics_t *m, const char *name, const char *help,
                      const vlm_metric_label_t *labels, size_t n);

/* Counts a time in ms; any thread of any process. */
void vlm_histogram_add(vlm_histogram_t *h, uint64_t ms);

/* Such times as a metric, whose buckets, count and sum are in seconds; in JSON without buckets. */
void vlm_metrics_histogram(vlm_metrics_t *m, const char *name, const char *help,
                           const vlm_histogram_t *h);

#endif
