/*
 * The emulated library for tests of whole engines: the first engine loads it, and then its controls
 * are looked up by name; and a comparison of answers.
 */

#ifndef VLM_TEST_LIBRARY_H
#define VLM_TEST_LIBRARY_H

#include <dlfcn.h>
#include <stdio.h>

#include "emu/control.h"
#include "run/fixture.h"
#include "vlm.h"

static vlm_emu_set_fn    *set;
static vlm_emu_count_fn  *count;


static inline vlm_emu_counts_t
counts(void)
{
    vlm_emu_counts_t  c;

    count(&c);

    return c;
}


/* As a group's set-up. */
static inline int
find_library(void **state)
{
    char         path[4096];
    void        *library;
    vlm_conf_t   conf;

    (void) state;

    vlm_tiny_conf(&conf);
    conf.device = "cuda";
    conf.context = 200;
    conf.max_pixels = 3136;
    vlm_close(vlm_tiny_open(&conf));

    assert_non_null(realpath("/proc/self/exe", path));
    (void) snprintf(strrchr(path, '/'), 32, "/libvlm_cuda.so");
    library = dlopen(path, RTLD_NOW);
    assert_non_null(library);
    set = (vlm_emu_set_fn *) (uintptr_t) dlsym(library, "vlm_emu_set");
    count = (vlm_emu_count_fn *) (uintptr_t) dlsym(library, "vlm_emu_count");
    assert_true(set != NULL && count != NULL);

    return 0;
}


/* The same ids with the same bits of their log-probabilities. */
static inline void
check_same(const vlm_answer_t *got, const vlm_answer_t *want)
{
    size_t  i;

    assert_int_equal(got->n_tokens, want->n_tokens);

    for (i = 0; i < want->n_tokens; i++) {
        assert_int_equal(got->tokens[i].picked.id, want->tokens[i].picked.id);
        assert_memory_equal(&got->tokens[i].picked.logprob, &want->tokens[i].picked.logprob,
                            sizeof(float));
    }

    assert_string_equal(got->text, want->text);
}

#endif
