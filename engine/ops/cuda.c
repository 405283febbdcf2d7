/*
 * The engine's side of a CUDA device: plans without one, and loads libvlm_cuda.so, which does the
 * rest.
 *
 * The library is looked for beside the file that the engine is in: the nginx module, or a program
 * such as build/vlm; for a program in PREFIX/bin also among nginx's modules, where packages have
 * it.  It is loaded when a model is, in the process that runs it and never before a fork, and stays
 * loaded as long as the process lives.
 */

#define _GNU_SOURCE

#include "ops/cuda.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_HEAD_DIM  128              /* of text and vision encoder: attend.cuh's tiles */
#define MAX_DEVICES   1024             /* bound of an index */
#define MODULES       "lib/nginx/modules"          /* below the PREFIX of a program in bin/ */

struct vlm_device_s {                  /* the planner; a real one is the library's own */
    int  unused;
};


int
vlm_cuda_takes(vlm_type_t weights, uint32_t head_dim, uint32_t vision_head_dim, vlm_err_t *err)
{
    if (weights == VLM_F32) {
        return vlm_fail(err, VLM_EDEVICE, "weights %s are for device cpu, cuda takes int8, int4 "
                        "and bf16", vlm_weights_name(weights));
    }

    if (head_dim > MAX_HEAD_DIM || vision_head_dim > MAX_HEAD_DIM) {
        return vlm_fail(err, VLM_EDEVICE, "heads of %u and, in the vision encoder, %u values; "
                        "device cuda takes up to %d", head_dim, vision_head_dim, MAX_HEAD_DIM);
    }

    return 0;
}


int
vlm_cuda_index(const char *device, uint32_t *index)
{
    char           *end;
    unsigned long   n;

    *index = 0;

    if (strcmp(device, "cuda") == 0) {
        return 0;
    }

    if (strncmp(device, "cuda:", 5) != 0 || device[5] < '0' || device[5] > '9') {
        return -1;
    }

    n = strtoul(device + 5, &end, 10);

    if (*end != '\0' || n >= MAX_DEVICES) {
        return -1;
    }

    *index = (uint32_t) n;

    return 0;
}


/* ---- the plan ------------------------------------------------------------ */

static void
describe(const vlm_device_t *d, char *text, size_t bytes)
{
    (void) d;
    (void) snprintf(text, bytes, "cuda, planned");
}


static void
close_planner(vlm_device_t *d)
{
    (void) d;
}


static uint64_t
scratch_bytes(vlm_device_t *d, const vlm_need_t *need)
{
    vlm_arena_t         count = { NULL, 0, 0 };
    vlm_cuda_scratch_t  s;

    (void) d;
    vlm_cuda_place_scratch(&count, &s, need);

    return count.used;
}


static uint64_t
packed_bytes(vlm_device_t *d, vlm_type_t type, uint32_t N, uint32_t K)
{
    (void) d;

    return vlm_cuda_packed_bytes(type, N, K);
}


vlm_device_t *
vlm_cuda_planner(const vlm_ops_t **table)
{
    static vlm_device_t       planner;
    static const vlm_basic_t  basic = {
        .describe = describe,
        .close = close_planner,
        .act_bytes = vlm_cuda_act_bytes,
        .scratch_bytes = scratch_bytes,
        .packed_bytes = packed_bytes
    };
    static const vlm_ops_t    ops = { .basic = &basic };

    *table = &ops;

    return &planner;
}


/* ---- the library --------------------------------------------------------- */

/* Its path; "" if the engine's own file is not known. */
static void
library_path(char *path, size_t bytes)
{
    char     real[PATH_MAX], *slash;
    Dl_info  info;

    path[0] = '\0';

    /* A shell may have searched for the program's name: the system knows its full path. */

    if ((dladdr((void *) (uintptr_t) vlm_cuda_load, &info) == 0 || info.dli_fname == NULL
         || strchr(info.dli_fname, '/') == NULL || realpath(info.dli_fname, real) == NULL)
        && realpath("/proc/self/exe", real) == NULL)
    {
        return;
    }

    slash = strrchr(real, '/');
    *slash = '\0';

    if ((size_t) snprintf(path, bytes, "%s/" VLM_CUDA_LIBRARY, real) >= bytes) {
        path[0] = '\0';
        return;
    }

    slash = strrchr(real, '/');

    if (access(path, R_OK) != 0 && slash != NULL && strcmp(slash, "/bin") == 0) {
        *slash = '\0';

        if ((size_t) snprintf(path, bytes, "%s/" MODULES "/" VLM_CUDA_LIBRARY, real) >= bytes) {
            path[0] = '\0';
        }
    }
}


int
vlm_cuda_is_there(void)
{
    char  path[PATH_MAX];

    library_path(path, sizeof(path));

    return path[0] != '\0' && access(path, R_OK) == 0;
}


vlm_device_t *
vlm_cuda_load(vlm_cuda_request_t *r, const vlm_ops_t **table, vlm_err_t *err)
{
    char               path[PATH_MAX];
    void              *library;
    vlm_cuda_open_fn  *open;

    library_path(path, sizeof(path));

    if (path[0] == '\0' || access(path, R_OK) != 0) {
        (void) vlm_fail(err, VLM_EDEVICE, "device cuda:%u: there is no %s (make cuda)", r->index,
                        path[0] == '\0' ? VLM_CUDA_LIBRARY : path);
        return NULL;
    }

    library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library == NULL) {
        (void) vlm_fail(err, VLM_EDEVICE, "device cuda:%u: %s", r->index, dlerror());
        return NULL;
    }

    open = (vlm_cuda_open_fn *) (uintptr_t) dlsym(library, "vlm_cuda_open");
    if (open == NULL) {
        (void) vlm_fail(err, VLM_EDEVICE, "device cuda:%u: %s has no vlm_cuda_open()", r->index,
                        path);
        return NULL;
    }

    r->abi = VLM_CUDA_ABI;

    return open(r, table, err);
}
