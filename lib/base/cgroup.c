/*
 * Limits of control groups.
 *
 * In version 2 all controllers share one tree, in version 1 each has one of its own.  A container
 * may see its own group as the root of the tree, or the whole path without the directories: a
 * directory that is not there limits nothing.
 */

#define _GNU_SOURCE

#include "base/cgroup.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATH  4096
#define TEXT  65536                    /* /proc/self/cgroup: a line for each hierarchy */

/* A directory of a group, below root. */
typedef void (*visit_t)(const char *root, const char *directory, int version, void *data);

static void walk(const char *root, const char *controller, visit_t visit, void *data);
static int has(const char *controllers, const char *controller);
static void walk_up(const char *root, const char *tree, const char *group, int version,
                    visit_t visit, void *data);
static void visit_memory(const char *root, const char *directory, int version, void *data);
static void visit_cpu(const char *root, const char *directory, int version, void *data);
static uint64_t read_total(const char *root);
static int read_text(const char *root, const char *directory, const char *name, char *text,
                     size_t bytes);
static int number(const char *text, uint64_t *n);


void
vlm_ram(const char *root, vlm_ram_t *ram)
{
    ram->bytes = read_total(root);
    ram->group = 0;

    walk(root, "memory", visit_memory, ram);
}


uint32_t
vlm_quota(const char *root, uint32_t n)
{
    walk(root, "cpu", visit_cpu, &n);

    return n;
}


uint32_t
vlm_processors(void)
{
    long       n;
    cpu_set_t  set;

    n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set)
                                                     : sysconf(_SC_NPROCESSORS_ONLN);

    return vlm_quota("", n < 1 ? 1 : (uint32_t) n);
}


uint32_t
vlm_quota_of(const char *text, uint32_t n)
{
    char                rest;
    unsigned long long  max, period;

    if (sscanf(text, "%llu %llu %c", &max, &period, &rest) != 2 || period == 0 || max == 0) {
        return n;
    }

    max = max / period + (max % period != 0);

    return max < n ? (uint32_t) max : n;
}


/* Lines of "id:controllers:path"; version 2 has the id 0 and no controllers. */
static void
walk(const char *root, const char *controller, visit_t visit, void *data)
{
    char  *text, *line, *controllers, *group, *rest, tree[64];

    (void) snprintf(tree, sizeof(tree), "/sys/fs/cgroup/%s", controller);

    text = malloc(TEXT);
    if (text == NULL || read_text(root, "/proc/self", "cgroup", text, TEXT) != 0) {
        free(text);
        return;
    }

    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        controllers = strchr(line, ':');
        group = controllers == NULL ? NULL : strchr(controllers + 1, ':');

        if (group == NULL) {
            continue;
        }

        *controllers++ = '\0';
        *group++ = '\0';

        if (strcmp(line, "0") == 0 && *controllers == '\0') {
            walk_up(root, "/sys/fs/cgroup", group, 2, visit, data);

        } else if (has(controllers, controller)) {
            walk_up(root, tree, group, 1, visit, data);
        }
    }

    free(text);
}


/* "cpu,cpuacct" has cpu, "cpuset" does not. */
static int
has(const char *controllers, const char *controller)
{
    size_t  n;

    for ( ;; controllers += n + 1) {
        n = strcspn(controllers, ",");

        if (n == strlen(controller) && memcmp(controllers, controller, n) == 0) {
            return 1;
        }

        if (controllers[n] == '\0') {
            return 0;
        }
    }
}


/* The group and all above it. */
static void
walk_up(const char *root, const char *tree, const char *group, int version, visit_t visit,
        void *data)
{
    int   len;
    char  directory[PATH];

    len = (int) strlen(group);

    for ( ;; ) {
        while (len > 0 && group[len - 1] == '/') {
            len--;
        }

        if (snprintf(directory, sizeof(directory), "%s%.*s", tree, len, group)
            < (int) sizeof(directory))
        {
            visit(root, directory, version, data);
        }

        if (len == 0) {
            return;
        }

        while (len > 0 && group[len - 1] != '/') {
            len--;
        }
    }
}


static void
visit_memory(const char *root, const char *directory, int version, void *data)
{
    char        text[64];
    uint64_t    limit;
    vlm_ram_t  *ram = data;

    if (read_text(root, directory, version == 2 ? "memory.max" : "memory.limit_in_bytes", text,
                  sizeof(text)) == 0
        && number(text, &limit) == 0
        && (ram->bytes == 0 || limit < ram->bytes))
    {
        ram->bytes = limit;
        ram->group = 1;
    }
}


/* Version 1 has two files, and -1 where there is no quota. */
static void
visit_cpu(const char *root, const char *directory, int version, void *data)
{
    char       text[128], max[32], period[32];
    uint32_t  *n = data;

    if (version == 2) {
        if (read_text(root, directory, "cpu.max", text, sizeof(text)) == 0) {
            *n = vlm_quota_of(text, *n);
        }

        return;
    }

    if (read_text(root, directory, "cpu.cfs_quota_us", max, sizeof(max)) == 0
        && read_text(root, directory, "cpu.cfs_period_us", period, sizeof(period)) == 0
        && max[0] != '-')
    {
        (void) snprintf(text, sizeof(text), "%s %s", max, period);
        *n = vlm_quota_of(text, *n);
    }
}


static uint64_t
read_total(const char *root)
{
    char      *p, text[4096];
    uint64_t   kb;

    if (read_text(root, "/proc", "meminfo", text, sizeof(text)) != 0) {
        return 0;
    }

    p = strstr(text, "MemTotal:");

    if (p == NULL) {
        return 0;
    }

    p += sizeof("MemTotal:") - 1;
    p += strspn(p, " ");

    return number(p, &kb) == 0 && kb <= UINT64_MAX / 1024 ? kb * 1024 : 0;
}


/* At most bytes - 1 of the file; the rest is not read. */
static int
read_text(const char *root, const char *directory, const char *name, char *text, size_t bytes)
{
    int     len;
    char    path[PATH + 64];
    FILE   *f;
    size_t  n;

    len = snprintf(path, sizeof(path), "%s%s/%s", root, directory, name);
    f = len < (int) sizeof(path) ? fopen(path, "re") : NULL;

    if (f == NULL) {
        return -1;
    }

    n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    (void) fclose(f);

    return n == 0 ? -1 : 0;
}


/* A number without a sign; a word such as "max" is none. */
static int
number(const char *text, uint64_t *n)
{
    if (*text < '0' || *text > '9') {
        return -1;
    }

    errno = 0;
    *n = strtoull(text, NULL, 10);

    return errno == 0 ? 0 : -1;
}
