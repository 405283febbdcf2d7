/*
 * Two devices side by side: the definitions on the host, and the library under test.
 *
 * The host's activations are f32 and the device's bf16, so inputs are rounded to bf16 for both: the
 * remaining difference is the operation's own rounding.  Every operation of the device runs under
 * several seeds of the emulator and has to give the same bits; on a card it runs as often.
 */

#ifndef VLM_PAIR_H
#define VLM_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "fault.h"
#include "ops/cuda.h"
#include "ops/parity.h"
#include "vlm.h"

#define SEEDS     3
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

typedef enum { F32, ACT } form_t;      /* how a device keeps values: ACT is its own form */

typedef struct {
    const vlm_ops_t  *ops;
    vlm_device_t     *d;
    uint8_t          *base;            /* one block, from which ranges are allocated in order */
    uint64_t          used;
    int               is_host;
} side_t;

extern side_t  host, card;

/* Called in the group's set-up: opens both sides for a model of these weights. */
int pair_open(vlm_type_t weights, const vlm_need_t *host_need, const vlm_need_t *card_need);
int pair_close(void **state);
/* Frees all allocated ranges, except the operations' own memory. */
void pair_reset(void);

void *take_bytes(side_t *s, uint64_t bytes);
void *put_bytes(side_t *s, const void *from, uint64_t bytes);
void *put_floats(side_t *s, const float *from, size_t n, form_t form);
void get_floats(side_t *s, float *to, const void *from, size_t n, form_t form);

/* n values of a kind that bf16 has exactly; freed by the caller. */
float *bf16_values(uint32_t rows, uint32_t n, vlm_kind_t kind, uint64_t seed);
float *f32_values(uint32_t rows, uint32_t n, vlm_kind_t kind, uint64_t seed);

/* Rows [N][K] as each side packs them, in panels of 64 in no special order; bias may be NULL. */
vlm_linear_t put_matrix(side_t *s, vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N,
                        uint32_t K, const float *rows, const float *bias);
/* The same of rows that are in their form already, with their scales [N] or NULL. */
vlm_linear_t put_quantised(side_t *s, vlm_type_t type, vlm_epilogue_t epilogue, uint32_t N,
                           uint32_t K, const void *rows, const float *scale, const float *bias);

/* Sets the emulator's seed for run i of SEEDS; a card has none. */
void use_seed(uint32_t i);
/* Waits until all earlier calls are done; a fault fails the test. */
void settle(side_t *s);

void check_same_bits(const float *got, const float *want, size_t n, const char *what);
/* Checks |got - want| <= bound [n], or, if bound is NULL, <= by + of * |want|. */
void check_near(const float *got, const float *want, const float *bound, float by, float of,
                size_t n, const char *what);

#endif
