/*
 * Fuzz target: texts.  A small vocabulary, any bytes: UTF-8 must come back composed, and composing
 * it again must change nothing; other bytes must be refused.
 */

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/norm.h"
#include "text/sample.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static vlm_tokenizer_t  *tokenizer;


static void
open_tokenizer(void)
{
    char       *text;
    vlm_err_t   err = { 0 };

    text = vlm_sample(", \"he\": 256, \"hel\": 257, \"\\u0120h\": 258, \"aa\": 259, \"aaaa\": 260, "
                      "\"\\u0120\\u0120\": 261, \"\\u00c3\\u00a9\": 262, \"\\u00cc\\u0123\": 263",
                      "\"h e\", \"he l\", \"\\u0120 h\", \"a a\", \"aa aa\", \"\\u0120 \\u0120\", "
                      "\"\\u00c3 \\u00a9\"", VLM_SAMPLE_REST);
    if (text != NULL) {
        tokenizer = vlm_sample_read(text, &err);
    }

    free(text);

    if (tokenizer == NULL) {
        __builtin_trap();
    }
}


static void
check(int right)
{
    if (!right) {
        __builtin_trap();
    }
}


/* 1 if the ids decode to this text. */
static void
check_decoded(const vlm_ids_t *ids, const char *text, size_t bytes)
{
    char         *out;
    size_t        i, at;
    vlm_detok_t   d = { 0 };

    out = malloc(ids->n * 3 * vlm_token_max_bytes(tokenizer) + VLM_DETOK_ROOM);
    check(out != NULL);

    for (i = 0, at = 0; i < ids->n; i++) {
        check(!vlm_token_is_special(tokenizer, ids->ids[i]));
        at += vlm_detok_next(&d, tokenizer, ids->ids[i], out + at);
    }

    check(vlm_detok_end(&d, out + at) == 0);
    check(at == bytes && (bytes == 0 || memcmp(out, text, bytes) == 0));

    free(out);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char        *composed, *again;
    size_t       n, n_again, bad;
    vlm_ids_t    ids = { 0 };
    vlm_err_t    err = { 0 };
    const char  *text;

    if (tokenizer == NULL) {
        open_tokenizer();
    }

    text = (const char *) data;
    bad = vlm_utf8_whole(text, bytes);

    if (vlm_encode(tokenizer, text, bytes, &ids, &err) != 0) {
        check(bad < bytes && err.code == VLM_EINPUT && ids.n == 0);
        free(ids.ids);
        return 0;
    }

    check(bad == bytes);
    check(vlm_norm_nfc(text, bytes, &composed, &n, &err) == 0);

    if (composed != NULL) {
        check(vlm_utf8_whole(composed, n) == n);
        check(vlm_norm_nfc(composed, n, &again, &n_again, &err) == 0);
        check(again == NULL || (n_again == n && memcmp(again, composed, n) == 0));
        free(again);
    }

    check_decoded(&ids, composed == NULL ? text : composed, composed == NULL ? bytes : n);

    free(composed);
    free(ids.ids);

    return 0;
}
