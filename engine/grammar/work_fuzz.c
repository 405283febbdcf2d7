/*
 * Fuzz target: a grammar in GBNF or, behind "{", a schema, a zero, and bytes of an answer.
 * The target looks for work: each further power of two of steps counts as new coverage, and a mask
 * or a byte beyond its bound is a finding.
 */

#include "run/answer_fuzz.h"

#define BYTES  64                      /* of an answer that are followed */
#define SLACK  (1u << 16)              /* steps between two looks at the bound */

int  LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

/* libFuzzer keeps inputs that raise one of these. */
__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t  reached[64];


static void
note(uint64_t work)
{
    check(work <= VLM_MASK_MOST + SLACK);
    reached[work == 0 ? 0 : 63 - __builtin_clzll(work)] = 1;
}


static void
follow(const vlm_grammar_t *g, const uint8_t *data, size_t bytes)
{
    size_t  i;

    vlm_match_start(&match, g);

    for (i = 0; i < bytes && i < BYTES && !vlm_match_done(&match); i++) {
        vlm_walk_allow(adjust.walk, VLM_MASK_MOST, NULL);
        (void) vlm_mask(pieces, &match, adjust.walk, MOST, allowed);
        note(vlm_walk_work(adjust.walk));

        vlm_walk_allow(adjust.walk, VLM_MASK_MOST, NULL);
        (void) vlm_match_read(&match, adjust.walk, (const char *) data + i, 1);
        note(vlm_walk_work(adjust.walk));
    }
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char           *form;
    size_t          n_form;
    vlm_err_t       err = { VLM_OK, "" };
    vlm_json_t     *j;
    vlm_grammar_t  *g;
    const uint8_t  *zero;

    open_once();

    zero = bytes == 0 ? NULL : memchr(data, 0, bytes);
    n_form = zero == NULL ? bytes : (size_t) (zero - data);
    form = strndup((const char *) data, n_form);

    if (form == NULL) {
        return 0;
    }

    if (form[0] == '{') {
        j = vlm_json_parse(form, n_form, &err);
        g = j == NULL ? NULL : vlm_schema_make(pieces, j, &err);
        vlm_json_free(j);

    } else {
        g = vlm_gbnf_make(pieces, form, &err);
    }

    if (g != NULL && zero != NULL) {
        follow(g, zero + 1, bytes - n_form - 1);
    }

    vlm_grammar_free(g);
    free(form);

    return 0;
}
