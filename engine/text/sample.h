/*
 * A small tokenizer.json for tests and fuzz targets: every byte is a token, its id is its place in
 * the byte-level alphabet's order of bytes, and a test can add to each part.
 */

#ifndef VLM_SAMPLE_H
#define VLM_SAMPLE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "family/qwen.h"
#include "text/read.h"

#define VLM_SAMPLE_REST                                                                            \
    "\"normalizer\": {\"type\": \"NFC\"},"                                                         \
    "\"added_tokens\": ["                                                                          \
    "  {\"id\": 300, \"content\": \"<|end|>\", \"special\": true},"                                \
    "  {\"id\": 301, \"content\": \"<tool>\", \"special\": false}]"


/* Writes the members of "vocab" for the 256 bytes; returns their end. */
static inline char *
vlm_sample_bytes(char *p)
{
    unsigned  byte, c, other;

    other = 0x100;

    for (byte = 0; byte < 256; byte++) {
        c = (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad) ? byte : other++;

        p += sprintf(p, "%s\"%s", byte == 0 ? "" : ", ", c == '"' || c == '\\' ? "\\" : "");

        if (c < 0x80) {
            *p++ = (char) c;

        } else {
            *p++ = (char) (0xc0 | c >> 6);
            *p++ = (char) (0x80 | (c & 0x3f));
        }

        p += sprintf(p, "\": %u", byte);
    }

    return p;
}


/*
 * A document, malloc()ed.  vocab: further members, beginning with a comma, or "".  merges: members
 * of the list.  rest: members beside "model".
 */
static inline char *
vlm_sample(const char *vocab, const char *merges, const char *rest)
{
    char  *text, *p;

    text = malloc(strlen(vocab) + strlen(merges) + strlen(rest) + 8192);
    if (text == NULL) {
        return NULL;
    }

    p = text + sprintf(text, "{\"model\": {\"type\": \"BPE\", \"vocab\": {");
    p = vlm_sample_bytes(p);
    (void) sprintf(p, "%s}, \"merges\": [%s]}%s%s}", vocab, merges,
                   rest[0] == '\0' ? "" : ", ", rest);

    return text;
}


static inline vlm_tokenizer_t *
vlm_sample_read(const char *text, vlm_err_t *err)
{
    vlm_source_t  s;

    s.name = "tokenizer.json";
    s.data = text;
    s.bytes = strlen(text);

    return vlm_read_json(&s, vlm_qwen_split, err);
}

#endif
