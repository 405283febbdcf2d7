/* Captured launches, with their parameters: the result of a capture. */

#ifndef VLM_EMU_GRAPH_H
#define VLM_EMU_GRAPH_H

#include "../driver.h"

void *vlm_emu_graph_new(void);
int vlm_emu_graph_add(void *graph, const vlm_launch_t *l);     /* 0, or CUDA's error */
const vlm_launch_t *vlm_emu_graph_at(const void *graph, unsigned i);       /* NULL: there is none */
void vlm_emu_graph_free(void *graph);  /* takes NULL */
void vlm_emu_graph_free_all(void);

#endif
