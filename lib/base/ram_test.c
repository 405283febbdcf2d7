
/*
 * How much memory there is, on machines that are directories: without groups, with those of either
 * version, inside containers, and with malformed files.
 */


#define _GNU_SOURCE

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cgroup.h"


#define MIB     (1024 * 1024)
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)


static char  root[64];


static int
setup(void **state)
{
    (void) state;

    strcpy(root, "/tmp/vlm-ram-XXXXXX");

    return mkdtemp(root) == NULL ? -1 : 0;
}


static int
remove_one(const char *path, const struct stat *sb, int type, struct FTW *f)
{
    (void) sb;
    (void) type;
    (void) f;

    return remove(path);
}


static int
teardown(void **state)
{
    (void) state;

    return nftw(root, remove_one, 8, FTW_DEPTH|FTW_PHYS);
}


/* a file of that machine, and the directories above it */

static void
put(const char *path, const char *text)
{
    char  *p, whole[512];
    FILE  *f;

    (void) snprintf(whole, sizeof(whole), "%s%s", root, path);

    for (p = strchr(whole + strlen(root) + 1, '/');
         p != NULL;
         p = strchr(p + 1, '/'))
    {
        *p = '\0';
        (void) mkdir(whole, 0700);
        *p = '/';
    }

    f = fopen(whole, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}


static void
is(uint64_t mib, int group)
{
    vlm_ram_t  ram;

    vlm_ram(root, &ram);

    assert_int_equal(ram.bytes, mib * MIB);
    assert_int_equal(ram.group, group);
}


static void
a_machine_has_what_meminfo_says(void **state)
{
    (void) state;

    is(0, 0);

    put("/proc/meminfo", "MemTotal:        8089600 kB\nMemFree: 1 kB\n");
    is(7900, 0);

    put("/proc/self/cgroup", "0::/\n");
    is(7900, 0);
}


static void
a_group_of_version_2_or_one_above_it_allows_less(void **state)
{
    (void) state;

    put("/proc/meminfo", "MemTotal: 8089600 kB\n");
    put("/proc/self/cgroup", "0::/system.slice/nginx.service\n");
    put("/sys/fs/cgroup/system.slice/nginx.service/memory.max", "max\n");
    is(7900, 0);

    put("/sys/fs/cgroup/system.slice/memory.max", "4294967296\n");
    is(4096, 1);

    put("/sys/fs/cgroup/system.slice/nginx.service/memory.max",
        "1073741824\n");
    is(1024, 1);

    /* a limit above the machine's memory has no effect */

    put("/sys/fs/cgroup/system.slice/memory.max", "68719476736\n");
    put("/sys/fs/cgroup/system.slice/nginx.service/memory.max",
        "68719476736\n");
    is(7900, 0);
}


static void
a_group_of_version_1_has_a_tree_of_its_own(void **state)
{
    (void) state;

    put("/proc/meminfo", "MemTotal: 8089600 kB\n");
    put("/proc/self/cgroup", "5:devices:/b\n4:cpu,memory:/a/b\n0::/\n");
    put("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes",
        "9223372036854771712\n");
    is(7900, 0);

    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "536870912\n");
    is(512, 1);
}


static void
a_container_sees_its_group_as_the_root_whatever_its_path_says(void **state)
{
    (void) state;

    put("/proc/meminfo", "MemTotal: 8089600 kB\n");
    put("/proc/self/cgroup", "4:memory:/docker/0123abcd\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    is(2048, 1);

    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    is(1024, 1);
}


static void
files_that_cannot_be_read_set_no_limit(void **state)
{
    char  line[5000];

    (void) state;

    put("/proc/meminfo", "MemTotal: much\n");
    is(0, 0);

    put("/proc/meminfo", "MemTotal: 99999999999999999999 kB\n");
    is(0, 0);

    put("/proc/meminfo", "MemTotal: 8089600 kB\n");
    put("/proc/self/cgroup", "\n:\n0\n0:\n0:/\nmemory\n::\n4:memory\n"
                             "4:memoryless,x:/a\n0::\n");
    is(7900, 0);

    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "99999999999999999999999\n");
    is(7900, 0);
    put("/sys/fs/cgroup/a/memory.max", "-1\n");
    is(7900, 0);
    put("/sys/fs/cgroup/a/memory.max", "");
    is(7900, 0);

    /* longer than a path, and than what is read of a file */

    memset(line, 'a', sizeof(line));
    memcpy(line, "0::/", 4);
    line[sizeof(line) - 1] = '\0';
    put("/proc/self/cgroup", line);
    put("/sys/fs/cgroup/memory.max", "1073741824\n");
    is(1024, 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(a_machine_has_what_meminfo_says),
        TEST(a_group_of_version_2_or_one_above_it_allows_less),
        TEST(a_group_of_version_1_has_a_tree_of_its_own),
        TEST(a_container_sees_its_group_as_the_root_whatever_its_path_says),
        TEST(files_that_cannot_be_read_set_no_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
