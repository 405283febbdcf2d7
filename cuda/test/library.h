/*
 * The emulated library as tests of whole engines have it: loaded by the first engine, and then its
 * controls are looked up by name.
 */

#ifndef VLM_TEST_LIBRARY_H
#define VLM_TEST_LIBRARY_H

#include <dlfcn.h>
#include <stdio.h>

#include "emu/control.h"
#include "run/fixture.h"

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

#endif
