
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


static ngx_int_t ngx_http_vlm_zone_init(ngx_shm_zone_t *zone, void *data);
static ngx_slab_pool_t *ngx_http_vlm_zone_pool(ngx_http_vlm_engine_t *eng);


ngx_int_t
ngx_http_vlm_zone_add(ngx_conf_t *cf, ngx_http_vlm_engine_t *eng)
{
    ngx_str_t  name;

    name.data = ngx_pnalloc(cf->pool, sizeof("vlm_") + eng->name.len);
    if (name.data == NULL) {
        return NGX_ERROR;
    }

    name.len = ngx_sprintf(name.data, "vlm_%V%Z", &eng->name) - name.data - 1;

    eng->zone = ngx_shared_memory_add(cf, &name, NGX_HTTP_VLM_ZONE_SIZE,
                                      &ngx_http_vlm_module);
    if (eng->zone == NULL) {
        return NGX_ERROR;
    }

    eng->zone->init = ngx_http_vlm_zone_init;
    eng->zone->data = eng;

    return NGX_OK;
}


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

    if (eng->ready_to_start(eng, zone->shm.log) != NGX_OK) {
        return NGX_ERROR;
    }

    if (old) {
        eng->shm = old->shm;
        return NGX_OK;
    }

    slab = (ngx_slab_pool_t *) zone->shm.addr;

    if (zone->shm.exists) {
        eng->shm = slab->data;
        return NGX_OK;
    }

    eng->shm = ngx_slab_calloc(slab, sizeof(ngx_http_vlm_shm_t));
    if (eng->shm == NULL) {
        return NGX_ERROR;
    }

    eng->shm->hops = ngx_slab_calloc(slab, sizeof(ngx_http_vlm_hops_t));
    if (eng->shm->hops == NULL) {
        return NGX_ERROR;
    }

    slab->data = eng->shm;

    return NGX_OK;
}


static ngx_slab_pool_t *
ngx_http_vlm_zone_pool(ngx_http_vlm_engine_t *eng)
{
    return (ngx_slab_pool_t *) eng->zone->shm.addr;
}


ngx_uint_t
ngx_http_vlm_zone_behind(ngx_http_vlm_engine_t *eng)
{
    pid_t  pid;

    pid = (pid_t) eng->shm->pid;

    return eng->overlap && eng->shm->stays && pid && pid != ngx_pid
           && eng->shm->state == NGX_HTTP_VLM_READY
           && (kill(pid, 0) == 0 || ngx_errno != ESRCH);
}


void
ngx_http_vlm_zone_reload(ngx_http_vlm_engine_t *eng, const char *reason)
{
    ngx_slab_pool_t  *slab;

    slab = ngx_http_vlm_zone_pool(eng);

    ngx_shmtx_lock(&slab->mutex);

    ngx_cpystrn((u_char *) eng->shm->reload_reason, (u_char *) reason,
                sizeof(eng->shm->reload_reason));

    ngx_shmtx_unlock(&slab->mutex);
}


/* a designated worker starts: the state that its predecessor left is out of
   date */

void
ngx_http_vlm_zone_take(ngx_http_vlm_engine_t *eng)
{
    ngx_slab_pool_t     *slab;
    ngx_http_vlm_shm_t  *shm;

    shm = eng->shm;
    slab = ngx_http_vlm_zone_pool(eng);

    ngx_shmtx_lock(&slab->mutex);

    shm->pid = ngx_pid;
    shm->stays = eng->overlap;
    shm->state = NGX_HTTP_VLM_LOADING;
    shm->progress = 0;
    shm->filling = 0;
    shm->heartbeat = ngx_current_msec;
    shm->ticks = 0;
    eng->ticked = ngx_current_msec;
    shm->ticked = eng->ticked;
    shm->waiting = 0;
    shm->running = 0;

    shm->plan = eng->plan;
    shm->taken = 0;
    shm->device[0] = '\0';
    ngx_memcpy(shm->device_reason, eng->device_note,
               sizeof(shm->device_reason));
    shm->reason[0] = '\0';
    shm->reload_reason[0] = '\0';

    ngx_shmtx_unlock(&slab->mutex);
}


/* at an orderly exit: the zone has no owner, so its end is no crash */

void
ngx_http_vlm_zone_leave(ngx_http_vlm_engine_t *eng)
{
    if (ngx_http_vlm_zone_mine(eng)) {
        eng->shm->waiting = 0;
        eng->shm->running = 0;
        eng->shm->state = NGX_HTTP_VLM_LOADING;
        eng->shm->filling = 0;
        eng->shm->pid = 0;
    }
}


ngx_uint_t
ngx_http_vlm_zone_mine(ngx_http_vlm_engine_t *eng)
{
    return eng->shm->pid == (ngx_atomic_uint_t) ngx_pid;
}


void
ngx_http_vlm_zone_state(ngx_http_vlm_engine_t *eng,
    ngx_http_vlm_state_e state, const char *reason)
{
    vlm_stat_t           st;
    ngx_slab_pool_t     *slab;
    ngx_http_vlm_shm_t  *shm;

    if (!ngx_http_vlm_zone_mine(eng)) {
        return;
    }

    shm = eng->shm;
    slab = ngx_http_vlm_zone_pool(eng);

    ngx_memzero(&st, sizeof(vlm_stat_t));

    if (eng->vlm) {
        vlm_stat(eng->vlm, &st);
    }

    ngx_shmtx_lock(&slab->mutex);

    if (st.plan.total) {
        shm->plan = st.plan;
        shm->taken = st.taken;
    }

    ngx_memcpy(shm->device, st.device, sizeof(shm->device));
    ngx_memcpy(shm->device_reason, st.reason[0] ? st.reason : eng->device_note,
               sizeof(shm->device_reason));
    ngx_cpystrn((u_char *) shm->reason, (u_char *) reason,
                sizeof(shm->reason));

    shm->progress = state == NGX_HTTP_VLM_READY ? 100 : st.progress;
    shm->filling = st.filling;
    shm->state = state;

    ngx_shmtx_unlock(&slab->mutex);
}


/* a heartbeat: the loop lives, and the engine thread has come so far */

void
ngx_http_vlm_zone_beat(ngx_http_vlm_engine_t *eng)
{
    vlm_stat_t              st;
    ngx_http_vlm_shm_t     *shm;
    vlm_budget_t            memory;

    ngx_memzero(&st, sizeof(vlm_stat_t));

    if (eng->vlm) {
        vlm_stat(eng->vlm, &st);
    }

    /* an idle engine thread need not tick */

    if (st.ticks != eng->ticks || eng->vlm == NULL
        || (eng->loaded && eng->n_jobs == 0))
    {
        eng->ticks = st.ticks;
        eng->ticked = ngx_current_msec;
    }

    if (!ngx_http_vlm_zone_mine(eng)) {
        return;
    }

    shm = eng->shm;

    shm->heartbeat = ngx_current_msec;
    shm->kv_rows = st.kv_rows;
    shm->filling = st.filling;
    shm->ticks = eng->ticks;
    shm->ticked = eng->ticked;

    vlm_budget_look(&eng->budget, &memory);

    shm->http_used = memory.used;
    shm->http_peak = memory.peak;
    shm->http_waits = memory.waits;

    if (eng->vlm && !eng->loaded && !eng->failed) {
        shm->progress = st.progress;
    }
}


void
ngx_http_vlm_zone_line(ngx_http_vlm_engine_t *eng)
{
    if (ngx_http_vlm_zone_mine(eng)) {
        eng->shm->waiting = ngx_http_vlm_zone_length(eng);
        eng->shm->running = eng->running;
    }
}


void
ngx_http_vlm_zone_texts(ngx_http_vlm_engine_t *eng, ngx_http_vlm_shm_t *copy)
{
    ngx_slab_pool_t  *slab;

    slab = ngx_http_vlm_zone_pool(eng);

    ngx_shmtx_lock(&slab->mutex);

    *copy = *eng->shm;

    ngx_shmtx_unlock(&slab->mutex);
}


/*
 * A busy store, or a client's mistake, says nothing about the store.  A write
 * that succeeds clears the error.
 */

void
ngx_http_vlm_zone_store(ngx_http_vlm_engine_t *eng,
    vlm_store_err_t *err)
{
    const char       *text;
    ngx_slab_pool_t  *slab;

    text = "";

    if (err && err->code != VLM_STORE_OK) {

        if (err->code < VLM_STORE_EFULL
            || err->code == VLM_STORE_EBUSY)
        {
            return;
        }

        text = err->text;

    } else if (eng->shm->store_reason[0] == '\0') {
        return;
    }

    slab = ngx_http_vlm_zone_pool(eng);

    ngx_shmtx_lock(&slab->mutex);

    ngx_cpystrn((u_char *) eng->shm->store_reason, (u_char *) text,
                sizeof(eng->shm->store_reason));

    ngx_shmtx_unlock(&slab->mutex);
}


void
ngx_http_vlm_zone_sessions(ngx_http_vlm_engine_t *eng, uint64_t n)
{
    eng->shm->sessions = (ngx_atomic_uint_t) n;
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

    if (eng->loaded && eng->running < eng->conf.slots) {
        free = eng->conf.slots - eng->running;
    }

    return eng->waiting > free ? eng->waiting - free : 0;
}
