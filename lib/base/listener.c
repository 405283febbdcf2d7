/* Unix sockets: see listener.h. */

#include "base/listener.h"

#include "base/folder.h"

#include <errno.h>
#include <string.h>
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


/* Opens one in this directory. */
static int
open_at(int at, const char *name, const struct sockaddr *address, socklen_t bytes, int backlog,
        uid_t uid, gid_t gid)
{
    int  e, fd = vlm_listener_open(address, bytes, backlog);

    e = fd != -1 ? vlm_folder_give_socket(at, name, uid, gid) : 0;

    if (e != 0) {
        (void) close(fd);
        errno = e;
        return -1;
    }

    return fd;
}


static int
fail(vlm_err_t *err, const char *path, int e)
{
    (void) vlm_fail(err, VLM_EDEVICE, "the socket \"%s\" cannot be given to the workers: %s", path,
                    strerror(e));
    errno = e;

    return -1;
}


/* One that a killed process left would keep bind() from its path. */
int
vlm_listener_give(const struct sockaddr *address, socklen_t bytes, int backlog, uid_t uid,
                  gid_t gid, int *removed, vlm_err_t *err)
{
    int          at, fd, e;
    const char  *name, *path = ((const struct sockaddr_un *) address)->sun_path;

    *removed = 0;
    at = vlm_folder_above(path, &name, err);

    if (at == -1) {
        return -1;
    }

    if (vlm_listener_is_dead(path, address, bytes)) {
        *removed = unlinkat(at, name, 0) == 0;
    }

    fd = open_at(at, name, address, bytes, backlog, uid, gid);
    e = errno;
    (void) close(at);

    return fd != -1 ? fd : fail(err, path, e);
}


int
vlm_listener_renew(int fd, const struct sockaddr *address, socklen_t bytes, int backlog,
                   uid_t uid, gid_t gid, vlm_err_t *err)
{
    int          at, new, e, was;
    const char  *name, *path = ((const struct sockaddr_un *) address)->sun_path;

    at = vlm_folder_above(path, &name, err);

    if (at == -1) {
        return -1;
    }

    e = was = vlm_folder_socket_at(at, name, uid);

    if (was == ENOENT || was == EPERM) {
        (void) unlinkat(at, name, 0);

        new = open_at(at, name, address, bytes, backlog, uid, gid);
        e = new != -1 && dup2(new, fd) != -1 ? 0 : errno;

        if (new != -1) {
            (void) close(new);
        }
    }

    (void) close(at);

    return e != 0 ? fail(err, path, e) : was == 0 ? 0 : was == ENOENT ? 1 : 2;
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
