/* Unix sockets that listen for their owner alone. */

#ifndef VLM_LISTENER_H
#define VLM_LISTENER_H

#include <sys/socket.h>
#include <sys/types.h>

#include "base/err.h"

/* A socket that listens, without waiting, at an address of AF_UNIX, with mode 0600 from the first
   moment on; it stays open over exec.  -1 and errno, and no file of its making. */
int vlm_listener_open(const struct sockaddr *address, socklen_t bytes, int backlog);

/* 1: the path is a socket, at this address, on which no process listens.  Else 0. */
int vlm_listener_is_dead(const char *path, const struct sockaddr *address, socklen_t bytes);

/*
 * Opens one for a user (uid -1: for the process's), by the rules of folder.h; *removed: a dead one
 * had its path.  -1, errno and a sentence.
 */
int vlm_listener_give(const struct sockaddr *address, socklen_t bytes, int backlog, uid_t uid,
                      gid_t gid, int *removed, vlm_err_t *err);

/*
 * The file of an open one may be gone, belong to another user, be open to others or have a second
 * name.  Then fd becomes a new socket, since only a new file is given away.  0: it is as it should
 * be, 1: it was gone, 2: it was not the user's alone; or -1 and a sentence.
 */
int vlm_listener_renew(int fd, const struct sockaddr *address, socklen_t bytes, int backlog,
                       uid_t uid, gid_t gid, vlm_err_t *err);

#endif
