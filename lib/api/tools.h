/* The tools that a request offers, and the choice among them. */

#ifndef VLM_TOOLS_H
#define VLM_TOOLS_H

#include "base/json_out.h"

#define VLM_TOOLS_TEXT  (4u << 20)     /* bytes in the template */

/*
 * Reads "tool_choice": "auto" or null, "required", or {"type": "function", "function": {"name":
 * ...}}.  "none" is the caller's.
 *
 *   only      set to the name of the one that is to be called, of the field; or NULL
 *   returns   0: the model may call one; 1: it must; -1: VLM_EINPUT
 */
int vlm_tools_choice(const vlm_json_t *field, const char **only, vlm_err_t *err);

/* Must the model call one? */
int vlm_tools_demanded(const vlm_json_t *field);

/*
 * Copies the tools that may be called: all of a list, or those of one name.
 *
 *   param     set to the place of the tool that is wrong, "tools.2", or to "tool_choice"
 *   returns   an array, freed with vlm_json_free(); or NULL: VLM_EINPUT, VLM_EMEMORY
 */
vlm_json_t *vlm_tools_pick(const vlm_json_t *list, const char *only, char param[32],
                           vlm_err_t *err);

/* A list as the template has it: each tool behind a newline; malloc()ed, or NULL: no memory, or
   more than VLM_TOOLS_TEXT. */
char *vlm_tools_text(const vlm_json_t *list);

/* The texts that may stand between two calls, for a grammar: the end of a call, and behind it the
   mark of another.  NULL: no memory. */
vlm_json_t *vlm_tools_between(const char *mark, const char *end);

#endif
