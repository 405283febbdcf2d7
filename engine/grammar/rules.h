/*
 * Rules of a grammar that may stand within themselves.
 *
 * Such a rule is an automaton that reads bytes and other rules.  A rule is read as a byte that no
 * UTF-8 text has, so that automata of rules are made as all others are.  A thread that is in one
 * has in its cells where the rules around it go on.
 */

#ifndef VLM_RULES_H
#define VLM_RULES_H

#include "grammar/dfa.h"
#include "grammar/walk.h"

#define VLM_RULES  13                  /* bytes that no text in UTF-8 has */

static inline uint8_t
vlm_rule_code(uint32_t rule)
{
    return (uint8_t) (rule < 11 ? 0xf5 + rule : 0xc0 + rule - 11);
}

/*
 * Makes nodes of automata; that of rule[0] is the root.  -1: *wrong is a rule, and the sentence
 * what is wrong with it; or NULL, and the maker has the error.
 */
int vlm_rules_make(vlm_maker_t *k, vlm_dfa_t *const *rule, uint32_t n, uint32_t *wrong,
                   const char **sentence);

/* Adds the threads behind a byte; t is in a rule's state.  begins: before its first byte. */
void vlm_rules_step(vlm_walk_t *w, const vlm_thread_t *t, uint8_t c, int begins);

#endif
