
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

#include "store/calls.h"
#include "store/disk.h"


#define PATH            VLM_STORE_PATH
#define ROOM            (PATH - sizeof("/uploads/") - VLM_STORE_NAME)

#define OK              VLM_STORE_OK
#define EINPUT          VLM_STORE_EINPUT


typedef vlm_store_err_t   err_t;


static int check_entries(const char *dir, err_t *err);
static int check_parent(const char *dir, err_t *err);
static int prepare(const char *dir, uid_t uid, gid_t gid, size_t n_folders, size_t n_files,
    err_t *err);
static int make_folder(const char *dir, err_t *err);
static void begin_database(int at, const char *name);


static const char *const  folders[] = { "uploads", "results", "documents" };
static const char *const  files[] = { "vlm.db", "vlm.db-wal", "vlm.db-shm" };

#define N_PICTURES      2                  /* of the folders: uploads and results */
#define N_FOLDERS       (sizeof(folders) / sizeof(folders[0]))
#define N_FILES         (sizeof(files) / sizeof(files[0]))


int
vlm_store_check(const char *dir, err_t *err)
{
    struct stat  sb;

    if (strlen(dir) > ROOM) {
        return vlm_db_fail(err, EINPUT, "the path of a store has %zu "
                           "bytes, it may have %zu", strlen(dir),
                           ROOM);
    }

    if (stat(dir, &sb) != 0) {
        return errno == ENOENT ? check_parent(dir, err)
                               : vlm_db_fail_errno(err, errno, dir);
    }

    if (!S_ISDIR(sb.st_mode)) {
        return vlm_db_fail(err, EINPUT,
                           "store %.150s is no directory", dir);
    }

    return check_entries(dir, err);
}


/*
 * A link is accepted unless this process is root, which would follow another user's link.  A path
 * that may not be checked is reported when it is used.
 */

static int
check_entries(const char *dir, err_t *err)
{
    int          flags;
    char         path[PATH];
    size_t       i;
    mode_t       type;
    const char  *name;
    struct stat  sb;

    flags = geteuid() == 0 ? AT_SYMLINK_NOFOLLOW : 0;

    for (i = 0; i < N_FOLDERS + N_FILES; i++) {

        name = i < N_FOLDERS ? folders[i] : files[i - N_FOLDERS];
        type = i < N_FOLDERS ? S_IFDIR : S_IFREG;

        (void) snprintf(path, sizeof(path), "%s/%s", dir, name);

        if (fstatat(AT_FDCWD, path, &sb, flags) == 0
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
    char         parent[PATH], *slash;
    struct stat  sb;

    (void) snprintf(parent, sizeof(parent), "%s", dir);

    slash = strrchr(parent, '/');

    if (slash == NULL || slash == parent) {
        return OK;
    }

    *slash = '\0';

    if (stat(parent, &sb) != 0) {
        return vlm_db_fail(err, EINPUT, "store %.80s cannot be made "
                           "in %.80s: %s", slash + 1, parent,
                           strerror(errno));
    }

    if (access(parent, W_OK|X_OK) != 0) {
        return vlm_db_fail(err, VLM_STORE_EREADONLY,
                           "store %.80s cannot be made in %.80s: %s",
                           slash + 1, parent, strerror(errno));
    }

    return OK;
}


int
vlm_store_make(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    int          fd;
    struct stat  sb;

    /* the directory may have any owner who can use it, as nginx's own directories may */

    if (stat(dir, &sb) == 0 && (sb.st_mode & 0700) != 0700) {
        (void) chmod(dir, (sb.st_mode & 07777) | 0700);
    }

    fd = make_folder(dir, err);
    if (fd == -1) {
        return VLM_STORE_EIO;
    }

    /* workers may have access without being the owner; if not, the store's first call says so */

    (void) vlm_disk_own(fd, ".", O_DIRECTORY, 0, uid, gid);

    (void) close(fd);

    return OK;
}


int
vlm_store_prepare(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    return prepare(dir, uid, gid, N_FOLDERS, N_FILES, err);
}


int
vlm_store_prepare_files(const char *dir, uid_t uid, gid_t gid, err_t *err)
{
    return prepare(dir, uid, gid, N_PICTURES, 0, err);
}


static int
prepare(const char *dir, uid_t uid, gid_t gid, size_t n_folders, size_t n_files, err_t *err)
{
    int     fd, e;
    size_t  i;

    fd = make_folder(dir, err);
    if (fd == -1) {
        return VLM_STORE_EIO;
    }

    /* The directory's mode is the administrator's choice; its content is closed to other users. */

    e = vlm_disk_own(fd, ".", O_DIRECTORY, 0, uid, gid);

    if (n_files > 0) {
        begin_database(fd, files[0]);
    }

    for (i = 0; i < n_folders && e == 0; i++) {

        if (mkdirat(fd, folders[i], 0700) != 0 && errno != EEXIST) {
            e = errno;
            break;
        }

        e = vlm_disk_own(fd, folders[i], O_DIRECTORY, 0700, uid,
                         gid);
    }

    for (i = 0; i < n_files && e == 0; i++) {

        e = vlm_disk_own(fd, files[i], 0, 0600, uid, gid);

        if (e == ENOENT) {
            e = 0;
        }
    }

    (void) close(fd);

    return e == 0 ? OK : vlm_db_fail_errno(err, e, dir);
}


static int
make_folder(const char *dir, err_t *err)
{
    int  fd;

    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        (void) vlm_db_fail_errno(err, errno, dir);
        return -1;
    }

    fd = open(dir, O_RDONLY|O_DIRECTORY|O_CLOEXEC);

    if (fd == -1) {
        (void) vlm_db_fail_errno(err, errno, dir);
    }

    return fd;
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


/*
 * Creates the database as an empty file with mode 0600, which SQLite accepts as an empty database;
 * SQLite itself would make it readable by all users.  If the file cannot be created, SQLite reports
 * the reason later, and chats without a history go on.
 */

static void
begin_database(int at, const char *name)
{
    int  fd;

    fd = openat(at, name, O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0600);

    if (fd != -1) {
        (void) close(fd);
    }
}
