/* Tensors by name. */

#include "load/slots.h"

#include <stdlib.h>
#include <string.h>

#define MAX_TENSORS  (1u << 20)


static uint32_t
hash(const char *s)
{
    uint32_t  h;

    for (h = 2166136261u; *s != '\0'; s++) {
        h = (h ^ (uint8_t) *s) * 16777619u;
    }

    return h;
}


/* The place of a name in the table, or the free one for it. */
static uint32_t
probe(const vlm_slots_t *s, const char *name)
{
    uint32_t  i;

    i = hash(name) & (s->n_table - 1);

    while (s->table[i] != 0 && strcmp(s->slot[s->table[i] - 1].t.name, name) != 0) {
        i = (i + 1) & (s->n_table - 1);
    }

    return i;
}


vlm_slot_t *
vlm_slots_find(const vlm_slots_t *s, const char *name)
{
    uint32_t  i;

    if (s->n == 0) {
        return NULL;
    }

    i = s->table[probe(s, name)];

    return i == 0 ? NULL : &s->slot[i - 1];
}


/* Room for one more slot, and a table that stays half empty. */
static int
grow(vlm_slots_t *s, const char *dir, vlm_err_t *err)
{
    uint32_t     i, room, *table;
    vlm_slot_t  *slot;

    if (s->n < s->room) {
        return 0;
    }

    room = s->room == 0 ? 1024 : 2 * s->room;

    if (room > MAX_TENSORS) {
        return vlm_fail(err, VLM_EMODEL, "%s: more than %u tensors", dir, MAX_TENSORS);
    }

    slot = realloc(s->slot, room * sizeof(vlm_slot_t));
    if (slot == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u tensors", dir, room);
    }

    s->slot = slot;

    table = calloc((size_t) room * 2, sizeof(uint32_t));
    if (table == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for %u tensors", dir, room);
    }

    free(s->table);
    s->table = table;
    s->n_table = room * 2;
    s->room = room;

    for (i = 0; i < s->n; i++) {
        s->table[probe(s, s->slot[i].t.name)] = i + 1;
    }

    return 0;
}


int
vlm_slots_add(vlm_slots_t *s, const vlm_tensor_t *t, const char *name, const char *dir,
              vlm_err_t *err)
{
    uint32_t     i;
    vlm_slot_t  *slot;

    if (grow(s, dir, err) != 0) {
        return -1;
    }

    i = probe(s, name);
    slot = &s->slot[s->n];
    memset(slot, 0, sizeof(*slot));

    slot->t = *t;
    slot->t.name = strdup(name);
    if (slot->t.name == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "%s: no memory for a name", dir);
    }

    s->table[i] = ++s->n;

    return 0;
}


void
vlm_slots_free(vlm_slots_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->n; i++) {
        free((char *) s->slot[i].t.name);
        free(s->slot[i].own);
        free((void *) s->slot[i].t.made);
    }

    free(s->table);
    free(s->slot);
}
