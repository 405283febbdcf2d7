
/*
 * How much memory there is for a process: MemTotal of /proc/meminfo, or the
 * least that the memory control groups above this process allow.
 *
 * In version 2 all controllers share one tree, in version 1 memory has one of
 * its own.  A container may see its own group as the root of the tree, or the
 * whole path without the directories: what is not there limits nothing.
 */


#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ngx_http_vlm_ram.h"


#define TEXT  4096                         /* of a file; the rest is not read */
#define PATH  4096                         /* with the zero */


typedef ngx_http_vlm_ram_t  ram_t;


static int read_text(const char *root, const char *path, char text[TEXT]);
static int number(const char *text, uint64_t *n);
static uint64_t read_total(const char *root);
static void read_groups(const char *root, ram_t *ram);
static int has_memory(const char *controllers);
static void walk_up(const char *root, const char *tree, const char *group,
    const char *file, ram_t *ram);


void
ngx_http_vlm_ram(const char *root, ram_t *ram)
{
    ram->bytes = read_total(root);
    ram->group = 0;

    read_groups(root, ram);
}


static int
read_text(const char *root, const char *path, char text[TEXT])
{
    int      fd;
    char     whole[PATH];
    ssize_t  n;

    if (snprintf(whole, sizeof(whole), "%s%s", root, path)
        >= (int) sizeof(whole))
    {
        return -1;
    }

    fd = open(whole, O_RDONLY|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    n = read(fd, text, TEXT - 1);

    (void) close(fd);

    if (n < 0) {
        return -1;
    }

    text[n] = '\0';

    return 0;
}


/* no sign, no word such as "max" */

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


static uint64_t
read_total(const char *root)
{
    char      *p, text[TEXT];
    uint64_t   kb;

    if (read_text(root, "/proc/meminfo", text) != 0) {
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


/* lines of "id:controllers:path"; version 2 has the id 0 and no controllers */

static void
read_groups(const char *root, ram_t *ram)
{
    char  *line, *controllers, *group, *rest, text[TEXT];

    if (read_text(root, "/proc/self/cgroup", text) != 0) {
        return;
    }

    for (line = strtok_r(text, "\n", &rest);
         line != NULL;
         line = strtok_r(NULL, "\n", &rest))
    {
        controllers = strchr(line, ':');
        group = controllers ? strchr(controllers + 1, ':') : NULL;

        if (group == NULL) {
            continue;
        }

        *controllers++ = '\0';
        *group++ = '\0';

        if (strcmp(line, "0") == 0 && *controllers == '\0') {
            walk_up(root, "/sys/fs/cgroup", group, "memory.max", ram);

        } else if (has_memory(controllers)) {
            walk_up(root, "/sys/fs/cgroup/memory", group,
                    "memory.limit_in_bytes", ram);
        }
    }
}


static int
has_memory(const char *controllers)
{
    size_t  n;

    for ( ;; ) {
        n = strcspn(controllers, ",");

        if (n == 6 && memcmp(controllers, "memory", 6) == 0) {
            return 1;
        }

        if (controllers[n] == '\0') {
            return 0;
        }

        controllers += n + 1;
    }
}


/* the limits of a group and of all above it; "max" is none */

static void
walk_up(const char *root, const char *tree, const char *group,
    const char *file, ram_t *ram)
{
    int       len;
    char      path[PATH], text[TEXT];
    uint64_t  limit;

    len = (int) strlen(group);

    for ( ;; ) {

        while (len > 0 && group[len - 1] == '/') {
            len--;
        }

        if (snprintf(path, sizeof(path), "%s%.*s/%s", tree, len, group, file)
            < (int) sizeof(path)
            && read_text(root, path, text) == 0
            && number(text, &limit) == 0
            && (ram->bytes == 0 || limit < ram->bytes))
        {
            ram->bytes = limit;
            ram->group = 1;
        }

        if (len == 0) {
            return;
        }

        while (len > 0 && group[len - 1] != '/') {
            len--;
        }
    }
}
