/*
 * The adapters that requests can name, as a list in shared memory; the caller has its lock.  An
 * entry that is listed no more keeps its count of requests until another adapter needs its place.
 */

#ifndef VLM_API_ADAPTERS_H
#define VLM_API_ADAPTERS_H

#include <stddef.h>
#include <stdint.h>

#define VLM_ADAPTER_NAME  64           /* bytes of a name or directory, with a zero */

typedef struct {
    char      name[VLM_ADAPTER_NAME];  /* "": a free entry */
    char      dir[VLM_ADAPTER_NAME];   /* in that of all adapters */
    int       listed;
    uint64_t  requests;                /* since it was first listed */
} vlm_adapter_entry_t;

/* The entry with this name, listed or not; or NULL.  The name "" is that of a free entry. */
vlm_adapter_entry_t *vlm_adapters_find(vlm_adapter_entry_t *list, size_t n, const char *name);

/* No adapter is listed any more; lists one, if there is room for it. */
void vlm_adapters_clear(vlm_adapter_entry_t *list, size_t n);
void vlm_adapters_add(vlm_adapter_entry_t *list, size_t n, const char *name, const char *dir);

#endif
