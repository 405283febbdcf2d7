/* Errors as values: a code and one sentence. */

#ifndef VLM_ERR_H
#define VLM_ERR_H

#include <stddef.h>
#include <stdint.h>

/* ---- errors -------------------------------------------------------------- */

typedef enum {
    VLM_OK = 0,
    VLM_EINPUT,                        /* the client's data is not of the type that it claims */
    VLM_ELIMIT,                        /* more than the plan has room for; the message has the
                                          numbers */
    VLM_ECANCELLED,                    /* vlm_cancel(), conf->stop() or a vlm_stop_t */
    VLM_EMODEL,                        /* not a checkpoint, or not one that this engine can run */
    VLM_EMEMORY,                       /* the plan does not fit, or an allocation failed */
    VLM_EDEVICE                        /* the device is lost: the process should be replaced */
} vlm_code_t;

typedef struct {
    vlm_code_t  code;
    char        text[480];
} vlm_err_t;

/*
 * Writes the sentence and returns -1, so that "return vlm_fail(err, ...)" is a complete error
 * path.  The first failure is kept: a later call on the same err changes nothing. err may be NULL.
 */
int vlm_fail(vlm_err_t *err, vlm_code_t code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#define VLM_PRINTABLE  96              /* bytes of a file's text in a sentence, and a zero */

/*
 * Escapes a text from a file for a sentence, into out, which is returned: quotes and backslashes
 * get a backslash, control characters and invalid UTF-8 become \xNN, a long text is cut before
 * "...".  NULL is "".
 */
const char *vlm_show(char out[VLM_PRINTABLE], const char *text, size_t bytes);

/* The same, in a buffer of the enclosing block. */
#define vlm_printable(text)  vlm_printable_part(text, SIZE_MAX)
#define vlm_printable_part(text, bytes)  vlm_show((char[VLM_PRINTABLE]) { 0 }, text, bytes)

#endif
