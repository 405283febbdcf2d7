/* The text of an answer to POST /generate-lite: see lite.h. */

#include "api/lite.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/unicode.h"
#include "base/utf8.h"

#define LONG_PART  10                  /* characters: a part of a text is longer */


/* The functions below change text in place; each returns its new length. */

/* Of white space only the space is printable. */
static size_t
clean(char *text, size_t len)
{
    size_t    i, n, out;
    uint32_t  code;

    for (i = 0, out = 0; i < len; i += n) {
        n = vlm_utf8((unsigned char *) text + i, len - i, &code);

        if (n == 0) {
            n = 1;

        } else if (vlm_unicode_printable(code)
                   && !(code == ' ' && (out == 0 || text[out - 1] == ' ')))
        {
            memmove(text + out, text + i, n);
            out += n;
        }
    }

    return out > 0 && text[out - 1] == ' ' ? out - 1 : out;
}


/* The bytes of the first characters, at most so many. */
static size_t
first(const char *text, size_t len, size_t characters)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        if (((unsigned char) text[i] & 0xc0) != 0x80 && characters-- == 0) {
            break;
        }
    }

    return i;
}


static size_t
drop(char *text, size_t len, const char *prompt)
{
    size_t  n = strlen(prompt);

    if (n > len || memcmp(text, prompt, n) != 0) {
        return len;
    }

    n += n < len && text[n] == ' ';
    memmove(text, text + n, len - n);

    return len - n;
}


/* The runs of characters beyond ASCII, with a space between two; 0: there are none.  Text has room
   for three bytes more. */
static size_t
foreign(char *text, size_t len)
{
    size_t  i, out, cut;

    for (i = 0, out = 0; i < len; i++) {
        if ((unsigned char) text[i] < 0x80) {
            continue;
        }

        if (out > 0 && (unsigned char) text[i - 1] < 0x80) {
            text[out++] = ' ';
        }

        text[out++] = text[i];
    }

    cut = first(text, out, VLM_LITE_SHOWN);

    if (cut == out) {
        return out;
    }

    out = cut;

    while (out > 0 && text[out - 1] != ' ') {
        out--;
    }

    out = out > 0 ? out - 1 : cut;
    memcpy(text + out, "...", 3);

    return out + 3;
}


/* The first of the parts between quotes that is long enough, or all of an ASCII text; not more
   than is shown. */
static size_t
part(char *text, size_t len)
{
    size_t  begin, end, next;

    for (begin = 0; begin < len; begin = next + 1) {
        for (next = begin; next < len && text[next] != '"' && text[next] != '\''; next++) { }

        end = next;
        begin += begin < end && text[begin] == ' ';
        end -= begin < end && text[end - 1] == ' ';

        if (end - begin > LONG_PART) {
            memmove(text, text + begin, end - begin);
            len = end - begin;
            break;
        }
    }

    return len < VLM_LITE_SHOWN ? len : VLM_LITE_SHOWN;
}


static int
asks_to_translate(const char *prompt)
{
    for ( ; *prompt; prompt++) {
        if (strncasecmp(prompt, "translate", strlen("translate")) == 0) {
            return 1;
        }
    }

    return 0;
}


char *
vlm_lite_text(const char *text, size_t bytes, const char *prompt, size_t *len)
{
    char    *out;
    size_t   n;

    out = malloc(bytes + sizeof("..."));
    if (out == NULL) {
        return NULL;
    }

    if (bytes > 0) {
        memcpy(out, text, bytes);
    }

    *len = clean(out, bytes);

    if (*len > 0 && asks_to_translate(prompt)) {
        *len = drop(out, *len, prompt);
        n = foreign(out, *len);
        *len = n > 0 ? n : part(out, *len);
    }

    out[*len] = '\0';

    return out;
}


void
vlm_lite_put(vlm_json_out_t *w, const vlm_lite_t *lite, const char *text, size_t bytes)
{
    char        *shown;
    size_t       len;
    const char  *prompt;

    prompt = lite->text[VLM_LITE_PROMPT];
    shown = vlm_lite_text(text, bytes, prompt, &len);

    if (shown != NULL && len == 0) {
        free(shown);
        shown = vlm_lite_text(prompt, strlen(prompt), prompt, &len);
    }

    if (shown == NULL) {
        w->failed = 1;
        return;
    }

    vlm_json_open(w, '{');
    vlm_json_add_string(w, "prompt", prompt);
    vlm_json_add_text(w, "generated_text", shown, len);
    vlm_json_add_string(w, "adapter_path", lite->text[VLM_LITE_ADAPTER_PATH]);

    vlm_json_add_open(w, "parameters", '{');
    vlm_json_add_int(w, "max_new_tokens", (int64_t) lite->number[VLM_LITE_MAX_NEW_TOKENS]);
    vlm_json_add_double(w, "temperature", lite->number[VLM_LITE_TEMPERATURE]);
    vlm_json_add_string(w, "base_model", lite->text[VLM_LITE_BASE_MODEL]);
    vlm_json_shut(w, '}');
    vlm_json_shut(w, '}');

    free(shown);
}
