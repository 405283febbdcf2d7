/* An encoder of texts, shared by the files of this folder. */

#ifndef VLM_EMBED_H
#define VLM_EMBED_H

#include <pthread.h>

#include "embed/settings.h"
#include "embedder.h"
#include "model/model.h"
#include "text/wordpiece.h"

#define VLM_EMBED_ROWS  512            /* that go through the layers together; more if one text
                                          has more */

typedef struct {                       /* memory of one pass; R rows of all texts in it */
    uint32_t   rows;                   /* most R */
    uint32_t  *ids;                    /* [R] */
    uint32_t  *none;                   /* [R] VLM_NONE: each row is a token */
    uint32_t  *zero;                   /* [R] the place for a rotation that changes nothing */
    uint32_t  *border;                 /* [texts + 1] first row of each text */
    float     *inv_freq;               /* [hd / 4] zeros */
    float     *x;                      /* [R][D] */
    void      *q, *k, *v, *o;          /* act [R][D] */
    void      *h;                      /* act [R][F] */
    float     *row;                    /* [D] */
    void      *scratch;                /* the operations' own */
} vlm_embed_work_t;

struct vlm_embedder_s {
    vlm_model_t           m;
    vlm_embed_work_t      work;
    vlm_embedder_plan_t   facts;
    vlm_wordpiece_t      *pieces;
    uint8_t               id[32];

    pthread_mutex_t       lock;
    pthread_cond_t        turn;
    uint64_t              next, now;   /* tickets: of the next caller, and of the one at work */
};

/* Runs the layers over the rows of n texts, from work.ids and work.border. */
void vlm_embed_forward(vlm_embedder_t *e, uint32_t n);
/* The vector of text i: f32 [D].  -1: it is not finite. */
int vlm_embed_mean(const vlm_embedder_t *e, uint32_t i, float *out);

#endif
