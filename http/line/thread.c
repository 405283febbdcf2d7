
/*
 * Work of a request that may block, in a thread: short work runs in nginx's
 * "default" pool, the queue's work in the engine's own pool, whose threads may
 * sleep for memory or for the store.
 *
 * A request whose client leaves meanwhile is kept by r->main->blocked: nginx
 * replaces our write handler by one of its own, which ends the request as soon
 * as it is called.  So the handler shows whether the request still exists.
 *
 * An exiting worker waits for timers, not for threads, so each task has a
 * timer.
 */


#include "line.h"


#define NGX_HTTP_VLM_HOLD  60000           /* ms, repeated */


typedef struct {
    ngx_http_request_t           *request;
    void                        (*run)(void *data);
    void                        (*always)(void *data);
    void                        (*done)(ngx_http_request_t *r, void *data);
    void                         *data;
    ngx_thread_task_t             task;
    ngx_event_t                   hold;
} ngx_http_vlm_thread_t;


static void
ngx_http_vlm_thread_run(void *data, ngx_log_t *log)
{
    ngx_http_vlm_thread_t  *t = data;

    t->run(t->data);
}


static void
ngx_http_vlm_thread_wait(ngx_http_request_t *r)
{
    ngx_log_debug0(NGX_LOG_DEBUG_HTTP, r->connection->log, 0,
                   "vlm: a thread works for this request");
}


static void
ngx_http_vlm_thread_done(ngx_event_t *ev)
{
    ngx_connection_t       *c;
    ngx_http_request_t     *r;
    ngx_http_vlm_thread_t  *t;

    t = ev->data;
    r = t->request;
    c = r->connection;

    ngx_http_set_log_request(c->log, r);

    ngx_http_vlm_timer_off(&t->hold);

    r->main->blocked--;

    if (t->always) {
        t->always(t->data);
    }

    if (r->write_event_handler == ngx_http_vlm_thread_wait) {
        r->write_event_handler = ngx_http_request_empty_handler;
        t->done(r, t->data);

    } else {
        r->write_event_handler(r);
    }

    ngx_http_run_posted_requests(c);
}


static void
ngx_http_vlm_thread_hold(ngx_event_t *ev)
{
    ngx_add_timer(ev, NGX_HTTP_VLM_HOLD);
}


ngx_int_t
ngx_http_vlm_thread(ngx_http_request_t *r, ngx_http_vlm_engine_t *eng,
    void (*run)(void *data), void (*always)(void *data),
    void (*done)(ngx_http_request_t *r, void *data), void *data)
{
    ngx_http_vlm_thread_t  *t;

    t = ngx_pcalloc(r->pool, sizeof(ngx_http_vlm_thread_t));
    if (t == NULL) {
        return NGX_ERROR;
    }

    t->request = r;
    t->run = run;
    t->always = always;
    t->done = done;
    t->data = data;

    ngx_http_vlm_event_init(&t->hold, ngx_http_vlm_thread_hold, t,
                            r->connection->log);
    ngx_http_vlm_task_init(&t->task, ngx_http_vlm_thread_run,
                           ngx_http_vlm_thread_done, t, r->connection->log);

    if (ngx_thread_task_post(always ? eng->prepares : eng->threads, &t->task)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    ngx_add_timer(&t->hold, NGX_HTTP_VLM_HOLD);

    r->main->blocked++;
    r->write_event_handler = ngx_http_vlm_thread_wait;

    return NGX_OK;
}
