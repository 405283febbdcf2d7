/*
 * Which weights of a model are turned by what (format/turn.h), for the forms that round them: the
 * one table of it is in turn.c.
 */

#ifndef VLM_MODEL_TURN_H
#define VLM_MODEL_TURN_H

#include "family/family.h"
#include "model/model.h"

typedef enum {                         /* where a weight's place is an offset */
    VLM_IN_MODEL, VLM_IN_LAYER, VLM_IN_MERGER
} vlm_scope_t;

typedef enum {
    VLM_TURN_NONE,
    VLM_TURN_STREAM,                   /* of the stack that the weight is in */
    VLM_TURN_TEXT,                     /* of the language model, whatever the stack */
    VLM_TURN_BLOCKS                    /* the blocks of a row, by the operation */
} vlm_turn_by_t;

typedef struct {
    vlm_scope_t    scope;
    size_t         at;                 /* of the weight */
    vlm_turn_by_t  reads, writes;      /* its columns, and its rows */
    size_t         norm;               /* offset of the norm whose gain the columns get; or the
                                          number below */
    size_t         feeds;              /* not 0: its products are balanced (balance.c), and are the
                                          columns of the weight at this offset of the layer */
    int            fed;                /* 1: that is this one */
} vlm_turn_rule_t;

#define VLM_NO_NORM  ((size_t) -1)

/* The rule of a weight, or NULL: it stays as it is. */
const vlm_turn_rule_t *vlm_turn_rule(vlm_scope_t scope, size_t at);
/* 1: the weights at that place that read the norm there have its gain. */
int vlm_turn_folds(vlm_scope_t scope, size_t norm);

/* 1: the norms of these lists take the mean off. */
int vlm_turn_has_means(const vlm_stack_t *s);

/* A turn of the stream of n values on the host, freed by the other; -1: no memory. */
int vlm_turn_open(vlm_turn_t *t, uint32_t n, int means, vlm_err_t *err);
void vlm_turn_close(vlm_turn_t *t);

/* 1: a model of these widths, whose weights have that form, may be turned; 1: and it is, if its
   weights come from these files. */
int vlm_turn_fits(const vlm_config_t *config, vlm_type_t type);
int vlm_turn_pays(const vlm_config_t *config, vlm_type_t type, const vlm_checkpoint_t *c);

#endif
