/* Directories that are made for another user: see folder.h. */

#include "base/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>


int
vlm_folder_make(const char *path, uid_t uid, gid_t gid)
{
    int  fd, e, rc;

    if (mkdir(path, 0700) == -1) {
        return errno == EEXIST ? 0 : -1;
    }

    if (uid == (uid_t) -1) {
        return 0;
    }

    /* Another user may have put a link in its place, where the directory above is theirs. */

    fd = open(path, O_RDONLY|O_DIRECTORY|O_NOFOLLOW|O_CLOEXEC);

    if (fd == -1) {
        return -1;
    }

    rc = fchown(fd, uid, gid);
    e = errno;
    (void) close(fd);
    errno = e;

    return rc;
}


int
vlm_folder_is_new(const char *path, char *above, size_t bytes)
{
    size_t       n = strlen(path);
    struct stat  st;

    above[0] = '\0';

    if (stat(path, &st) == 0 || errno != ENOENT || n == 0 || n >= bytes) {
        return 0;
    }

    while (n > 1 && path[n - 1] == '/') {
        n--;
    }

    while (n > 0 && path[n - 1] != '/') {
        n--;
    }

    if (n == 0) {
        path = ".";
        n = 1;
    }

    memcpy(above, path, n);
    above[n] = '\0';

    if (stat(above, &st) == 0 && S_ISDIR(st.st_mode)) {
        return 1;
    }

    above[0] = '\0';

    return 0;
}
