/* The quantised cache that a server would use, and doctor's finding about it. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/folder.h"
#include "base/size.h"
#include "cli/doctor.h"
#include "format/format.h"
#include "load/files.h"
#include "load/packed.h"

#define KEEP  (UINT64_C(64) << 20)     /* bytes of weights, from which on a server keeps a cache:
                                          http/conf/check.c */


/* The directory of the model, or of its GGUF file, as a server takes it. */
static void
default_dir(const vlm_conf_t *conf, char *dir, size_t bytes)
{
    int          n;
    const char  *slash;

    if (conf->mmproj == NULL) {
        (void) snprintf(dir, bytes, "%s", conf->model);
        return;
    }

    slash = strrchr(conf->model, '/');
    n = slash == NULL ? 0 : slash == conf->model ? 1 : (int) (slash - conf->model);
    (void) snprintf(dir, bytes, "%.*s", n == 0 ? 1 : n, n == 0 ? "." : conf->model);
}


/* Opens the file as a load would, and closes it again; sets its path. */
static int
open_packed(const vlm_conf_t *conf, const vlm_config_t *config, vlm_cache_t *cache)
{
    int                rc, assumed;
    uint8_t            id[VLM_PACKED_ID];
    vlm_packed_t       p;
    vlm_checkpoint_t  *c;

    c = vlm_files_weights(conf, config, &assumed, &cache->why);
    if (c == NULL) {
        return -1;
    }

    rc = vlm_checkpoint_id(c, id, &cache->why);
    vlm_checkpoint_close(c);

    if (rc != 0) {
        return -1;
    }

    rc = vlm_packed_open(&p, cache->dir, conf->model, conf->weights, id, &cache->why);
    (void) snprintf(cache->path, sizeof(cache->path), "%s", p.path);
    vlm_packed_close(&p);

    return rc;
}


vlm_cache_state_t
vlm_cli_cache(const vlm_conf_t *conf, const vlm_config_t *config, const vlm_plan_t *plan,
              vlm_cache_t *cache)
{
    memset(cache, 0, sizeof(*cache));

    if (!vlm_format_of(conf->weights)->cached || (conf->cache == NULL && plan->weights < KEEP)) {
        return VLM_CACHE_NONE;
    }

    if (conf->cache != NULL) {
        (void) snprintf(cache->dir, sizeof(cache->dir), "%s", conf->cache);
        (void) vlm_folder_is_new(cache->dir, cache->above, sizeof(cache->above));
    } else {
        default_dir(conf, cache->dir, sizeof(cache->dir));
    }

    if (open_packed(conf, config, cache) == 0) {
        return VLM_CACHE_WHOLE;
    }

    return cache->path[0] != '\0' && access(cache->path, F_OK) == 0 ? VLM_CACHE_STALE
                                                                    : VLM_CACHE_ABSENT;
}


/* Room for the file, of which the plan's sizes are what its writer reserves. */
static void
say_room(vlm_doctor_t *d, const vlm_cache_t *cache, int stale)
{
    uint64_t        need, room;
    struct statvfs  fs;

    need = vlm_add(d->plan.weights, d->plan.vision);

    if (statvfs(cache->above[0] != '\0' ? cache->above : cache->dir, &fs) != 0) {
        vlm_doctor_say(d, VLM_WARNS, "make the directory, or name another with cache",
                       "the quantised cache cannot be in \"%s\", so that each start quantises the "
                       "weights: %s", cache->dir, strerror(errno));
        return;
    }

    room = vlm_mul(fs.f_bavail, fs.f_frsize);

    if (room < need) {
        vlm_doctor_say(d, VLM_WARNS, "free the rest, or name another directory with cache",
                       "the quantised cache needs %" PRIu64 "m, and \"%s\" has room for %" PRIu64
                       "m, so that each start quantises the weights", vlm_mib(need), cache->dir,
                       room / 1048576);
        return;
    }

    vlm_doctor_say(d, VLM_FINE, NULL, "%s the first start writes the quantised cache of at most %"
                   PRIu64 "m into \"%s\", which %shas room for %" PRIu64 "m",
                   stale ? "what is there is not this model's:" : "there is none yet:",
                   vlm_mib(need), cache->dir, cache->above[0] != '\0' ? "nginx makes and "
                                                                      : "", room / 1048576);
}


void
vlm_doctor_cache(vlm_doctor_t *d)
{
    vlm_cache_t        cache;
    vlm_cache_state_t  state;

    if (!d->planned || !d->whole) {
        return;
    }

    state = vlm_cli_cache(&d->args->conf, d->config, &d->plan, &cache);

    if (state == VLM_CACHE_NONE) {
        vlm_doctor_say(d, VLM_FINE, NULL, "these weights are made at each start: a quantised cache "
                       "would save no time");

    } else if (state == VLM_CACHE_WHOLE) {
        vlm_doctor_say(d, VLM_FINE, NULL, "the quantised cache is there: \"%s\"", cache.path);

    } else {
        say_room(d, &cache, state == VLM_CACHE_STALE);
    }
}
