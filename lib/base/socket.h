/* The path of a unix socket, before it is bound. */

#ifndef VLM_SOCKET_H
#define VLM_SOCKET_H

#include "base/err.h"

#define VLM_SOCKET_PATH  107           /* bytes: sizeof(sun_path) without its zero */

/*
 * Can a socket be bound at this path, or has it been?
 *
 *   path      absolute
 *   made      a directory that need not be there yet
 *   returns   0; or -1 and VLM_EINPUT: it is too long, another file has its name, or its
 *             directory is missing or may not be written, or has a link in its path that root does
 *             not follow (folder.h)
 */
int vlm_socket_check(const char *path, const char *made, vlm_err_t *err);

#endif
