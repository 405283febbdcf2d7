
/*
 * Any bytes as a JSON body: parsed, walked, written, and parsed again.  The written text must be
 * valid and equal when it is written again.
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


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    int64_t                   n;
    vlm_json_t               *j, *k;
    vlm_err_t                 err;
    vlm_json_out_t            one, two;

    (void) vlm_utf8_whole((const char *) data, bytes);

    if (vlm_json_escape(NULL, (const char *) data, bytes)
        > 6 * bytes)
    {
        abort();
    }

    j = vlm_json_parse(data, bytes, &err);

    if (j == NULL) {
        return 0;
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
