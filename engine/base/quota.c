/* What control groups leave of the processors. */

#include "base/quota.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH  4096
#define TEXT  65536                    /* /proc/self/cgroup: a line for each hierarchy */

static int read_text(const char *root, const char *path, char *text, size_t bytes);
static int has_cpu(const char *controllers);
static uint32_t walk_up(const char *root, const char *tree, const char *group, int version,
                        uint32_t n);
static int read_quota(const char *root, const char *directory, int version, char *text,
                      size_t bytes);


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
uint32_t
vlm_quota(const char *root, uint32_t n)
{
    char  *text, *line, *controllers, *group, *rest;

    text = malloc(TEXT);
    if (text == NULL || read_text(root, "/proc/self/cgroup", text, TEXT) != 0) {
        free(text);
        return n;
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
            n = walk_up(root, "/sys/fs/cgroup", group, 2, n);

        } else if (has_cpu(controllers)) {
            n = walk_up(root, "/sys/fs/cgroup/cpu", group, 1, n);
        }
    }

    free(text);

    return n;
}


static int
read_text(const char *root, const char *path, char *text, size_t bytes)
{
    int     len;
    char    whole[PATH];
    FILE   *f;
    size_t  n;

    len = snprintf(whole, sizeof(whole), "%s%s", root, path);
    f = len < (int) sizeof(whole) ? fopen(whole, "re") : NULL;

    if (f == NULL) {
        return -1;
    }

    n = fread(text, 1, bytes - 1, f);
    text[n] = '\0';
    (void) fclose(f);

    return n == 0 ? -1 : 0;
}


/* "cpu,cpuacct" has it, "cpuset" does not. */
static int
has_cpu(const char *controllers)
{
    size_t  n;

    for ( ;; controllers += n + 1) {
        n = strcspn(controllers, ",");

        if (n == 3 && memcmp(controllers, "cpu", 3) == 0) {
            return 1;
        }

        if (controllers[n] == '\0') {
            return 0;
        }
    }
}


/* The group and all above it.  Those that a container does not see are not there, and allow all. */
static uint32_t
walk_up(const char *root, const char *tree, const char *group, int version, uint32_t n)
{
    int   len;
    char  directory[PATH], text[128];

    len = (int) strlen(group);

    for ( ;; ) {
        while (len > 0 && group[len - 1] == '/') {
            len--;
        }

        if (snprintf(directory, sizeof(directory), "%s%.*s", tree, len, group)
            < (int) sizeof(directory)
            && read_quota(root, directory, version, text, sizeof(text)) == 0)
        {
            n = vlm_quota_of(text, n);
        }

        if (len == 0) {
            return n;
        }

        while (len > 0 && group[len - 1] != '/') {
            len--;
        }
    }
}


/* Version 1 has two files, and -1 where there is no quota. */
static int
read_quota(const char *root, const char *directory, int version, char *text, size_t bytes)
{
    int   quota, period;
    char  path[PATH + 32], max[32], each[32];

    if (version == 2) {
        (void) snprintf(path, sizeof(path), "%s/cpu.max", directory);
        return read_text(root, path, text, bytes);
    }

    (void) snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", directory);
    quota = read_text(root, path, max, sizeof(max));
    (void) snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", directory);
    period = read_text(root, path, each, sizeof(each));

    if (quota != 0 || period != 0 || max[0] == '-') {
        return -1;
    }

    (void) snprintf(text, bytes, "%s %s", max, each);

    return 0;
}
