/* Writes metrics: see metrics.h. */

#include "api/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define LINE  512                      /* bytes */


static const uint64_t  bounds[VLM_BUCKETS - 1] = {     /* ms, of buckets */
    1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000, 30000, 60000, 120000
};


static void __attribute__((format(printf, 2, 3)))
put_line(vlm_metrics_t *m, const char *fmt, ...)
{
    int      n;
    char     line[LINE];
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);

    if (n < 0 || n >= LINE) {
        m->w.failed = 1;
    } else {
        vlm_json_put_raw(&m->w, line, (size_t) n);
    }
}


static int
ends_with(const char *name, const char *unit)
{
    const size_t  len = strlen(name), end = strlen(unit);

    return len > end && strcmp(name + len - end, unit) == 0;
}


void
vlm_metrics_open(vlm_metrics_t *m, int json, size_t limit)
{
    memset(m, 0, sizeof(*m));
    m->json = json;

    vlm_json_init(&m->w, limit);

    if (json) {
        vlm_json_open(&m->w, '{');
    }
}


/* The object of a metric with a label lasts until the next metric begins. */
static void
shut_label(vlm_metrics_t *m)
{
    if (m->json && m->label != NULL) {
        vlm_json_shut(&m->w, '}');
    }

    m->label = NULL;
}


void
vlm_metrics_shut(vlm_metrics_t *m)
{
    shut_label(m);

    if (m->json) {
        vlm_json_shut(&m->w, '}');
        vlm_json_put_raw(&m->w, "\n", 1);
    }
}


void
vlm_metrics_begin(vlm_metrics_t *m, const char *name, const char *type, const char *help,
                  const char *label)
{
    shut_label(m);

    if (!m->json) {
        put_line(m, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);

    } else if (label != NULL) {
        vlm_json_add_open(&m->w, name, '{');
    }

    m->name = name;
    m->label = label;
}


void
vlm_metrics_value(vlm_metrics_t *m, const char *name, uint64_t value)
{
    const int  seconds = ends_with(name, "_seconds");

    /* Another process's clock may be a moment ahead of ours. */

    if (seconds && (int64_t) value < 0) {
        value = 0;
    }

    if (m->json && seconds) {
        vlm_json_add_double(&m->w, name, (double) value / 1000);

    } else if (m->json) {
        vlm_json_add_int(&m->w, name, (int64_t) value);

    } else if (seconds) {
        put_line(m, "%s %" PRIu64 ".%03" PRIu64 "\n", name, value / 1000, value % 1000);

    } else if (m->label != NULL) {
        put_line(m, "%s{%s=\"%s\"} %" PRIu64 "\n", m->name, m->label, name, value);

    } else {
        put_line(m, "%s %" PRIu64 "\n", name, value);
    }
}


void
vlm_metrics_put(vlm_metrics_t *m, const vlm_metric_t *metric, size_t n)
{
    for ( ; n != 0; n--, metric++) {
        if (metric->help != NULL) {
            vlm_metrics_begin(m, metric->name, ends_with(metric->name, "_total") ? "counter"
                                                                                 : "gauge",
                              metric->help, metric->label);
        }

        if (metric->label == NULL) {
            vlm_metrics_value(m, metric->name, metric->value);
        }
    }
}


void
vlm_metrics_info(vlm_metrics_t *m, const char *name, const char *help,
                 const vlm_metric_label_t *labels, size_t n)
{
    size_t  i;

    vlm_metrics_begin(m, name, "gauge", help, labels[0].name);

    if (!m->json) {
        put_line(m, "%s", name);
    }

    for (i = 0; i < n; i++) {
        if (m->json) {
            vlm_json_put_key(&m->w, labels[i].name);
        } else {
            put_line(m, "%c%s=", i == 0 ? '{' : ',', labels[i].name);
        }

        /* Between quotes, with the same escapes in both. */

        vlm_json_put_text(&m->w, labels[i].text, labels[i].bytes);
    }

    if (!m->json) {
        put_line(m, "} 1\n");
    }
}


void
vlm_histogram_add(vlm_histogram_t *h, uint64_t ms)
{
    size_t  i;

    for (i = 0; i < VLM_BUCKETS - 1 && ms > bounds[i]; i++) { /* void */ }

    (void) __atomic_add_fetch(&h->n[i], 1, __ATOMIC_SEQ_CST);
    (void) __atomic_add_fetch(&h->ms, ms, __ATOMIC_SEQ_CST);
}


void
vlm_metrics_histogram(vlm_metrics_t *m, const char *name, const char *help,
                      const vlm_histogram_t *h)
{
    size_t          i;
    uint64_t        sum = 0;
    const uint64_t  ms = h->ms;

    vlm_metrics_begin(m, name, "histogram", help, "le");

    for (i = 0; i < VLM_BUCKETS; i++) {
        sum += h->n[i];

        if (m->json) {
            continue;
        }

        if (i + 1 < VLM_BUCKETS) {
            put_line(m, "%s_bucket{le=\"%" PRIu64 ".%03" PRIu64 "\"} %" PRIu64 "\n", name,
                     bounds[i] / 1000, bounds[i] % 1000, sum);
        } else {
            put_line(m, "%s_bucket{le=\"+Inf\"} %" PRIu64 "\n", name, sum);
        }
    }

    if (m->json) {
        vlm_json_add_int(&m->w, "count", (int64_t) sum);
        vlm_json_add_double(&m->w, "sum", (double) ms / 1000);
        return;
    }

    put_line(m, "%s_sum %" PRIu64 ".%03" PRIu64 "\n%s_count %" PRIu64 "\n", name, ms / 1000,
             ms % 1000, name, sum);
}
