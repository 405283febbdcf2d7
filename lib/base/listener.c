/* Unix sockets: see listener.h. */

#include "base/listener.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>


/* The socket's mode before bind() is that of its file; a bind() that failed has made none. */
int
vlm_listener_open(const struct sockaddr *address, socklen_t bytes, int backlog)
{
    int  e, bound, fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK, 0);

    if (fd == -1) {
        return -1;
    }

    bound = fchmod(fd, 0600) == 0 && bind(fd, address, bytes) == 0;

    if (bound && listen(fd, backlog) == 0) {
        return fd;
    }

    e = errno;

    if (bound) {
        (void) unlink(((const struct sockaddr_un *) address)->sun_path);
    }

    (void) close(fd);
    errno = e;

    return -1;
}


int
vlm_listener_is_dead(const char *path, const struct sockaddr *address, socklen_t bytes)
{
    int          fd, dead;
    struct stat  st;

    if (lstat(path, &st) == -1 || !S_ISSOCK(st.st_mode)) {
        return 0;
    }

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return 0;
    }

    dead = connect(fd, address, bytes) == -1 && errno == ECONNREFUSED;

    (void) close(fd);

    return dead;
}
