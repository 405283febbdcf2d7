/* The families that there are. */

#include "family/family.h"

#include <stdio.h>
#include <string.h>

#include "family/bert/family.h"
#include "family/bloom/family.h"
#include "family/llama/family.h"
#include "family/qwen2/family.h"
#include "family/qwen2_5_vl/family.h"
#include "family/qwen3/family.h"
#include "family/qwen3_vl/family.h"

static const vlm_family_t *const  families[] = {
    &vlm_qwen2_5_vl, &vlm_qwen3_vl, &vlm_qwen2, &vlm_qwen3, &vlm_llama, &vlm_bloom
};

static const vlm_family_t *const  encoders[] = { &vlm_bert };

#define N_FAMILIES  (sizeof(families) / sizeof(families[0]))
#define N_ENCODERS  (sizeof(encoders) / sizeof(encoders[0]))


static const vlm_family_t *
find(const vlm_family_t *const *list, size_t n, const char *model_type)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (strcmp(list[i]->model_type, model_type) == 0) {
            return list[i];
        }
    }

    return NULL;
}


const vlm_family_t *
vlm_family_find(const char *model_type)
{
    return find(families, N_FAMILIES, model_type);
}


const vlm_family_t *
vlm_family_encoder(const char *model_type)
{
    return find(encoders, N_ENCODERS, model_type);
}


/* NULL is a text of no bytes. */
static int
is_text(const char *s, const char *text, size_t n)
{
    return s == NULL ? n == 0 : strlen(s) == n && memcmp(s, text, n) == 0;
}


const vlm_family_t *
vlm_family_gguf(const char *architecture, size_t n_architecture, const char *projector,
                size_t n_projector, char *known, size_t bytes)
{
    int                    used;
    size_t                 i, n;
    const vlm_gguf_map_t  *map;

    known[0] = '\0';

    for (n = 0, i = 0; i < N_FAMILIES; i++) {
        map = families[i]->gguf;

        if (map == NULL) {
            continue;
        }

        if (is_text(map->architecture, architecture, n_architecture)
            && is_text(map->projector, projector, n_projector))
        {
            return families[i];
        }

        used = n < bytes ? snprintf(known + n, bytes - n, "%s\"%s\"%s%s%s", n == 0 ? "" : ", ",
                                    map->architecture, map->projector == NULL ? "" : " with \"",
                                    map->projector == NULL ? "" : map->projector,
                                    map->projector == NULL ? "" : "\"") : 0;
        n += used < 0 ? bytes : (size_t) used;
    }

    return NULL;
}


int
vlm_family_has_projector(const char *architecture, size_t n)
{
    size_t                 i;
    const vlm_gguf_map_t  *map;

    for (i = 0; i < N_FAMILIES; i++) {
        map = families[i]->gguf;

        if (map != NULL && map->projector != NULL && is_text(map->architecture, architecture, n)) {
            return 1;
        }
    }

    return 0;
}


int
vlm_family_thinks(const vlm_family_t *f, const char *path)
{
    char         name[256];
    const char  *p, *from, *hub, *to;

    for (to = path + strlen(path); to > path && to[-1] == '/'; to--) { /* void */ }
    for (from = to; from > path && from[-1] != '/'; from--) { /* void */ }

    /* a snapshot is called by a hash */

    p = strstr(path, "/snapshots/");

    if (p != NULL) {
        for (hub = p; hub > path && hub[-1] != '/'; hub--) { /* void */ }

        if (strncmp(hub, "models--", 8) == 0) {
            to = p;
            for (from = p; strncmp(from, "--", 2) != 0; from--) { /* void */ }
            from += 2;
        }
    }

    snprintf(name, sizeof(name), "%.*s", (int) (to - from), from);

    return f->thinks(name);
}


static void
list_all(const vlm_family_t *const *list, size_t n_list, char *text, size_t bytes)
{
    int     used;
    size_t  i, n;

    for (n = 0, i = 0; i < n_list && n < bytes; i++) {
        used = snprintf(text + n, bytes - n, "%s\"%s\"", i == 0 ? "" : ", ", list[i]->model_type);
        n += used < 0 ? bytes : (size_t) used;
    }
}


void
vlm_family_list(char *text, size_t bytes)
{
    list_all(families, N_FAMILIES, text, bytes);
}


void
vlm_family_encoders(char *text, size_t bytes)
{
    list_all(encoders, N_ENCODERS, text, bytes);
}
