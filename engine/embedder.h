/*
 * The interface of the text encoder: short texts become vectors of length 1, whose products say how
 * near their meanings are.  It has a checkpoint of its own, such as all-MiniLM-L6-v2, and needs
 * neither the engine of vlm.h nor its thread.
 *
 * The encoder runs on the CPU, in the thread that calls it.  Each function that can fail takes a
 * vlm_err_t as its last argument and returns 0 or -1 (or a pointer or NULL).
 */

#ifndef VLM_EMBEDDER_H
#define VLM_EMBEDDER_H

#include "vlm.h"

typedef struct vlm_embedder_s  vlm_embedder_t;

typedef struct {
    uint32_t  dim;                     /* numbers of a vector */
    uint32_t  tokens;                  /* of a text that are read; the rest of it is cut off */
    uint64_t  weights, workspace;      /* bytes in memory; the tokenizer, some MiB, is not in it */
} vlm_embedder_plan_t;

typedef struct {
    const char  *text;                 /* UTF-8, [bytes]; a zero is a character */
    size_t       bytes;
} vlm_embedder_text_t;

/*
 * Plans the memory: reads the settings and the headers of the tensors, and keeps nothing.
 *
 *   dir      checkpoint directory: config.json, model.safetensors, tokenizer.json; of
 *            sentence-transformers' files, sentence_bert_config.json has the most tokens of a text,
 *            and 1_Pooling/config.json has to say that vectors are means
 *   weights  the form in memory: see vlm_weights_find()
 *   threads  that share the work of a call, the caller's included; 1 to 256
 *   returns  0 and *plan; or -1: VLM_EINPUT a setting out of its range, VLM_EMODEL not an encoder
 *            that can be run
 */
int vlm_embedder_plan(const char *dir, vlm_type_t weights, uint32_t threads,
                      vlm_embedder_plan_t *plan, vlm_err_t *err);

/*
 * Reads the weights, 0.1 to 1 s for 90 MB of f32.  All memory is taken here; freed with
 * vlm_embedder_close().  NULL: as above, or VLM_EMEMORY.  Any thread but the loop.
 */
vlm_embedder_t *vlm_embedder_open(const char *dir, vlm_type_t weights, uint32_t threads,
                                  vlm_err_t *err);
void vlm_embedder_close(vlm_embedder_t *e);        /* takes NULL; no call may be running */

const vlm_embedder_plan_t *vlm_embedder_facts(const vlm_embedder_t *e);
/* Identity of the checkpoint's files: vectors of two identities cannot be compared. */
void vlm_embedder_id(const vlm_embedder_t *e, uint8_t id[32]);

/*
 * Encodes n texts into out, f32 [n][dim].  A text's vector does not depend on the other texts.  Any
 * thread but the loop: a text of 150 tokens takes tens of milliseconds.  Several threads may call;
 * they take turns, each a batch of texts at a time, in the order in which they came.
 *
 *   returns  0; or -1: VLM_EINPUT a text is not UTF-8, VLM_EMODEL a vector is not finite
 */
int vlm_embedder_run(vlm_embedder_t *e, const vlm_embedder_text_t *texts, size_t n, float *out,
                     vlm_err_t *err);

#endif
