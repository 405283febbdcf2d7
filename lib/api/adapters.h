/*
 * The adapters that requests can name, as a list in shared memory; the caller has its lock.  An
 * entry that is listed no more keeps its count of requests until another adapter needs its place.
 * Adapters that were left out have entries, too, so that their names do not mean anything else.
 */

#ifndef VLM_API_ADAPTERS_H
#define VLM_API_ADAPTERS_H

#include <stddef.h>
#include <stdint.h>

#define VLM_ADAPTER_NAME  64           /* bytes of a name or directory, with a zero */

typedef struct {
    char      name[VLM_ADAPTER_NAME];  /* "": a free entry */
    char      dir[VLM_ADAPTER_NAME];   /* in that of all adapters */
    char      reason[256];             /* why it was left out, or "" */
    int       listed;                  /* 1: requests can have it */
    uint64_t  requests;                /* since it was first listed */
} vlm_adapter_entry_t;

/* The entry with this name, listed or not; or NULL.  The name "" is that of a free entry. */
vlm_adapter_entry_t *vlm_adapters_find(vlm_adapter_entry_t *list, size_t n, const char *name);

/* No adapter is listed or left out any more; lists one, or with a reason has it as left out, if
   there is room for it. */
void vlm_adapters_clear(vlm_adapter_entry_t *list, size_t n);
void vlm_adapters_add(vlm_adapter_entry_t *list, size_t n, const char *name, const char *dir,
                      const char *reason);

#endif
