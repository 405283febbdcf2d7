/*
 * The quantised cache file of a checkpoint.  With it a restart need not read and quantise the
 * published weights again.  The file holds every matrix in the order in which a model binds them,
 * as panels (format/panel.h, format/int4.h) of one flip.  A device whose weights are such panels
 * uses them where they are mapped, and shares the mapping with other processes.
 *
 * The file is written under a temporary name and renamed, so that two writers do not collide and a
 * process that has mapped an older file keeps that.  Its head identifies the source files by names,
 * sizes, times and samples of their bytes.  Each matrix has a checksum, computed while it is read,
 * so that a torn or stale file is detected and written again.
 */

#ifndef VLM_PACKED_H
#define VLM_PACKED_H

#include "base/file.h"
#include "vlm.h"

#define VLM_PACKED_ID  32              /* bytes of a source's SHA-256 */

typedef struct {                       /* in the file, after the head */
    uint64_t  at;                      /* panels of [N][K]; f32 [N] of scales, of additions to the
                                          bias, of factors of rows; 64-byte aligned */
    uint32_t  N, K;
    uint32_t  type, unused;            /* vlm_type_t of its panels */
    uint64_t  sum;
} vlm_packed_entry_t;

typedef struct {
    char                 path[4096], temporary[4160];
    uint8_t              id[VLM_PACKED_ID];
    uint32_t             flip;         /* of its panels */
    vlm_file_t           file;         /* reading: the mapped file */
    int                  stays;        /* reading: the model uses the mapping; set by the model */
    int                  fd;           /* writing: the temporary file; else -1 */
    uint8_t             *window;       /* writing: bytes gathered for the file */
    uint64_t             window_at;    /* writing: their place in the file */
    vlm_packed_entry_t  *entry;        /* [room], of which n are known */
    uint32_t             n, room, next;
    uint64_t             end;          /* where the next matrix goes */
    _Atomic uint64_t     sum;          /* of the current matrix */
    int                  failed;       /* an errno of writing, or -1: other bytes were written */
} vlm_packed_t;

/*
 * Opens DIR/vlm-<weights>-<model's path>.bin.  -1 and VLM_EMODEL: missing, torn, of another source
 * or of another version; the error says which, and is for a log.
 */
int vlm_packed_open(vlm_packed_t *p, const char *dir, const char *model, vlm_type_t weights,
                    const uint8_t *id, vlm_err_t *err);

/*
 * Begins to write the file, for `room` matrices at most, of about so many bytes.  -1 and
 * VLM_EMODEL: it cannot be written, or the disk has no room for it.
 */
int vlm_packed_create(vlm_packed_t *p, const char *dir, const char *model, vlm_type_t weights,
                      const uint8_t *id, uint32_t flip, uint32_t room, uint64_t bytes,
                      vlm_err_t *err);

/* Begins the next matrix.  Reading, -1 and VLM_EMODEL: the file has another one there. */
int vlm_packed_begin(vlm_packed_t *p, vlm_type_t type, uint32_t N, uint32_t K, vlm_err_t *err);

/* Reading: the mapped matrix, all its panels and its scales, read-only. */
void *vlm_packed_panels(const vlm_packed_t *p);
float *vlm_packed_scale(const vlm_packed_t *p);
const float *vlm_packed_offset(const vlm_packed_t *p);     /* additions to the bias */
const float *vlm_packed_factor(const vlm_packed_t *p);     /* the factor of each row */
/* Reads one panel, whole for the checksum: any thread, each panel once. */
const void *vlm_packed_panel(vlm_packed_t *p, uint32_t i);
/* Writing: n panels from `first` on; all scales, additions and factors.  A failure is kept, and
   reported at the end. */
void vlm_packed_add(vlm_packed_t *p, uint32_t first, uint32_t n, const void *panels);
void vlm_packed_add_scale(vlm_packed_t *p, const float *scale, const float *offset,
                          const float *factor);

/* Ends a matrix.  Reading, -1 and VLM_EMODEL: its checksum does not match. */
int vlm_packed_end(vlm_packed_t *p, vlm_err_t *err);

/*
 * Drops the pages of the matrix before the next from resident memory: they will not be read again.
 */
void vlm_packed_done(const vlm_packed_t *p);

/* Writing: writes the head and renames the file; on -1 and VLM_EMODEL the file is removed. */
int vlm_packed_finish(vlm_packed_t *p, vlm_err_t *err);

/* Unmaps, and removes an unfinished file; safe twice. */
void vlm_packed_close(vlm_packed_t *p);

#endif
