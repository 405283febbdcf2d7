
/*
 * Parses the model's text where it was asked on a request's behalf: the name of a task, a title,
 * the steps of a plan.
 *
 * Plain C without nginx's headers.  Every function accepts any bytes.  Lengths that users see are
 * counted in characters of UTF-8; white space is Python's.
 */


#ifndef _NGX_HTTP_VLM_WORDS_H_INCLUDED_
#define _NGX_HTTP_VLM_WORDS_H_INCLUDED_


#include <stddef.h>
#include <stdint.h>

#include "base/json_out.h"


#define VLM_WORDS_TASK     16         /* bytes, with a zero */
#define VLM_WORDS_TITLE    256        /* bytes; characters: 50 */
#define VLM_WORDS_STEPS    10         /* of a plan; the first ones */
#define VLM_WORDS_PLAN     65536      /* bytes of the model's words */
#define VLM_WORDS_PROMPT   8192       /* bytes, of a step's texts */


/* the bytes of the text's first n characters, or of all of it if it has fewer */

size_t vlm_words_cut(const char *text, size_t len, size_t chars);

/* without white space at both ends, in lower case; "" if it is too long */

void vlm_words_task(const char *text, size_t len,
    char task[VLM_WORDS_TASK]);

/*
 * Both return the bytes of a title, without a zero.  The first cleans the model's title: white
 * space and quotes are removed at both ends, 50 characters are kept.  The second makes one from a
 * message: its first three words, 30 characters.
 */

size_t vlm_words_title(const char *text, size_t len,
    char title[VLM_WORDS_TITLE]);
size_t vlm_words_first(const char *message, size_t len,
    char title[VLM_WORDS_TITLE]);


/* a step of a plan; a field that the model left out has a default */

typedef struct {
    int64_t   number;
    char      task[VLM_WORDS_TASK];   /* in the form of ..._task(), or "" */
    char     *prompt;                          /* malloc()ed, perhaps "" */
    char     *description;                     /* the same */
    int       use_previous;
} vlm_words_step_t;

/*
 * The steps in the array between the first "[" and the last "]".  Returns
 * their number; 0: there is no plan; -1: no memory.  Freed by the second.
 */

int vlm_words_plan(const char *text, size_t len,
    vlm_words_step_t steps[VLM_WORDS_STEPS]);
void vlm_words_plan_free(vlm_words_step_t *steps, int n);

/* "pipeline": the n steps, as a member of an object */

void vlm_words_put_plan(vlm_json_out_t *w, const vlm_words_step_t *steps, size_t n);


#endif /* _NGX_HTTP_VLM_WORDS_H_INCLUDED_ */
