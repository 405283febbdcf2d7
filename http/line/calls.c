
/*
 * The queue's functions for lower floors, in one table.
 */


#include "line.h"


static void
ngx_http_vlm_calls_init(ngx_http_vlm_engine_t *eng)
{
    ngx_queue_init(&eng->line.arrivals);
    ngx_queue_init(&eng->line.preparing);
    ngx_queue_init(&eng->line.ready);
    ngx_queue_init(&eng->line.leasing);
    ngx_queue_init(&eng->line.requests);

    ngx_http_vlm_order_init(eng);
    ngx_http_vlm_chain_init(eng);
    ngx_http_vlm_lease_init(eng);
}


const ngx_http_vlm_queue_calls_t  ngx_http_vlm_queue_calls = {
    .init = ngx_http_vlm_calls_init,
    .event = ngx_http_vlm_deliver,
    .next = ngx_http_vlm_prepare_next,
    .failed = ngx_http_vlm_queue_fail,
    .place = ngx_http_vlm_queue_place,
    .end = ngx_http_vlm_queue_end
};
