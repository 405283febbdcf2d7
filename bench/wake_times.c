/*
 * bench/deliver.py preloads this library into nginx to record when the engine wakes the event loop.
 *
 * The engine wakes the loop by a write of eight bytes to its eventfd after a token is complete.
 * The library records each such write, with its descriptor and the time, in a file that all
 * processes map; WAKE_TIMES names the file.  The code of the server is unchanged.
 */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOTES  (1u << 16)              /* as in deliver.py; later ones are dropped */

typedef struct {
    _Atomic uint64_t  n;
    struct {
        uint64_t      ns;              /* CLOCK_MONOTONIC, as Python's monotonic_ns() */
        uint64_t      fd;
    } note[NOTES];
} wake_times_t;

static wake_times_t  *wake_times;


__attribute__((constructor)) static void
open_times(void)
{
    int          fd;
    void        *map;
    const char  *path;

    path = getenv("WAKE_TIMES");
    fd = path == NULL ? -1 : open(path, O_RDWR | O_CLOEXEC);

    if (fd == -1) {
        return;
    }

    map = mmap(NULL, sizeof(*wake_times), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void) close(fd);

    if (map != MAP_FAILED) {
        wake_times = map;
    }
}


ssize_t
write(int fd, const void *data, size_t bytes)
{
    uint64_t         i, one = 1;
    struct timespec  ts;

    if (bytes == sizeof(one) && wake_times != NULL && memcmp(data, &one, sizeof(one)) == 0) {
        (void) clock_gettime(CLOCK_MONOTONIC, &ts);

        i = atomic_fetch_add(&wake_times->n, 1);

        if (i < NOTES) {
            wake_times->note[i].fd = (uint64_t) fd;
            wake_times->note[i].ns = (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
        }
    }

    return syscall(SYS_write, fd, data, bytes);
}
