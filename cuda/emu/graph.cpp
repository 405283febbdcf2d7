/* Captured launches, each with a block of its own for its parameters. */

#include "graph.h"

#include <stdlib.h>
#include <string.h>

#define MAX_LAUNCHES  4096             /* of a graph */

typedef struct graph_s  graph_t;

struct graph_s {
    graph_t      *next;                /* of all that there are */
    unsigned      n;
    vlm_launch_t  launch[MAX_LAUNCHES];
};

static graph_t  *all;


void *
vlm_emu_graph_new(void)
{
    graph_t  *g;

    g = static_cast<graph_t *>(calloc(1, sizeof(graph_t)));

    if (g != nullptr) {
        g->next = all;
        all = g;
    }

    return g;
}


/* The addresses of the parameters, and the parameters, each as aligned as any type. */
static void **
copy_args(const vlm_launch_t *l)
{
    char      *at;
    void     **args;
    size_t     bytes;
    unsigned   i;

    for (bytes = l->n_args * 16, i = 0; i < l->n_args; i++) {
        bytes += (l->sizes[i] + 15) / 16 * 16;
    }

    args = static_cast<void **>(calloc(1, bytes));

    if (args == nullptr) {
        return nullptr;
    }

    at = reinterpret_cast<char *>(args) + l->n_args * 16;

    for (i = 0; i < l->n_args; i++) {
        memcpy(at, l->args[i], l->sizes[i]);
        args[i] = at;
        at += (l->sizes[i] + 15) / 16 * 16;
    }

    return args;
}


int
vlm_emu_graph_add(void *graph, const vlm_launch_t *l)
{
    void     **args;
    graph_t   *g = static_cast<graph_t *>(graph);

    args = g->n == MAX_LAUNCHES ? nullptr : copy_args(l);

    if (args == nullptr) {
        return 2;
    }

    g->launch[g->n] = *l;
    g->launch[g->n].args = args;
    g->launch[g->n].sizes = nullptr;
    g->n++;

    return 0;
}


const vlm_launch_t *
vlm_emu_graph_at(const void *graph, unsigned i)
{
    const graph_t  *g = static_cast<const graph_t *>(graph);

    return i < g->n ? &g->launch[i] : nullptr;
}


void
vlm_emu_graph_free(void *graph)
{
    unsigned    i;
    graph_t    *g, **p;

    for (p = &all; *p != nullptr && *p != graph; p = &(*p)->next) { /* void */ }

    g = *p;

    if (graph == nullptr || g == nullptr) {
        return;
    }

    for (i = 0; i < g->n; i++) {
        free(g->launch[i].args);
    }

    *p = g->next;
    free(g);
}


void
vlm_emu_graph_free_all(void)
{
    while (all != nullptr) {
        vlm_emu_graph_free(all);
    }
}
