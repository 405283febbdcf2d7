/*
 * The driver's table over the emulator: device memory is the host's, and launches run to their end.
 *
 * Any call can be told to return an error, and the driver counts calls after an error that allows
 * none.  A kernel that the emulator stops becomes error 719, as a real one that crashed would.
 */

#include "control.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../cost.h"
#include "../driver.h"
#include "../fault.h"
#include "graph.h"
#include "outside.h"

#define EXPORTED      extern "C" __attribute__((visibility("default")))
#define MAX_BLOCKS    64
#define MAX_KERNELS   128              /* that are loaded */
#define PLAIN_SHARED  (48u << 10)
#define FREED         0xdd             /* a read after the release shows */

static uint64_t settings[VLM_EMU_SETTINGS] = {
    1, 13000, 13000, 1, VLM_EMU / 10, UINT64_C(8) << 30, 0, 0, 0, 0, 0, 1, 0, 1, 2, 0
};

static vlm_emu_counts_t  counts;
static double            speed;        /* cost.h's costs in a microsecond */
static double            since;        /* us of launches since the host has waited */
static int               in_use;       /* the device */
static int               lost;         /* the error that allows no further call */
static pthread_mutex_t   mutex = PTHREAD_MUTEX_INITIALIZER;

static struct {
    const void  *kernel;
    size_t       shared;
} loaded[MAX_KERNELS];

static void             *graph;        /* that launches become part of; NULL: they are done */
static int               spoilt;       /* another call came meanwhile, or a launch failed */

static struct {
    void    *p;
    size_t   bytes;
} blocks[MAX_BLOCKS];


static void
forget(void)
{
    unsigned  i;

    for (i = 0; i < MAX_BLOCKS; i++) {
        free(blocks[i].p);
        blocks[i].p = nullptr;
    }

    vlm_emu_graph_free_all();
    graph = nullptr;
    counts.blocks = counts.streams = counts.graphs = counts.bytes = 0;
    counts.calls_after_loss = 0;
    settings[VLM_EMU_FAIL_AT] = 0;
    in_use = lost = 0;
}


EXPORTED void
vlm_emu_set(vlm_emu_setting_t setting, uint64_t value)
{
    settings[setting] = value;

    if (setting == VLM_EMU_FORGET) {
        forget();
    }

    if (setting == VLM_EMU_SEED) {
        vlm_emu_seed(value);
    } else if (setting == VLM_EMU_FAIL_AT) {
        lost = 0;
        counts.calls_after_loss = 0;
    } else if (setting == VLM_EMU_IDLE) {
        counts.longest = counts.between = since = 0;
    }
}


EXPORTED void
vlm_emu_count(vlm_emu_counts_t *c)
{
    *c = counts;
}


static void
hang(void)
{
    for ( ;; ) {
        (void) pause();
    }
}


/* Called first by each call of the table: 0, or the error that the call has to return. */
static int
begin(void)
{
    int  code, hangs;

    code = 0;
    hangs = 0;
    vlm_emu_listen();
    (void) pthread_mutex_lock(&mutex);

    counts.calls++;

    if (lost != 0) {
        counts.calls_after_loss++;
        code = lost;

    } else if (settings[VLM_EMU_FAIL_AT] > 0 && --settings[VLM_EMU_FAIL_AT] == 0) {
        hangs = settings[VLM_EMU_FAIL_CODE] == VLM_EMU_HANG;
        code = static_cast<int>(settings[VLM_EMU_FAIL_CODE]);
        lost = vlm_fault_of(code) == VLM_FAULT_LOST ? code : 0;
    }

    (void) pthread_mutex_unlock(&mutex);

    if (hangs) {
        hang();
    }

    return code;
}


/* For calls that may not come while launches are captured: they end the capture with an error. */
static int
begin_alone(void)
{
    int  code;

    code = begin();

    if (code == 0 && graph != nullptr) {
        spoilt = 1;
        code = 900;
    }

    return code;
}


/* ---- the device --------------------------------------------------------------------------- */

static int
emu_version(int *driver, int *runtime)
{
    *driver = static_cast<int>(settings[VLM_EMU_DRIVER]);
    *runtime = static_cast<int>(settings[VLM_EMU_BUILT_BY]);

    return begin();
}


static int
emu_count(int *n)
{
    int  code;

    code = begin();
    *n = static_cast<int>(settings[VLM_EMU_DEVICES]);

    if (code == 0 && settings[VLM_EMU_DRIVER] / 1000 < settings[VLM_EMU_BUILT_BY] / 1000) {
        code = 35;
    }

    return code == 0 && *n == 0 ? 100 : code;
}


static int
emu_facts(int index, vlm_facts_of_device_t *f)
{
    (void) snprintf(f->name, sizeof(f->name), "emulator %d", index);
    f->arch = static_cast<uint32_t>(settings[VLM_EMU_ARCH]);
    f->n_sms = static_cast<uint32_t>(settings[VLM_EMU_SMS]);
    f->bytes = settings[VLM_EMU_BYTES];
    f->shared = f->arch < 80 ? 64u << 10 : 99u << 10;

    return begin();
}


static int
emu_use(int index)
{
    int  code;

    code = begin();
    code = code == 0 && static_cast<uint64_t>(index) >= settings[VLM_EMU_DEVICES] ? 101 : code;
    in_use |= code == 0;

    return code;
}


static int
emu_speed(uint32_t n_sms, double *ops)
{
    (void) n_sms;
    *ops = 8e6 / static_cast<double>(settings[VLM_EMU_SLOW]);
    speed = VLM_SHARE * *ops;

    return begin_alone();
}


/* ---- memory ------------------------------------------------------------------------------- */

static uint64_t
used_by_all(void)
{
    return settings[VLM_EMU_USED] + counts.bytes + (in_use ? settings[VLM_EMU_TAKES] : 0)
           + counts.graphs * settings[VLM_EMU_KEEPS];
}


static int
emu_in_use(int index, uint64_t *bytes)
{
    (void) index;
    *bytes = used_by_all();

    return 0;
}


static size_t
left(void)
{
    uint64_t  used;

    used = used_by_all();

    return used > settings[VLM_EMU_BYTES] ? 0 : settings[VLM_EMU_BYTES] - used;
}


static int
emu_memory(size_t *free_bytes, size_t *total)
{
    *free_bytes = left();
    *total = settings[VLM_EMU_BYTES];

    return begin();
}


static int
emu_reserve(void **p, size_t bytes)
{
    int       code;
    unsigned  i;

    code = begin_alone();

    for (i = 0; i < MAX_BLOCKS && blocks[i].p != nullptr; i++) { /* void */ }

    if (code == 0 && (i == MAX_BLOCKS || bytes > left() || posix_memalign(p, 256, bytes) != 0)) {
        code = 2;
    }

    if (code == 0) {
        memset(*p, 0xcb, bytes);
        blocks[i].p = *p;
        blocks[i].bytes = bytes;
        counts.blocks++;
        counts.bytes += bytes;
    }

    return code;
}


static int
emu_release(void *p)
{
    int       code;
    unsigned  i;

    code = begin_alone();

    for (i = 0; i < MAX_BLOCKS && blocks[i].p != p; i++) { /* void */ }

    if (i == MAX_BLOCKS) {
        return code == 0 ? 1 : code;
    }

    /* Frees also when the call is told to fail, so that the tests' own memory does not leak. */

    memset(p, FREED, blocks[i].bytes);
    counts.blocks--;
    counts.bytes -= blocks[i].bytes;
    blocks[i].p = nullptr;
    free(p);

    return code;
}


static int
emu_open_stream(void **stream)
{
    int  code;

    code = begin_alone();
    *stream = code == 0 ? &counts : nullptr;
    counts.streams += code == 0;

    return code;
}


static int
emu_close_stream(void *stream)
{
    int  code;

    code = begin_alone();

    if (stream != &counts) {
        return code == 0 ? 400 : code;
    }

    counts.streams--;

    return code;
}


/* Checks for a range within one block: the same faults as in CUDA's copies. */
static int
inside(const void *p, size_t bytes)
{
    unsigned     i;
    const char  *at = static_cast<const char *>(p), *base;

    for (i = 0; i < MAX_BLOCKS; i++) {
        base = static_cast<const char *>(blocks[i].p);

        if (base != nullptr && at >= base && at < base + blocks[i].bytes
            && bytes <= static_cast<size_t>(base + blocks[i].bytes - at))
        {
            return 1;
        }
    }

    return 0;
}


static int
copy(void *to, const void *from, size_t bytes, const void *device)
{
    int  code;

    code = begin_alone();

    if (code == 0 && !inside(device, bytes)) {
        code = 1;
    }

    if (code == 0) {
        memcpy(to, from, bytes);
    }

    return code;
}


static int
emu_put(void *to, const void *from, size_t bytes, void *stream)
{
    (void) stream;

    return copy(to, from, bytes, to);
}


static int
emu_get(void *to, const void *from, size_t bytes, void *stream)
{
    (void) stream;
    since = 0;

    return copy(to, from, bytes, from);
}


static int
emu_fill(void *to, int byte, size_t bytes, void *stream)
{
    int  code;

    (void) stream;
    code = begin_alone();

    if (code == 0 && !inside(to, bytes)) {
        code = 1;
    }

    if (code == 0) {
        memset(to, byte, bytes);
    }

    return code;
}


/* ---- launches ----------------------------------------------------------------------------- */

static void
call_kernel(void *arg)
{
    const vlm_launch_t  *l = static_cast<const vlm_launch_t *>(arg);

    l->call(l->kernel, l->args);
}


static int
emu_load(const void *kernel, size_t shared)
{
    int       code;
    unsigned  i;

    code = begin_alone();

    for (i = 0; i < counts.loaded && loaded[i].kernel != kernel; i++) { /* void */ }

    code = code == 0 && i == MAX_KERNELS ? 2 : code;

    if (code == 0) {
        loaded[i].kernel = kernel;
        loaded[i].shared = shared;
        counts.loaded += i == counts.loaded;
    }

    return code;
}


static int
is_loaded(const vlm_launch_t *l)
{
    unsigned  i;

    for (i = 0; i < counts.loaded; i++) {
        if (loaded[i].kernel == l->kernel && l->shared <= loaded[i].shared) {
            return 1;
        }
    }

    (void) fprintf(stderr, "%s with %zu dynamic bytes was not loaded\n", l->name, l->shared);

    return 0;
}


/* 0, or the error that the launch of this kernel ends in. */
static int
run(const vlm_launch_t *l)
{
    size_t  most;

    counts.kernels++;

    if (settings[VLM_EMU_IDLE]) {
        return 0;
    }

    most = settings[VLM_EMU_ARCH] < 80 ? 64u << 10 : 99u << 10;

    if (vlm_emu_run({ l->grid.x, l->grid.y, l->grid.z }, { l->block.x, l->block.y, l->block.z },
                    l->shared, call_kernel, const_cast<vlm_launch_t *>(l)) != 0)
    {
        (void) fprintf(stderr, "%s: %s\n", l->name, vlm_emu_report());
        return 719;
    }

    if (vlm_emu_shared_bytes() > most || vlm_emu_shared_bytes() - l->shared > PLAIN_SHARED) {
        (void) fprintf(stderr, "%s: %llu shared bytes\n", l->name,
                       static_cast<unsigned long long>(vlm_emu_shared_bytes()));
        return 1;
    }

    return 0;
}


static void
count_launch(int code, double cost)
{
    const double  us = cost / speed;

    if (code == 0) {
        counts.launches++;
        counts.longest = us > counts.longest ? us : counts.longest;
        since += us;
        counts.between = since > counts.between ? since : counts.between;
    }
}


static int
emu_launch(const vlm_launch_t *l)
{
    int  code;

    code = begin();
    code = code == 0 && !is_loaded(l) ? 98 : code;

    if (graph != nullptr) {
        code = code == 0 ? vlm_emu_graph_add(graph, l) : code;
        spoilt |= code != 0;
        return code;
    }

    count_launch(code, l->cost);

    return code == 0 ? run(l) : code;
}


static int
emu_wait(void *stream)
{
    (void) stream;
    counts.waits++;
    since = 0;

    return begin_alone();
}


/* ---- graphs ------------------------------------------------------------------------------- */

static int
emu_capture(void *stream)
{
    int  code;

    (void) stream;
    code = begin_alone();

    if (code == 0 && settings[VLM_EMU_CAPTURES] == 0) {
        code = 900;
    }

    if (code == 0) {
        graph = vlm_emu_graph_new();
        spoilt = 0;
        code = graph == nullptr ? 2 : 0;
    }

    return code;
}


/* Ends the capture whatever it returns. */
static int
emu_captured(void *stream, void **to)
{
    int  code;

    (void) stream;
    code = begin();
    code = code == 0 && graph == nullptr ? 903 : code;
    code = code == 0 && spoilt ? 901 : code;

    if (code == 0) {
        *to = graph;
        counts.graphs++;
    } else {
        vlm_emu_graph_free(graph);
    }

    graph = nullptr;

    return code;
}


static int
emu_replay(void *g, void *stream)
{
    int                  code;
    double               cost;
    unsigned             i;
    const vlm_launch_t  *l;

    (void) stream;
    code = begin_alone();

    for (cost = 0, i = 0; (l = vlm_emu_graph_at(g, i)) != nullptr; i++) {
        cost += l->cost;
    }

    count_launch(code, cost);

    for (i = 0; code == 0 && (l = vlm_emu_graph_at(g, i)) != nullptr; i++) {
        code = run(l);
    }

    return code;
}


static int
emu_drop(void *g)
{
    int  code;

    code = begin_alone();
    vlm_emu_graph_free(g);
    counts.graphs--;

    return code;
}


static const char *
emu_text(int code)
{
    switch (code) {
    case 0:
        return "no error";
    case 2:
        return "out of memory";
    case 700:
        return "an illegal memory access was encountered";
    case 719:
        return "unspecified launch failure";
    default:
        return "an error of the emulated driver";
    }
}


const vlm_driver_t *
vlm_driver(void)
{
    static const vlm_driver_t  driver = {
        emu_version, emu_count, emu_facts, emu_use, emu_speed, emu_memory, emu_reserve,
        emu_release, emu_open_stream, emu_close_stream, emu_fill, emu_put, emu_get, emu_load,
        emu_launch, emu_wait, emu_capture, emu_captured, emu_replay, emu_drop, emu_in_use, emu_text
    };

    return &driver;
}
