/*
 * Directories and files that root makes for its workers' user.
 *
 * That user, or another, may own a directory on the way and put a link there.  So root opens each
 * component of a path from the one before, follows a link only if root made it in a directory that
 * root alone can write, and gives away only what it has just made.  A process of another user
 * follows all links, with no rights but its own.
 */

#ifndef VLM_FOLDER_H
#define VLM_FOLDER_H

#include <sys/types.h>

#include "base/err.h"

/*
 * Opens a directory, perhaps with O_PATH.  The descriptor; or -1, errno and a sentence that names
 * the component.  errno is ELOOP for a link that is not followed.
 */
int vlm_folder_open(const char *path, vlm_err_t *err);

/* The same for the directory above the last component of a path, which is then *name. */
int vlm_folder_above(const char *path, const char **name, vlm_err_t *err);

/* Is there no link in this path that is not followed, however much of it is there?  0, or -1. */
int vlm_folder_check(const char *path, vlm_err_t *err);

/*
 * Opens a directory, and makes it if it is missing: with mode 0700 for this user and group; uid -1:
 * for those of the process.  One that is there stays as it is, and the directory above is not made.
 */
int vlm_folder_make(const char *path, uid_t uid, gid_t gid, vlm_err_t *err);

/* The same for one in an open directory, where no link is followed; -1 and errno. */
int vlm_folder_make_at(int at, const char *name, uid_t uid, gid_t gid);

/* Without a descriptor, for a directory and for a file with mode 0600; 0, or -1 and a sentence. */
int vlm_folder_need(const char *path, uid_t uid, gid_t gid, vlm_err_t *err);
int vlm_folder_need_file(const char *path, uid_t uid, gid_t gid, vlm_err_t *err);

/* Makes an empty file with mode 0600 there; 0, or errno: EEXIST, whatever has the name. */
int vlm_folder_file_at(int at, const char *name, uid_t uid, gid_t gid);

/*
 * Is it a socket as vlm_listener_open() makes it, and of this user?  0; or ENOENT, ENOTSOCK, or
 * EPERM: it has another owner, another mode or a second name.  uid -1: the process's.
 */
int vlm_folder_socket_at(int at, const char *name, uid_t uid);

/* Gives a socket that this process has just bound there to a user; 0, or errno. */
int vlm_folder_give_socket(int at, const char *name, uid_t uid, gid_t gid);

/*
 * 1: nothing has this path, and the directory above it is there: vlm_folder_make() would make it.
 * Else 0.  above, of bytes, then has the directory above, else "".
 */
int vlm_folder_is_new(const char *path, char *above, size_t bytes);

#endif
