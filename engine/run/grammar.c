/* Grammars over the vocabulary of an engine. */

#include "grammar/grammar.h"

#include "run/engine.h"


vlm_grammar_t *
vlm_grammar_make(const vlm_t *v, const vlm_json_t *form, int choice, vlm_err_t *err)
{
    return choice ? vlm_choice_make(v->pieces, form, err) : vlm_schema_make(v->pieces, form, err);
}


vlm_grammar_t *
vlm_grammar_object(const vlm_t *v, vlm_err_t *err)
{
    return vlm_object_make(v->pieces, err);
}
