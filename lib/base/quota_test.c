/*
 * vlm_quota(): trees of control groups as systemd, containers and version 1 make them; and
 * vlm_processors().
 */

#define _GNU_SOURCE

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cgroup.h"

static char  root[] = "/tmp/vlm-quota-XXXXXX";


static int
set_up(void **state)
{
    (void) state;
    (void) strcpy(root + strlen(root) - 6, "XXXXXX");

    return mkdtemp(root) == NULL ? -1 : 0;
}


static int
tear_down(void **state)
{
    char  command[128];

    (void) state;
    (void) snprintf(command, sizeof(command), "rm -r %s", root);

    return system(command);
}


/* A file below root, and its directories. */
static void
put(const char *directory, const char *name, const char *text)
{
    char   path[512];
    FILE  *f;

    (void) snprintf(path, sizeof(path), "mkdir -p %s%s", root, directory);
    assert_int_equal(system(path), 0);

    (void) snprintf(path, sizeof(path), "%s%s/%s", root, directory, name);
    f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}


static void
a_quota_of_two_cores_on_a_host_of_64_is_two_threads(void **state)
{
    (void) state;

    assert_int_equal(vlm_quota_of("200000 100000\n", 64), 2);
    assert_int_equal(vlm_quota_of("250000 100000\n", 64), 3);
    assert_int_equal(vlm_quota_of("50000 100000\n", 64), 1);
    assert_int_equal(vlm_quota_of("1 1000000\n", 64), 1);
    assert_int_equal(vlm_quota_of("6400000 100000\n", 2), 2);
    assert_int_equal(vlm_quota_of("18446744073709551615 1\n", 64), 64);
    assert_int_equal(vlm_quota_of("max 100000\n", 64), 64);
    assert_int_equal(vlm_quota_of("200000 0\n", 64), 64);
    assert_int_equal(vlm_quota_of("0 100000\n", 64), 64);
    assert_int_equal(vlm_quota_of("200000\n", 64), 64);
    assert_int_equal(vlm_quota_of("1 2 3\n", 64), 64);
    assert_int_equal(vlm_quota_of("", 64), 64);
}


static void
a_container_has_its_quota_at_the_root(void **state)
{
    (void) state;

    put("/proc/self", "cgroup", "0::/\n");
    put("/sys/fs/cgroup", "cpu.max", "200000 100000\n");
    assert_int_equal(vlm_quota(root, 64), 2);
}


static void
a_service_has_its_quota_in_its_own_group(void **state)
{
    (void) state;

    put("/proc/self", "cgroup", "0::/system.slice/nginx.service\n");
    put("/sys/fs/cgroup/system.slice/nginx.service", "cpu.max", "300000 100000\n");
    assert_int_equal(vlm_quota(root, 64), 3);

    put("/sys/fs/cgroup/system.slice", "cpu.max", "max 100000\n");
    assert_int_equal(vlm_quota(root, 64), 3);
}


static void
the_least_of_all_groups_above_holds(void **state)
{
    (void) state;

    put("/proc/self", "cgroup", "0::/a/b/c\n");
    put("/sys/fs/cgroup/a/b/c", "cpu.max", "800000 100000\n");
    put("/sys/fs/cgroup/a", "cpu.max", "400000 100000\n");
    assert_int_equal(vlm_quota(root, 64), 4);
    assert_int_equal(vlm_quota(root, 3), 3);
}


/* /proc has the host's path, of which the container sees only the end. */
static void
a_group_that_is_not_seen_allows_all(void **state)
{
    (void) state;

    put("/proc/self", "cgroup", "0::/docker/0123456789\n");
    assert_int_equal(vlm_quota(root, 64), 64);

    put("/sys/fs/cgroup", "cpu.max", "100000 100000\n");
    assert_int_equal(vlm_quota(root, 64), 1);
}


static void
version_1_has_two_files(void **state)
{
    (void) state;

    put("/proc/self", "cgroup",
        "7:memory:/m\n4:cpuset:/s\n3:cpu,cpuacct:/g/h\n1:name=systemd:/x\n");
    put("/sys/fs/cgroup/cpu/g/h", "cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/g/h", "cpu.cfs_period_us", "100000\n");
    assert_int_equal(vlm_quota(root, 64), 64);

    put("/sys/fs/cgroup/cpu/g", "cpu.cfs_quota_us", "150000\n");
    assert_int_equal(vlm_quota(root, 64), 64);

    put("/sys/fs/cgroup/cpu/g", "cpu.cfs_period_us", "100000\n");
    assert_int_equal(vlm_quota(root, 64), 2);
}


static void
files_that_cannot_be_read_set_no_quota(void **state)
{
    (void) state;

    assert_int_equal(vlm_quota(root, 64), 64);

    put("/proc/self", "cgroup", "nothing\n::\n0:\n");
    assert_int_equal(vlm_quota(root, 64), 64);

    put("/proc/self", "cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a", "cpu.max", "two cores\n");
    assert_int_equal(vlm_quota(root, 64), 64);
}


static void
the_processors_are_those_of_the_affinity(void **state)
{
    int        i;
    uint32_t   n;
    cpu_set_t  all, one;

    (void) state;

    assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);

    n = vlm_processors();

    assert_true(n >= 1);
    assert_true(n <= (uint32_t) CPU_COUNT(&all));

    for (i = 0; !CPU_ISSET(i, &all); i++) { /* the first */ }

    CPU_ZERO(&one);
    CPU_SET(i, &one);

    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    assert_int_equal(vlm_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_quota_of_two_cores_on_a_host_of_64_is_two_threads),
        cmocka_unit_test_setup_teardown(a_container_has_its_quota_at_the_root, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_service_has_its_quota_in_its_own_group, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_least_of_all_groups_above_holds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_group_that_is_not_seen_allows_all, set_up, tear_down),
        cmocka_unit_test_setup_teardown(version_1_has_two_files, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read_set_no_quota, set_up, tear_down),
        cmocka_unit_test(the_processors_are_those_of_the_affinity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
