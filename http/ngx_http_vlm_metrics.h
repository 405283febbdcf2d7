
/*
 * What is counted of requests, in the shared zone: why they were refused,
 * where their clients left, how long each part took.  The functions that count
 * are in _metrics.c, those that tell in _status.c.
 */


#ifndef _NGX_HTTP_VLM_METRICS_H_INCLUDED_
#define _NGX_HTTP_VLM_METRICS_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>

#include "../engine/vlm.h"


/* why a request had no answer; names are in _metrics.c, in this order */

typedef enum {
    NGX_HTTP_VLM_NOT_REFUSED = 0,
    NGX_HTTP_VLM_QUEUE_FULL,
    NGX_HTTP_VLM_QUEUE_TIMEOUT,
    NGX_HTTP_VLM_TIMEOUT,                      /* its answer took too long */
    NGX_HTTP_VLM_UNAVAILABLE,                  /* no model, or no longer */
    NGX_HTTP_VLM_LIMIT,                        /* more than there is room for */
    NGX_HTTP_VLM_INPUT,
    NGX_HTTP_VLM_SERVER,                       /* the store, memory */
    NGX_HTTP_VLM_POISON,                       /* see _poison.c */
    NGX_HTTP_VLM_BREAKER,                      /* see _breaker.c */
    NGX_HTTP_VLM_REFUSALS
} ngx_http_vlm_refusal_e;


/* where a request was when its client left */

typedef enum {
    NGX_HTTP_VLM_STAGE_BODY = 0,
    NGX_HTTP_VLM_STAGE_PREPARE,
    NGX_HTTP_VLM_STAGE_QUEUE,
    NGX_HTTP_VLM_STAGE_PROMPT,                 /* picture and prompt are read */
    NGX_HTTP_VLM_STAGE_DECODE,
    NGX_HTTP_VLM_STAGE_STORE,
    NGX_HTTP_VLM_STAGES
} ngx_http_vlm_stage_e;


/* times that are counted, and the bounds of their buckets: _metrics.c */

typedef enum {
    NGX_HTTP_VLM_TIME_QUEUE = 0,
    NGX_HTTP_VLM_TIME_FIRST,
    NGX_HTTP_VLM_TIME_TOKEN,
    NGX_HTTP_VLM_TIME_REQUEST,
    NGX_HTTP_VLM_TIME_PREPARE,
    NGX_HTTP_VLM_TIME_VISION,
    NGX_HTTP_VLM_TIME_PREFILL,
    NGX_HTTP_VLM_TIME_DECODE,
    NGX_HTTP_VLM_TIME_RECEIVE,
    NGX_HTTP_VLM_TIME_IMAGE_DECODE,
    NGX_HTTP_VLM_TIME_IMAGE_RESIZE,
    NGX_HTTP_VLM_TIME_FIRST_STEP,
    NGX_HTTP_VLM_TIMES
} ngx_http_vlm_time_e;


/* requests that were there when a worker died: see _poison.c */

#define NGX_HTTP_VLM_WORKS     64              /* that are in the works */
#define NGX_HTTP_VLM_SUSPECTS  64

typedef struct {
    ngx_atomic_t                  hash;        /* of a body; 0: nobody */
    ngx_atomic_t                  deaths;
    ngx_atomic_t                  when;        /* the last, ngx_current_msec */
} ngx_http_vlm_suspect_t;


#define NGX_HTTP_VLM_BUCKETS  17               /* the last has no bound */

typedef struct {
    ngx_atomic_t                  n[NGX_HTTP_VLM_BUCKETS];
    ngx_atomic_t                  ms;          /* in all */
} ngx_http_vlm_times_t;


typedef struct {
    ngx_atomic_t                  answered[VLM_FINISH_CANCELLED + 1];
    ngx_atomic_t                  refused[NGX_HTTP_VLM_REFUSALS];
    ngx_atomic_t                  cancelled[NGX_HTTP_VLM_STAGES];
    ngx_http_vlm_times_t          times[NGX_HTTP_VLM_TIMES];
    ngx_atomic_t                  prompt_tokens;
    ngx_atomic_t                  completion_tokens;
    ngx_atomic_t                  cached_tokens;       /* of prompts */
    ngx_atomic_t                  prompt_pictures;     /* of prompts, and */
    ngx_atomic_t                  cached_pictures;     /* not encoded */
    ngx_atomic_t                  pictures;
    ngx_atomic_t                  picture_tokens;
    ngx_atomic_t                  service;     /* ms of a request in its slot,
                                                  the running mean */
    ngx_atomic_t                  restarts;    /* workers that died */
    ngx_atomic_t                  load;        /* ms, the last */
} ngx_http_vlm_metrics_t;


#endif /* _NGX_HTTP_VLM_METRICS_H_INCLUDED_ */
