/* The path of a unix socket: see socket.h. */

#include "base/socket.h"

#include "base/folder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


int
vlm_socket_check(const char *path, const char *made, vlm_err_t *err)
{
    char          dir[VLM_SOCKET_PATH + 1];
    size_t        len;
    struct stat   st;

    if (strlen(path) > VLM_SOCKET_PATH) {
        return vlm_fail(err, VLM_EINPUT, "socket \"%.256s\" has %zu bytes, a unix socket's path "
                        "may have %d: set \"socket\"", path, strlen(path), VLM_SOCKET_PATH);
    }

    len = (size_t) (strrchr(path, '/') - path);
    (void) snprintf(dir, sizeof(dir), "%.*s", (int) (len > 0 ? len : 1), path);

    if (vlm_folder_check(dir, err) == -1) {
        return -1;
    }

    if (lstat(path, &st) == 0) {
        return S_ISSOCK(st.st_mode)
               ? 0 : vlm_fail(err, VLM_EINPUT, "\"%s\" is no socket: move it away", path);
    }

    return strcmp(dir, made) == 0 || access(dir, W_OK | X_OK) == 0
           ? 0 : vlm_fail(err, VLM_EINPUT, "socket \"%s\" cannot be made in \"%s\": %s", path, dir,
                          strerror(errno));
}
