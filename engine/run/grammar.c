/* Grammars over the vocabulary of an engine. */

#include "run/engine.h"


vlm_grammar_t *
vlm_grammar_make(const vlm_t *v, const vlm_json_t *form, vlm_form_t kind, vlm_err_t *err)
{
    return vlm_forms_get(v->forms, v->pieces, form, kind, err);
}


vlm_grammar_t *
vlm_grammar_object(const vlm_t *v, vlm_err_t *err)
{
    return vlm_object_make(v->pieces, err);
}
