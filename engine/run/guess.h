/*
 * Guessed tokens (prompt lookup): when the last tokens of an answer have stood in its prompt or
 * answer before, the tokens that followed them there are read together with the last one.  Each of
 * the rows gives the token that it would give by itself, so a guess that is not picked only ends
 * what is taken from the step, and the answer has the same bits.
 *
 * Only the engine thread uses it.
 */

#ifndef VLM_GUESS_H
#define VLM_GUESS_H

#include <stdint.h>

#define VLM_GUESSES  2u                /* the most of one sequence in a step */

/* How often the guesses for an answer were right; zeros at its start. */
typedef struct {
    int32_t   wrong;                   /* guesses that were not picked, less those that were */
    uint32_t  rest;                    /* steps without a guess that are left */
} vlm_guess_t;

/*
 * Finds at most `most` tokens that may follow token [n] and last: those behind the latest place
 * that has the same three tokens, or else the same two.  Returns how many.
 */
uint32_t vlm_guess_tokens(const uint32_t *token, uint32_t n, uint32_t last, uint32_t most,
                          uint32_t guess[VLM_GUESSES]);

/* 1: a step of this answer may have guesses; it is called once for each step. */
int vlm_guess_pays(vlm_guess_t *g);
/* Of n guesses `right` were picked. */
void vlm_guess_count(vlm_guess_t *g, uint32_t n, uint32_t right);

#endif
