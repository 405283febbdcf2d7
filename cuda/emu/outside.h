/* The driver calls this at each of its calls: it reads new settings from outside the process. */

#ifndef VLM_EMU_OUTSIDE_H
#define VLM_EMU_OUTSIDE_H

void vlm_emu_listen(void);

#endif
