/* Files as ranges of memory. */

#ifndef VLM_FILE_H
#define VLM_FILE_H

#include "base/err.h"

typedef struct {
    const uint8_t  *data;              /* [bytes], read-only; NULL for an empty file */
    uint64_t        bytes;
    uint8_t        *room;              /* [bytes] for what becomes memory of our own, or NULL */
    uint64_t        owned;             /* bytes that have become it, from the first on */
} vlm_file_t;

/*
 * Maps a regular file for reading.  VLM_EMODEL with the path and the system's words if it cannot
 * be opened, is not a regular file, is longer than limit bytes (0: no limit), or is what people
 * have in the place of a checkpoint's file: a Git LFS pointer, a GGUF file.
 */
int vlm_file_open(vlm_file_t *f, const char *path, uint64_t limit, vlm_err_t *err);

/* Brings a range into memory, in the system's large pages where it can; what it cannot comes when
   it is read. */
void vlm_file_bring(const vlm_file_t *f, uint64_t offset, uint64_t bytes);

/*
 * The next bytes of a file, from its first on, become memory of the process's own, with the bytes
 * they have, at their place: any thread may read them meanwhile.  What is done to the file
 * afterwards, or to its disk, does not concern them.  bytes is a multiple of a large page (2 MiB),
 * or all that are left.  -1: the system has no memory for them, and they are what they were (Linux
 * would lose them only without a page for its own tables, in the middle of moving).
 */
int vlm_file_own(vlm_file_t *f, uint64_t bytes);

/* Tells the system that a range will not be read again, so that it leaves resident memory. */
void vlm_file_done(const vlm_file_t *f, uint64_t offset, uint64_t bytes);

void vlm_file_close(vlm_file_t *f);    /* safe twice, and on a zeroed structure */

/* Is there a regular file DIR/NAME?  1 or 0. */
int vlm_file_exists(const char *dir, const char *name);

/*
 * Says what is wrong with a directory that should have a file NAME and has not, if there is more to
 * say than that: it is a file itself, or has GGUF files.  0: nothing more; -1 and VLM_EMODEL.
 */
int vlm_file_check_dir(const char *dir, const char *name, vlm_err_t *err);

/* DIR/NAME in buf; -1 and VLM_EMODEL if it is longer than bytes. */
int vlm_file_path(char *buf, size_t bytes, const char *dir, const char *name, vlm_err_t *err);

#endif
