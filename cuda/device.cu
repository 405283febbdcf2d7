/*
 * The exported table: opening a device, taking its memory in a few large blocks, and reporting its
 * faults.  The other files of this folder have the operations.
 *
 * The first fault is kept until sync() reports it.  After a fault from which CUDA does not recover,
 * the runtime is not called again, not even to free memory: calls may hang, and the process has to
 * be replaced.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "device.h"

extern "C" {
#include "base/size.h"
#include "ops/cuda_driver.h"
}

#define LEAST_ARCH       75
#define MIB(bytes)       (((bytes) + 1048575) / 1048576)

#define VERSION          "%d.%d"
#define OF_VERSION(v)    (v) / 1000, (v) / 10 % 100

static int find_device(vlm_device_t *d, const vlm_cuda_request_t *r, vlm_err_t *err);
static int take_device(vlm_device_t *d, const vlm_cuda_request_t *r, vlm_err_t *err);
static int open_failed(vlm_device_t *d, int code, vlm_err_t *err);
static const vlm_ops_t *operations(void);


/* ---- life --------------------------------------------------------------------------------- */

extern "C" __attribute__((visibility("default"))) vlm_device_t *
vlm_cuda_open(vlm_cuda_request_t *r, const vlm_ops_t **table, vlm_err_t *err)
{
    vlm_device_t  *d;

    if (r->abi != VLM_CUDA_ABI) {
        (void) vlm_fail(err, VLM_EDEVICE, VLM_CUDA_LIBRARY " is of another build: version %08x, "
                        "expected %08x", VLM_CUDA_ABI, r->abi);
        return nullptr;
    }

    d = static_cast<vlm_device_t *>(calloc(1, sizeof(*d)));
    if (d == nullptr) {
        (void) vlm_fail(err, VLM_EMEMORY, "no memory for the cuda device");
        return nullptr;
    }

    d->driver = vlm_driver();
    d->index = r->index;
    d->weights = r->weights;

    if (find_device(d, r, err) != 0 || take_device(d, r, err) != 0) {
        r->lost = d->fault != 0 && vlm_fault_of(d->fault) == VLM_FAULT_LOST;
        free(d);
        return nullptr;
    }

    *table = operations();

    return d;
}


/* Checks that the device exists, and that there are kernels for it. */
static int
find_device(vlm_device_t *d, const vlm_cuda_request_t *r, vlm_err_t *err)
{
    int                    code, n, driver;
    vlm_facts_of_device_t *f = &d->facts;

    driver = n = 0;

    code = d->driver->version(&driver, &d->built_by);

    if (code == 0 && driver == 0) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: there is no NVIDIA driver", r->index);
    }

    code = code == 0 ? d->driver->count(&n) : code;

    /* Minor versions are compatible in both directions. */

    if (code == VLM_CODE_OLD_DRIVER || driver / 1000 < d->built_by / 1000) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: the NVIDIA driver is too old: it knows CUDA "
                        VERSION ", and the library, which CUDA " VERSION " has built, wants a "
                        "driver from %d on; for this driver install %s, then \"make cuda\"",
                        r->index, OF_VERSION(driver), OF_VERSION(d->built_by),
                        vlm_cuda_least_driver(d->built_by / 1000), vlm_cuda_toolkit(driver / 1000));
    }

    if (code == VLM_CODE_NO_DEVICE || (code == 0 && n == 0)) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: there is no CUDA device", r->index);
    }

    if (code == 0 && r->index >= static_cast<uint32_t>(n)) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: this machine has %d CUDA device%s, the last is "
                        "cuda:%d", r->index, n, n == 1 ? "" : "s", n - 1);
    }

    code = code == 0 ? d->driver->facts(static_cast<int>(r->index), f) : code;

    if (code != 0) {
        return open_failed(d, code, err);
    }

    if (f->arch < LEAST_ARCH) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s is of sm_%u, sm_%d is the least", r->index,
                        f->name, f->arch, LEAST_ARCH);
    }

    if (r->weights == VLM_BF16 && f->arch < VLM_ARCH_BF16) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s is of sm_%u, weights bf16 want sm_%d: use "
                        "weights int8", r->index, f->name, f->arch, VLM_ARCH_BF16);
    }

    return 0;
}


/* Loads all kernels, so that the driver takes its share of memory now. */
static int
load_kernels(vlm_device_t *d, vlm_err_t *err)
{
    vlm_load_attend(d);
    vlm_load_embed(d);
    vlm_load_linear(d);
    vlm_load_low(d);
    vlm_load_norm(d);
    vlm_load_patch_embed(d);
    vlm_load_places(d);
    vlm_load_qkv(d);
    vlm_load_ready(d);
    vlm_load_turn(d);
    vlm_load_sample(d);
    vlm_load_segments(d);

    return d->fault == 0 ? 0 : open_failed(d, d->fault, err);
}


/* From here on the driver uses memory of the device. */
static int
take_device(vlm_device_t *d, const vlm_cuda_request_t *r, vlm_err_t *err)
{
    int     code;
    double  speed;
    size_t  left, all;

    speed = 0;
    left = all = 0;

    d->has_before = d->driver->in_use(static_cast<int>(d->index), &d->before) == 0;
    code = d->driver->use(static_cast<int>(d->index));

    if (code == 0 && load_kernels(d, err) != 0) {
        return -1;
    }

    code = code == 0 ? d->driver->speed(d->facts.n_sms, &speed) : code;
    d->most = VLM_BOUND_US * VLM_SHARE * speed;
    code = code == 0 ? d->driver->memory(&left, &all) : code;

    if (code != 0) {
        return open_failed(d, code, err);
    }

    if (left < r->bytes) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s has %" PRIu64 "m free of %" PRIu64
                        "m, the plan wants %" PRIu64 "m", r->index, d->facts.name,
                        static_cast<uint64_t>(left) / 1048576,
                        static_cast<uint64_t>(all) / 1048576, MIB(r->bytes));
    }

    code = d->driver->open_stream(&d->stream);

    return code == 0 ? 0 : open_failed(d, code, err);
}


static int
open_failed(vlm_device_t *d, int code, vlm_err_t *err)
{
    const vlm_facts_of_device_t *f = &d->facts;

    (void) vlm_device_check(d, code, "open");

    switch (code) {

    case VLM_CODE_NO_KERNEL:
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s is of sm_%u, for which the library, which "
                        "CUDA " VERSION " has built, has no kernels: see docs/gpu.md", d->index,
                        f->name, f->arch, OF_VERSION(d->built_by));

    case VLM_CODE_BAD_PTX:
    case VLM_CODE_NO_COMPILER:
    case VLM_CODE_NEW_PTX:
    case VLM_CODE_NO_COMPILING:
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s is of sm_%u, newer than the library, which "
                        "CUDA " VERSION " has built, and the driver cannot compile its kernels: "
                        "%s (error %d)", d->index, f->name, f->arch, OF_VERSION(d->built_by),
                        d->driver->text(code), code);

    default:
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u: %s (error %d, at %s)", d->index,
                        d->driver->text(code), code, d->fault_at);
    }
}


static void
cuda_close(vlm_device_t *d)
{
    uint32_t  i;

    if (d == nullptr) {
        return;
    }

    if (!d->lost) {
        (void) d->driver->use(static_cast<int>(d->index));
        (void) d->driver->wait(d->stream);
        vlm_device_drop_kept(d);

        for (i = 0; i < d->n_reserved; i++) {
            (void) d->driver->release(d->reserved[i]);
        }

        (void) d->driver->close_stream(d->stream);
    }

    free(d);
}


static void
cuda_describe(const vlm_device_t *d, char *text, size_t bytes)
{
    (void) snprintf(text, bytes, "cuda:%u, %s, sm_%u%s", d->index, d->facts.name, d->facts.arch,
                    d->keeps_none ? ", no graphs" : "");
}


/* ---- faults ------------------------------------------------------------------------------- */

int
vlm_device_check(vlm_device_t *d, int code, const char *what)
{
    int          none;
    vlm_fault_t  is;

    is = vlm_fault_of(code);

    if (is == VLM_FAULT_NONE) {
        return 0;
    }

    none = 0;

    if (__atomic_compare_exchange_n(&d->fault, &none, code, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST))
    {
        d->fault_at = what;
    }

    if (is != VLM_FAULT_REFUSED) {
        __atomic_store_n(&d->lost, 1, __ATOMIC_SEQ_CST);
    }

    return -1;
}


void
vlm_device_no_memory(vlm_device_t *d)
{
    (void) vlm_device_check(d, VLM_CODE_NO_MEMORY, "memory of the host");
}


int
vlm_device_ready(vlm_device_t *d)
{
    return __atomic_load_n(&d->fault, __ATOMIC_SEQ_CST) == 0
           && __atomic_load_n(&d->lost, __ATOMIC_SEQ_CST) == 0 && !d->quitting;
}


static int
cuda_sync(vlm_device_t *d, vlm_err_t *err)
{
    int          code;
    const char  *at;

    if (!d->lost) {
        (void) vlm_device_check(d, d->driver->wait(d->stream), "earlier work");
        d->spent = 0;
    }

    if (d->fault == 0 && !d->lost) {
        return 0;
    }

    code = d->fault;
    at = d->fault_at;

    if (d->lost) {
        return vlm_fail(err, VLM_EDEVICE, "cuda:%u is lost: %s (error %d, at %s)", d->index,
                        d->driver->text(code), code, at == nullptr ? "?" : at);
    }

    /* A caller without err leaves the fault for the next sync() that has one. */

    if (err != nullptr) {
        d->fault = 0;
    }

    return vlm_fail(err, VLM_EMEMORY, "cuda:%u: a call failed: %s (error %d, at %s)", d->index,
                    d->driver->text(code), code, at == nullptr ? "?" : at);
}


static void
cuda_ask(vlm_device_t *d, vlm_quit_fn quit, void *data)
{
    d->quit = quit;
    d->quit_data = data;
    d->quitting = 0;
}


void
vlm_device_spend(vlm_device_t *d, double cost)
{
    if (d->recording) {
        vlm_device_cut(d, cost);       /* the work is done later, and more than once */
        return;
    }

    if (d->quit != nullptr && d->spent > 0 && d->spent + cost > d->most && vlm_device_ready(d)
        && vlm_device_check(d, d->driver->wait(d->stream), "earlier work") == 0)
    {
        d->spent = 0;
        d->quitting = d->quit(d->quit_data) != 0;
    }

    d->spent += cost;
}


/* ---- memory ------------------------------------------------------------------------------- */

/* Threads that load weights call this too, so each call selects its device. */
static int
enter(vlm_device_t *d)
{
    static thread_local uint32_t  used = UINT32_MAX;

    if (d->lost) {
        return -1;
    }

    if (used != d->index) {
        if (vlm_device_check(d, d->driver->use(static_cast<int>(d->index)), "use") != 0) {
            return -1;
        }

        used = d->index;
    }

    return 0;
}


static void *
cuda_reserve(vlm_device_t *d, uint64_t bytes, vlm_err_t *err)
{
    int   code;
    void  *p;

    if (d->n_reserved == VLM_MAX_RESERVED || bytes == 0 || bytes > SIZE_MAX / 2) {
        (void) vlm_fail(err, VLM_EMEMORY, "cannot reserve %" PRIu64 " bytes", bytes);
        return nullptr;
    }

    p = nullptr;
    code = enter(d) != 0 ? d->fault : d->driver->reserve(&p, bytes);

    if (code == 0) {
        d->reserved[d->n_reserved++] = p;
        d->bytes += bytes;
        code = d->driver->fill(p, 0, bytes, d->stream);
    }

    if (vlm_device_check(d, code, "the allocation of the plan") != 0) {
        (void) cuda_sync(d, err);
        (void) vlm_fail(err, VLM_EMEMORY, "cuda:%u: cannot allocate %" PRIu64 " bytes", d->index,
                        bytes);
        return nullptr;
    }

    return p;
}


/* The figure is exact if other processes took and freed nothing since the device was opened. */
static uint64_t
cuda_taken(vlm_device_t *d)
{
    uint64_t  now;

    if (!d->has_before || d->lost || d->driver->in_use(static_cast<int>(d->index), &now) != 0) {
        return 0;
    }

    return now > d->before + d->bytes ? now - d->before - d->bytes : 0;
}


void
vlm_device_put(vlm_device_t *d, void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0 && enter(d) == 0) {
        (void) vlm_device_check(d, d->driver->put(to, from, bytes, d->stream),
                                "a copy to the device");
    }
}


static void
cuda_get(vlm_device_t *d, void *to, const void *from, uint64_t bytes)
{
    if (bytes > 0 && enter(d) == 0) {
        (void) vlm_device_check(d, d->driver->get(to, from, bytes, d->stream),
                                "a copy from the device");
        d->spent = 0;                  /* the copy ends when all work before it is done */
    }
}


static uint64_t
cuda_packed_bytes(vlm_device_t *d, vlm_type_t type, uint32_t N, uint32_t K)
{
    (void) d;

    return vlm_cuda_packed_bytes(type, N, K);
}


static uint64_t
cuda_scratch_bytes(vlm_device_t *d, const vlm_need_t *need)
{
    vlm_arena_t         count = { nullptr, 0, 0 };
    vlm_cuda_scratch_t  s;

    (void) d;
    vlm_cuda_place_scratch(&count, &s, need);

    return count.used;
}


static void
cuda_set_scratch(vlm_device_t *d, const vlm_need_t *need, void *scratch)
{
    vlm_arena_t  place = { static_cast<uint8_t *>(scratch), UINT64_MAX, 0 };

    vlm_cuda_place_scratch(&place, &d->scratch, need);
    d->need = *need;
}


/* ---- the table ---------------------------------------------------------------------------- */

static const vlm_ops_t *
operations(void)
{
    static vlm_basic_t  basic;
    static vlm_ops_t    ops;

    basic.describe = cuda_describe;
    basic.close = cuda_close;
    basic.reserve = cuda_reserve;
    basic.put = vlm_device_put;
    basic.get = cuda_get;
    basic.sync = cuda_sync;
    basic.ask = cuda_ask;
    basic.taken = cuda_taken;
    basic.act_bytes = vlm_cuda_act_bytes;
    basic.scratch_bytes = cuda_scratch_bytes;
    basic.set_scratch = cuda_set_scratch;
    basic.record = vlm_cuda_record;
    basic.keep = vlm_cuda_keep;
    basic.replay = vlm_cuda_replay;
    basic.packed_bytes = cuda_packed_bytes;
    basic.pack = vlm_cuda_pack;

    ops.basic = &basic;
    ops.embed = vlm_cuda_embed;
    ops.norm = vlm_cuda_norm;
    ops.norm_stream = vlm_cuda_norm_stream;
    ops.linear = vlm_cuda_linear;
    ops.qkv = vlm_cuda_qkv;
    ops.attend = vlm_cuda_attend;
    ops.add_features = vlm_cuda_add_features;
    ops.head = vlm_cuda_head;
    ops.sample = vlm_cuda_sample;
    ops.patch_embed = vlm_cuda_patch_embed;
    ops.add_places = vlm_cuda_add_places;
    ops.qkv_2d = vlm_cuda_qkv_2d;
    ops.attend_segments = vlm_cuda_attend_segments;

    return &ops;
}
