/* Tensors of a checkpoint by name: a list in the order of its files, and a hash table. */

#ifndef VLM_SLOTS_H
#define VLM_SLOTS_H

#include "load/safetensors.h"

typedef struct {
    vlm_tensor_t  t;                   /* t.name is the folded name, malloc()ed */
    int           asked;               /* by vlm_checkpoint_find() */
    int           indexed;             /* named by the index */
    int           part;                /* of another tensor */
    int           spare;               /* 1: it may stay unused */
    char         *own;                 /* its name in the file, malloc()ed; NULL: t.name */
} vlm_slot_t;

typedef struct {                       /* all 0: empty */
    vlm_slot_t   *slot;                /* [n], in the order of the files */
    uint32_t      n, room;
    uint32_t     *table;               /* [n_table] slot + 1, or 0; open addressing */
    uint32_t      n_table;             /* a power of two, at least 2 n */
} vlm_slots_t;

vlm_slot_t *vlm_slots_find(const vlm_slots_t *s, const char *name);    /* NULL: no such */
/* Adds a tensor whose name is not there yet.  dir: the checkpoint's, for messages. */
int vlm_slots_add(vlm_slots_t *s, const vlm_tensor_t *t, const char *name, const char *dir,
                  vlm_err_t *err);
void vlm_slots_free(vlm_slots_t *s);   /* with the names, and what t.made points to */

#endif
