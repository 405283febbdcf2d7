/* Called by the driver at each of its calls: has somebody outside the process left word? */

#ifndef VLM_EMU_OUTSIDE_H
#define VLM_EMU_OUTSIDE_H

void vlm_emu_listen(void);

#endif
