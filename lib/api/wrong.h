/*
 * The body of a 422: the fields of a request that are wrong, listed as FastAPI and pydantic list
 * them, for the services that were written with those.
 *
 *     {"detail":[{"type","loc":["body",NAME],"msg","input","ctx"},...]}
 */

#ifndef VLM_WRONG_H
#define VLM_WRONG_H

#include "base/json_out.h"


/* the fault of a field */
typedef struct {
    const char  *type;
    const char  *message;
    const char  *key;                  /* of "ctx"; NULL: there is none */
    const char  *text;                 /* its value, "": {}; NULL: the number */
    double       number;
    int          whole;                /* of an int */
} vlm_wrong_t;

extern const vlm_wrong_t  vlm_wrong_missing, vlm_wrong_object, vlm_wrong_string;

/*
 * Adds an error, the first one to an empty writer (zeros).  The writer fails if the values are
 * longer than 64 KiB together.
 *
 *   name      of the field; NULL: of the whole body
 *   value     of the field; of a field that is missing, the body; NULL: null
 */
void vlm_wrong_put(vlm_json_out_t *w, const char *name, const vlm_json_t *value,
                   const vlm_wrong_t *e);

/* Ends the list; error: a member beside it, or NULL. */
void vlm_wrong_end(vlm_json_out_t *w, const char *error);

/* The whole answer to a body that is not JSON, for which there is this sentence. */
void vlm_wrong_json(vlm_json_out_t *w, const char *sentence, const char *error);


/* ---- bodies of strings -------------------------------------------------------------------- */

typedef struct {
    const char  *name;                 /* NULL: the last */
    int          optional;             /* may be null, or missing */
} vlm_wrong_field_t;

/*
 * Checks that a body, NULL for none, is an object with these fields, and each is a string.
 *
 *   w         empty before; with -1 the whole answer, with the first error as "error"
 *   returns   0; or -1: VLM_EINPUT and the first error
 */
int vlm_wrong_strings(const vlm_json_t *json, const vlm_wrong_field_t *fields, vlm_json_out_t *w,
                      vlm_err_t *err);

#endif
