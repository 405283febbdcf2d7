/*
 * Findings of doctor about machines that a test describes by files: /proc, /sys and /dev below a
 * directory.  t/95-doctor.t has the findings about files of a model, and about nginx.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/size.h"
#include "cli/doctor.h"

#define GROUP  "/sys/fs/cgroup/system.slice"

typedef struct {
    vlm_args_t    args;
    vlm_config_t  config;
    vlm_doctor_t  d;
    char          root[64];
    char          said[4096];          /* the findings of the last look() */
} fixture_t;


/* Writes ROOT/PATH and the directories above it. */
static void
put(const fixture_t *f, const char *path, const char *text)
{
    char   whole[512], *p;
    FILE  *file;

    (void) snprintf(whole, sizeof(whole), "%s%s", f->root, path);

    for (p = strchr(whole + strlen(f->root) + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void) mkdir(whole, 0755);
        *p = '/';
    }

    file = fopen(whole, "w");
    assert_non_null(file);
    (void) fputs(text, file);
    (void) fclose(file);
}


/* The findings of one check, in said. */
static const char *
look(fixture_t *f, void (*check)(vlm_doctor_t *d))
{
    memset(f->said, 0, sizeof(f->said));
    f->d.out = fmemopen(f->said, sizeof(f->said) - 1, "w");
    assert_non_null(f->d.out);
    memset(f->d.n, 0, sizeof(f->d.n));
    memset(f->d.stop, 0, sizeof(f->d.stop));
    memset(&f->d.cpu, 0, sizeof(f->d.cpu));

    check(&f->d);
    (void) fclose(f->d.out);

    return f->said;
}


static void
set_memory(const fixture_t *f, unsigned long total, unsigned long available)
{
    char  text[256];

    (void) snprintf(text, sizeof(text), "MemTotal: %lu kB\nMemFree: 1 kB\nMemAvailable: %lu kB\n"
                    "CommitLimit: 40960 kB\nCommitted_AS: 20480 kB\n", total * 1024,
                    available * 1024);
    put(f, "/proc/meminfo", text);
}


static int
set_up(void **state)
{
    fixture_t  *f;

    f = calloc(1, sizeof(*f));
    assert_non_null(f);

    strcpy(f->root, "/tmp/vlm-doctor-XXXXXX");
    assert_non_null(mkdtemp(f->root));

    vlm_conf_default(&f->args.conf);
    f->args.conf.model = "demo/model";
    f->args.conf.device = "cpu";
    f->d.args = &f->args;
    f->d.root = f->root;
    f->d.config = &f->config;
    set_memory(f, 1000, 1000);

    assert_non_null(strstr(look(f, vlm_doctor_config), "ok: "));
    assert_non_null(strstr(look(f, vlm_doctor_weights), "ok: "));

    *state = f;

    return 0;
}


static int
tear_down(void **state)
{
    char        command[128];
    fixture_t  *f = *state;

    (void) snprintf(command, sizeof(command), "rm -r %s", f->root);
    assert_int_equal(system(command), 0);
    free(f);

    return 0;
}


static void
test_fits(void **state)
{
    char        line[128];
    fixture_t  *f = *state;

    (void) look(f, vlm_doctor_memory);
    (void) snprintf(line, sizeof(line), "ok: the plan has %llum, and this machine has 1000m\n",
                    (unsigned long long) vlm_mib(f->d.plan.total));
    assert_string_equal(f->said, line);
}


static void
test_too_small(void **state)
{
    uint64_t    mib;
    fixture_t  *f = *state;

    (void) look(f, vlm_doctor_memory);
    mib = vlm_mib(f->d.plan.total);
    set_memory(f, mib - 5, 1);
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "stop: this machine has "));
    assert_non_null(strstr(f->said, "; context 2k needs "));
    assert_int_equal(f->d.n[VLM_STOPS], 1);

    set_memory(f, 8, 8);
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "; take weights int4 or a smaller model\n"));
}


static void
test_group(void **state)
{
    fixture_t  *f = *state;

    put(f, "/proc/self/cgroup", "0::/system.slice/this.service\n");
    put(f, GROUP "/this.service/memory.max", "20971520\n");
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "stop: the control group may use 20m, and the plan has "));
}


static void
test_service(void **state)
{
    fixture_t  *f = *state;

    put(f, GROUP "/nginx.service/memory.max", "max\n");
    assert_non_null(strstr(look(f, vlm_doctor_memory), "ok: "));

    put(f, GROUP "/nginx.service/memory.max", "10485760\n");
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "stop: nginx.service may use 10m, and the plan has "));
}


static void
test_setting(void **state)
{
    fixture_t  *f = *state;

    f->args.conf.memory = 30 << 20;
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "stop: memory is set to 30m, and the plan has "));
    assert_int_equal(f->d.n[VLM_FINE] + f->d.n[VLM_WARNS], 0);
}


static void
test_in_use(void **state)
{
    fixture_t  *f = *state;

    set_memory(f, 1000, 20);
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, ", and 20m are free now; end other programs"));
    assert_int_equal(f->d.n[VLM_WARNS], 1);
}


static void
test_unknown(void **state)
{
    fixture_t  *f = *state;

    put(f, "/proc/meminfo", "\n");
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "warn: the plan has "));
    assert_non_null(strstr(f->said, "does not say how much memory there is; "));
}


static void
test_commit(void **state)
{
    fixture_t  *f = *state;

    put(f, "/proc/sys/vm/overcommit_memory", "0\n");
    assert_null(strstr(look(f, vlm_doctor_memory), "stop"));

    put(f, "/proc/sys/vm/overcommit_memory", "2\n");
    (void) look(f, vlm_doctor_memory);
    assert_non_null(strstr(f->said, "stop: the kernel promises 20m more to all programs"));
    assert_non_null(strstr(f->said, "; sysctl vm.overcommit_memory=0\n"));
}


static void
test_pages(void **state)
{
    fixture_t  *f = *state;

    assert_non_null(strstr(look(f, vlm_doctor_pages), "warn: the kernel gives no huge pages"));

    put(f, "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
    assert_non_null(strstr(look(f, vlm_doctor_pages), "; echo madvise >/sys/kernel/mm/"));

    put(f, "/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    assert_non_null(strstr(look(f, vlm_doctor_pages), "ok: the kernel gives huge pages"));
}


/* The driver's file, as the kernel has it. */
static void
put_driver(fixture_t *f, const char *what)
{
    char  text[256];

    (void) snprintf(text, sizeof(text), "NVRM version: NVIDIA UNIX %s  Thu May  8 18:44:05 UTC "
                    "2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n", what);
    put(f, "/proc/driver/nvidia/version", text);
}


static void
test_card(void **state)
{
    size_t      i;
    fixture_t  *f = *state;

    static const struct {
        const char  *what, *remedy;
    } drivers[] = {
        { "x86_64 Kernel Module  535.261.03", "; for the driver, 535, with nvidia-cuda-toolkit of "
          "Debian 12 or 13, or CUDA 12 of NVIDIA (JetPack 6: 12.6)\n" },
        { "x86_64 Kernel Module  550.163.01", "; for the driver, 550, with nvidia-cuda-toolkit " },
        { "aarch64 Kernel Module  540.4.0", "; for the driver, 540, with nvidia-cuda-toolkit " },
        { "x86_64 Kernel Module  470.256.02", "470, with nvidia-cuda-toolkit of Debian 12 (CUDA " },
        { "Open Kernel Module for x86_64  580.159.04", "; for the driver, 580, with any CUDA " },
        { "x86_64 Kernel Module  390.157", "; the driver is 390: install a driver from 450 on, " }
    };

    (void) look(f, vlm_doctor_memory);
    assert_string_equal(look(f, vlm_doctor_gpu), "");      /* device cpu asks for none */

    f->args.conf.device = "auto";
    assert_non_null(strstr(look(f, vlm_doctor_gpu), "ok: there is no driver of NVIDIA"));

    put(f, "/dev/nvidiactl", "");
    (void) look(f, vlm_doctor_gpu);
    assert_non_null(strstr(f->said, "warn: there is a GPU, and no libvlm_cuda.so beside"));

    assert_non_null(strstr(f->said, "; install nginx-vlm-cuda, or \"make cuda\"\n"));

    /* The sentence names a toolkit whose library the driver takes. */

    for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
        put_driver(f, drivers[i].what);

        if (strstr(look(f, vlm_doctor_gpu), drivers[i].remedy) == NULL) {
            fail_msg("\"%s\" is not in \"%s\"", drivers[i].remedy, f->said);
        }
    }

    f->args.conf.device = "cuda:1";
    (void) look(f, vlm_doctor_gpu);
    assert_non_null(strstr(f->said, "stop: device cuda:1 needs libvlm_cuda.so "));

    /* A server would find it, and this program does not. */

    put(f, "/modules/libvlm_cuda.so", "");
    strcpy(f->d.nginx.path, "/usr/sbin/nginx");
    (void) snprintf(f->d.nginx.module, sizeof(f->d.nginx.module),
                    "%s/modules/ngx_http_vlm_module.so", f->root);
    (void) look(f, vlm_doctor_gpu);
    assert_non_null(strstr(f->said, "warn: there is a libvlm_cuda.so beside the module, and "));
}


static void
test_line(void **state)
{
    fixture_t  *f = *state;

    memset(f->said, 0, sizeof(f->said));
    f->d.out = fmemopen(f->said, sizeof(f->said) - 1, "w");
    vlm_doctor_say(&f->d, VLM_WARNS, "do it", "a path of %s", "two\nlines");
    (void) fclose(f->d.out);
    assert_string_equal(f->said, "warn: a path of two lines; do it\n");

    f->d.out = fmemopen(f->said, sizeof(f->said) - 1, "w");
    vlm_doctor_say(&f->d, VLM_STOPS, "do it", "no file");
    vlm_doctor_say(&f->d, VLM_STOPS, "do that", "no file");
    (void) fclose(f->d.out);
    assert_string_equal(f->said, "stop: no file; do it\n");
    assert_int_equal(f->d.n[VLM_STOPS], 1);
}


#define T(name)  cmocka_unit_test_setup_teardown(test_##name, set_up, tear_down)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        T(fits), T(too_small), T(group), T(service), T(setting), T(in_use), T(unknown), T(commit),
        T(pages), T(card), T(line)
    };

    return cmocka_run_group_tests_name("doctor", tests, NULL, NULL);
}
