
/*
 * The life of an engine: what its configuration needs, the worker that has it,
 * the socket, the lock and the zone that lead from one worker to the next, and
 * the thread that loads and runs it.  Part of ngx_http_vlm.h.
 */


#ifndef _NGX_HTTP_VLM_LIFE_H_INCLUDED_
#define _NGX_HTTP_VLM_LIFE_H_INCLUDED_


/* ---- ngx_http_vlm_paths.c: store, socket, locks: names and mistakes ----- */

char *ngx_http_vlm_paths_store(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
char *ngx_http_vlm_paths(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_worker.c: which worker, and what it needs ------------- */

ngx_int_t ngx_http_vlm_init_module(ngx_cycle_t *cycle);
ngx_int_t ngx_http_vlm_init_process(ngx_cycle_t *cycle);
void ngx_http_vlm_exit_process(ngx_cycle_t *cycle);

/* the configuration is read: what it needs is made, or it is refused */

ngx_int_t ngx_http_vlm_worker_ready(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_socket.c: the socket of the hop ----------------------- */

/* in the master: before nginx opens sockets, and after it */

ngx_int_t ngx_http_vlm_socket_bind(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
ngx_int_t ngx_http_vlm_socket_own(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle, uid_t uid, gid_t gid, vlm_err_t *err);


/* in the designated worker, with "reload overlap": accepts while it should,
   after nginx has closed the listening sockets, too; open: or stops that */

ngx_int_t ngx_http_vlm_socket_keep(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_socket_open(ngx_http_vlm_engine_t *eng, ngx_uint_t open);
void ngx_http_vlm_socket_close(ngx_http_vlm_engine_t *eng);    /* safe twice */


/* ---- ngx_http_vlm_lock.c: from one worker to the next ------------------- */

/* in the master */

ngx_int_t ngx_http_vlm_lock_make(ngx_http_vlm_engine_t *eng, uid_t uid,
    gid_t gid, ngx_cycle_t *cycle, vlm_err_t *err);

/* engine thread: waits for the lock; 0, or -1: stopped or failed */

int ngx_http_vlm_lock_take(ngx_http_vlm_engine_t *eng, vlm_err_t *err);
void ngx_http_vlm_lock_give(ngx_http_vlm_engine_t *eng);   /* safe twice */


/* ---- ngx_http_vlm_device.c: which device, after it was lost ------------- */

void ngx_http_vlm_device_choose(ngx_http_vlm_engine_t *eng);
ngx_uint_t ngx_http_vlm_device_due(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_return(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_device_last(void);


/* ---- ngx_http_vlm_zone.c: what all workers can read --------------------- */

ngx_int_t ngx_http_vlm_zone_add(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_take(ngx_http_vlm_engine_t *eng);

/* of a configuration with "reload overlap": does an older one answer?  Why
   the newest does not is told in its place */

ngx_uint_t ngx_http_vlm_zone_behind(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_reload(ngx_http_vlm_engine_t *eng, const char *reason);

void ngx_http_vlm_zone_leave(ngx_http_vlm_engine_t *eng);
ngx_uint_t ngx_http_vlm_zone_mine(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, const char *reason);
void ngx_http_vlm_zone_beat(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_zone_line(ngx_http_vlm_engine_t *eng);

/* a copy, whose texts belong together */

void ngx_http_vlm_zone_texts(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_shm_t *copy);

/* any thread of any process: what the store said to the last request that
   needed it, and how many sessions there are after one was made or deleted */

void ngx_http_vlm_zone_store(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_store_err_t *err);
void ngx_http_vlm_zone_sessions(ngx_http_vlm_engine_t *eng, uint64_t n);


/* ---- ngx_http_vlm_engine.c: the thread task and the wake fd ------------- */

void ngx_http_vlm_engine_start(ngx_http_vlm_engine_t *eng,
    ngx_cycle_t *cycle);
void ngx_http_vlm_engine_stop(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_engine_kick(ngx_http_vlm_engine_t *eng); /* jobs are there */

/* a graceful exit has begun; 1: with a reload, and this engine goes on until
   the next one has loaded */

ngx_uint_t ngx_http_vlm_engine_exit(ngx_http_vlm_engine_t *eng);

ngx_msec_t ngx_http_vlm_engine_stall_time(ngx_http_vlm_engine_t *eng);

/* later in this turn of the loop: start and end what can be */

void ngx_http_vlm_engine_wake(ngx_http_vlm_engine_t *eng);


/* ---- ngx_http_vlm_watch.c: an event loop that hangs --------------------- */

void ngx_http_vlm_watch_start(ngx_http_vlm_engine_t *eng);
void ngx_http_vlm_watch_stop(ngx_http_vlm_engine_t *eng);  /* safe twice */


#endif /* _NGX_HTTP_VLM_LIFE_H_INCLUDED_ */
