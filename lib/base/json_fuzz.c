
/*
 * Any bytes as a JSON body: parsed, walked, written, and parsed again.  The written text must be
 * valid and equal when it is written again.  A member that is found without a parse is the parsed
 * document's.
 */


#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_out.h"
#include "base/utf8.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


static void
write_value(vlm_json_out_t *w, const vlm_json_t *j)
{
    vlm_json_init(w, 64 << 20);
    vlm_json_put_value(w, j);

    if (vlm_json_done(w) != 0) {
        abort();
    }
}


static void
peek(const uint8_t *data, size_t bytes, const vlm_json_t *j, const char *key)
{
    int          rc;
    char         text[32];
    const char  *said;

    rc = vlm_json_peek(data, bytes, key, text, sizeof(text));

    if (j == NULL || strlen(key) >= 64) {
        return;
    }

    said = vlm_json_text(vlm_json_get(j, key));

    if (said == NULL || strlen(said) >= sizeof(text) ? rc != -1 || text[0] != '\0'
                                                     : rc != 0 || strcmp(text, said) != 0)
    {
        abort();
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int64_t                   n;
    vlm_json_t               *j, *k;
    const vlm_json_t         *m;
    vlm_err_t                 err;
    vlm_json_out_t            one, two;

    (void) vlm_utf8_whole((const char *) data, bytes);

    if (vlm_json_escape(NULL, (const char *) data, bytes)
        > 6 * bytes)
    {
        abort();
    }

    j = vlm_json_parse(data, bytes, &err);

    peek(data, bytes, j, "model");

    if (j == NULL) {
        return 0;
    }

    for (m = vlm_json_is_object(j) ? vlm_json_first(j) : NULL, n = 0; m != NULL && n < 64;
         m = vlm_json_next(m), n++)
    {
        peek(data, bytes, j, vlm_json_key(m));
    }

    (void) vlm_json_is_true(j);
    (void) vlm_json_int(j, -100, 100, &n);
    (void) vlm_json_text(vlm_json_get(j, "message"));

    write_value(&one, j);

    k = vlm_json_parse(one.data, one.len, &err);

    if (k == NULL) {
        abort();
    }

    write_value(&two, k);

    if (one.len != two.len || memcmp(one.data, two.data, one.len) != 0) {
        abort();
    }

    vlm_json_release(&one);
    vlm_json_release(&two);
    vlm_json_free(j);
    vlm_json_free(k);

    return 0;
}
