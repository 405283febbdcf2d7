/*
 * A request of OpenAI's Responses interface as the request of a chat that it stands for: its input
 * becomes messages, and its other fields have the names of a chat's.
 */

#ifndef VLM_RESPONSES_H
#define VLM_RESPONSES_H

#include "base/json.h"

/*
 * Makes the request of a chat.  It refers to values of the request, which has to live as long.
 * Values of a wrong kind are passed on, for the reader of chats to refuse; what has no counterpart
 * there is refused here.
 *
 *   param     set to the name of the field that is refused, constant; or NULL
 *   returns   a document, freed with vlm_json_free(); or NULL: VLM_EINPUT, VLM_EMEMORY
 */
vlm_json_t *vlm_responses_chat(const vlm_json_t *request, const char **param, vlm_err_t *err);

#endif
