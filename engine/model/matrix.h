/*
 * The loading of one weight matrix: from the checkpoint or from the quantised cache file to a
 * device, or from the checkpoint to the cache file.
 */

#ifndef VLM_MATRIX_H
#define VLM_MATRIX_H

#include "base/threads.h"
#include "family/family.h"
#include "model/model.h"

typedef struct {                       /* changes that are multiplied into a matrix; zeros: none */
    const float         *rows;         /* [N] and [K], powers of two that come before all else; */
    const float         *columns;      /* or NULL */
    const vlm_turn_t    *reads;        /* each reads->n columns are turned by this; or NULL */
    const float         *gain;         /* [period] of the columns, which come first; or NULL */
    const float         *shift;        /* [period] of the columns' inputs; or NULL */
    int                  shifts;       /* 1: there is a shift, whether or not it has been read */
    uint32_t             period;
    int                  blocks;       /* 1: blocks of columns are turned */
    const vlm_turn_t    *writes;       /* rows are turned by this; or NULL */
} vlm_turned_t;

typedef struct {                       /* tensors [rows of each][K] that become w's rows */
    vlm_linear_t        *w;
    vlm_order_t          order;
    uint32_t             n_parts;
    uint32_t             heads;        /* of VLM_BY_HEAD */
    const vlm_tensor_t  *part[VLM_PARTS];
    vlm_turned_t         turned;       /* of a quantised form */
} vlm_source_t;

typedef struct {
    const vlm_ops_t     *ops;
    vlm_device_t        *device;
    vlm_packed_t        *packed;       /* the quantised cache file, or NULL */
    vlm_threads_t       *threads;
    void                *rows;         /* f32 [threads][VLM_PANEL + 1][K]; these grow as needed */
    uint8_t             *panels;       /* some that are written together */
    float               *scale;        /* [N] of them */
    float               *offset;       /* [N]: after a load, what is to be added to the bias */
    float               *factor;       /* [N]: the same, what rows have been multiplied by */
    float               *largest;      /* [threads][N] of rows that are turned */
    float               *slab;         /* f32 [threads][N and work][COLUMNS] of those */
    uint8_t             *group;        /* quantised rows of those */
    uint64_t             rows_room, panels_room, scale_room, offset_room;        /* bytes */
    uint64_t             factor_room;
    uint64_t             largest_room, slab_room, group_room;
} vlm_loader_t;

/* ops->basic->order(), or VLM_NONE. */
uint32_t vlm_matrix_order(const vlm_ops_t *ops, const vlm_device_t *d);

/* Sets w and puts its rows where the device wants them: from l->packed, else from the source. */
int vlm_matrix_load(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err);
/* Quantises the next matrix of l->packed from the source. */
int vlm_matrix_keep(vlm_loader_t *l, const vlm_source_t *s, vlm_err_t *err);

/* The source's rows [first, first + n) in the matrix's order, as f32 [n][K]. */
void vlm_matrix_rows(const vlm_source_t *s, uint32_t first, uint32_t n, float *rows);

/* Turns the columns of one row but not its blocks; work [K].  With a shift *offset is set to what
   the row's bias lacks. */
void vlm_matrix_turn_row(const vlm_turned_t *t, uint32_t K, float *row, float *work,
                         float *offset);

void vlm_loader_free(vlm_loader_t *l);             /* frees the grown buffers */

/*
 * Of a part that is put by heads, [3 heads hd] rows: the first row of run i's hd rows, which become
 * rows i hd, i hd + 1, ... of the matrix.
 */
static inline uint64_t
vlm_head_run(uint32_t heads, uint64_t hd, uint32_t i)
{
    return (3 * (uint64_t) (i % heads) + i / heads) * hd;
}

/* The row of a matrix that row j of part i becomes, `first` rows being of the parts before. */
static inline uint32_t
vlm_row_place(vlm_order_t order, uint32_t parts, uint32_t i, uint32_t first, uint32_t j,
              uint32_t heads, uint32_t hd)
{
    if (order == VLM_BY_HEAD) {
        return (j / hd % 3 * heads + j / (3 * hd)) * hd + j % hd;
    }

    return order == VLM_IN_TURN ? j * parts + i : first + j;
}

#endif
