/*
 * Shared by the files that bind a checkpoint's tensors to the weights of a model: bind.c walks the
 * lists of a family, bind_vector.c has norms and biases, bind_patch.c has the patches of pictures.
 */

#ifndef VLM_BIND_H
#define VLM_BIND_H

#include "model/lora.h"
#include "model/matrix.h"
#include "model/turn.h"

typedef enum {                         /* each checks names and shapes */
    VLM_BIND_PLACE, VLM_BIND_LOAD, VLM_BIND_KEEP
} vlm_bind_what_t;

typedef struct {                       /* that rows of a matrix make, and columns of another read */
    uint32_t  n;                       /* 0: none */
    uint32_t  first, step;             /* the rows: first, first + step, ... */
    uint32_t  columns;                 /* of which `group` heads of hd each read one head's rows */
    uint32_t  hd, group;
} vlm_products_t;

typedef struct {
    vlm_model_t           *m;
    vlm_checkpoint_t      *c;
    vlm_arena_t           *arena;      /* where the next weight goes */
    const vlm_progress_t  *progress;
    vlm_bind_what_t        what;
    vlm_loader_t           loader;
    uint32_t               dim[VLM_DIMS];
    char                   layer[48];  /* beginning of the layer's names, or "" */
    float                  eps;        /* of the norms */
    const vlm_stack_t     *stack;      /* whose weights these are, and which of its structures */
    vlm_scope_t            scope;
    uint32_t               index;      /* the layer's number */
    vlm_turn_t             text_turn, encoder_turn;        /* on the host, if m->turned */
    vlm_products_t         products;   /* between the matrix that was bound last and a later one */
    float                 *balance;    /* factors of the later one's columns, then of its rows */
    uint32_t               balance_room;           /* floats */
    uint32_t               n_done, n_all;          /* matrices */
    vlm_err_t             *err;
} vlm_bind_t;

/* bind.c: a tensor of a weight, with the shape that config.json says. */
const vlm_tensor_t *vlm_bind_find(vlm_bind_t *b, const char *name, const char *of,
                                  const uint64_t *dims, uint32_t n_dims);

/*
 * bind_vector.c: a vector [n] as f32 on the host, which the caller frees; parts in the order of its
 * matrix.  NULL without an error if nothing is read.
 */
int vlm_bind_vector(vlm_bind_t *b, float **to, const vlm_weight_t *w, const char *of,
                    uint32_t parts, const vlm_dim_t *sizes);
int vlm_bind_norm(vlm_bind_t *b, vlm_norm_t *to, const vlm_weight_t *w);
/* Puts the bias of a matrix after it was loaded; `bias` has the file's values, or is NULL. */
int vlm_bind_bias(vlm_bind_t *b, vlm_linear_t *w, const vlm_turned_t *t, const float *bias);
/* The norm at an offset in the structure that is being bound; NULL: none. */
const vlm_weight_t *vlm_bind_find_norm(const vlm_bind_t *b, size_t at);
/* 1: the matrices that read the norm have its gain; 0: it keeps it, and a turn is around it. */
int vlm_bind_folds(const vlm_bind_t *b, const vlm_weight_t *norm);
/* Finds the turns of a matrix.  Gain and shift are put into vector[], to be freed. */
int vlm_bind_turned(vlm_bind_t *b, vlm_turned_t *t, const vlm_weight_t *w, float *vector[2]);
/* The turn of a stream, or NULL. */
const vlm_turn_t *vlm_bind_turn(const vlm_bind_t *b, vlm_turn_by_t by);

/*
 * balance.c: finds the factors of a matrix's rows or columns, before it is loaded; `bias` [N] is
 * the file's, or NULL.  The second takes those that its rows have got, which may be a cache file's.
 */
int vlm_bind_balance(vlm_bind_t *b, vlm_source_t *s, const vlm_weight_t *from, const float *bias);
void vlm_bind_balanced(vlm_bind_t *b, const vlm_source_t *s);

/* bind_patch.c */
int vlm_bind_places(vlm_bind_t *b, vlm_places_t *to, const vlm_weight_t *w);
int vlm_bind_table(vlm_bind_t *b, float **to, const vlm_weight_t *w);
int vlm_bind_patch(vlm_bind_t *b, vlm_linear_t *w, const vlm_weight_t *as);

#endif
