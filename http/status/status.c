
/*
 * vlm_status: the zone's counters for Prometheus, or as JSON with
 * "?format=json" or an Accept header that asks for it.  Any worker answers.
 *
 * Both forms come from one walk over the metrics: a metric has one value, or
 * one for each name of a label, or is a histogram.
 *
 * Only clients on this machine are answered, unless the location says
 * from=any.
 */


#include "status.h"


#define NGX_HTTP_VLM_STATUS_SIZE  (64 * 1024)
#define NGX_HTTP_VLM_STATUS_LINE  512


typedef struct {
    vlm_json_out_t                w;
    ngx_http_vlm_engine_t        *engine;
    ngx_http_vlm_shm_t            shm;
    ngx_http_vlm_state_e          state;
    ngx_uint_t                    json;
    const char                   *name;        /* of the metric at hand */
} ngx_http_vlm_status_t;


static ngx_uint_t ngx_http_vlm_status_allowed(ngx_http_request_t *r);
static ngx_uint_t ngx_http_vlm_status_json(ngx_http_request_t *r);
static ngx_int_t ngx_http_vlm_status_send(ngx_http_request_t *r,
    ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_all(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_info(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_state(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_requests(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_memory(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_times(ngx_http_vlm_status_t *st);
static void ngx_http_vlm_status_begin(ngx_http_vlm_status_t *st,
    const char *name, const char *type, const char *help);
static void ngx_http_vlm_status_one(ngx_http_vlm_status_t *st,
    const char *name, const char *type, const char *help, ngx_uint_t value);
static void ngx_http_vlm_status_seconds(ngx_http_vlm_status_t *st,
    const char *name, const char *help, ngx_msec_t ms);
static void ngx_http_vlm_status_label(ngx_http_vlm_status_t *st,
    const char *label, const char *which, ngx_uint_t value);
static void ngx_http_vlm_status_histogram(ngx_http_vlm_status_t *st,
    const char *name, const char *help, ngx_http_vlm_times_t *times);
static void ngx_http_vlm_status_line(ngx_http_vlm_status_t *st,
    const char *fmt, ...);


ngx_int_t
ngx_http_vlm_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                 rc;
    ngx_http_vlm_status_t     st;
    ngx_http_vlm_loc_conf_t  *lcf;

    if (!(r->method & (NGX_HTTP_GET|NGX_HTTP_HEAD))) {
        return NGX_HTTP_NOT_ALLOWED;
    }

    lcf = ngx_http_get_module_loc_conf(r, ngx_http_vlm_module);

    if (!lcf->status_any && !ngx_http_vlm_status_allowed(r)) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, 0,
                      "vlm_status \"%V\" answers this machine only: "
                      "see from=any", &lcf->status->name);
        return NGX_HTTP_FORBIDDEN;
    }

    rc = ngx_http_discard_request_body(r);
    if (rc != NGX_OK) {
        return rc;
    }

    ngx_memzero(&st, sizeof(ngx_http_vlm_status_t));

    st.engine = lcf->status;
    st.json = ngx_http_vlm_status_json(r);

    ngx_http_vlm_zone_texts(st.engine, &st.shm);
    st.state = ngx_http_vlm_health_state(st.engine, &st.shm);

    vlm_json_init(&st.w, NGX_HTTP_VLM_STATUS_SIZE);

    if (st.json) {
        vlm_json_open(&st.w, '{');
    }

    ngx_http_vlm_status_all(&st);

    if (st.json) {

        /* closes the last metric's object, and then the whole */

        vlm_json_shut(&st.w, '}');
        vlm_json_shut(&st.w, '}');
        vlm_json_put_raw(&st.w, "\n", 1);
    }

    rc = ngx_http_vlm_status_send(r, &st);

    vlm_json_release(&st.w);

    return rc;
}


static ngx_uint_t
ngx_http_vlm_status_allowed(ngx_http_request_t *r)
{
    struct sockaddr      *sa;
    struct sockaddr_in   *sin;
#if (NGX_HAVE_INET6)
    struct in6_addr      *a;
#endif

    sa = r->connection->sockaddr;

    switch (sa->sa_family) {

    case AF_INET:
        sin = (struct sockaddr_in *) sa;
        return ntohl(sin->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;

#if (NGX_HAVE_INET6)
    case AF_INET6:
        a = &((struct sockaddr_in6 *) sa)->sin6_addr;
        return IN6_IS_ADDR_LOOPBACK(a)
               || (IN6_IS_ADDR_V4MAPPED(a)
                   && a->s6_addr[12] == IN_LOOPBACKNET);
#endif

    case AF_UNIX:
        return 1;
    }

    return 0;
}


static ngx_uint_t
ngx_http_vlm_status_json(ngx_http_request_t *r)
{
    ngx_str_t         value;
    ngx_table_elt_t  *accept;

    if (ngx_http_arg(r, (u_char *) "format", 6, &value) == NGX_OK) {
        return value.len == 4 && ngx_strncmp(value.data, "json", 4) == 0;
    }

    accept = ngx_http_vlm_header(r, "accept");

    return accept
           && ngx_strlcasestrn(accept->value.data,
                               accept->value.data + accept->value.len,
                               (u_char *) "application/json",
                               sizeof("application/json") - 2)
              != NULL;
}


static ngx_int_t
ngx_http_vlm_status_send(ngx_http_request_t *r, ngx_http_vlm_status_t *st)
{
    ngx_http_complex_value_t  cv;

    static ngx_str_t  types[] = {
        ngx_string("text/plain; version=0.0.4; charset=utf-8"),
        ngx_string("application/json")
    };

    if (st->w.failed) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));

    cv.value.len = st->w.len;
    cv.value.data = ngx_pnalloc(r->pool, st->w.len);

    if (cv.value.data == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    ngx_memcpy(cv.value.data, st->w.data, st->w.len);

    return ngx_http_send_response(r, NGX_HTTP_OK, &types[st->json], &cv);
}


static void
ngx_http_vlm_status_all(ngx_http_vlm_status_t *st)
{
    ngx_http_vlm_status_state(st);
    ngx_http_vlm_status_requests(st);
    ngx_http_vlm_status_memory(st);
    ngx_http_vlm_status_times(st);
}


/* several labels of one value, and as JSON members of one object */

static void
ngx_http_vlm_status_info(ngx_http_vlm_status_t *st)
{
    ngx_uint_t              i;
    const char             *weights;
    ngx_http_vlm_engine_t  *eng;

    eng = st->engine;
    weights = vlm_weights_name(eng->conf.vlm.weights);

    struct {
        const char  *name;
        const char  *text;
        size_t       len;
    } labels[] = {
        { "engine", (char *) eng->name.data, eng->name.len },
        { "device", st->shm.device, ngx_strlen(st->shm.device) },
        { "model", (char *) eng->conf.directory.data, eng->conf.directory.len },
        { "weights", weights, ngx_strlen(weights) },
        { "version", VLM_VERSION, sizeof(VLM_VERSION) - 1 }
    };

    ngx_http_vlm_status_begin(st, "vlm_info", "gauge",
                              "The engine, its model, and what it runs on");

    if (!st->json) {
        vlm_json_put_raw(&st->w, "vlm_info", 8);
    }

    for (i = 0; i < sizeof(labels) / sizeof(labels[0]); i++) {

        if (st->json) {
            vlm_json_put_key(&st->w, labels[i].name);

        } else {
            ngx_http_vlm_status_line(st, "%c%s=", i ? ',' : '{',
                                     labels[i].name);
        }

        /* between quotes, with the same escapes in both */

        vlm_json_put_text(&st->w, labels[i].text, labels[i].len);
    }

    if (!st->json) {
        ngx_http_vlm_status_line(st, "} 1\n");
    }
}


static void
ngx_http_vlm_status_state(ngx_http_vlm_status_t *st)
{
    ngx_uint_t            i, breaker;
    ngx_http_vlm_shm_t   *shm;

    static const ngx_http_vlm_state_e  states[] = {
        NGX_HTTP_VLM_BUSY, NGX_HTTP_VLM_FAILED, NGX_HTTP_VLM_LOADING,
        NGX_HTTP_VLM_READY, NGX_HTTP_VLM_STALLED
    };

    shm = &st->shm;

    ngx_http_vlm_status_info(st);

    ngx_http_vlm_status_begin(st, "vlm_state", "gauge",
                              "1 for the present state of the engine");

    for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        ngx_http_vlm_status_label(st, "state",
                                  ngx_http_vlm_health_name(states[i]),
                                  st->state == states[i]);
    }

    ngx_http_vlm_status_one(st, "vlm_up", "gauge",
                            "1 if a worker has the engine",
                            shm->pid && st->state != NGX_HTTP_VLM_FAILED
                            && st->state != NGX_HTTP_VLM_STALLED);
    ngx_http_vlm_status_one(st, "vlm_ready", "gauge",
                            "1 if questions are answered",
                            st->state == NGX_HTTP_VLM_READY
                            || st->state == NGX_HTTP_VLM_BUSY);
    ngx_http_vlm_status_one(st, "vlm_load_progress_percent", "gauge",
                            "Percentage of the load that is done",
                            shm->progress);
    ngx_http_vlm_status_seconds(st, "vlm_model_load_seconds",
                                "Duration of the last load",
                                shm->metrics.load);
    ngx_http_vlm_status_seconds(st, "vlm_loop_heartbeat_age_seconds",
                                "Time since the event loop's last heartbeat",
                                ngx_current_msec - shm->heartbeat);
    ngx_http_vlm_status_seconds(st, "vlm_engine_heartbeat_age_seconds",
                                "Time since the engine's last progress",
                                ngx_current_msec - shm->ticked);
    ngx_http_vlm_status_seconds(st, "vlm_service_seconds",
                                "Running mean of a request's time in its slot",
                                shm->metrics.service);
    ngx_http_vlm_status_one(st, "vlm_engine_restarts_total", "counter",
                            "Deaths of workers with the engine",
                            shm->metrics.restarts);
    ngx_http_vlm_status_one(st, "vlm_device_losses_total", "counter",
                            "Deaths of workers because of their GPU",
                            shm->losses.total);
    ngx_http_vlm_status_seconds(st, "vlm_device_away_seconds",
                                "Time until a lost GPU is tried again",
                                shm->losses.until > ngx_current_msec
                                ? shm->losses.until - ngx_current_msec : 0);

    ngx_http_vlm_status_begin(st, "vlm_breaker", "gauge",
                              "1 for the state of the circuit breaker");
    breaker = ngx_http_vlm_breaker_state(st->engine);

    for (i = 0; i <= NGX_HTTP_VLM_PROBING; i++) {
        ngx_http_vlm_status_label(st, "state", ngx_http_vlm_breaker_names[i],
                                  breaker == i);
    }

    ngx_http_vlm_status_one(st, "vlm_breaker_failures", "gauge",
                            "Failures of the engine in a row",
                            shm->breaker.failures);
    ngx_http_vlm_status_one(st, "vlm_breaker_opened_total", "counter",
                            "Times that the circuit breaker opened",
                            shm->breaker.opened);
}


static void
ngx_http_vlm_status_requests(ngx_http_vlm_status_t *st)
{
    ngx_uint_t               i;
    ngx_http_vlm_shm_t      *shm;
    ngx_http_vlm_metrics_t  *m;

    shm = &st->shm;
    m = &shm->metrics;

    ngx_http_vlm_status_one(st, "vlm_queue_depth", "gauge",
                            "Requests in the queue", shm->waiting);
    ngx_http_vlm_status_one(st, "vlm_queue_size", "gauge",
                            "Limit of requests in the queue",
                            st->engine->conf.queue_size);
    ngx_http_vlm_status_one(st, "vlm_requests_running", "gauge",
                            "Requests in slots", shm->running);
    ngx_http_vlm_status_one(st, "vlm_slots", "gauge", "Slots of the engine",
                            st->engine->conf.vlm.slots);

    ngx_http_vlm_status_begin(st, "vlm_kv_tokens", "gauge",
                              "Tokens in the slots' caches, and the capacity");
    ngx_http_vlm_status_label(st, "part", "used", shm->kv_rows);
    ngx_http_vlm_status_label(st, "part", "size",
                              (ngx_uint_t) st->engine->conf.vlm.slots
                              * st->engine->conf.vlm.context);

    ngx_http_vlm_status_one(st, "vlm_sessions", "gauge",
                            "Sessions in the store", shm->sessions);

    ngx_http_vlm_status_begin(st, "vlm_requests_answered_total", "counter",
                              "Answers by the reason of their end");
    ngx_http_vlm_status_label(st, "finish", "stop",
                              m->answered[VLM_FINISH_STOP]);
    ngx_http_vlm_status_label(st, "finish", "length",
                              m->answered[VLM_FINISH_LENGTH]);
    ngx_http_vlm_status_label(st, "finish", "unasked",
                              m->answered[VLM_FINISH_NONE]);

    ngx_http_vlm_status_begin(st, "vlm_requests_rejected_total", "counter",
                              "Refused requests by the reason");

    for (i = 1; i < NGX_HTTP_VLM_REFUSALS; i++) {
        ngx_http_vlm_status_label(st, "reason", ngx_http_vlm_refusal_names[i],
                                  m->refused[i]);
    }

    ngx_http_vlm_status_begin(st, "vlm_requests_cancelled_total", "counter",
                              "Requests whose client left, by their stage");

    for (i = 0; i < NGX_HTTP_VLM_STAGES; i++) {
        ngx_http_vlm_status_label(st, "stage", ngx_http_vlm_stage_names[i],
                                  m->cancelled[i]);
    }

    ngx_http_vlm_status_one(st, "vlm_prompt_tokens_total", "counter",
                            "Tokens of prompts, including pictures",
                            m->prompt_tokens);
    ngx_http_vlm_status_one(st, "vlm_prompt_tokens_cached_total", "counter",
                            "Tokens of prompts that were cached",
                            m->cached_tokens);
    ngx_http_vlm_status_one(st, "vlm_prompt_images_total", "counter",
                            "Pictures of prompts", m->prompt_pictures);
    ngx_http_vlm_status_one(st, "vlm_prompt_images_cached_total", "counter",
                            "Pictures of prompts whose features were cached",
                            m->cached_pictures);
    ngx_http_vlm_status_one(st, "vlm_generation_tokens_total", "counter",
                            "Tokens of answers", m->completion_tokens);
    ngx_http_vlm_status_one(st, "vlm_images_total", "counter",
                            "Pictures that were encoded", m->pictures);
    ngx_http_vlm_status_one(st, "vlm_image_tokens_total", "counter",
                            "Tokens of pictures", m->picture_tokens);
}


static void
ngx_http_vlm_status_memory(ngx_http_vlm_status_t *st)
{
    vlm_plan_t  *plan;

    plan = &st->shm.plan;

    ngx_http_vlm_status_begin(st, "vlm_memory_bytes", "gauge",
                              "Planned memory by purpose; limit 0: no limit");
    ngx_http_vlm_status_label(st, "pool", "weights", plan->weights);
    ngx_http_vlm_status_label(st, "pool", "vision", plan->vision);
    ngx_http_vlm_status_label(st, "pool", "kv", plan->kv);
    ngx_http_vlm_status_label(st, "pool", "workspace", plan->workspace);
    ngx_http_vlm_status_label(st, "pool", "device", plan->device);
    ngx_http_vlm_status_label(st, "pool", "total", plan->total);
    ngx_http_vlm_status_label(st, "pool", "limit", st->engine->conf.vlm.memory);

    ngx_http_vlm_status_one(st, "vlm_device_overhead_bytes", "gauge",
                            "Measured memory of the device's own",
                            st->shm.taken);

    ngx_http_vlm_status_begin(st, "vlm_http_memory_bytes", "gauge",
                              "Memory of requests outside the plan");
    ngx_http_vlm_status_label(st, "part", "used", st->shm.http_used);
    ngx_http_vlm_status_label(st, "part", "peak", st->shm.http_peak);
    ngx_http_vlm_status_label(st, "part", "limit",
                              st->engine->conf.http_memory);
    ngx_http_vlm_status_one(st, "vlm_http_memory_waits_total", "counter",
                            "Threads that had to wait for this memory",
                            st->shm.http_waits);
}


static void
ngx_http_vlm_status_times(ngx_http_vlm_status_t *st)
{
    ngx_http_vlm_times_t  *t;

    t = st->shm.metrics.times;

    ngx_http_vlm_status_histogram(st, "vlm_queue_seconds",
                                  "Time from arrival to a slot",
                                  &t[NGX_HTTP_VLM_TIME_QUEUE]);
    ngx_http_vlm_status_histogram(st, "vlm_time_to_first_token_seconds",
                                  "Time from arrival to the first token",
                                  &t[NGX_HTTP_VLM_TIME_FIRST]);
    ngx_http_vlm_status_histogram(st, "vlm_inter_token_seconds",
                                  "Time between two tokens of an answer",
                                  &t[NGX_HTTP_VLM_TIME_TOKEN]);
    ngx_http_vlm_status_histogram(st, "vlm_request_seconds",
                                  "Time from arrival to the end of an answer",
                                  &t[NGX_HTTP_VLM_TIME_REQUEST]);
    ngx_http_vlm_status_histogram(st, "vlm_receive_seconds",
                                  "Time to receive a body",
                                  &t[NGX_HTTP_VLM_TIME_RECEIVE]);
    ngx_http_vlm_status_histogram(st, "vlm_image_decode_seconds",
                                  "Time to decode a request's pictures",
                                  &t[NGX_HTTP_VLM_TIME_IMAGE_DECODE]);
    ngx_http_vlm_status_histogram(st, "vlm_image_resize_seconds",
                                  "Time to resize a request's pictures",
                                  &t[NGX_HTTP_VLM_TIME_IMAGE_RESIZE]);
    ngx_http_vlm_status_histogram(st, "vlm_prepare_seconds",
                                  "Time to decode pictures and make a prompt",
                                  &t[NGX_HTTP_VLM_TIME_PREPARE]);
    ngx_http_vlm_status_histogram(st, "vlm_vision_seconds",
                                  "Time to encode pictures in the engine",
                                  &t[NGX_HTTP_VLM_TIME_VISION]);
    ngx_http_vlm_status_histogram(st, "vlm_prefill_seconds",
                                  "Time to read a prompt",
                                  &t[NGX_HTTP_VLM_TIME_PREFILL]);
    ngx_http_vlm_status_histogram(st, "vlm_first_step_seconds",
                                  "Time to sample the first token",
                                  &t[NGX_HTTP_VLM_TIME_FIRST_STEP]);
    ngx_http_vlm_status_histogram(st, "vlm_decode_seconds",
                                  "Time to decode an answer",
                                  &t[NGX_HTTP_VLM_TIME_DECODE]);
}


/* a metric with labels lasts until the next one begins */

static void
ngx_http_vlm_status_begin(ngx_http_vlm_status_t *st, const char *name,
    const char *type, const char *help)
{
    if (!st->json) {
        ngx_http_vlm_status_line(st, "# HELP %s %s\n# TYPE %s %s\n",
                                 name, help, name, type);

    } else {
        if (st->name) {
            vlm_json_shut(&st->w, '}');
        }

        vlm_json_add_open(&st->w, name, '{');
    }

    st->name = name;
}


static void
ngx_http_vlm_status_one(ngx_http_vlm_status_t *st, const char *name,
    const char *type, const char *help, ngx_uint_t value)
{
    if (!st->json) {
        ngx_http_vlm_status_begin(st, name, type, help);
        ngx_http_vlm_status_line(st, "%s %ui\n", name, value);
        return;
    }

    if (st->name) {
        vlm_json_shut(&st->w, '}');
        st->name = NULL;
    }

    vlm_json_add_int(&st->w, name, value);
}


static void
ngx_http_vlm_status_seconds(ngx_http_vlm_status_t *st, const char *name,
    const char *help, ngx_msec_t ms)
{
    /* another worker's clock may be a moment ahead of ours */

    if ((ngx_msec_int_t) ms < 0) {
        ms = 0;
    }

    if (!st->json) {
        ngx_http_vlm_status_begin(st, name, "gauge", help);
        ngx_http_vlm_status_line(st, "%s %M.%03M\n", name, ms / 1000,
                                 ms % 1000);
        return;
    }

    if (st->name) {
        vlm_json_shut(&st->w, '}');
        st->name = NULL;
    }

    vlm_json_add_double(&st->w, name, ms / 1000.0);
}


static void
ngx_http_vlm_status_label(ngx_http_vlm_status_t *st, const char *label,
    const char *which, ngx_uint_t value)
{
    if (!st->json) {
        ngx_http_vlm_status_line(st, "%s{%s=\"%s\"} %ui\n", st->name, label,
                                 which, value);
        return;
    }

    vlm_json_add_int(&st->w, which, value);
}


static void
ngx_http_vlm_status_histogram(ngx_http_vlm_status_t *st, const char *name,
    const char *help, ngx_http_vlm_times_t *times)
{
    ngx_uint_t  i, n;

    ngx_http_vlm_status_begin(st, name, "histogram", help);

    n = 0;

    for (i = 0; i < NGX_HTTP_VLM_BUCKETS; i++) {
        n += times->n[i];

        if (st->json) {
            continue;
        }

        if (i < NGX_HTTP_VLM_BUCKETS - 1) {
            ngx_http_vlm_status_line(st, "%s_bucket{le=\"%M.%03M\"} %ui\n",
                                     name, ngx_http_vlm_bounds[i] / 1000,
                                     ngx_http_vlm_bounds[i] % 1000, n);
        } else {
            ngx_http_vlm_status_line(st, "%s_bucket{le=\"+Inf\"} %ui\n",
                                     name, n);
        }
    }

    if (st->json) {
        vlm_json_add_int(&st->w, "count", n);
        vlm_json_add_double(&st->w, "sum", times->ms / 1000.0);
        return;
    }

    ngx_http_vlm_status_line(st, "%s_sum %uA.%03uA\n", name, times->ms / 1000,
                             times->ms % 1000);
    ngx_http_vlm_status_line(st, "%s_count %ui\n", name, n);
}


static void
ngx_http_vlm_status_line(ngx_http_vlm_status_t *st, const char *fmt, ...)
{
    u_char    line[NGX_HTTP_VLM_STATUS_LINE], *last;
    va_list   args;

    va_start(args, fmt);
    last = ngx_vslprintf(line, line + sizeof(line), fmt, args);
    va_end(args);

    vlm_json_put_raw(&st->w, (char *) line, last - line);
}
