/*
 * Files as ranges of memory.
 *
 * Small files are copied, since a file that another process cuts while its map is read ends this
 * process (SIGBUS).  Weights are mapped, so that no byte is read twice.
 */

#ifndef VLM_FILE_H
#define VLM_FILE_H

#include <stdio.h>

#include "base/err.h"

typedef struct {
    const uint8_t  *data;              /* [bytes], read-only; NULL for an empty file */
    uint64_t        bytes;
    uint8_t        *room;              /* [bytes], to which pages of our own are moved, or NULL */
    uint64_t        owned;             /* bytes moved so far, from the first on */
    int             copied;            /* 1: the bytes are a copy, not a map */
    uint64_t        device, inode;     /* of a file that was opened by its path */
} vlm_file_t;

/*
 * Maps the first bytes of an open file for reading; the descriptor may be closed afterwards.  0, or
 * the system's error; ENODATA: there are no bytes.
 */
int vlm_file_map_fd(vlm_file_t *f, int fd, uint64_t bytes);

/*
 * Maps a regular file for reading.
 *
 *   flags    of open(), such as O_NOFOLLOW
 *   limit    bytes; 0: no limit
 *   returns  0, or the system's error; ENODATA: the file is empty, ENODEV: it is not a regular
 *            file, EFBIG: it is longer than limit, and f->bytes has its length
 */
int vlm_file_map(vlm_file_t *f, const char *path, int flags, uint64_t limit);

/*
 * Opens a file of a model, which may be empty: copied if there is a limit, else mapped.  VLM_EMODEL
 * with the path and the system's error if it cannot be opened, is not a regular file, is longer
 * than limit bytes (0: no limit), becomes shorter while it is copied, or is a common mistake for a
 * checkpoint's file: a Git LFS pointer, a GGUF file.
 */
int vlm_file_open(vlm_file_t *f, const char *path, uint64_t limit, vlm_err_t *err);

/*
 * Before and after a map is read: 0, or -1 and VLM_EMODEL if the file of this path is shorter now.
 * Between two such questions a file can still be cut: security.md says how it must be replaced.
 */
int vlm_file_whole(const vlm_file_t *f, const char *path, vlm_err_t *err);

/* Opens a file of a model, and neither maps nor copies it: fd, or -1, and its length.  The errors
   are vlm_file_open()'s. */
int vlm_file_handle(int *fd, uint64_t *bytes, const char *path, vlm_err_t *err);

/* Reads bytes at an offset.  0, or -1 and VLM_EMODEL: the system's error, or the file has fewer. */
int vlm_file_read_at(int fd, void *to, uint64_t bytes, uint64_t at, const char *path,
                     vlm_err_t *err);

/* Reads a range into memory, in large pages where the system can; the rest is read on first
   access. */
void vlm_file_bring(const vlm_file_t *f, uint64_t offset, uint64_t bytes);

/*
 * Replaces the next bytes of a file, from its first on, by anonymous memory with the same bytes at
 * the same address; other threads may read them meanwhile.  Later changes of the file or its disk
 * do not affect them. bytes is a multiple of a large page (2 MiB), or all that are left. -1: the
 * system has no memory, and the mapping is unchanged (Linux would lose it only without a page for
 * its own tables, in the middle of a move).
 */
int vlm_file_own(vlm_file_t *f, uint64_t bytes);

/* Tells the system that a range will not be read again, so that it leaves resident memory. */
void vlm_file_done(const vlm_file_t *f, uint64_t offset, uint64_t bytes);

void vlm_file_close(vlm_file_t *f);    /* idempotent, and allowed on a zeroed structure */

/*
 * Opens a file and locks it, without waiting for another's lock; "make": makes it, for its owner
 * alone, if there is none.  On a read-only disk a lock needs no writing.  0: fd has the lock until
 * it is closed; or the system's error, EWOULDBLOCK if another has the lock, or the path leads
 * elsewhere meanwhile.
 */
int vlm_file_lock(const char *path, int make, int *fd);

/* The last name of a path and its bytes, without slashes behind it; of "/" that itself. */
const char *vlm_file_name(const char *path, size_t *bytes);

/* The process that has a flock() on a file, and that process's parent; 0: none is known, it is in
   another namespace, or it has ended and a child of it has the open file. */
long vlm_file_locker(const char *path, long *parent);
/* That process by the lines of /proc/locks, for a file's device and inode. */
long vlm_file_locker_in(FILE *locks, uint64_t device, uint64_t inode);

/* A new file of a directory, open and without a name; -1 and errno. */
int vlm_file_unnamed(const char *dir);
/* Writes all of the bytes at an offset.  0, or the system's error. */
int vlm_file_write(int fd, const void *data, uint64_t bytes, uint64_t offset);

/* 1: the path no longer leads to the open file.  Else 0. */
int vlm_file_moved(int fd, const char *path);

/* Is there a regular file DIR/NAME?  1 or 0. */
int vlm_file_exists(const char *dir, const char *name);

/*
 * 1: the directory has an entry whose name begins with prefix and ends with suffix, in letters of
 * any case; the name of the first one that is found is put into name [bytes].  Else 0.
 */
int vlm_file_find(const char *dir, const char *prefix, const char *suffix, char *name,
                  size_t bytes);

/*
 * Explains why a directory has no file NAME, if there is a better reason than that it is missing:
 * the path is a file itself, or the directory has GGUF files.  0: no better reason; -1 and
 * VLM_EMODEL.
 */
int vlm_file_check_dir(const char *dir, const char *name, vlm_err_t *err);

/* DIR/NAME in buf; -1 and VLM_EMODEL if it is longer than bytes. */
int vlm_file_path(char *buf, size_t bytes, const char *dir, const char *name, vlm_err_t *err);

#endif
