
/* The folder of each document: its file, and the pictures of its pages. */


#define _GNU_SOURCE

#include "store/document.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/disk.h"


#define PATH            VLM_STORE_PATH
#define FILE_NAME       "document.pdf"

#define OK              VLM_STORE_OK
#define NOTFOUND        VLM_STORE_NOTFOUND


typedef vlm_store_t       store_t;
typedef vlm_store_err_t   err_t;


/* DIR/documents, or the folder of a document there, or a file in it; "": longer than a path */

static void
put_path(store_t *st, const char *id, const char *name, char path[PATH])
{
    int  n;

    n = snprintf(path, PATH, "%s/documents%s%.36s%s%s", st->dir, id ? "/" : "", id ? id : "",
                 name ? "/" : "", name ? name : "");

    if (n < 0 || n >= PATH) {
        path[0] = '\0';
    }
}


void
vlm_document_path(store_t *st, const char *id, char path[PATH])
{
    put_path(st, id, FILE_NAME, path);
}


static int
fail(err_t *err, int e, store_t *st)
{
    return vlm_db_fail_errno(err, e, st->dir);
}


/* the folder's own name is on disk after this, too */

static int
make_folder(store_t *st, const char *id, char path[PATH], err_t *err)
{
    int  fd, e;

    put_path(st, id, NULL, path);

    if (mkdir(path, 0700) != 0) {
        return errno == EEXIST ? OK : fail(err, errno, st);
    }

    put_path(st, NULL, NULL, path);

    fd = open(path, O_RDONLY|O_DIRECTORY|O_CLOEXEC);
    e = fd == -1 || fsync(fd) != 0 ? errno : 0;

    if (fd != -1) {
        (void) close(fd);
    }

    put_path(st, id, NULL, path);

    return e == 0 ? OK : fail(err, e, st);
}


int
vlm_document_keep(store_t *st, const char *id, const void *data, size_t bytes, err_t *err)
{
    int   rc, e;
    char  path[PATH];

    rc = make_folder(st, id, path, err);
    if (rc != OK) {
        return rc;
    }

    e = vlm_disk_write(path, FILE_NAME, data, bytes);

    if (e != 0) {
        (void) rmdir(path);
        return fail(err, e, st);
    }

    return OK;
}


static int
is_file(const char *path, struct stat *sb)
{
    return lstat(path, sb) == 0 && S_ISREG(sb->st_mode);
}


int
vlm_document_there(store_t *st, const char *id, uint64_t bytes)
{
    char         path[PATH];
    struct stat  sb;

    vlm_document_path(st, id, path);

    return is_file(path, &sb) && (uint64_t) sb.st_size == bytes;
}


void
vlm_document_root(store_t *st, char path[PATH])
{
    put_path(st, NULL, NULL, path);
}


uint64_t
vlm_document_folder_bytes(store_t *st, const char *id)
{
    DIR            *d;
    char            path[PATH];
    uint64_t        bytes;
    struct stat     sb;
    struct dirent  *e;

    put_path(st, id, NULL, path);

    bytes = 0;
    d = id[0] == '\0' ? NULL : opendir(path);

    if (d == NULL) {
        return 0;
    }

    while ((e = readdir(d)) != NULL) {
        if (fstatat(dirfd(d), e->d_name, &sb, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(sb.st_mode)) {
            bytes += (uint64_t) sb.st_size;
        }
    }

    (void) closedir(d);

    return bytes;
}


/* A file that another thread adds meanwhile stays until a sweep finds its folder. */

void
vlm_document_remove(store_t *st, const char *id)
{
    DIR            *d;
    char            path[PATH];
    struct dirent  *e;

    put_path(st, id, NULL, path);

    d = opendir(path);

    if (d != NULL) {
        while ((e = readdir(d)) != NULL) {
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
                (void) unlinkat(dirfd(d), e->d_name, 0);
            }
        }

        (void) closedir(d);
    }

    (void) rmdir(path);
}


static void
picture_name(uint32_t number, uint32_t pixels, char name[32])
{
    (void) snprintf(name, 32, "%u-%u.png", number, pixels);
}


int
vlm_document_picture_find(store_t *st, const char *id, uint32_t number, uint32_t pixels,
    char path[PATH], err_t *err)
{
    char         name[32];
    struct stat  sb;

    picture_name(number, pixels, name);
    put_path(st, id, name, path);

    return is_file(path, &sb) ? OK : vlm_db_fail(err, NOTFOUND, "No such picture");
}


int
vlm_document_picture_add(store_t *st, const char *id, uint32_t number, uint32_t pixels,
    const void *data, size_t bytes, char path[PATH], err_t *err)
{
    int   e;
    char  name[32];

    picture_name(number, pixels, name);
    put_path(st, id, NULL, path);

    e = vlm_disk_write(path, name, data, bytes);

    if (e == ENOENT) {
        return vlm_document_none(err);
    }

    if (e != 0) {
        return fail(err, e, st);
    }

    put_path(st, id, name, path);

    return OK;
}
