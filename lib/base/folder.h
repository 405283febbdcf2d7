/* A directory that a server makes for its workers' user, who may not make it. */

#ifndef VLM_FOLDER_H
#define VLM_FOLDER_H

#include <sys/types.h>

/*
 * Makes the directory, for this user and group alone; uid -1: for those of the process.  One that
 * is there stays as it is.  0, or -1 and errno; without the right to give it away it is there, and
 * the process's.
 */
int vlm_folder_make(const char *path, uid_t uid, gid_t gid);

/*
 * 1: nothing has this path, and the directory above it is there: vlm_folder_make() would make it.
 * Else 0.  above, of bytes, then has the directory above, else "".
 */
int vlm_folder_is_new(const char *path, char *above, size_t bytes);

#endif
