
/*
 * The store's directory before any worker uses it: checked while the configuration is read, and
 * created in the master.  See store.h.
 */


#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/folder.h"
#include "store/calls.h"


#define PATH            VLM_STORE_PATH
#define ROOM            (PATH - sizeof("/uploads/") - VLM_STORE_NAME)

#define OK              VLM_STORE_OK
#define EINPUT          VLM_STORE_EINPUT


typedef vlm_store_err_t   err_t;


static int check_entries(int at, const char *dir, err_t *err);
static int check_parent(const char *dir, err_t *err);
static int prepare(const char *dir, uid_t uid, gid_t gid, size_t n_folders, err_t *err);
static int fail_path(err_t *err, const char *dir, const vlm_err_t *why);


static const char *const  folders[] = { "uploads", "results", "documents" };
static const char *const  files[] = { "vlm.db", "vlm.db-wal", "vlm.db-shm" };

#define N_PICTURES      2                  /* of the folders: uploads and results */
#define N_FOLDERS       (sizeof(folders) / sizeof(folders[0]))
#define N_FILES         (sizeof(files) / sizeof(files[0]))


int
vlm_store_check(const char *dir, err_t *err)
{
    int        fd, rc;
    vlm_err_t  why = { 0 };

    if (strlen(dir) > ROOM) {
        return vlm_db_fail(err, EINPUT, "the path of a store has %zu "
                           "bytes, it may have %zu", strlen(dir),
                           ROOM);
    }

    fd = vlm_folder_open(dir, &why);

    if (fd == -1) {
        return errno == ENOENT ? check_parent(dir, err) : fail_path(err, dir, &why);
    }

    rc = check_entries(fd, dir, err);

    (void) close(fd);

    return rc;
}


/*
 * A link is accepted unless this process is root, which would follow another user's link.  A path
 * that may not be checked is reported when it is used.
 */

static int
check_entries(int at, const char *dir, err_t *err)
{
    int          flags;
    size_t       i;
    mode_t       type;
    const char  *name;
    struct stat  sb;

    flags = geteuid() == 0 ? AT_SYMLINK_NOFOLLOW : 0;

    for (i = 0; i < N_FOLDERS + N_FILES; i++) {

        name = i < N_FOLDERS ? folders[i] : files[i - N_FOLDERS];
        type = i < N_FOLDERS ? S_IFDIR : S_IFREG;

        if (fstatat(at, name, &sb, flags) == 0
            && (sb.st_mode & S_IFMT) != type)
        {
            return vlm_db_fail(err, EINPUT, "store %.150s: \"%s\" is "
                               "%s: move it away", dir, name,
                               S_ISLNK(sb.st_mode) ? "a link"
                               : i < N_FOLDERS ? "no directory"
                                               : "no plain file");
        }
    }

    return OK;
}


/* the directory is created, its parents are not */

static int
check_parent(const char *dir, err_t *err)
{
    int          fd, bytes;
    vlm_err_t    why = { 0 };
    const char  *name;

    fd = vlm_folder_above(dir, &name, &why);

    if (fd != -1 && faccessat(fd, ".", W_OK|X_OK, 0) == 0) {
        (void) close(fd);
        return OK;
    }

    if (fd == -1 && errno == ELOOP) {
        return fail_path(err, dir, &why);
    }

    bytes = name - dir > 1 ? (int) (name - dir) - 1 : (int) (name - dir);

    (void) vlm_db_fail(err, fd == -1 ? EINPUT : VLM_STORE_EREADONLY,
                       "store %.80s cannot be made in %.*s: %s",
                       name, bytes < 80 ? bytes : 80, dir, strerror(errno));

    if (fd != -1) {
        (void) close(fd);
    }

    return fd == -1 ? EINPUT : VLM_STORE_EREADONLY;
}


/* errno is that of folder.h */

static int
fail_path(err_t *err, const char *dir, const vlm_err_t *why)
{
    return errno == ELOOP ? vlm_db_fail(err, EINPUT, "store: %s", why->text)
           : errno == ENOTDIR ? vlm_db_fail(err, EINPUT, "store %.150s is no directory", dir)
           : vlm_db_fail_errno(err, errno, dir);
}


int
vlm_store_make(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    return prepare(dir, uid, gid, 0, err);
}


int
vlm_store_prepare(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    return prepare(dir, uid, gid, N_FOLDERS, err);
}


int
vlm_store_prepare_files(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    return prepare(dir, uid, gid, N_PICTURES, err);
}


/*
 * Makes what is missing.  The database begins as an empty file with mode 0600, which SQLite accepts
 * as an empty database; SQLite itself would make it readable by all users.  If that file cannot be
 * made, SQLite reports the reason later, and chats without a history go on.
 */

static int
prepare(const char *dir, uid_t uid, gid_t gid, size_t n_folders, err_t *err)
{
    int        at, fd, e;
    size_t     i;
    vlm_err_t  why = { 0 };

    at = vlm_folder_make(dir, uid, gid, &why);
    if (at == -1) {
        (void) fail_path(err, dir, &why);
        return VLM_STORE_EIO;
    }

    if (n_folders == N_FOLDERS) {
        (void) vlm_folder_file_at(at, files[0], uid, gid);
    }

    e = 0;

    for (i = 0; i < n_folders && e == 0; i++) {

        fd = vlm_folder_make_at(at, folders[i], uid, gid);

        if (fd == -1) {
            e = errno;

        } else {
            (void) close(fd);
        }
    }

    (void) close(at);

    return e == 0 ? OK : vlm_db_fail_errno(err, e, dir);
}


int
vlm_store_usable(vlm_store_t *st, err_t *err)
{
    char    path[PATH + sizeof("/documents")];
    size_t  i;

    for (i = 0; i <= (st->db != NULL ? N_FOLDERS : N_PICTURES); i++) {

        (void) snprintf(path, sizeof(path), "%s%s%s", st->dir,
                        i ? "/" : "", i ? folders[i - 1] : "");

        if (faccessat(AT_FDCWD, path, W_OK|X_OK, AT_EACCESS) != 0) {
            return vlm_db_fail_errno(err, errno, path);
        }
    }

    return st->calls->usable(st, err);
}
