/* Metrics as Prometheus reads them, and as JSON. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "api/metrics.h"

static vlm_metrics_t  m;


/* One metric of each kind. */
static void
put_all(int json)
{
    vlm_histogram_t                  h = { 0 };
    static const vlm_metric_label_t  labels[] = { { "engine", "a\"b", 3 }, { "device", "cpu", 3 } };

    static const vlm_metric_t  metrics[] = {
        { "vlm_state", "state", 0, "The state" },
        { "busy", NULL, 0, NULL },
        { "ready", NULL, 1, NULL },
        { "vlm_up", NULL, 1, "Whether it runs" },
        { "vlm_restarts_total", NULL, 7, "Deaths" },
        { "vlm_load_seconds", NULL, 12034, "The load" },
        { "vlm_age_seconds", NULL, (uint64_t) -3, "A clock that is ahead" }
    };

    vlm_metrics_open(&m, json, 65536);
    vlm_metrics_info(&m, "vlm_info", "The engine", labels, 2);
    vlm_metrics_put(&m, metrics, sizeof(metrics) / sizeof(metrics[0]));
    vlm_metrics_begin(&m, "vlm_refused_total", "counter", "Refused", "reason");
    vlm_metrics_value(&m, "input", 3);
    vlm_metrics_value(&m, "limit", 0);
    vlm_histogram_add(&h, 5);
    vlm_histogram_add(&h, 6);
    vlm_histogram_add(&h, 120000);
    vlm_histogram_add(&h, 120001);
    vlm_metrics_histogram(&m, "vlm_queue_seconds", "In the queue", &h);
    vlm_metrics_shut(&m);

    assert_false(m.w.failed);
    vlm_json_put_raw(&m.w, "", 1);
}


static void
prometheus_has_help_type_and_values(void **state)
{
    (void) state;

    put_all(0);

    assert_string_equal(m.w.data,
                        "# HELP vlm_info The engine\n# TYPE vlm_info gauge\n"
                        "vlm_info{engine=\"a\\\"b\",device=\"cpu\"} 1\n"
                        "# HELP vlm_state The state\n# TYPE vlm_state gauge\n"
                        "vlm_state{state=\"busy\"} 0\nvlm_state{state=\"ready\"} 1\n"
                        "# HELP vlm_up Whether it runs\n# TYPE vlm_up gauge\nvlm_up 1\n"
                        "# HELP vlm_restarts_total Deaths\n# TYPE vlm_restarts_total counter\n"
                        "vlm_restarts_total 7\n"
                        "# HELP vlm_load_seconds The load\n# TYPE vlm_load_seconds gauge\n"
                        "vlm_load_seconds 12.034\n"
                        "# HELP vlm_age_seconds A clock that is ahead\n"
                        "# TYPE vlm_age_seconds gauge\nvlm_age_seconds 0.000\n"
                        "# HELP vlm_refused_total Refused\n# TYPE vlm_refused_total counter\n"
                        "vlm_refused_total{reason=\"input\"} 3\n"
                        "vlm_refused_total{reason=\"limit\"} 0\n"
                        "# HELP vlm_queue_seconds In the queue\n"
                        "# TYPE vlm_queue_seconds histogram\n"
                        "vlm_queue_seconds_bucket{le=\"0.001\"} 0\n"
                        "vlm_queue_seconds_bucket{le=\"0.002\"} 0\n"
                        "vlm_queue_seconds_bucket{le=\"0.005\"} 1\n"
                        "vlm_queue_seconds_bucket{le=\"0.010\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"0.025\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"0.050\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"0.100\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"0.250\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"0.500\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"1.000\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"2.500\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"5.000\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"10.000\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"30.000\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"60.000\"} 2\n"
                        "vlm_queue_seconds_bucket{le=\"120.000\"} 3\n"
                        "vlm_queue_seconds_bucket{le=\"+Inf\"} 4\n"
                        "vlm_queue_seconds_sum 240.012\nvlm_queue_seconds_count 4\n");

    vlm_json_release(&m.w);
}


static void
json_has_an_object_for_each_label(void **state)
{
    (void) state;

    put_all(1);

    assert_string_equal(m.w.data,
                        "{\"vlm_info\":{\"engine\":\"a\\\"b\",\"device\":\"cpu\"},"
                        "\"vlm_state\":{\"busy\":0,\"ready\":1},\"vlm_up\":1,"
                        "\"vlm_restarts_total\":7,\"vlm_load_seconds\":12.034,"
                        "\"vlm_age_seconds\":0.0,\"vlm_refused_total\":{\"input\":3,\"limit\":0},"
                        "\"vlm_queue_seconds\":{\"count\":4,\"sum\":240.012}}\n");

    vlm_json_release(&m.w);
}


/* A line is never cut: a metric would have another name. */
static void
a_line_that_is_too_long_fails(void **state)
{
    char  help[600];

    (void) state;

    memset(help, 'x', sizeof(help));
    help[sizeof(help) - 1] = '\0';

    vlm_metrics_open(&m, 0, 65536);
    vlm_metrics_begin(&m, "vlm_up", "gauge", help, NULL);
    assert_true(m.w.failed);
    vlm_json_release(&m.w);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(prometheus_has_help_type_and_values),
        cmocka_unit_test(json_has_an_object_for_each_label),
        cmocka_unit_test(a_line_that_is_too_long_fails)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
