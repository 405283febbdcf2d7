
/*
 * The adapters of an engine, as every worker can list them: the engine's own
 * list is in the designated worker.  Until that has one, the list is what the
 * engine will find in its directory.
 */


#include "life.h"


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

    vlm_adapters_clear(eng->zone->adapters, VLM_MAX_ADAPTERS);

    eng->life.left_out = 0;

    for (i = 0; i < n; i++) {

        /* a path is "lora", a slash, and the directory */

        vlm_adapters_add(eng->zone->adapters, VLM_MAX_ADAPTERS, list[i].name,
                         strrchr(list[i].path, '/') + 1, list[i].reason);

        if (list[i].reason[0]) {
            eng->life.left_out = 1;
        }
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}


ngx_uint_t
ngx_http_vlm_adapter_listed(ngx_http_vlm_engine_t *eng, const char *name,
    char *dir)
{
    ngx_uint_t            listed;
    vlm_adapter_entry_t  *a;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    a = name[0] ? vlm_adapters_find(eng->zone->adapters, VLM_MAX_ADAPTERS, name)
                : NULL;
    listed = a && a->listed;

    if (listed && dir) {
        ngx_memcpy(dir, a->dir, sizeof(a->dir));
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    return listed;
}


ngx_uint_t
ngx_http_vlm_adapter_left_out(ngx_http_vlm_engine_t *eng, const char *name)
{
    ngx_uint_t            left_out;
    vlm_adapter_entry_t  *a;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    a = name[0] ? vlm_adapters_find(eng->zone->adapters, VLM_MAX_ADAPTERS, name)
                : NULL;
    left_out = a && a->reason[0];

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));

    return left_out;
}


void
ngx_http_vlm_adapter_count(ngx_http_vlm_engine_t *eng, const char *name)
{
    vlm_adapter_entry_t  *a;

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));

    a = vlm_adapters_find(eng->zone->adapters, VLM_MAX_ADAPTERS, name);

    if (a) {
        a->requests++;
    }

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}
