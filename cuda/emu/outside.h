/* Called by the driver at each of its calls: reads new words from outside the process. */

#ifndef VLM_EMU_OUTSIDE_H
#define VLM_EMU_OUTSIDE_H

void vlm_emu_listen(void);

#endif
