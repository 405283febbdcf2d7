
/*
 * The adapters of an engine, as every worker can list them: the engine's own
 * list is in the designated worker.  Until that has one, the list is what the
 * engine will find in its directory.
 */


#include "life.h"


/* under the lock: the entry of that name, or NULL */

static ngx_http_vlm_adapter_t *
ngx_http_vlm_adapter_find(ngx_http_vlm_engine_t *eng, const char *name)
{
    ngx_uint_t               i;
    ngx_http_vlm_adapter_t  *a;

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        a = &eng->zone->adapters[i];

        if (ngx_strcmp(a->name, name) == 0) {
            return a;
        }
    }

    return NULL;
}


/* an entry that is listed no more keeps its count until another needs it */

static void
ngx_http_vlm_adapter_add(ngx_http_vlm_engine_t *eng, vlm_adapter_info_t *info)
{
    char                    *dir, *name;
    ngx_uint_t               i;
    ngx_http_vlm_adapter_t  *a;

    name = info->name;
    dir = strrchr(info->path, '/') + 1;        /* "lora", a slash, and it */

    a = ngx_http_vlm_adapter_find(eng, name);

    for (i = 0; a == NULL && i < VLM_MAX_ADAPTERS; i++) {

        if (eng->zone->adapters[i].name[0] == '\0') {
            a = &eng->zone->adapters[i];
        }
    }

    for (i = 0; a == NULL && i < VLM_MAX_ADAPTERS; i++) {

        if (!eng->zone->adapters[i].listed) {
            a = &eng->zone->adapters[i];
        }
    }

    if (a == NULL) {
        return;
    }

    if (ngx_strcmp(a->name, name) != 0) {
        ngx_cpystrn((u_char *) a->name, (u_char *) name, sizeof(a->name));
        a->requests = 0;
    }

    ngx_cpystrn((u_char *) a->dir, (u_char *) dir, sizeof(a->dir));
    a->listed = 1;
}


void
ngx_http_vlm_adapter_share(ngx_http_vlm_engine_t *eng)
{
    uint32_t             i, n;
    vlm_adapter_info_t   list[VLM_MAX_ADAPTERS];

    if (eng->conf.vlm.lora == NULL
        || eng->zone->pid != (ngx_atomic_uint_t) ngx_pid)
    {
        return;
    }

    n = eng->life.vlm
        ? vlm_adapters(eng->life.vlm, list, VLM_MAX_ADAPTERS)
        : vlm_adapters_planned(&eng->conf.vlm, list, VLM_MAX_ADAPTERS);

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    for (i = 0; i < VLM_MAX_ADAPTERS; i++) {
        eng->zone->adapters[i].listed = 0;
    }

    for (i = 0; i < n; i++) {
        ngx_http_vlm_adapter_add(eng, &list[i]);
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}


ngx_uint_t
ngx_http_vlm_adapter_listed(ngx_http_vlm_engine_t *eng, const char *name,
    char *dir)
{
    ngx_uint_t               listed;
    ngx_http_vlm_adapter_t  *a;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    a = name[0] ? ngx_http_vlm_adapter_find(eng, name) : NULL;
    listed = a && a->listed;

    if (listed && dir) {
        ngx_memcpy(dir, a->dir, sizeof(a->dir));
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    return listed;
}


void
ngx_http_vlm_adapter_count(ngx_http_vlm_engine_t *eng, const char *name)
{
    ngx_http_vlm_adapter_t  *a;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    a = ngx_http_vlm_adapter_find(eng, name);

    if (a) {
        a->requests++;
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}
