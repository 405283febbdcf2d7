/*
 * A fibre: a function with a stack of its own, entered and left by explicit calls.
 *
 * One switch is a dozen instructions on x86-64 and a swapcontext() elsewhere.  AddressSanitizer is
 * informed of every switch, so that its reports name the right stack.
 */

#ifndef VLM_FIBRE_H
#define VLM_FIBRE_H

#include <stddef.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

typedef struct {
    void        *stack;                /* lowest byte; NULL: the thread's own */
    size_t       bytes;
    void        *fake;                 /* AddressSanitizer's */
    void       (*entry)(void);         /* never returns: it leaves by vlm_fibre_leave() */
#if defined(__x86_64__)
    void        *sp;
#else
    ucontext_t   context;
#endif
} vlm_fibre_t;

/*
 * Sets entry as the function of the fibre's next switch.  The old content of its stack is lost: it
 * is new, was left by entry itself, or is clean.
 */
void vlm_fibre_make(vlm_fibre_t *f, void *stack, size_t bytes, void (*entry)(void));
/* Has AddressSanitizer forget functions that were left in the middle, and never return. */
void vlm_fibre_clean(void *stacks, size_t bytes);
/* Switches from the running fibre to another one. */
void vlm_fibre_switch(vlm_fibre_t *from, vlm_fibre_t *to);
/* The same, for the last time. */
void vlm_fibre_leave(vlm_fibre_t *from, vlm_fibre_t *to);

#endif
