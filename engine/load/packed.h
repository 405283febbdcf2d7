/*
 * The int8 form of a checkpoint in a file, so that a restart need not read and quantise the
 * published weights again: every matrix in the order in which a model binds them, as panels
 * (ops/panel.h) of one flip.  A device that has its weights as such panels uses them where they
 * are mapped, with everybody else who has mapped them.
 *
 * Made under a temporary name and renamed, so two that make it at once do not meet, and who has
 * mapped an older one keeps that.  It says of which files it was made, by names, sizes, times and
 * samples of their bytes; and has a sum for each matrix, taken while it is read: what is torn or
 * stale is noticed, and made again.
 */

#ifndef VLM_PACKED_H
#define VLM_PACKED_H

#include "base/file.h"

#define VLM_PACKED_ID  32              /* bytes of a source's SHA-256 */

typedef struct {                       /* in the file, after the head */
    uint64_t  at;                      /* panels of [N][K], then f32 scales [N], 64-byte aligned */
    uint32_t  N, K;
    uint64_t  sum;
} vlm_packed_entry_t;

typedef struct {
    char                 path[4096], temporary[4160];
    uint8_t              id[VLM_PACKED_ID];
    uint32_t             flip;         /* of its panels */
    vlm_file_t           file;         /* read: mapped */
    int                  stays;        /* read: the model uses it there; set by who knows */
    int                  fd;           /* written: the temporary file; else -1 */
    uint8_t             *window;       /* written: what comes is gathered here, */
    uint64_t             window_at;    /* for this place in the file */
    vlm_packed_entry_t  *entry;        /* [room], of which n are known */
    uint32_t             n, room, next;
    uint64_t             end;          /* where the next matrix goes */
    _Atomic uint64_t     sum;          /* of the matrix at hand */
    int                  failed;       /* an errno of writing, or -1: not what was written */
} vlm_packed_t;

/*
 * DIR/vlm-int8-<model's path>.bin.  -1 and VLM_EMODEL: not there, torn, of another source or of
 * another version; the sentence says which, and is for a log.
 */
int vlm_packed_open(vlm_packed_t *p, const char *dir, const char *model, const uint8_t *id,
                    vlm_err_t *err);

/*
 * Begins to make it, for `room` matrices at most, of about so many bytes.  -1 and VLM_EMODEL: it
 * cannot be written, or the disk has no room for it.
 */
int vlm_packed_create(vlm_packed_t *p, const char *dir, const char *model, const uint8_t *id,
                      uint32_t flip, uint32_t room, uint64_t bytes, vlm_err_t *err);

/* The next matrix.  Reading, -1 and VLM_EMODEL: the file has another one there. */
int vlm_packed_begin(vlm_packed_t *p, uint32_t N, uint32_t K, vlm_err_t *err);

/* Reading: the matrix in the map, all its panels and its scales.  Nobody writes there. */
void *vlm_packed_panels(const vlm_packed_t *p);
float *vlm_packed_scale(const vlm_packed_t *p);
/* One panel of it, read whole for the sum: any thread, each panel once. */
const void *vlm_packed_panel(vlm_packed_t *p, uint32_t i);
/* Writing: n panels from `first` on; all scales.  A failure is kept, and told at the end. */
void vlm_packed_add(vlm_packed_t *p, uint32_t first, uint32_t n, const void *panels);
void vlm_packed_add_scale(vlm_packed_t *p, const float *scale);

/* The matrix is whole.  Reading, -1 and VLM_EMODEL: its bytes are not those that were written. */
int vlm_packed_end(vlm_packed_t *p, vlm_err_t *err);

/* The matrix before the next will not be read again: it leaves resident memory. */
void vlm_packed_done(const vlm_packed_t *p);

/* Writing: head, rename; -1 and VLM_EMODEL, and nothing is left. */
int vlm_packed_finish(vlm_packed_t *p, vlm_err_t *err);

/* Unmaps, removes what is not finished; safe twice. */
void vlm_packed_close(vlm_packed_t *p);

#endif
