/* The history of a session: in front of a question, as RoboBrain was asked, and as JSON. */

#ifndef VLM_HISTORY_H
#define VLM_HISTORY_H

#include "base/json_out.h"
#include "store/store.h"

/*
 * The entries, oldest first, and behind them the question, which stands alone if there are none.
 * malloc()ed, with its bytes in len; NULL: no memory.
 */
char *vlm_history_text(const vlm_store_entry_t *entries, size_t n, vlm_store_text_t question,
                       size_t *len);

/* An entry as an object of /api/history; an assistant's has its task among the metadata, too. */
void vlm_history_put(vlm_json_out_t *w, const vlm_store_entry_t *e);

#endif
