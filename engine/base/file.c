/* Files as ranges of memory: mmap, and nothing else, so that no file is ever copied whole. */

#define _GNU_SOURCE                    /* mlock2() */

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/size.h"

#define POPULATE_READ  22              /* MADV_POPULATE_READ, from Linux 5.14 on */


int
vlm_file_open(vlm_file_t *f, const char *path, uint64_t limit, vlm_err_t *err)
{
    int          fd;
    void        *p;
    struct stat  st;

    memset(f, 0, sizeof(*f));

    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);    /* a pipe's open would wait */
    if (fd == -1) {
        return vlm_fail(err, VLM_EMODEL, "%s: %s", path, strerror(errno));
    }

    if (fstat(fd, &st) == -1) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %s", path, strerror(errno));
        goto failed;
    }

    if (!S_ISREG(st.st_mode)) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: not a regular file", path);
        goto failed;
    }

    if (limit != 0 && (uint64_t) st.st_size > limit) {
        (void) vlm_fail(err, VLM_EMODEL, "%s: %" PRIu64 " bytes, at most %" PRIu64 " are read",
                        path, (uint64_t) st.st_size, limit);
        goto failed;
    }

    if (st.st_size != 0) {
        p = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        if (p == MAP_FAILED) {
            (void) vlm_fail(err, VLM_EMEMORY, "%s: mmap of %" PRIu64 " bytes: %s", path,
                            (uint64_t) st.st_size, strerror(errno));
            goto failed;
        }

        f->data = p;
        f->bytes = (uint64_t) st.st_size;
    }

    close(fd);

    return 0;

failed:

    close(fd);

    return -1;
}


/* For the whole pages of a range. */
static void
advise(const vlm_file_t *f, uint64_t offset, uint64_t bytes, int advice)
{
    uint64_t  page, first, last;

    if (f->data == NULL || offset > f->bytes || bytes > f->bytes - offset) {
        return;
    }

    page = (uint64_t) sysconf(_SC_PAGESIZE);
    first = vlm_round(offset, page);
    last = (offset + bytes) & ~(page - 1);

    if (last > first) {
        (void) madvise((void *) (f->data + first), (size_t) (last - first), advice);
    }
}


void
vlm_file_done(const vlm_file_t *f, uint64_t offset, uint64_t bytes)
{
    advise(f, offset, bytes, MADV_DONTNEED);
}


void
vlm_file_bring(const vlm_file_t *f, uint64_t offset, uint64_t bytes)
{
    advise(f, offset, bytes, MADV_HUGEPAGE);
    advise(f, offset, bytes, POPULATE_READ);
}


int
vlm_file_hold(const vlm_file_t *f)
{
    if (mlock2(f->data, (size_t) f->bytes, MLOCK_ONFAULT) == 0) {
        return 0;
    }

    vlm_file_let_go(f);                /* a part of it may be */

    return -1;
}


void
vlm_file_let_go(const vlm_file_t *f)
{
    (void) munlock(f->data, (size_t) f->bytes);
}


/* "FilePmdMapped:  123 kB", after a line that begins with the first address of the range. */
uint64_t
vlm_file_large(const vlm_file_t *f)
{
    int        here;
    char       line[512], *end;
    FILE      *smaps;
    uint64_t   from, kib;

    smaps = fopen("/proc/self/smaps", "re");
    if (smaps == NULL) {
        return 0;
    }

    for (here = 0, kib = 0; kib == 0 && fgets(line, sizeof(line), smaps) != NULL; /* void */) {
        from = strtoull(line, &end, 16);

        if (*end == '-') {
            here = from == (uint64_t) (uintptr_t) f->data;

        } else if (here && sscanf(line, "FilePmdMapped: %" SCNu64, &kib) == 1) {
            break;
        }
    }

    (void) fclose(smaps);

    return kib * 1024;
}


void
vlm_file_close(vlm_file_t *f)
{
    if (f->data != NULL) {
        (void) munmap((void *) f->data, (size_t) f->bytes);
    }

    memset(f, 0, sizeof(*f));
}


int
vlm_file_exists(const char *dir, const char *name)
{
    char         path[4096];
    struct stat  st;

    return vlm_file_path(path, sizeof(path), dir, name, NULL) == 0 && stat(path, &st) == 0
           && S_ISREG(st.st_mode);
}


int
vlm_file_path(char *buf, size_t bytes, const char *dir, const char *name, vlm_err_t *err)
{
    int  n;

    n = snprintf(buf, bytes, "%s/%s", dir, name);
    if (n < 0 || (size_t) n >= bytes) {
        return vlm_fail(err, VLM_EMODEL, "%s/%s: path longer than %zu bytes", dir, name, bytes - 1);
    }

    return 0;
}
