/* Unix sockets that listen for their owner alone. */

#ifndef VLM_LISTENER_H
#define VLM_LISTENER_H

#include <sys/socket.h>

/* A socket that listens, without waiting, at an address of AF_UNIX, with mode 0600 from the first
   moment on; it stays open over exec.  -1 and errno, and no file of its making. */
int vlm_listener_open(const struct sockaddr *address, socklen_t bytes, int backlog);

/* 1: the path is a socket, at this address, on which no process listens.  Else 0. */
int vlm_listener_is_dead(const char *path, const struct sockaddr *address, socklen_t bytes);

#endif
