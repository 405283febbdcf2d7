/*
 * Adapters of a model: which matrices may have them, places in planned memory, and what is put
 * there.
 *
 * A place has room for one adapter of the highest rank: for each matrix the parts' A, B and a
 * vector, in the forms of vlm_lows_t.  An adapter is read into the host's memory in the same order
 * (any thread), and then put into a place, matrix by matrix (the engine thread).
 */

#ifndef VLM_LORA_H
#define VLM_LORA_H

#include "load/adapter.h"
#include "model/matrix.h"
#include "model/turn.h"

typedef enum { VLM_LORA_NONE, VLM_LORA_TEXT, VLM_LORA_ENCODER } vlm_lora_turn_t;

typedef struct {
    vlm_linear_t    *w;
    vlm_lows_t       lows;             /* w->low */
    vlm_low_t       *low;              /* [places] */
    char             name[VLM_PARTS][VLM_ADAPTER_MODULE];  /* of the parts' modules */
    uint32_t         rows[VLM_PARTS];
    vlm_order_t      order;
    int              table;            /* 1: the embedding, of which rows are picked */
    int              tower;            /* 1: of the vision encoder */
    vlm_lora_turn_t  reads, writes;    /* of a turned model: as in vlm_turned_t */
    int              blocks;
    uint32_t         period;
    float           *gain, *shift;     /* [period] or NULL */
    float           *factors, *columns;            /* [N] and [K] of vlm_turned_t, or NULL */
    uint64_t         at, a, b, c;      /* bytes in a place: of a vlm_low_t, and what it has */
} vlm_lora_matrix_t;

typedef struct vlm_lora_s {
    uint32_t            places, rank;
    int                 tower;         /* 1: matrices of the vision encoder have places */
    vlm_type_t          type;
    int                 packed;        /* vlm_lows_t's */
    uint32_t            heads;         /* of VLM_BY_HEAD */
    uint32_t            n, room;
    vlm_lora_matrix_t  *matrix;        /* [n] */
    uint64_t            bytes;         /* of a place */
    uint8_t            *base;          /* [places][bytes] on the device, or NULL */
    vlm_low_rows_t      rows;          /* of the call in work */
} vlm_lora_t;

/* An adapter as it was read. */
typedef struct {
    vlm_low_t  *low;                   /* [n] of each matrix: without addresses */
    uint8_t    *data;                  /* [bytes] as a place has it; what is not used is not
                                          committed */
    int         tower;                 /* 1: it changes the features of pictures */
    uint32_t    next;                  /* matrix that is put next */
    uint8_t     identity[32];
} vlm_lora_data_t;

/* Host structures of an initialised model, freed with it; places 0: none, and m->lora is NULL. */
int vlm_lora_open(vlm_model_t *m, uint32_t places, uint32_t rank, int tower, vlm_err_t *err);
void vlm_lora_close(vlm_lora_t *x);    /* takes NULL */

/* Begins the list anew; adds a matrix that has been bound, with the vectors of what was multiplied
   into it; and places all in the arena. */
void vlm_lora_clear(vlm_lora_t *x);
int vlm_lora_add(vlm_lora_t *x, const vlm_lora_matrix_t *matrix, const vlm_turned_t *t,
                 vlm_err_t *err);
void vlm_lora_place(vlm_lora_t *x, vlm_arena_t *a);

/*
 * any: reads an adapter's files.  The model's list does not change once it is loaded.  NULL and
 * VLM_EMODEL with the adapter's name: not one that this engine can run on this model.
 */
vlm_lora_data_t *vlm_lora_read(const vlm_model_t *m, const char *name, const char *dir,
                               vlm_err_t *err);
/* The same without its values, which the plan does: 0, or -1 and what would be refused. */
int vlm_lora_check(const vlm_model_t *m, const char *name, const char *dir, vlm_err_t *err);
void vlm_lora_data_free(vlm_lora_data_t *d);       /* takes NULL */

/* engine: puts matrices into a place, until some bytes were put.  1: all are. */
int vlm_lora_put(vlm_model_t *m, vlm_lora_data_t *d, uint32_t place, uint64_t bytes);

#endif
