/* Fuzz target: a grammar in GBNF, a zero, and bytes of an answer. */

#include "run/answer_fuzz.h"

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char           *grammar;
    size_t          n_grammar;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_grammar_t  *g;
    const uint8_t  *zero;

    open_once();

    zero = bytes == 0 ? NULL : memchr(data, 0, bytes);
    n_grammar = zero == NULL ? bytes : (size_t) (zero - data);
    grammar = malloc(n_grammar + 1);

    if (grammar == NULL) {
        return 0;
    }

    memcpy(grammar, data, n_grammar);
    grammar[n_grammar] = '\0';
    n_grammar += zero != NULL;

    g = vlm_gbnf_make(pieces, grammar, &err);
    check((g == NULL) == (err.code != VLM_OK));

    if (g != NULL) {
        answer(g, data + n_grammar, bytes - n_grammar, 0);
    }

    vlm_grammar_free(g);
    free(grammar);

    return 0;
}
