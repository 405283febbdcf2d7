/* Walks to directories, and makes them for another user: see folder.h. */

#define _GNU_SOURCE                    /* O_PATH */

#include "base/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_PATH   4096                /* of Linux, as is the next */
#define MAX_LINKS  40

typedef struct {
    const char  *path;                 /* as the caller has it */
    int          fd;                   /* the directory that the rest begins in, or -1 */
    int          links;                /* that were followed */
    char        *rest;                 /* the components to come, in text */
    char         text[MAX_PATH];
} walk_t;


/* Closes, and keeps errno. */
static int
close_failed(int fd)
{
    int  e = errno;

    (void) close(fd);
    errno = e;

    return -1;
}


static int
fail(const char *path, vlm_err_t *err)
{
    int  e = errno;

    (void) vlm_fail(err, VLM_EINPUT, "\"%.150s\": %s", path, strerror(e));
    errno = e;

    return -1;
}


static int
refuse(const walk_t *w, const char *name, vlm_err_t *err)
{
    (void) vlm_fail(err, VLM_EINPUT, "\"%.40s\" in \"%.80s\" is a link, which is followed only if "
                    "root made it in a directory that root alone can write", name, w->path);
    errno = ELOOP;

    return -1;
}


/* A directory without leave to read it, as root may find on NFS, can still be walked. */
static int
open_folder(int at, const char *name, int flags)
{
    int  fd;

    flags |= O_DIRECTORY|O_CLOEXEC;
    fd = openat(at, name, O_RDONLY|flags);

    return fd == -1 && errno == EACCES ? openat(at, name, O_PATH|flags) : fd;
}


/* The walk goes on in another directory, or ends. */
static int
enter(walk_t *w, int fd)
{
    if (w->fd != -1) {
        (void) close_failed(w->fd);
    }

    w->fd = fd;

    return fd == -1 ? -1 : 0;
}


/* Puts the target of the open link in front of the rest. */
static int
read_link(walk_t *w, int link)
{
    char     target[MAX_PATH];
    size_t   rest = strlen(w->rest);
    ssize_t  n = readlinkat(link, "", target, sizeof(target));

    if (n <= 0 || (size_t) n + 1 + rest >= sizeof(w->text)) {
        errno = n == -1 ? errno : n == 0 ? ENOENT : ENAMETOOLONG;
        return -1;
    }

    memmove(w->text + n + 1, w->rest, rest + 1);
    memcpy(w->text, target, (size_t) n);
    w->text[n] = '/';
    w->rest = w->text;

    return target[0] == '/' ? enter(w, open_folder(AT_FDCWD, "/", 0)) : 0;
}


/* The link is opened, so that the one that is examined is the one that is read. */
static int
follow(walk_t *w, const char *name, vlm_err_t *err)
{
    int          link, rc = -1;
    struct stat  st, dir;

    link = openat(w->fd, name, O_PATH|O_NOFOLLOW|O_CLOEXEC);

    if (link == -1) {
        return fail(w->path, err);
    }

    if (fstat(link, &st) == -1 || fstat(w->fd, &dir) == -1) {
        (void) fail(w->path, err);

    } else if (!S_ISLNK(st.st_mode)) {
        errno = ENOTDIR;
        (void) fail(w->path, err);

    } else if (st.st_uid != 0 || dir.st_uid != 0 || (dir.st_mode & (S_IWGRP|S_IWOTH)) != 0
               || ++w->links > MAX_LINKS)
    {
        (void) refuse(w, name, err);

    } else if ((rc = read_link(w, link)) == -1) {
        (void) fail(w->path, err);
    }

    (void) close_failed(link);

    return rc;
}


/* Takes the next component off the rest; NULL: there is none. */
static char *
next(walk_t *w)
{
    char  *name = w->rest + strspn(w->rest, "/");

    if (*name == '\0') {
        return NULL;
    }

    w->rest = name + strcspn(name, "/");

    if (*w->rest != '\0') {
        *w->rest++ = '\0';
    }

    return name;
}


static int
walk(walk_t *w, vlm_err_t *err)
{
    int    fd;
    char  *name;

    while ((name = next(w)) != NULL) {

        fd = open_folder(w->fd, name, O_NOFOLLOW);

        if (fd != -1) {
            (void) enter(w, fd);

        } else if (errno != ENOTDIR && errno != ELOOP) {
            return fail(w->path, err);

        } else if (follow(w, name, err) == -1) {
            return -1;
        }
    }

    return 0;
}


/* Opens the first bytes of a path. */
static int
open_part(const char *path, size_t bytes, vlm_err_t *err)
{
    walk_t  w = { .path = path, .fd = -1, .rest = w.text };

    if (bytes >= sizeof(w.text)) {
        errno = ENAMETOOLONG;
        return fail(path, err);
    }

    memcpy(w.text, path, bytes);
    w.text[bytes] = '\0';

    if (geteuid() != 0) {
        w.fd = open_folder(AT_FDCWD, bytes > 0 ? w.text : ".", 0);
        return w.fd != -1 ? w.fd : fail(path, err);
    }

    if (enter(&w, open_folder(AT_FDCWD, w.text[0] == '/' ? "/" : ".", 0)) == -1) {
        return fail(path, err);
    }

    if (walk(&w, err) == -1) {
        (void) enter(&w, -1);
    }

    return w.fd;
}


int
vlm_folder_open(const char *path, vlm_err_t *err)
{
    return open_part(path, strlen(path), err);
}


int
vlm_folder_check(const char *path, vlm_err_t *err)
{
    vlm_err_t  why = { 0 };
    int        fd = vlm_folder_open(path, &why);

    if (fd != -1) {
        (void) close(fd);
        return 0;
    }

    return errno == ELOOP ? vlm_fail(err, VLM_EINPUT, "%s", why.text) : 0;
}


int
vlm_folder_above(const char *path, const char **name, vlm_err_t *err)
{
    const char  *slash = strrchr(path, '/');

    *name = slash != NULL ? slash + 1 : path;

    return open_part(path, (size_t) (*name - path), err);
}


static int
is_empty(int fd)
{
    int             more = 0, copy = dup(fd);
    DIR            *d = copy != -1 ? fdopendir(copy) : NULL;
    struct dirent  *entry;

    if (d == NULL) {
        return copy != -1 ? close_failed(copy) + 1 : 0;
    }

    while (!more && (entry = readdir(d)) != NULL) {
        more = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }

    (void) closedir(d);

    return !more;
}


/* Is it the directory that this process has just made, and not one that was moved to its place? */
static int
is_new(int fd)
{
    struct stat  st;

    return fstat(fd, &st) == 0 && st.st_uid == geteuid()
           && (st.st_mode & (S_IRWXG|S_IRWXO)) == 0 && is_empty(fd);
}


int
vlm_folder_make_at(int at, const char *name, uid_t uid, gid_t gid)
{
    int  fd, made = mkdirat(at, name, 0700) == 0;

    if (!made && errno != EEXIST) {
        return -1;
    }

    fd = open_folder(at, name, O_NOFOLLOW);

    if (fd == -1 || !made || uid == (uid_t) -1) {
        return fd;
    }

    if (!is_new(fd)) {
        errno = EPERM;
        return close_failed(fd);
    }

    return fchown(fd, uid, gid) == 0 ? fd : close_failed(fd);
}


int
vlm_folder_make(const char *path, uid_t uid, gid_t gid, vlm_err_t *err)
{
    int          at, fd = vlm_folder_open(path, NULL);
    char         plain[MAX_PATH];
    size_t       n = strlen(path);
    const char  *name;

    if (fd != -1) {
        return fd;
    }

    if (errno != ENOENT || n >= sizeof(plain)) {
        return vlm_folder_open(path, err);
    }

    while (n > 1 && path[n - 1] == '/') {
        n--;
    }

    memcpy(plain, path, n);
    plain[n] = '\0';

    at = vlm_folder_above(plain, &name, err);

    if (at == -1) {
        return -1;
    }

    fd = vlm_folder_make_at(at, name, uid, gid);
    (void) close_failed(at);

    return fd != -1 ? fd : fail(path, err);
}


int
vlm_folder_need(const char *path, uid_t uid, gid_t gid, vlm_err_t *err)
{
    int  fd = vlm_folder_make(path, uid, gid, err);

    return fd != -1 ? close(fd) : -1;
}


int
vlm_folder_file_at(int at, const char *name, uid_t uid, gid_t gid)
{
    int  e, fd = openat(at, name, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600);

    if (fd == -1) {
        return errno;
    }

    e = uid != (uid_t) -1 && fchown(fd, uid, gid) == -1 ? errno : 0;
    (void) close(fd);

    return e;
}


/* On a read-only disk one that is there is enough. */
int
vlm_folder_need_file(const char *path, uid_t uid, gid_t gid, vlm_err_t *err)
{
    int          e, at;
    const char  *name;
    struct stat  st;

    at = vlm_folder_above(path, &name, err);

    if (at == -1) {
        return -1;
    }

    e = vlm_folder_file_at(at, name, uid, gid);

    if (e != 0 && fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
        e = S_ISREG(st.st_mode) ? 0 : EEXIST;
    }

    (void) close(at);
    errno = e;

    return e == 0 ? 0 : fail(path, err);
}


/* O_PATH: a socket cannot be opened otherwise. */
static int
open_socket(int at, const char *name, uid_t uid, int *fd)
{
    struct stat  st;

    *fd = openat(at, name, O_PATH|O_NOFOLLOW|O_CLOEXEC);

    if (*fd == -1 || fstat(*fd, &st) == -1) {
        return errno;
    }

    return !S_ISSOCK(st.st_mode) ? ENOTSOCK
           : st.st_uid != uid || st.st_nlink != 1 || (st.st_mode & (S_IRWXG|S_IRWXO)) != 0 ? EPERM
           : 0;
}


int
vlm_folder_socket_at(int at, const char *name, uid_t uid)
{
    int  fd, e = open_socket(at, name, uid != (uid_t) -1 ? uid : geteuid(), &fd);

    if (fd != -1) {
        (void) close(fd);
    }

    return e;
}


int
vlm_folder_give_socket(int at, const char *name, uid_t uid, gid_t gid)
{
    int  fd, e = open_socket(at, name, geteuid(), &fd);

    if (e == 0 && uid != (uid_t) -1 && fchownat(fd, "", uid, gid, AT_EMPTY_PATH) == -1) {
        e = errno;
    }

    if (fd != -1) {
        (void) close(fd);
    }

    return e;
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
