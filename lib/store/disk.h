
/*
 * Names and files for the store: a client's name of a picture becomes a name that is safe on disk,
 * and bytes are written to a file whole or not at all.
 *
 * Plain C without nginx's headers; the only file outside the engine that uses utf8proc.  Names: any
 * thread.  Files: these functions wait for a disk.
 */


#ifndef _NGX_HTTP_VLM_FILE_H_INCLUDED_
#define _NGX_HTTP_VLM_FILE_H_INCLUDED_


#include <stddef.h>
#include <sys/types.h>


#define VLM_DISK_SECURE  180      /* bytes of a secure name, so that
                                              a uuid and more fit before it */


/*
 * werkzeug's secure_filename(): compatibility decomposition, ASCII only,
 * slashes and white space to "_", then letters, digits, "_", "." and "-",
 * without "." and "_" at the ends.  The result may be empty.  A longer name
 * loses its beginning, so that the extension stays.  Returns the length.
 */

size_t vlm_disk_secure(char dst[VLM_DISK_SECURE + 1],
    const char *name, size_t len);

/* 36 characters and a zero; -1: the system has no random numbers */

int vlm_disk_uuid(char id[37]);

/*
 * 1 if name is one segment that stays where it is put: 1 to 255 bytes, no
 * slash, no zero, no dot in front (so that neither ".." nor a file that is
 * still being written can be named).
 */

int vlm_disk_plain(const char *name, size_t len);

/*
 * Writes DIR/NAME; 0: it is on disk; else errno.  The file is written under another name and
 * renamed, so no reader sees a part of it.
 */

int vlm_disk_write(const char *dir, const char *name,
    const void *data, size_t bytes);

/* 1 if the file at path is a regular one with exactly these bytes */

int vlm_disk_same(const char *path, const void *data, size_t bytes);


#endif /* _NGX_HTTP_VLM_FILE_H_INCLUDED_ */
