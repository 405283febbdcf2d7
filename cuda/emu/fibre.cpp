/* Fibres: the switch from one stack to another. */

#include "fibre.h"

#include <stdint.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VLM_ASAN
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define VLM_ASAN
#endif

#if defined(VLM_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define ENTRY  1024                    /* bytes of a stack that an earlier fibre's frames used */

static vlm_fibre_t  *left, *entered;   /* of the switch in progress */

static void begin(void);


static void
before_switch(vlm_fibre_t *from, vlm_fibre_t *to, int last)
{
    left = from;
    entered = to;

#if defined(VLM_ASAN)
    __sanitizer_start_switch_fiber(last ? nullptr : &from->fake, to->stack, to->bytes);
#else
    (void) last;
#endif
}


/* Runs on the entered stack.  AddressSanitizer tells the thread's own stack at its first switch. */
static void
after_switch(void)
{
#if defined(VLM_ASAN)
    const void  *stack;
    size_t       bytes;

    __sanitizer_finish_switch_fiber(entered->fake, &stack, &bytes);

    if (left->stack == nullptr) {
        left->stack = const_cast<void *>(stack);
        left->bytes = bytes;
    }
#endif
}


static void
begin(void)
{
    after_switch();
    entered->entry();
    __builtin_trap();                  /* entry() must not return: a fibre has no caller */
}


#if defined(__x86_64__)

/* Saves the callee-saved registers on the old stack, and loads them from the new one. */
extern "C" void vlm_fibre_swap(void **from, void *to);

__asm__(".text\n"
        ".p2align 4\n"
        ".hidden vlm_fibre_swap\n"
        ".globl vlm_fibre_swap\n"
        ".type vlm_fibre_swap, @function\n"
        "vlm_fibre_swap:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size vlm_fibre_swap, .-vlm_fibre_swap\n");


static void
jump(vlm_fibre_t *from, vlm_fibre_t *to)
{
    vlm_fibre_swap(&from->sp, to->sp);
}


static void
prepare(vlm_fibre_t *f)
{
    uintptr_t  *sp;

    /* Six saved registers, the address to return to, and a call's alignment: 8 below a 16th. */

    sp = reinterpret_cast<uintptr_t *>(static_cast<char *>(f->stack) + f->bytes) - 8;
    f->sp = sp;

    for (int i = 0; i < 6; i++) {
        *sp++ = 0;
    }

    *sp++ = reinterpret_cast<uintptr_t>(begin);
    *sp = 0;
}

#else

static void
jump(vlm_fibre_t *from, vlm_fibre_t *to)
{
    (void) swapcontext(&from->context, &to->context);
}


static void
prepare(vlm_fibre_t *f)
{
    (void) getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack;
    f->context.uc_stack.ss_size = f->bytes;
    f->context.uc_link = nullptr;
    makecontext(&f->context, begin, 0);
}

#endif


void
vlm_fibre_clean(void *stacks, size_t bytes)
{
#if defined(VLM_ASAN)
    __asan_unpoison_memory_region(stacks, bytes);
#else
    (void) stacks;
    (void) bytes;
#endif
}


void
vlm_fibre_make(vlm_fibre_t *f, void *stack, size_t bytes, void (*entry)(void))
{
#if defined(VLM_ASAN)
    __asan_unpoison_memory_region(static_cast<char *>(stack) + bytes - ENTRY, ENTRY);
#endif

    f->stack = stack;
    f->bytes = bytes;
    f->fake = nullptr;
    f->entry = entry;
    prepare(f);
}


void
vlm_fibre_switch(vlm_fibre_t *from, vlm_fibre_t *to)
{
    before_switch(from, to, 0);
    jump(from, to);
    after_switch();
}


void
vlm_fibre_leave(vlm_fibre_t *from, vlm_fibre_t *to)
{
    before_switch(from, to, 1);
    jump(from, to);
}
