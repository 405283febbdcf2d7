
/*
 * The shared zone of an engine: its state, its counters, the lengths of its
 * queue.  The designated worker writes, every worker reads.
 *
 * During a reload there are two designated workers.  The newer one takes the
 * zone over when it starts or, with "reload overlap", when it has loaded; the
 * older one then stops writing its lengths and its state.  Both add to the
 * counters, which outlive reloads and crashes.
 */


#include "life.h"


#define NGX_HTTP_VLM_ZONE_SIZE  (128 * 1024)   /* another size: a new zone */


/*
 * Zones are made when the whole configuration has been read and no socket is
 * open yet: the last moment at which nginx can still refuse the configuration.
 */

static ngx_int_t
ngx_http_vlm_zone_init(ngx_shm_zone_t *zone, void *data)
{
    ngx_http_vlm_engine_t *old = data;

    ngx_slab_pool_t        *slab;
    ngx_http_vlm_engine_t  *eng;

    eng = zone->data;

    if (eng->life.ready_to_start(eng, zone->shm.log) != NGX_OK) {
        return NGX_ERROR;
    }

    slab = (ngx_slab_pool_t *) zone->shm.addr;

    if (old || zone->shm.exists) {
        eng->zone = slab->data;
        return NGX_OK;
    }

    eng->zone = ngx_slab_calloc(slab, sizeof(ngx_http_vlm_shm_t));
    if (eng->zone == NULL) {
        return NGX_ERROR;
    }

    eng->zone->hops = ngx_slab_calloc(slab, sizeof(vlm_ring_t));
    if (eng->zone->hops == NULL) {
        return NGX_ERROR;
    }

    slab->data = eng->zone;

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_format(ngx_pool_t *pool, ngx_str_t *text, const char *fmt, ...)
{
    u_char    buf[2 * NGX_MAX_PATH];
    va_list   args;

    va_start(args, fmt);
    text->len = ngx_vslprintf(buf, buf + sizeof(buf), fmt, args) - buf;
    va_end(args);

    text->data = ngx_pnalloc(pool, text->len + 1);
    if (text->data == NULL) {
        return NGX_ERROR;
    }

    *ngx_cpymem(text->data, buf, text->len) = '\0';

    return NGX_OK;
}


ngx_int_t
ngx_http_vlm_zone_add(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    ngx_str_t  name;

    if (ngx_http_vlm_format(cf->pool, &name, "vlm_%V", &eng->name) != NGX_OK) {
        return NGX_ERROR;
    }

    eng->shm_zone = ngx_shared_memory_add(cf, &name, NGX_HTTP_VLM_ZONE_SIZE,
                                          &ngx_http_vlm_module);
    if (eng->shm_zone == NULL) {
        return NGX_ERROR;
    }

    eng->shm_zone->init = ngx_http_vlm_zone_init;
    eng->shm_zone->data = eng;

    return NGX_OK;
}


ngx_uint_t
ngx_http_vlm_zone_gone(ngx_http_vlm_shm_t *shm)
{
    return shm->pid && kill((pid_t) shm->pid, 0) == -1 && ngx_errno == ESRCH;
}


ngx_uint_t
ngx_http_vlm_zone_masterless(void)
{
    return ngx_process == NGX_PROCESS_WORKER && getppid() != ngx_parent;
}


/*
 * No master will replace the worker that had the model: this one ends, too, and
 * leaves the sockets to another server that listens on them, such as the old
 * one of an upgrade.
 */

void
ngx_http_vlm_zone_orphan(ngx_http_vlm_engine_t *eng)
{
    if (!ngx_http_vlm_zone_masterless() || ngx_quit || ngx_exiting
        || ngx_http_vlm_zone_owned(eng)
        || (eng->zone->pid && !ngx_http_vlm_zone_gone(eng->zone)))
    {
        return;
    }

    ngx_http_vlm_log(NGX_LOG_WARN, ngx_cycle->log, 0, eng, "the master has "
                     "ended, and the worker that had the model: this worker "
                     "ends, too");
    ngx_quit = 1;
}


ngx_uint_t
ngx_http_vlm_zone_standby(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    return eng->conf.overlap && shm->owner_stays
           && shm->pid && shm->pid != (ngx_atomic_uint_t) ngx_pid
           && shm->state == NGX_HTTP_VLM_READY
           && !ngx_http_vlm_zone_gone(shm);
}


/* a designated worker starts: the state that its predecessor left is out of
   date */

void
ngx_http_vlm_zone_take(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    shm->pid = ngx_pid;
    shm->owner_stays = eng->conf.overlap;
    shm->state = NGX_HTTP_VLM_LOADING;
    shm->heartbeat = ngx_current_msec;
    eng->life.ticked = ngx_current_msec;
    shm->ticked = eng->life.ticked;
    shm->waiting = 0;
    shm->running = 0;
    shm->documents.encoder = NGX_HTTP_VLM_ENCODER_LOADING;
    shm->documents.model = 0;

    shm->plan = eng->conf.plan;
    shm->taken = 0;
    shm->reload_reason[0] = '\0';

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    ngx_http_vlm_zone_state(eng, NGX_HTTP_VLM_LOADING, "");
}


/* at an orderly exit: the zone has no owner, so its end is no crash */

void
ngx_http_vlm_zone_leave(ngx_http_vlm_engine_t *eng)
{
    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->waiting = 0;
        eng->zone->running = 0;
        eng->zone->documents.encoder = NGX_HTTP_VLM_ENCODER_LOADING;
        eng->zone->state = NGX_HTTP_VLM_LOADING;
        eng->zone->filling = 0;
        eng->zone->pid = 0;
    }
}


ngx_uint_t
ngx_http_vlm_zone_owned(ngx_http_vlm_engine_t *eng)
{
    return eng->zone->pid == (ngx_atomic_uint_t) ngx_pid;
}


static void
ngx_http_vlm_zone_text(ngx_http_vlm_engine_t *eng, char *dst, size_t size,
    const char *text)
{
    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    ngx_cpystrn((u_char *) dst, (u_char *) text, size);

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}


void
ngx_http_vlm_zone_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, const char *reason)
{
    vlm_stat_t           st;
    ngx_http_vlm_shm_t  *shm;

    shm = eng->zone;

    if (!ngx_http_vlm_zone_owned(eng)) {

        if (eng->life.standby && state == NGX_HTTP_VLM_FAILED) {
            ngx_http_vlm_zone_text(eng, shm->reload_reason,
                                   sizeof(shm->reload_reason), reason);
        }

        return;
    }

    ngx_memzero(&st, sizeof(vlm_stat_t));

    if (eng->life.vlm) {
        vlm_stat(eng->life.vlm, &st);
    }

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    if (st.plan.total) {
        shm->plan = st.plan;
        shm->taken = st.taken;
    }

    ngx_memcpy(shm->device, st.device, sizeof(shm->device));
    ngx_http_vlm_copy(shm->device_reason,
                      st.reason[0] ? st.reason : eng->life.device_note);
    ngx_http_vlm_copy(shm->reason, reason);

    shm->progress = state == NGX_HTTP_VLM_READY ? 100 : st.progress;
    shm->filling = st.filling;
    shm->state = state;

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    ngx_http_vlm_adapter_share(eng);
}


void
ngx_http_vlm_zone_beat(ngx_http_vlm_engine_t *eng)
{
    vlm_stat_t              st;
    ngx_http_vlm_shm_t     *shm;
    vlm_budget_t            memory;

    ngx_memzero(&st, sizeof(vlm_stat_t));

    if (eng->life.vlm) {
        vlm_stat(eng->life.vlm, &st);
    }

    /* an idle engine thread need not tick */

    if (st.ticks != eng->life.ticks || eng->life.vlm == NULL
        || (eng->life.loaded && eng->line.n_jobs == 0))
    {
        eng->life.ticks = st.ticks;
        eng->life.ticked = ngx_current_msec;
    }

    if (!ngx_http_vlm_zone_owned(eng)) {
        return;
    }

    shm = eng->zone;

    shm->heartbeat = ngx_current_msec;
    shm->kv_rows = st.kv_rows;
    shm->filling = st.filling;
    shm->ticked = eng->life.ticked;

    vlm_budget_look(&eng->budget, &memory);

    shm->http_used = memory.used;
    shm->http_peak = memory.peak;
    shm->http_waits = memory.waits;

    if (eng->life.vlm && !eng->life.loaded && !eng->life.failed) {
        shm->progress = st.progress;
    }
}


void
ngx_http_vlm_zone_queue(ngx_http_vlm_engine_t *eng)
{
    if (ngx_http_vlm_zone_owned(eng)) {
        eng->zone->waiting = ngx_http_vlm_zone_length(eng);
        eng->zone->running = eng->line.running;
    }
}


void
ngx_http_vlm_zone_texts(ngx_http_vlm_engine_t *eng, ngx_http_vlm_shm_t *copy)
{
    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    *copy = *eng->zone;

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}


/*
 * A busy store, or a client's mistake, says nothing about the store.  A write
 * that succeeds clears the error.
 */

void
ngx_http_vlm_zone_store(ngx_http_vlm_engine_t *eng, vlm_store_err_t *err)
{
    const char  *text;

    text = err && err->code != VLM_STORE_OK ? err->text : "";

    if (text[0] ? err->code < VLM_STORE_EFULL || err->code == VLM_STORE_EBUSY
                : eng->zone->store_reason[0] == '\0')
    {
        return;
    }

    ngx_http_vlm_zone_text(eng, eng->zone->store_reason,
                           sizeof(eng->zone->store_reason), text);
}


int
ngx_http_vlm_zone_sessions(ngx_http_vlm_engine_t *eng, vlm_store_err_t *err)
{
    int       rc;
    uint64_t  n;

    rc = vlm_store_session_count(eng->store, &n, err);

    if (rc == VLM_STORE_OK) {
        eng->zone->sessions = (ngx_atomic_uint_t) n;
    }

    return rc;
}


/*
 * A request on its way to a free slot does not count as waiting, however long
 * its picture takes to decode; so refusals do not depend on timing.
 */

ngx_uint_t
ngx_http_vlm_zone_length(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t  free;

    free = 0;

    if (eng->life.loaded && eng->line.running < eng->conf.vlm.slots) {
        free = eng->conf.vlm.slots - eng->line.running;
    }

    return eng->line.n_waiting > free ? eng->line.n_waiting - free : 0;
}
