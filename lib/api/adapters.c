/* The list of adapters: see adapters.h. */

#include "api/adapters.h"

#include <stdio.h>
#include <string.h>

typedef vlm_adapter_entry_t  entry_t;


entry_t *
vlm_adapters_find(entry_t *list, size_t n, const char *name)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }

    return NULL;
}


void
vlm_adapters_clear(entry_t *list, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        list[i].listed = 0;
        list[i].reason[0] = '\0';
    }
}


/* Its own place, a free one, or that of an adapter that is listed no more; or NULL. */
static entry_t *
place_for(entry_t *list, size_t n, const char *name)
{
    size_t    i;
    entry_t  *e = vlm_adapters_find(list, n, name);

    if (e == NULL) {
        e = vlm_adapters_find(list, n, "");
    }

    for (i = 0; e == NULL && i < n; i++) {
        if (!list[i].listed && list[i].reason[0] == '\0') {
            e = &list[i];
        }
    }

    return e;
}


void
vlm_adapters_add(entry_t *list, size_t n, const char *name, const char *dir, const char *reason)
{
    entry_t  *e = place_for(list, n, name);

    if (e == NULL) {
        return;
    }

    if (strcmp(e->name, name) != 0) {
        (void) snprintf(e->name, sizeof(e->name), "%s", name);
        e->requests = 0;
    }

    (void) snprintf(e->dir, sizeof(e->dir), "%s", dir);
    (void) snprintf(e->reason, sizeof(e->reason), "%s", reason);
    e->listed = reason[0] == '\0';
}
