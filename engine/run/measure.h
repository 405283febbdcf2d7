/*
 * Work for programs that time a model: vlm bench, and those of bench/.
 *
 * The passes build their rows without the scheduler, over keys and values of zeros, since the
 * arithmetic does not branch on values.  The caller reads the clock; the model is loaded, no job
 * runs, and each function is for the engine thread.
 */

#ifndef VLM_MEASURE_H
#define VLM_MEASURE_H

#include "base/threads.h"
#include "run/engine.h"

/* One pass: S sequences with n_ctx rows read `rows` more each, and pick a token if asked to. */
void vlm_measure_pass(vlm_t *v, uint32_t S, uint32_t n_ctx, uint32_t rows, int picks);

/* Reads a prompt of so many tokens in slices, as the scheduler does, and picks the first token. */
void vlm_measure_prompt(vlm_t *v, uint32_t tokens);

typedef struct {                       /* of the matrices that a token reads */
    double  bytes;
    double  values;                    /* of those in the layers: products, and as many sums */
} vlm_measure_weights_t;

void vlm_measure_weights(const vlm_t *v, vlm_measure_weights_t *w);
/* Bytes of keys and values that a token reads behind n_ctx rows. */
double vlm_measure_kv_bytes(const vlm_t *v, uint32_t n_ctx);

/* Reads those matrices alone with threads, as fast as the memory gives them; the device is the CPU.
   Returns the bytes. */
uint64_t vlm_measure_read(vlm_t *v, vlm_threads_t *threads);

/* Waits until the planned memory was taken, which begins with the load and slows the rest down, or
   for so many seconds: on a busy machine it takes minutes.  1: it was taken. */
int vlm_measure_wait(const vlm_t *v, uint32_t seconds);

/* Reads a range, aligned to 64 bytes: two streams of it at once, far enough ahead.  Returns a sum
   of its bytes, which keeps a compiler from leaving it out. */
uint64_t vlm_measure_range(const void *p, uint64_t bytes);

/* A new BMP of coloured noise, another for each seed; free()d by the caller.  NULL: no memory. */
uint8_t *vlm_measure_picture(uint32_t width, uint32_t height, uint32_t seed, size_t *bytes);

/*
 * A prompt of a picture, which may be NULL and is taken over, and of a text that is cut to so many
 * tokens.  NULL: the errors of vlm_prompt_raw().
 */
vlm_prompt_t *vlm_measure_question(const vlm_t *v, vlm_picture_t *picture, const char *text,
                                   uint32_t tokens, vlm_err_t *err);
/* Takes a prompt over and runs until its first token was picked; -1: the engine's errors. */
int vlm_measure_first(vlm_t *v, vlm_prompt_t *p, vlm_err_t *err);

#endif
