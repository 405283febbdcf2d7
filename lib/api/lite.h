/* A request of POST /generate-lite, and the text of its answer, as the LoRA service has both. */

#ifndef VLM_LITE_H
#define VLM_LITE_H

#include <stddef.h>

#include "api/wrong.h"

#define VLM_LITE_SHOWN  150            /* characters of a translation, and behind them "..." */


/* ---- lite_fields.c: the fields of a request ----------------------------------------------- */

/* in the order in which their errors are listed */
typedef enum {
    VLM_LITE_PROMPT = 0,
    VLM_LITE_MAX_NEW_TOKENS,
    VLM_LITE_TEMPERATURE,
    VLM_LITE_ADAPTER_PATH,
    VLM_LITE_BASE_MODEL,
    VLM_LITE_DO_SAMPLE,
    VLM_LITE_TOP_P,
    VLM_LITE_TOP_K,
    VLM_LITE_PENALTY,
    VLM_LITE_FIELDS
} vlm_lite_field_e;

typedef struct {
    char    *text[VLM_LITE_FIELDS];    /* of its own; NULL: a number, or null */
    double   number[VLM_LITE_FIELDS];  /* within its range; 0 or 1 for a truth value */
} vlm_lite_t;

/*
 * Reads the fields of a body, NULL for none.  All that are wrong are listed in one 422, as FastAPI
 * does: of each the type of the error, its place, a sentence and the value.  Texts that are numbers
 * or truth values are taken as such, and unknown fields are ignored, as there.
 *
 *   lite      to be freed in any case; zeros before
 *   errors    empty before; with VLM_EINPUT {"detail":[...]}, which failed if the values are long
 *   returns   0; or -1: VLM_EINPUT and the first error, VLM_EMEMORY
 */
int vlm_lite_read(const vlm_json_t *json, vlm_lite_t *lite, vlm_json_out_t *errors,
                  vlm_err_t *err);
void vlm_lite_free(vlm_lite_t *lite);


/* ---- lite.c: the text of an answer -------------------------------------------------------- */

/*
 * Characters that are not printable, as Python's str.isprintable() has it, are left out: line ends,
 * tabs, no-break spaces, joiners without width.  Runs of spaces become one.  Where the prompt asks
 * to translate, only the translation is left: without an echo of the prompt the runs of characters
 * beyond ASCII, or where there are none a part of the text.  Bytes that are not UTF-8 are left out.
 *
 *   returns   malloc()ed, with a zero behind *len bytes; NULL: no memory
 */
char *vlm_lite_text(const char *text, size_t bytes, const char *prompt, size_t *len);

/* The whole answer.  One without text has the prompt, as the service decodes both then. */
void vlm_lite_put(vlm_json_out_t *w, const vlm_lite_t *lite, const char *text, size_t bytes);

#endif
