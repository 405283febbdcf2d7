
/*
 * Maps the file of a stored picture.  In threads only: the first access to a
 * page may wait for the disk.
 */


#include "chat.h"
#include <sys/mman.h>


void *
ngx_http_vlm_map(const char *path, size_t *size)
{
    int           fd, e;
    void         *map;
    struct stat   st;

    map = MAP_FAILED;
    *size = 0;

    fd = open(path, O_RDONLY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        return NULL;
    }

    if (fstat(fd, &st) != 0) {
        e = errno;

    } else if (!S_ISREG(st.st_mode)) {
        e = ENOENT;

    } else if (st.st_size == 0) {
        e = ENODATA;

    } else if (st.st_size > NGX_HTTP_VLM_MAP_MAX) {
        *size = st.st_size;
        e = EFBIG;

    } else {
        *size = st.st_size;
        map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        e = errno;
    }

    (void) close(fd);

    errno = e;

    return map == MAP_FAILED ? NULL : map;
}
