/*
 * Fuzz target: a schema or, as a JSON string, an expression, a zero, and bytes of an answer, which
 * is JSON where a schema asks for it.
 */

#include "run/answer_fuzz.h"
#include "grammar/schema.h"

#define STEPS  (1u << 20)              /* of a schema's work, a part of what there is otherwise */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    size_t          end;
    uint32_t        steps;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;
    const uint8_t  *zero;

    open_once();

    zero = bytes == 0 ? NULL : memchr(data, 0, bytes);
    end = zero == NULL ? bytes : (size_t) (zero - data);
    j = vlm_json_parse(data, end, &err);

    if (j == NULL) {
        return 0;
    }

    end += zero != NULL;
    memset(&err, 0, sizeof(err));
    steps = VLM_GRAMMAR_STEPS - STEPS;
    g = vlm_schema_within(pieces, j, &steps, &err);
    check((g == NULL) == (err.code != VLM_OK));

    if (g != NULL) {
        answer(g, data + end, bytes - end, 1);
    }

    vlm_grammar_free(g);
    memset(&err, 0, sizeof(err));
    g = vlm_json_is_string(j) ? vlm_regex_make(pieces, vlm_json_text(j), &err) : NULL;
    check(!vlm_json_is_string(j) || (g == NULL) == (err.code != VLM_OK));

    if (g != NULL) {
        answer(g, data + end, bytes - end, 0);
    }

    vlm_grammar_free(g);

    g = vlm_choice_make(pieces, j, NULL);
    vlm_grammar_free(g);
    vlm_json_free(j);

    return 0;
}
