
/*
 * Parses the model's text: see words.h.
 *
 * A model may write anything.  So nothing here fails because of a text, only for lack of memory;
 * every caller has a default for a missing value.
 */


#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "robobrain/words.h"
#include "base/utf8.h"


#define TITLE_CHARS  50                    /* of the model's */
#define WORDS        3                     /* of a message */
#define WORDS_CHARS  30
#define WORDS_KEPT   27                    /* and "..." */
#define NUMBER       1000000               /* the last of a step */


/* Python's white space at p: its bytes, or 0 */

static size_t
space(const char *p, size_t len)
{
    const unsigned char  *s = (const unsigned char *) p;

    if (len == 0) {
        return 0;
    }

    if (s[0] == ' ' || (s[0] >= '\t' && s[0] <= '\r')
        || (s[0] >= 0x1c && s[0] <= 0x1f))
    {
        return 1;
    }

    if (len >= 2 && s[0] == 0xc2 && (s[1] == 0x85 || s[1] == 0xa0)) {
        return 2;
    }

    if (len < 3) {
        return 0;
    }

    if ((s[0] == 0xe1 && s[1] == 0x9a && s[2] == 0x80)
        || (s[0] == 0xe3 && s[1] == 0x80 && s[2] == 0x80)
        || (s[0] == 0xe2 && s[1] == 0x81 && s[2] == 0x9f))
    {
        return 3;
    }

    if (s[0] == 0xe2 && s[1] == 0x80
        && ((s[2] >= 0x80 && s[2] <= 0x8a)
            || s[2] == 0xa8 || s[2] == 0xa9 || s[2] == 0xaf))
    {
        return 3;
    }

    return 0;
}


/* the same in front of p, of a text that begins len bytes before */

static size_t
space_before(const char *p, size_t len)
{
    size_t  n;

    for (n = 1; n <= 3 && n <= len; n++) {
        if (space(p - n, n) == n) {
            return n;
        }
    }

    return 0;
}


static size_t
strip(const char **text, size_t len)
{
    size_t  n;

    while ((n = space(*text, len)) != 0) {
        *text += n;
        len -= n;
    }

    while ((n = space_before(*text + len, len)) != 0) {
        len -= n;
    }

    return len;
}


static size_t
strip_char(const char **text, size_t len, char ch)
{
    while (len && **text == ch) {
        (*text)++;
        len--;
    }

    while (len && (*text)[len - 1] == ch) {
        len--;
    }

    return len;
}


size_t
vlm_words_cut(const char *text, size_t len, size_t chars)
{
    size_t  i;

    for (i = 0; i < len; i++) {

        /* not in the middle of a character */

        if (((unsigned char) text[i] & 0xc0) != 0x80 && chars-- == 0) {
            break;
        }
    }

    return i;
}


void
vlm_words_task(const char *text, size_t len,
    char task[VLM_WORDS_TASK])
{
    size_t  i;

    len = strip(&text, len);

    if (len >= VLM_WORDS_TASK) {
        len = 0;
    }

    for (i = 0; i < len; i++) {
        task[i] = text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i];
    }

    task[len] = '\0';
}


/* invalid UTF-8 may have any number of bytes for a character */

static size_t
put(char title[VLM_WORDS_TITLE], size_t n, const char *text,
    size_t len)
{
    if (len > VLM_WORDS_TITLE - n) {
        len = vlm_utf8_whole(text, VLM_WORDS_TITLE - n);
    }

    if (len) {
        memcpy(title + n, text, len);
    }

    return n + len;
}


size_t
vlm_words_title(const char *text, size_t len,
    char title[VLM_WORDS_TITLE])
{
    len = strip(&text, len);
    len = strip_char(&text, len, '"');
    len = strip_char(&text, len, '\'');

    return put(title, 0, text, vlm_words_cut(text, len, TITLE_CHARS));
}


size_t
vlm_words_first(const char *message, size_t len,
    char title[VLM_WORDS_TITLE])
{
    size_t  n, word, at, words;

    n = 0;
    at = 0;

    for (words = 0; words < WORDS; words++) {

        while ((word = space(message + at, len - at)) != 0) {
            at += word;
        }

        for (word = 0;
             at + word < len && space(message + at + word, len - at - word)
                                == 0;
             word++)
        {
            /* void */
        }

        if (word == 0) {
            break;
        }

        n = put(title, n, " ", words ? 1 : 0);
        n = put(title, n, message + at, vlm_words_cut(message + at,
                                                      word,
                                                      WORDS_CHARS
                                                      + 1));
        at += word;
    }

    if (vlm_words_cut(title, n, WORDS_CHARS) < n) {
        n = vlm_words_cut(title, n, WORDS_KEPT);
        n = put(title, n, "...", 3);
    }

    return n;
}


/* ---- a plan -------------------------------------------------------------- */


/* a text of a step, bounded; NULL: no memory */

static char *
step_text(const vlm_json_t *j)
{
    char        *copy;
    size_t       len;
    const char  *text;

    text = vlm_json_text(j);

    if (text == NULL) {
        text = "";
    }

    len = strlen(text);

    if (len > VLM_WORDS_PROMPT) {
        len = vlm_utf8_whole(text, VLM_WORDS_PROMPT);
    }

    copy = malloc(len + 1);

    if (copy != NULL) {
        memcpy(copy, text, len);
        copy[len] = '\0';
    }

    return copy;
}


static int
step_read(vlm_words_step_t *step, const vlm_json_t *j,
    int number)
{
    const char  *task;

    if (vlm_json_int(vlm_json_get(j, "step"), 0, NUMBER,
                     &step->number)
        != 0)
    {
        step->number = number;
    }

    task = vlm_json_text(vlm_json_get(j, "task"));

    if (task == NULL) {
        task = "";
    }

    vlm_words_task(task, strlen(task), step->task);

    step->prompt = step_text(vlm_json_get(j, "prompt"));
    step->description = step_text(vlm_json_get(j, "description"));
    step->use_previous = vlm_json_is_true(
                                    vlm_json_get(j, "use_previous"));

    return step->prompt != NULL && step->description != NULL ? 0 : -1;
}


int
vlm_words_plan(const char *text, size_t len,
    vlm_words_step_t steps[VLM_WORDS_STEPS])
{
    int                         n;
    const char                 *first;
    vlm_json_t                 *json;
    vlm_err_t                   err;
    const vlm_json_t           *j;

    first = len && len <= VLM_WORDS_PLAN ? memchr(text, '[', len)
                                                  : NULL;
    if (first == NULL) {
        return 0;
    }

    while (text[len - 1] != ']' && text + len - 1 > first) {
        len--;
    }

    json = vlm_json_parse(first, (size_t) (text + len - first),
                          &err);

    if (json == NULL) {
        return 0;
    }

    n = 0;

    for (j = vlm_json_is_array(json) ? vlm_json_first(json)
                                              : NULL;
         j != NULL && n >= 0 && n < VLM_WORDS_STEPS;
         j = vlm_json_next(j))
    {
        if (!vlm_json_is_object(j)) {
            continue;
        }

        n++;

        if (step_read(&steps[n - 1], j, n) != 0) {
            vlm_words_plan_free(steps, n);
            n = -1;
        }
    }

    vlm_json_free(json);

    return n;
}


void
vlm_words_plan_free(vlm_words_step_t *steps, int n)
{
    int  i;

    for (i = 0; i < n; i++) {
        free(steps[i].prompt);
        free(steps[i].description);

        steps[i].prompt = NULL;
        steps[i].description = NULL;
    }
}


void
vlm_words_put_plan(vlm_json_out_t *w, const vlm_words_step_t *steps, size_t n)
{
    size_t  i;

    vlm_json_add_open(w, "pipeline", '[');

    for (i = 0; i < n; i++) {
        vlm_json_open(w, '{');

        vlm_json_add_string(w, "description", steps[i].description);
        vlm_json_add_string(w, "prompt", steps[i].prompt);
        vlm_json_add_int(w, "step", steps[i].number);
        vlm_json_add_string(w, "task", steps[i].task);
        vlm_json_add_bool(w, "use_previous", steps[i].use_previous);

        vlm_json_shut(w, '}');
    }

    vlm_json_shut(w, ']');
}
