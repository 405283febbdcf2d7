/* Files as ranges of memory: see the header. */

#define _GNU_SOURCE                    /* mremap() */

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/size.h"

#define POPULATE_READ  22              /* MADV_POPULATE_READ, from Linux 5.14 on */
#define LARGE          (2u << 20)      /* bytes of a large page on x86-64 */
#define MAX_ENTRIES    10000           /* of a directory, that are read */
#define FOREIGN        64              /* bytes by which a foreign file is known */


/* mmap(), aligned to large pages where the system has them. */
static void *
map(uint64_t bytes, int prot, int flags, int fd)
{
    size_t     page;
    void      *p;
    uint8_t   *room, *at, *end;

    if (bytes < LARGE) {
        return mmap(NULL, (size_t) bytes, prot, flags, fd, 0);
    }

    if (bytes > SIZE_MAX / 2) {
        errno = ENOMEM;
        return MAP_FAILED;
    }

    page = (size_t) sysconf(_SC_PAGESIZE);

    room = mmap(NULL, (size_t) bytes + LARGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) {
        return MAP_FAILED;
    }

    end = room + vlm_round(bytes + LARGE, page);
    at = (uint8_t *) vlm_round((uintptr_t) room, LARGE);

    p = mmap(at, (size_t) bytes, prot, flags | MAP_FIXED, fd, 0);
    if (p == MAP_FAILED) {
        (void) munmap(room, (size_t) (end - room));
        return MAP_FAILED;
    }

    if (at > room) {
        (void) munmap(room, (size_t) (at - room));
    }

    at += vlm_round(bytes, page);

    if (end > at) {
        (void) munmap(at, (size_t) (end - at));
    }

    return p;
}


/* Recognises common mistakes for a checkpoint's file by their first bytes. */
static int
refuse_foreign(const vlm_file_t *f, const char *path, vlm_err_t *err)
{
    size_t  i, n;

    static const struct {
        const char  *begins, *says;
    } foreign[] = {
        { "version https://git-lfs.github.com/spec/", "a Git LFS pointer, the file itself was not "
          "downloaded: run \"git lfs pull\" in its directory" },
        { "GGUF", "a GGUF file; the file itself is the model, and its vision encoder is a second "
          "one: model FILE.gguf mmproj=FILE.gguf" }
    };

    for (i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        n = strlen(foreign[i].begins);

        if (f->bytes >= n && memcmp(f->data, foreign[i].begins, n) == 0) {
            return vlm_fail(err, VLM_EMODEL, "%s: %s", path, foreign[i].says);
        }
    }

    return 0;
}


int
vlm_file_map_fd(vlm_file_t *f, int fd, uint64_t bytes)
{
    void  *p;

    memset(f, 0, sizeof(*f));
    f->bytes = bytes;

    if (bytes == 0) {
        return ENODATA;
    }

    p = map(bytes, PROT_READ, MAP_PRIVATE, fd);
    if (p == MAP_FAILED) {
        return errno;
    }

    f->data = p;

    return 0;
}


/* Opens a regular file for reading.  0, or the system's error; ENODEV: it is not a regular one. */
static int
open_regular(const char *path, int flags, int *fd, struct stat *st)
{
    int  e = 0;

    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);       /* a pipe would block */
    if (*fd == -1) {
        return errno;
    }

    if (fstat(*fd, st) == -1) {
        e = errno;
    } else if (!S_ISREG(st->st_mode)) {
        e = ENODEV;
    }

    if (e != 0) {
        (void) close(*fd);
    }

    return e;
}


/* 0, or the system's error; ESTALE: the file has fewer bytes. */
static int
read_at(int fd, void *to, uint64_t bytes, uint64_t at)
{
    ssize_t   n;
    uint64_t  done;

    for (done = 0; done < bytes; done += (uint64_t) n) {
        n = pread(fd, (char *) to + done, (size_t) (bytes - done), (off_t) (at + done));

        if (n == -1 && errno == EINTR) {
            n = 0;
        } else if (n <= 0) {
            return n == 0 ? ESTALE : errno;
        }
    }

    return 0;
}


/* Reads the first bytes of an open file into memory. */
static int
read_fd(vlm_file_t *f, int fd, uint64_t bytes)
{
    int    e;
    void  *p;

    f->bytes = bytes;

    if (bytes == 0) {
        return ENODATA;
    }

    p = vlm_malloc(bytes);
    if (p == NULL) {
        return ENOMEM;
    }

    e = read_at(fd, p, bytes, 0);

    if (e != 0) {
        free(p);
        return e;
    }

    f->data = p;
    f->copied = 1;

    return 0;
}


static int
take_file(vlm_file_t *f, const char *path, int flags, uint64_t limit,
          int (*take)(vlm_file_t *f, int fd, uint64_t bytes))
{
    int          fd, e;
    struct stat  st;

    memset(f, 0, sizeof(*f));

    e = open_regular(path, flags, &fd, &st);
    if (e != 0) {
        return e;
    }

    if (limit != 0 && (uint64_t) st.st_size > limit) {
        f->bytes = (uint64_t) st.st_size;
        e = EFBIG;

    } else {
        e = take(f, fd, (uint64_t) st.st_size);
        f->device = st.st_dev;
        f->inode = st.st_ino;
    }

    (void) close(fd);

    return e;
}


int
vlm_file_map(vlm_file_t *f, const char *path, int flags, uint64_t limit)
{
    return take_file(f, path, flags, limit, vlm_file_map_fd);
}


int
vlm_file_whole(const vlm_file_t *f, const char *path, vlm_err_t *err)
{
    struct stat  st;

    /* One that has been replaced is as long as it was, until it is closed. */

    if (stat(path, &st) != 0 || st.st_ino != f->inode || st.st_dev != f->device
        || (uint64_t) st.st_size >= f->bytes)
    {
        return 0;
    }

    return vlm_fail(err, VLM_EMODEL, "%s: cut from %" PRIu64 " to %" PRIu64 " bytes while it was "
                    "read: replace a file by renaming a new one", path, f->bytes,
                    (uint64_t) st.st_size);
}


/* Says what the system's error e of a model's file means; bytes: its length, if that is known. */
static int
refuse_file(const char *path, int e, uint64_t bytes, uint64_t limit, vlm_err_t *err)
{
    if (e == EFBIG) {
        return vlm_fail(err, VLM_EMODEL, "%s: %" PRIu64 " bytes, at most %" PRIu64 " are supported",
                        path, bytes, limit);
    }

    if (e == ESTALE && bytes != 0) {
        return vlm_fail(err, VLM_EMODEL, "%s: cut below %" PRIu64 " bytes while it was read: "
                        "replace a file by renaming a new one", path, bytes);
    }

    if (bytes != 0 && limit == 0) {
        return vlm_fail(err, VLM_EMEMORY, "%s: mmap of %" PRIu64 " bytes: %s", path, bytes,
                        strerror(e));
    }

    return vlm_fail(err, e == ENOMEM ? VLM_EMEMORY : VLM_EMODEL, "%s: %s%s", path,
                    e == ENODEV ? "not a regular file" : strerror(e),
                    e == ENOENT ? ": correct the path, or download the file"
                    : e == EACCES ? ": let the user of this process read it" : "");
}


int
vlm_file_open(vlm_file_t *f, const char *path, uint64_t limit, vlm_err_t *err)
{
    int       e;
    uint64_t  bytes;

    e = take_file(f, path, 0, limit, limit == 0 ? vlm_file_map_fd : read_fd);
    bytes = f->bytes;

    if (e == 0 || e == ENODATA) {
        if (refuse_foreign(f, path, err) == 0) {
            return 0;
        }

        vlm_file_close(f);

        return -1;
    }

    memset(f, 0, sizeof(*f));

    return refuse_file(path, e, bytes, limit, err);
}


int
vlm_file_handle(int *fd, uint64_t *bytes, const char *path, vlm_err_t *err)
{
    int          e;
    uint8_t      begins[FOREIGN];
    vlm_file_t   first = { .data = begins };
    struct stat  st;

    *bytes = 0;

    e = open_regular(path, 0, fd, &st);

    if (e == 0) {
        *bytes = (uint64_t) st.st_size;
        first.bytes = *bytes < FOREIGN ? *bytes : FOREIGN;
        e = read_at(*fd, begins, first.bytes, 0);

        if (e == 0 && refuse_foreign(&first, path, err) == 0) {
            return 0;
        }

        (void) close(*fd);
    }

    *fd = -1;

    return e == 0 ? -1 : refuse_file(path, e, *bytes, UINT64_MAX, err);
}


int
vlm_file_read_at(int fd, void *to, uint64_t bytes, uint64_t at, const char *path, vlm_err_t *err)
{
    int  e;

    e = read_at(fd, to, bytes, at);

    return e == 0 ? 0 : refuse_file(path, e, at + bytes, UINT64_MAX, err);
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
    if (f->copied) {                   /* else its bytes would be zeros */
        return;
    }

    advise(f, offset, bytes, MADV_DONTNEED);
}


void
vlm_file_bring(const vlm_file_t *f, uint64_t offset, uint64_t bytes)
{
    advise(f, offset, bytes, MADV_HUGEPAGE);
    advise(f, offset, bytes, POPULATE_READ);
}


int
vlm_file_own(vlm_file_t *f, uint64_t bytes)
{
    void      *own;
    size_t     n;

    /* One address range for all: pages that move into it in order stay one mapping. */

    if (f->room == NULL) {
        own = map(f->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
        if (own == MAP_FAILED) {
            return -1;
        }

        (void) madvise(own, (size_t) f->bytes, MADV_HUGEPAGE);
        f->room = own;
    }

    own = f->room + f->owned;
    n = (size_t) vlm_round(bytes, (uint64_t) sysconf(_SC_PAGESIZE));
    memcpy(own, f->data + f->owned, (size_t) bytes);

    /* The kernel swaps the pages atomically: a concurrent reader waits, and finds the same
       bytes. */

    if (mprotect(own, n, PROT_READ) != 0
        || mremap(own, n, n, MREMAP_MAYMOVE | MREMAP_FIXED, (void *) (f->data + f->owned))
           == MAP_FAILED)
    {
        return -1;
    }

    f->owned += bytes;

    return 0;
}


void
vlm_file_close(vlm_file_t *f)
{
    if (f->room != NULL && f->owned < f->bytes) {
        (void) munmap(f->room + f->owned, (size_t) (f->bytes - f->owned));
    }

    if (f->copied) {
        free((void *) f->data);

    } else if (f->data != NULL) {
        (void) munmap((void *) f->data, (size_t) f->bytes);
    }

    memset(f, 0, sizeof(*f));
}


int
vlm_file_find(const char *dir, const char *prefix, const char *suffix, char *name, size_t bytes)
{
    DIR            *d;
    int             found;
    size_t          n;
    uint32_t        i;
    struct dirent  *e;

    d = opendir(dir);
    if (d == NULL) {
        return 0;
    }

    found = 0;

    for (i = 0; i < MAX_ENTRIES && !found && (e = readdir(d)) != NULL; i++) {
        n = strlen(e->d_name);
        found = n >= strlen(prefix) + strlen(suffix)
                && strncmp(e->d_name, prefix, strlen(prefix)) == 0
                && strcasecmp(e->d_name + n - strlen(suffix), suffix) == 0;

        if (found) {
            (void) snprintf(name, bytes, "%s", e->d_name);
        }
    }

    (void) closedir(d);

    return found;
}


int
vlm_file_check_dir(const char *dir, const char *name, vlm_err_t *err)
{
    char         found[256];
    vlm_file_t   f;
    struct stat  st;

    if (stat(dir, &st) != 0 || vlm_file_exists(dir, name)) {
        return 0;
    }

    if (!S_ISDIR(st.st_mode)) {
        if (vlm_file_open(&f, dir, 0, err) != 0) {
            return -1;
        }

        vlm_file_close(&f);

        return vlm_fail(err, VLM_EMODEL, "%s: not a directory; the model is one, with %s in it",
                        dir, name);
    }

    if (vlm_file_find(dir, "", ".gguf", found, sizeof(found))) {
        return vlm_fail(err, VLM_EMODEL, "%s: no %s; \"%s\" is a GGUF file: give the file "
                        "itself, and its vision encoder's file as mmproj=FILE.gguf", dir, name,
                        vlm_printable(found));
    }

    return 0;
}


/* Some file systems have another device in stat() than among the locks: then an inode that is there
   once is enough. */
long
vlm_file_locker_in(FILE *locks, uint64_t device, uint64_t inode)
{
    char                line[256];
    long                pid, other;
    uint32_t            n;
    unsigned            high, low;
    unsigned long long  node;

    for (other = 0, n = 0; fgets(line, sizeof(line), locks); /* void */ ) {

        if (sscanf(line, "%*s FLOCK %*s WRITE %ld %x:%x:%llu", &pid, &high, &low, &node) != 4
            || node != inode || pid <= 0)
        {
            continue;
        }

        if (makedev(high, low) == device) {
            return pid;
        }

        other = pid;
        n++;
    }

    return n == 1 ? other : 0;
}


long
vlm_file_locker(const char *path, long *parent)
{
    FILE         *f;
    char          name[64];
    long          owner;
    struct stat   st;

    *parent = 0;

    f = stat(path, &st) == 0 ? fopen("/proc/locks", "re") : NULL;
    if (f == NULL) {
        return 0;
    }

    owner = vlm_file_locker_in(f, st.st_dev, st.st_ino);
    (void) fclose(f);

    if (owner > 0 && kill((pid_t) owner, 0) != 0 && errno == ESRCH) {
        return 0;                          /* a child of it has the open file */
    }

    (void) snprintf(name, sizeof(name), "/proc/%ld/stat", owner);

    f = owner > 0 ? fopen(name, "re") : NULL;

    if (f) {
        if (fscanf(f, "%*d (%*[^)]) %*c %ld", parent) != 1) {
            *parent = 0;
        }

        (void) fclose(f);
    }

    return owner;
}


int
vlm_file_unnamed(const char *dir)
{
    int   fd;
    char  path[4096];

    if (vlm_file_path(path, sizeof(path), dir, "unnamed-XXXXXX", NULL) != 0) {
        errno = ENAMETOOLONG;
        return -1;
    }

    fd = mkostemp(path, O_CLOEXEC);

    if (fd != -1) {
        (void) unlink(path);
    }

    return fd;
}


int
vlm_file_write(int fd, const void *data, uint64_t bytes, uint64_t offset)
{
    ssize_t   n;
    uint64_t  done;

    for (done = 0; done < bytes; done += (uint64_t) n) {
        n = pwrite(fd, (const char *) data + done, (size_t) (bytes - done),
                   (off_t) (offset + done));

        if (n <= 0) {
            return n ? errno : ENOSPC;
        }
    }

    return 0;
}


int
vlm_file_moved(int fd, const char *path)
{
    struct stat  file, now;

    if (fstat(fd, &file) == -1) {
        return 0;
    }

    if (stat(path, &now) == -1) {
        return errno == ENOENT;
    }

    return file.st_ino != now.st_ino || file.st_dev != now.st_dev;
}


int
vlm_file_lock(const char *path, int make, int *fd)
{
    int  e;

    *fd = open(path, O_RDWR|O_NOFOLLOW|O_CLOEXEC|(make ? O_CREAT : 0), 0600);

    if (*fd == -1 && errno == EROFS) {
        *fd = open(path, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);
    }

    if (*fd == -1) {
        return errno;
    }

    e = flock(*fd, LOCK_EX|LOCK_NB) == -1 ? errno : vlm_file_moved(*fd, path) ? EWOULDBLOCK : 0;

    if (e != 0) {
        (void) close(*fd);
        *fd = -1;
    }

    return e;
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


const char *
vlm_file_name(const char *path, size_t *bytes)
{
    size_t       len;
    const char  *slash;

    len = strlen(path);

    while (len > 1 && path[len - 1] == '/') {
        len--;
    }

    slash = len > 1 ? memrchr(path, '/', len) : NULL;
    *bytes = slash != NULL ? (size_t) (path + len - slash - 1) : len;

    return slash != NULL ? slash + 1 : path;
}
