
/*
 * Handles that every file of the nginx side uses.  A floor is a folder with a
 * header of its own: life/, wire/, line/, status/, api/, conf/.  A file calls
 * its own floor and lower ones; events of the engine go up through one table
 * of functions (ngx_http_vlm_queue_calls_t).
 *
 * There are three kinds of thread: the event loop; the engine thread, which
 * runs one task at a time (life/task.c); and the threads of a pool, which do
 * everything that may block: files, SQLite, JSON, pictures.
 */


#ifndef _NGX_HTTP_VLM_H_INCLUDED_
#define _NGX_HTTP_VLM_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_event.h>
#include <ngx_http.h>
#include <ngx_thread_pool.h>

#include "../engine/vlm.h"


typedef struct ngx_http_vlm_engine_s  ngx_http_vlm_engine_t;
typedef struct ngx_http_vlm_chain_s   ngx_http_vlm_chain_t;
typedef struct ngx_http_vlm_ctx_s     ngx_http_vlm_ctx_t;
typedef struct ngx_http_vlm_dialect_s ngx_http_vlm_dialect_t;
typedef struct ngx_http_vlm_queue_calls_s ngx_http_vlm_queue_calls_t;


/* ---- configuration ------------------------------------------------------- */

typedef struct {
    ngx_array_t                   engines;     /* ngx_http_vlm_engine_t * */
    ngx_array_t                   passes;      /* conf.c: vlm_pass with several
                                                  engines */
    ngx_int_t                     request_id;  /* index of the variable */
} ngx_http_vlm_main_conf_t;


#define NGX_HTTP_VLM_ENGINES  16               /* of one vlm_pass */


/* vlm_cors; those from LIST on have headers */

#define NGX_HTTP_VLM_CORS_OFF   0
#define NGX_HTTP_VLM_CORS_SAME  1
#define NGX_HTTP_VLM_CORS_LIST  2
#define NGX_HTTP_VLM_CORS_ANY   3


typedef struct {
    ngx_http_vlm_engine_t        *engine;      /* vlm_pass, or inner server */
    ngx_array_t                  *engines;     /* the same, of vlm_pass:
                                                  engine is the first */
    ngx_http_handler_pt           hop;         /* the handler of proxy_pass */
    off_t                         max_body;    /* 64m, 0: the user's counts */
    ngx_http_vlm_engine_t        *status;      /* vlm_status */
    ngx_uint_t                    cors;
    ngx_array_t                  *origins;     /* ngx_str_t, of a LIST */
    unsigned                      status_any:1;    /* from=any */
    unsigned                      inner:1;     /* the generated server */
} ngx_http_vlm_loc_conf_t;


extern ngx_module_t  ngx_http_vlm_module;


#endif /* _NGX_HTTP_VLM_H_INCLUDED_ */
