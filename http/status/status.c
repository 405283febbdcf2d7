
/*
 * vlm_status: the zone's counters for Prometheus, or as JSON with
 * "?format=json" or an Accept header that asks for it.  Any worker answers.
 *
 * Only clients on this machine are answered, unless the location says
 * from=any.
 */


#include "status.h"


#define NGX_HTTP_VLM_STATUS_SIZE  (64 * 1024)


typedef struct {
    vlm_metrics_t                 m;
    ngx_http_vlm_engine_t        *engine;
    ngx_http_vlm_shm_t            shm;
    ngx_http_vlm_state_e          state;
} ngx_http_vlm_status_t;


static ngx_uint_t
ngx_http_vlm_status_allowed(ngx_http_request_t *r)
{
    ngx_cidr_t   local[3];
    ngx_array_t  cidrs;

    static ngx_str_t  ipv4 = ngx_string("127.0.0.0/8");
    static ngx_str_t  ipv6 = ngx_string("::1");

    ngx_memzero(local, sizeof(local));

    local[0].family = AF_UNIX;
    (void) ngx_ptocidr(&ipv4, &local[1]);
    (void) ngx_ptocidr(&ipv6, &local[2]);

    cidrs.elts = local;
    cidrs.nelts = sizeof(local) / sizeof(local[0]);

    return ngx_cidr_match(r->connection->sockaddr, &cidrs) == NGX_OK;
}


static ngx_uint_t
ngx_http_vlm_status_json(ngx_http_request_t *r)
{
    ngx_str_t  value;

    if (ngx_http_arg(r, (u_char *) "format", 6, &value) == NGX_OK) {
        return value.len == 4 && ngx_strncmp(value.data, "json", 4) == 0;
    }

    return ngx_http_vlm_accepts(r, "application/json");
}


static void
ngx_http_vlm_status_refused(ngx_http_vlm_status_t *st)
{
    ngx_uint_t               i;
    ngx_http_vlm_metrics_t  *m;

    m = &st->shm.metrics;

    vlm_metrics_begin(&st->m, "vlm_requests_rejected_total", "counter",
                      "Refused requests by the reason", "reason");

    for (i = 1; i < NGX_HTTP_VLM_REFUSALS; i++) {
        vlm_metrics_value(&st->m, ngx_http_vlm_refusal_names[i], m->refused[i]);
    }

    vlm_metrics_begin(&st->m, "vlm_requests_cancelled_total", "counter",
                      "Requests whose client left, by their stage", "stage");

    for (i = 0; i < NGX_HTTP_VLM_STAGES; i++) {
        vlm_metrics_value(&st->m, ngx_http_vlm_stage_names[i], m->cancelled[i]);
    }
}


static void
ngx_http_vlm_status_info(ngx_http_vlm_status_t *st)
{
    const char             *weights;
    ngx_http_vlm_engine_t  *eng;

    eng = st->engine;
    weights = vlm_weights_name(eng->conf.vlm.weights);

    vlm_metric_label_t  labels[] = {
        { "engine", (char *) eng->name.data, eng->name.len },
        { "device", st->shm.device, ngx_strlen(st->shm.device) },
        { "model", (char *) eng->conf.directory.data, eng->conf.directory.len },
        { "weights", weights, ngx_strlen(weights) },
        { "version", VLM_VERSION, sizeof(VLM_VERSION) - 1 }
    };

    vlm_metrics_info(&st->m, "vlm_info",
                     "The engine, its model, and what it runs on", labels,
                     sizeof(labels) / sizeof(labels[0]));
}


/* from the state to the requests that were answered */

static void
ngx_http_vlm_status_state(ngx_http_vlm_status_t *st)
{
    ngx_msec_t                   now;
    ngx_uint_t                   state, breaker;
    ngx_http_vlm_shm_t          *shm;
    ngx_http_vlm_metrics_t      *m;
    ngx_http_vlm_engine_conf_t  *conf;

    now = ngx_current_msec;
    state = st->state;
    breaker = ngx_http_vlm_breaker_state(st->engine);
    shm = &st->shm;
    m = &shm->metrics;
    conf = &st->engine->conf;

    vlm_metric_t  metrics[] = {
        { "vlm_state", "state", 0, "1 for the present state of the engine" },
        { "busy", NULL, state == NGX_HTTP_VLM_BUSY, NULL },
        { "failed", NULL, state == NGX_HTTP_VLM_FAILED, NULL },
        { "loading", NULL, state == NGX_HTTP_VLM_LOADING, NULL },
        { "ready", NULL, state == NGX_HTTP_VLM_READY, NULL },
        { "stalled", NULL, state == NGX_HTTP_VLM_STALLED, NULL },
        { "vlm_up", NULL, shm->pid && state != NGX_HTTP_VLM_FAILED
                          && state != NGX_HTTP_VLM_STALLED,
          "1 if a worker has the engine" },
        { "vlm_ready", NULL,
          state == NGX_HTTP_VLM_READY || state == NGX_HTTP_VLM_BUSY,
          "1 if questions are answered" },
        { "vlm_load_progress_percent", NULL, shm->progress,
          "Percentage of the load that is done" },
        { "vlm_model_load_seconds", NULL, m->load,
          "Duration of the last load" },
        { "vlm_loop_heartbeat_age_seconds", NULL, now - shm->heartbeat,
          "Time since the event loop's last heartbeat" },
        { "vlm_engine_heartbeat_age_seconds", NULL, now - shm->ticked,
          "Time since the engine's last progress" },
        { "vlm_service_seconds", NULL, m->service,
          "Running mean of a request's time in its slot" },
        { "vlm_engine_restarts_total", NULL, m->restarts,
          "Deaths of workers with the engine" },
        { "vlm_device_losses_total", NULL, shm->losses.total,
          "Deaths of workers because of their GPU" },
        { "vlm_device_away_seconds", NULL,
          shm->losses.until > now ? shm->losses.until - now : 0,
          "Time until a lost GPU is tried again" },
        { "vlm_breaker", "state", 0,
          "1 for the state of the circuit breaker" },
        { "closed", NULL, breaker == VLM_BREAKER_CLOSED, NULL },
        { "open", NULL, breaker == VLM_BREAKER_OPEN, NULL },
        { "probing", NULL, breaker == VLM_BREAKER_PROBING, NULL },
        { "vlm_breaker_failures", NULL, shm->breaker.failures,
          "Failures of the engine in a row" },
        { "vlm_breaker_opened_total", NULL, shm->breaker.opened,
          "Times that the circuit breaker opened" },
        { "vlm_queue_depth", NULL, shm->waiting, "Requests in the queue" },
        { "vlm_queue_size", NULL, conf->queue_size,
          "Limit of requests in the queue" },
        { "vlm_requests_running", NULL, shm->running, "Requests in slots" },
        { "vlm_slots", NULL, conf->vlm.slots, "Slots of the engine" },
        { "vlm_kv_tokens", "part", 0,
          "Tokens in the slots' caches, and the capacity" },
        { "used", NULL, shm->kv_rows, NULL },
        { "size", NULL, (ngx_uint_t) conf->vlm.slots * conf->vlm.context,
          NULL },
        { "vlm_sessions", NULL, shm->sessions, "Sessions in the store" },
        { "vlm_requests_answered_total", "finish", 0,
          "Answers by the reason of their end" },
        { "stop", NULL, m->answered[VLM_FINISH_STOP], NULL },
        { "length", NULL, m->answered[VLM_FINISH_LENGTH], NULL },
        { "unasked", NULL, m->answered[VLM_FINISH_NONE], NULL }
    };

    vlm_metrics_put(&st->m, metrics, sizeof(metrics) / sizeof(metrics[0]));
}


static void
ngx_http_vlm_status_tokens(ngx_http_vlm_status_t *st)
{
    vlm_plan_t              *plan;
    ngx_http_vlm_shm_t      *shm;
    ngx_http_vlm_metrics_t  *m;

    shm = &st->shm;
    m = &shm->metrics;
    plan = &shm->plan;

    vlm_metric_t  metrics[] = {
        { "vlm_prompt_tokens_total", NULL, m->prompt_tokens,
          "Tokens of prompts, including pictures" },
        { "vlm_prompt_tokens_cached_total", NULL, m->cached_tokens,
          "Tokens of prompts that were cached" },
        { "vlm_prompt_images_total", NULL, m->prompt_pictures,
          "Pictures of prompts" },
        { "vlm_prompt_images_cached_total", NULL, m->cached_pictures,
          "Pictures of prompts whose features were cached" },
        { "vlm_generation_tokens_total", NULL, m->completion_tokens,
          "Tokens of answers" },
        { "vlm_images_total", NULL, m->pictures,
          "Pictures that were encoded" },
        { "vlm_image_tokens_total", NULL, m->picture_tokens,
          "Tokens of pictures" },
        { "vlm_memory_bytes", "pool", 0,
          "Planned memory by purpose; limit 0: no limit" },
        { "weights", NULL, plan->weights, NULL },
        { "vision", NULL, plan->vision, NULL },
        { "lora", NULL, plan->lora, NULL },
        { "kv", NULL, plan->kv, NULL },
        { "workspace", NULL, plan->workspace, NULL },
        { "encoder", NULL, plan->encoder, NULL },
        { "device", NULL, plan->device, NULL },
        { "total", NULL, plan->total, NULL },
        { "limit", NULL, st->engine->conf.vlm.memory, NULL },
        { "vlm_device_overhead_bytes", NULL, shm->taken,
          "Measured memory of the device's own" },
        { "vlm_http_memory_bytes", "part", 0,
          "Memory of requests outside the plan" },
        { "used", NULL, shm->http_used, NULL },
        { "peak", NULL, shm->http_peak, NULL },
        { "limit", NULL, st->engine->conf.http_memory, NULL },
        { "vlm_http_memory_waits_total", NULL, shm->http_waits,
          "Threads that had to wait for this memory" }
    };

    vlm_metrics_put(&st->m, metrics, sizeof(metrics) / sizeof(metrics[0]));
}


static void
ngx_http_vlm_status_adapters(ngx_http_vlm_status_t *st)
{
    ngx_uint_t            i;
    vlm_adapter_entry_t  *a;

    vlm_metrics_begin(&st->m, "vlm_adapter_requests_total", "counter",
                      "Prompts with this adapter", "adapter");

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        a = &st->shm.adapters[i];

        if (a->name[0] && (a->reason[0] == '\0' || a->requests)) {
            vlm_metrics_value(&st->m, a->name, a->requests);
        }
    }
}


static void
ngx_http_vlm_status_documents(ngx_http_vlm_status_t *st)
{
    ngx_uint_t                 hybrid;
    ngx_http_vlm_documents_t  *d;

    d = &st->shm.documents;
    hybrid = st->engine->conf.documents.on
             && st->engine->conf.documents.hybrid;

    vlm_metric_t  metrics[] = {
        { "vlm_documents", "state", 0, "Documents in the store" },
        { "waiting", NULL, d->states[0], NULL },
        { "reading", NULL, d->states[1], NULL },
        { "ready", NULL, d->states[2], NULL },
        { "failed", NULL, d->states[3], NULL },
        { "vlm_document_pages_total", NULL, d->pages,
          "Pages of documents that were read" },
        { "vlm_document_failures_total", NULL, d->failed,
          "Documents that could not be read" },
        { "vlm_page_pictures_total", NULL, d->pictures,
          "Pages of documents that were drawn" },
        { "vlm_encoder_ready", NULL,
          hybrid && ngx_http_vlm_encoding_state(&st->shm)
                    == NGX_HTTP_VLM_ENCODER_READY,
          "1 if documents are searched by vectors, too" },
        { "vlm_document_pieces_waiting", NULL, hybrid ? d->lacking : 0,
          "Pieces of documents that have no vector yet" },
        { "vlm_document_pieces_encoded_total", NULL, d->encoded,
          "Pieces of documents that got a vector" }
    };

    vlm_metrics_put(&st->m, metrics, sizeof(metrics) / sizeof(metrics[0]));
}


static void
ngx_http_vlm_status_times(ngx_http_vlm_status_t *st)
{
    ngx_uint_t  i;

    static const struct {
        ngx_http_vlm_time_e  what;
        const char          *name;
        const char          *help;
    } times[] = {
        { NGX_HTTP_VLM_TIME_QUEUE, "vlm_queue_seconds",
          "Time from arrival to a slot" },
        { NGX_HTTP_VLM_TIME_FIRST, "vlm_time_to_first_token_seconds",
          "Time from arrival to the first token" },
        { NGX_HTTP_VLM_TIME_TOKEN, "vlm_inter_token_seconds",
          "Time between two tokens of an answer" },
        { NGX_HTTP_VLM_TIME_REQUEST, "vlm_request_seconds",
          "Time from arrival to the end of an answer" },
        { NGX_HTTP_VLM_TIME_RECEIVE, "vlm_receive_seconds",
          "Time to receive a body" },
        { NGX_HTTP_VLM_TIME_IMAGE_DECODE, "vlm_image_decode_seconds",
          "Time to decode a request's pictures" },
        { NGX_HTTP_VLM_TIME_IMAGE_RESIZE, "vlm_image_resize_seconds",
          "Time to resize a request's pictures" },
        { NGX_HTTP_VLM_TIME_PREPARE, "vlm_prepare_seconds",
          "Time to decode pictures and make a prompt" },
        { NGX_HTTP_VLM_TIME_VISION, "vlm_vision_seconds",
          "Time to encode pictures in the engine" },
        { NGX_HTTP_VLM_TIME_PREFILL, "vlm_prefill_seconds",
          "Time to read a prompt" },
        { NGX_HTTP_VLM_TIME_FIRST_STEP, "vlm_first_step_seconds",
          "Time to sample the first token" },
        { NGX_HTTP_VLM_TIME_DECODE, "vlm_decode_seconds",
          "Time to decode an answer" },
        { NGX_HTTP_VLM_TIME_READING, "vlm_document_read_seconds",
          "Time to read a document" },
        { NGX_HTTP_VLM_TIME_PAGE, "vlm_page_draw_seconds",
          "Time to draw a page of a document" }
    };

    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        vlm_metrics_histogram(&st->m, times[i].name, times[i].help,
                              &st->shm.metrics.times[times[i].what]);
    }
}


ngx_int_t
ngx_http_vlm_status_handler(ngx_http_request_t *r)
{
    ngx_int_t                  rc;
    ngx_uint_t                 json;
    ngx_http_vlm_status_t      st;
    ngx_http_vlm_loc_conf_t   *lcf;
    ngx_http_complex_value_t   cv;

    static ngx_str_t  types[] = {
        ngx_string("text/plain; version=0.0.4; charset=utf-8"),
        ngx_string("application/json")
    };

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
    json = ngx_http_vlm_status_json(r);

    ngx_http_vlm_zone_texts(st.engine, &st.shm);
    st.state = ngx_http_vlm_health_state(st.engine, &st.shm);

    vlm_metrics_open(&st.m, (int) json, NGX_HTTP_VLM_STATUS_SIZE);

    ngx_http_vlm_status_info(&st);
    ngx_http_vlm_status_state(&st);
    ngx_http_vlm_status_refused(&st);
    ngx_http_vlm_status_tokens(&st);
    ngx_http_vlm_status_adapters(&st);
    ngx_http_vlm_status_documents(&st);
    ngx_http_vlm_status_times(&st);

    vlm_metrics_shut(&st.m);

    ngx_memzero(&cv, sizeof(ngx_http_complex_value_t));

    return ngx_http_vlm_keep_json(r, &st.m.w, &cv.value) == NGX_OK
           ? ngx_http_send_response(r, NGX_HTTP_OK, &types[json], &cv)
           : NGX_HTTP_INTERNAL_SERVER_ERROR;
}
