/*
 * Commits the planned memory in the background.
 *
 * The system may have granted more memory than it has; committing all of it soon shows that early.
 * It may take seconds, while a virtual machine waits for its host or a disk is read, so it runs
 * beside the first answers.
 *
 * The reserved block comes first, then weights that are used where they are mapped.  These become
 * private memory, and from then on nothing depends on the file or on the system's page cache.
 */

#include "run/engine.h"

#include "base/size.h"


static void
warn(const vlm_t *v, const char *text)
{
    if (v->conf.log != NULL) {
        v->conf.log(v->conf.data, VLM_LOG_WARN, text);
    }
}


/*
 * Commits a range of the reserved block, rounded up to whole pieces, or behind it one of the cache
 * file's mapping.
 */
static int
fill(void *data, uint64_t at, uint64_t n)
{
    vlm_t     *v = data;
    uint64_t   reserved;

    reserved = vlm_round(v->reserved_bytes, VLM_BESIDE);

    if (at >= reserved) {
        if (vlm_file_own(&v->packed.file, n) != 0) {
            warn(v, "no memory for a copy of the weights: they stay in the mapped file");
            return -1;
        }

        return 0;
    }

    if (v->ops->basic->touch == NULL || at >= v->reserved_bytes) {
        return 0;
    }

    n = v->reserved_bytes - at < n ? v->reserved_bytes - at : n;

    if (v->ops->basic->touch(v->device, v->reserved + at, n) != 0) {
        warn(v, "the system does not have the planned memory");
        return -1;
    }

    return 0;
}


void
vlm_filling_start(vlm_t *v)
{
    uint64_t  bytes;

    bytes = vlm_round(v->reserved_bytes, VLM_BESIDE);

    if (v->packed.stays) {
        bytes += v->packed.file.bytes;
    }

    vlm_beside_start(&v->filling, fill, v, bytes);
}


void
vlm_filling_stop(vlm_t *v)
{
    vlm_beside_stop(&v->filling);
}
