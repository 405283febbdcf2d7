/*
 * Fuzz target: tokenizer files.  The first byte chooses the form; vocab.json, merges.txt and
 * tokenizer_config.json are separated by bytes 0xff, which JSON and UTF-8 have no use for.
 */

#include <stdlib.h>
#include <string.h>

#include "family/qwen.h"
#include "text/read.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


/* An accepted tokenizer must be usable: a short text, and each id. */
static void
use(vlm_tokenizer_t *t)
{
    char         out[3 * VLM_MAX_TOKEN_BYTES + VLM_DETOK_ROOM];
    uint32_t     id;
    vlm_ids_t    ids = { 0 };
    vlm_err_t    err = { 0 };
    vlm_detok_t  d = { 0 };

    (void) vlm_encode(t, "It's 2 hehe\n\n caf\xc3\xa9 e\xcc\x81", 23, &ids, &err);
    (void) vlm_special(t, "<|end|>");

    for (id = 0; id < 2048; id++) {
        (void) vlm_detok_next(&d, t, id, out);
    }

    free(ids.ids);
    vlm_tokenizer_close(t);
}


static vlm_source_t
part(const char *name, const uint8_t **data, size_t *bytes)
{
    const uint8_t  *end;
    vlm_source_t    s;

    end = *bytes == 0 ? NULL : memchr(*data, 0xff, *bytes);

    s.name = name;
    s.data = *data;
    s.bytes = end == NULL ? *bytes : (size_t) (end - *data);

    *bytes -= end == NULL ? *bytes : s.bytes + 1;
    *data += end == NULL ? s.bytes : s.bytes + 1;

    return s;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    vlm_err_t         err = { 0 };
    vlm_source_t      s[3];
    vlm_tokenizer_t  *t;

    if (bytes == 0) {
        return 0;
    }

    if (data[0] == '{') {
        s[0] = (vlm_source_t) { "tokenizer.json", data, bytes };
        t = vlm_read_json(&s[0], vlm_qwen_split, &err);

    } else {
        data++;
        bytes--;
        s[0] = part("vocab.json", &data, &bytes);
        s[1] = part("merges.txt", &data, &bytes);
        s[2] = part("tokenizer_config.json", &data, &bytes);
        t = vlm_read_plain(&s[0], &s[1], s[2].bytes == 0 ? NULL : &s[2], vlm_qwen_split, &err);
    }

    if ((t == NULL) != (err.code != VLM_OK)) {
        __builtin_trap();
    }

    if (t != NULL) {
        use(t);
    }

    return 0;
}
