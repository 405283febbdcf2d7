/* Findings of doctor about the machine: its memory, its processor and its GPU. */

#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cgroup.h"
#include "base/size.h"
#include "cli/doctor.h"
#include "ops/cuda.h"
#include "ops/cuda_driver.h"

#define DRIVER   "/proc/driver/nvidia/version"
#define SERVICE  "/sys/fs/cgroup/system.slice/nginx.service/memory.max"
#define PAGES    "/sys/kernel/mm/transparent_hugepage/enabled"
#define LIBRARY  "install nginx-vlm-cuda, or \"make cuda\""
#define SMALLER  "take weights int4 or a smaller model"


/* ---- memory ---------------------------------------------------------------- */

/* "NAME:  123 kB" of /proc/meminfo in bytes; 0: it is not there. */
static uint64_t
meminfo(const vlm_doctor_t *d, const char *name)
{
    char   text[8192], *p;
    size_t n = strlen(name);

    (void) vlm_doctor_text(d, "/proc/meminfo", text, sizeof(text));

    for (p = text; p != NULL && *p != '\0'; p = strchr(p, '\n') == NULL ? NULL
                                               : strchr(p, '\n') + 1)
    {
        if (strncmp(p, name, n) == 0 && p[n] == ':') {
            return vlm_mul(strtoull(p + n + 1, NULL, 10), 1024);
        }
    }

    return 0;
}


/* The least that the machine and the control groups of this process and of nginx's service allow;
   says in which words. */
static uint64_t
limit_of(const vlm_doctor_t *d, const char **words)
{
    char       text[64];
    uint64_t   service;
    vlm_ram_t  ram;

    vlm_ram(d->root, &ram);
    *words = ram.group ? "the control group may use" : "this machine has";

    if (vlm_doctor_text(d, SERVICE, text, sizeof(text)) == 0 && text[0] >= '0' && text[0] <= '9') {
        service = strtoull(text, NULL, 10);

        if (ram.bytes == 0 || service < ram.bytes) {
            *words = "nginx.service may use";
            return service;
        }
    }

    return ram.bytes;
}


/* A plan of the host's memory against a limit; 1: it fits. */
static int
fits(vlm_doctor_t *d, const vlm_conf_t *settings, uint64_t limit, const char *words)
{
    vlm_err_t    err = { VLM_OK, "" };
    vlm_conf_t   conf = *settings;
    vlm_plan_t   plan;
    const char  *remedy;

    conf.memory = limit;

    if (vlm_plan(&conf, &plan, &err) == 0) {
        return 1;
    }

    /* "4432m needed (...), memory is 4000m: context 1k needs 3900m" */

    remedy = strstr(err.text, "memory is ");
    remedy = remedy == NULL ? NULL : strstr(remedy, ": ");

    vlm_doctor_say(d, VLM_STOPS, remedy == NULL ? SMALLER : remedy + 2,
                   "%s %" PRIu64 "m, and the plan has %" PRIu64 "m (weights %" PRIu64 "m, vision %"
                   PRIu64 "m, kv %" PRIu64 "m)", words, vlm_mib(limit), vlm_mib(plan.total),
                   vlm_mib(plan.weights), vlm_mib(plan.vision), vlm_mib(plan.kv));

    return 0;
}


/* Memory that is promised counts where the kernel is told to refuse more than it has. */
static void
say_commit(vlm_doctor_t *d, uint64_t total)
{
    char      mode[16];
    uint64_t  limit, used;

    (void) vlm_doctor_text(d, "/proc/sys/vm/overcommit_memory", mode, sizeof(mode));
    limit = meminfo(d, "CommitLimit");
    used = meminfo(d, "Committed_AS");

    if (mode[0] == '2' && total > (limit > used ? limit - used : 0)) {
        vlm_doctor_say(d, VLM_STOPS, "sysctl vm.overcommit_memory=0", "the kernel promises %" PRIu64
                       "m more to all programs, as vm.overcommit_memory is 2, and the plan has %"
                       PRIu64 "m", limit > used ? (limit - used) / 1048576 : 0, vlm_mib(total));
    }
}


static void
say_ram(vlm_doctor_t *d, const vlm_conf_t *conf)
{
    uint64_t     limit, free_now, total = d->cpu.total;
    const char  *words;

    limit = limit_of(d, &words);
    free_now = meminfo(d, "MemAvailable");

    if (limit == 0) {
        vlm_doctor_say(d, VLM_WARNS, "see that it has more", "the plan has %" PRIu64 "m, and the "
                       "system does not say how much memory there is", vlm_mib(total));

    } else if (!fits(d, conf, limit, words)) {
        return;

    } else if (free_now != 0 && total > free_now) {
        vlm_doctor_say(d, VLM_WARNS, "end other programs, unless they are the server that has this "
                       "model", "the plan has %" PRIu64 "m, and %" PRIu64 "m are free now",
                       vlm_mib(total), free_now / 1048576);

    } else {
        vlm_doctor_say(d, VLM_FINE, NULL, "the plan has %" PRIu64 "m, and %s %" PRIu64 "m",
                       vlm_mib(total), words, limit / 1048576);
    }

    say_commit(d, total);
}


void
vlm_doctor_memory(vlm_doctor_t *d)
{
    vlm_err_t   err = { VLM_OK, "" };
    vlm_conf_t  conf = d->args->conf;

    if (!d->read) {
        return;
    }

    conf.ahead = !d->whole;            /* files that are not there have had their finding */
    conf.memory = 0;

    if (vlm_plan(&conf, &d->plan, &err) != 0) {
        vlm_doctor_say(d, VLM_STOPS, "correct the option", "%s", err.text);
        return;
    }

    d->planned = 1;

    if (d->args->conf.memory != 0
        && !fits(d, &conf, d->args->conf.memory, "memory is set to"))
    {
        return;
    }

    /* A GPU's memory is looked at where the GPU is; its server may have to take the cpu. */

    if (d->plan.device == 0) {
        d->cpu = d->plan;

    } else if (strcmp(conf.device, "auto") == 0) {
        conf.device = "cpu";

        if (vlm_plan(&conf, &d->cpu, NULL) != 0) {
            return;
        }
    }

    if (d->cpu.total != 0) {
        say_ram(d, &conf);
    }
}


void
vlm_doctor_pages(vlm_doctor_t *d)
{
    char  text[128];

    if (vlm_doctor_text(d, PAGES, text, sizeof(text)) != 0 || strstr(text, "[never]") != NULL) {
        vlm_doctor_say(d, VLM_WARNS, "echo madvise >" PAGES, "the kernel gives no huge pages, so "
                       "that weights are read more slowly");
        return;
    }

    vlm_doctor_say(d, VLM_FINE, NULL, "the kernel gives huge pages to programs that ask for them; "
                   "the engine locks no memory, so that memlock may stay as it is");
}


/* ---- the processor --------------------------------------------------------- */

static int
runs(const char *set, vlm_err_t *err)
{
    vlm_device_t     *device;
    const vlm_ops_t  *ops;

    device = vlm_cpu_open(set, 1, &ops, err);
    if (device == NULL) {
        return 0;
    }

    ops->basic->close(device);

    return 1;
}


void
vlm_doctor_processor(vlm_doctor_t *d)
{
    char                      sets[128] = "", what[64];
    size_t                    i, n;
    uint32_t                  threads;
    vlm_err_t                 err = { VLM_OK, "" };
    const char               *best, *ops = d->args->conf.ops;
    vlm_device_t             *device;
    const vlm_ops_t          *table;
    static const char *const  names[] = { "plain", "avx2", "avxvnni", "avx512", "amx", "neon",
                                              "i8mm" };

    if (ops != NULL && !runs(ops, &err)) {
        vlm_doctor_say(d, VLM_STOPS, "leave --ops out: the engine takes the best", "%s", err.text);
        return;
    }

    for (best = names[0], i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (runs(names[i], NULL)) {
            n = strlen(sets);
            (void) snprintf(sets + n, sizeof(sets) - n, "%s%s", n == 0 ? "" : ", ", names[i]);
            best = names[i];
        }
    }

    threads = d->args->conf.threads != 0 ? d->args->conf.threads : vlm_processors();
    device = vlm_cpu_open(ops, threads, &table, &err);

    if (device == NULL) {
        vlm_doctor_say(d, VLM_STOPS, "leave --ops out: the engine takes the best", "%s", err.text);
        return;
    }

    table->basic->describe(device, what, sizeof(what));        /* "cpu, avx512, 2 threads" */
    table->basic->close(device);

    if (strcmp(best, "plain") == 0) {
        vlm_doctor_say(d, VLM_WARNS, "take a processor of x86-64 with AVX2, or of arm64 with "
                       "dot products", "the processor has "
                       "none of the faster sets of instructions: the engine takes %s", what + 5);
        return;
    }

    vlm_doctor_say(d, VLM_FINE, NULL, "the processor runs %s: the engine takes %s", sets, what + 5);
}


/* ---- the GPU --------------------------------------------------------------- */

/* 1: the module that a server would load has the library beside it. */
static int
module_has(const vlm_doctor_t *d)
{
    char         path[4200];
    const char  *slash = strrchr(d->nginx.module, '/');

    if (d->nginx.path[0] == '\0' || slash == NULL) {
        return 0;
    }

    (void) snprintf(path, sizeof(path), "%.*s/" VLM_CUDA_LIBRARY, (int) (slash - d->nginx.module),
                    d->nginx.module);

    return access(path, R_OK) == 0;
}


/* 1: NVIDIA's driver is loaded and has a device. */
static int
has_card(const vlm_doctor_t *d)
{
    char  path[4096];

    (void) snprintf(path, sizeof(path), "%s/dev/nvidiactl", d->root);

    return access(path, F_OK) == 0;
}


/* The major number of the driver, of "NVRM version: ... Module  535.261.03  ..."; 0: not known. */
static int
driver_of(const vlm_doctor_t *d)
{
    char  text[1024], *p;

    (void) vlm_doctor_text(d, DRIVER, text, sizeof(text));
    p = strstr(text, "NVRM");

    for (p = p == NULL ? NULL : strchr(p, ' '); p != NULL; p = strchr(p + 1, ' ')) {
        if (p[1] >= '1' && p[1] <= '9' && p[1 + strspn(p + 1, "0123456789")] == '.') {
            return atoi(p + 1);
        }
    }

    return 0;
}


/* The remedy is a library that the driver takes, which that of the newest CUDA need not be. */
static void
say_build(vlm_doctor_t *d, vlm_finding_t f, const char *text)
{
    int   driver = driver_of(d), cuda = vlm_cuda_of_driver(driver);
    char  remedy[256] = LIBRARY;

    if (driver != 0 && cuda == 0) {
        (void) snprintf(remedy, sizeof(remedy), "the driver is %d: install %s, then nginx-vlm-cuda",
                        driver, vlm_cuda_toolkit(cuda));

    } else if (driver != 0) {
        (void) snprintf(remedy, sizeof(remedy), LIBRARY "; for the driver, %d, with %s", driver,
                        vlm_cuda_toolkit(cuda));
    }

    vlm_doctor_say(d, f, remedy, "%s", text);
}


/* Opens the device as a worker would, with the plan's bytes, and closes it. */
static void
try_card(vlm_doctor_t *d, vlm_finding_t bad)
{
    char                 what[64];
    vlm_err_t            err = { VLM_OK, "" };
    vlm_device_t        *device;
    const vlm_ops_t     *ops;
    vlm_cuda_request_t   r = { .weights = d->args->conf.weights };

    (void) vlm_cuda_index(d->args->conf.device, &r.index);
    r.bytes = d->plan.total - d->plan.device;

    device = vlm_cuda_load(&r, &ops, &err);

    if (device == NULL) {
        vlm_doctor_say(d, bad, bad == VLM_STOPS ? "device auto takes the cpu then"
                       : "docs/gpu.md has the causes; device cpu asks for none", "%s", err.text);
        return;
    }

    ops->basic->describe(device, what, sizeof(what));
    ops->basic->close(device);
    vlm_doctor_say(d, VLM_FINE, NULL, "the GPU takes the model: %s, with %" PRIu64 "m of its "
                   "memory", what, vlm_mib(d->plan.total));
}


void
vlm_doctor_gpu(vlm_doctor_t *d)
{
    int          wanted, there;
    char         text[128];
    const char  *device = d->args->conf.device;

    wanted = strncmp(device, "cuda", 4) == 0;
    there = vlm_cuda_is_there();

    if (strcmp(device, "cpu") == 0) {
        return;
    }

    if (there && d->planned && d->plan.device != 0) {
        try_card(d, wanted ? VLM_STOPS : VLM_WARNS);

    } else if (there) {
        vlm_doctor_say(d, VLM_FINE, NULL, "there is a " VLM_CUDA_LIBRARY ", and these settings "
                       "take the cpu");

    } else if (module_has(d)) {
        vlm_doctor_say(d, VLM_WARNS, "put a link to it beside this program and run this command "
                       "again", "there is a " VLM_CUDA_LIBRARY " beside the module, and none "
                       "beside this program, which cannot try it");

    } else if (wanted) {
        (void) snprintf(text, sizeof(text), "device %.32s needs " VLM_CUDA_LIBRARY " beside the "
                        "module and beside this program", device);
        say_build(d, VLM_STOPS, text);

    } else if (has_card(d)) {
        say_build(d, VLM_WARNS, "there is a GPU, and no " VLM_CUDA_LIBRARY " beside the module: "
                  "the cpu is taken");

    } else {
        vlm_doctor_say(d, VLM_FINE, NULL, "there is no driver of NVIDIA and no " VLM_CUDA_LIBRARY
                       ": the cpu is taken");
    }
}
