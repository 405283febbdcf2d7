/* Logits of every position of a prompt: for tests, and for build/vlm. */

#include <stdlib.h>

#include "base/size.h"
#include "run/adapters.h"
#include "run/sched.h"

static void encode(vlm_model_t *m, const vlm_prompt_t *p, uint32_t picture);
static void run_slice(vlm_t *v, const vlm_prompt_t *p, uint32_t first, uint32_t end, float *logits);


int
vlm_logits(vlm_t *v, const vlm_prompt_t *p, float **logits, uint32_t *vocab, vlm_err_t *err)
{
    uint32_t      first, end, picture, V;
    uint64_t      bytes;
    vlm_model_t  *m = &v->sched.model;

    *logits = NULL;

    if (p->n > v->conf.context) {
        return vlm_fail(err, VLM_ELIMIT, "a prompt of %u tokens, the context has %u", p->n,
                        v->conf.context);
    }

    vlm_features_forget(&v->sched.features, 0);
    vlm_prefix_forget(&v->sched.prefix, 0);

    vlm_adapter_settle(v, (vlm_prompt_t *) p);     /* only keys for caches change */

    V = m->config.text.vocab;
    bytes = vlm_mul(vlm_mul(p->n, V), sizeof(float));

    *logits = bytes > SIZE_MAX / 2 ? NULL : malloc((size_t) bytes);
    if (*logits == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for the logits of %u tokens", p->n);
    }

    /* As in the scheduler, a picture's features are computed before its rows come up. */

    for (first = 0, picture = 0; first < p->n; first = end) {
        if (picture < p->n_pictures && p->picture_at[picture] == first) {
            encode(m, p, picture++);
        }

        end = picture < p->n_pictures ? p->picture_at[picture] : p->n;
        end = end - first > VLM_SLICE ? first + VLM_SLICE : end;

        run_slice(v, p, first, end, *logits + (size_t) first * V);
    }

    *vocab = V;

    if (v->ops->basic->sync(v->device, err) != 0) {
        free(*logits);
        *logits = NULL;
        return -1;
    }

    return 0;
}


static void
encode(vlm_model_t *m, const vlm_prompt_t *p, uint32_t picture)
{
    vlm_adapt_vision(m, p);
    vlm_vision_begin(m, p->picture[picture], 0);
    (void) vlm_vision_blocks(m, m->config.vision.depth);
    vlm_vision_end(m);
}


/* The head takes as many rows at a time as there are slots: x stays, the logit rows change. */
static void
run_slice(vlm_t *v, const vlm_prompt_t *p, uint32_t first, uint32_t end, float *logits)
{
    uint32_t      i, n, V, R;
    vlm_batch_t   b;
    vlm_rows_t   *rows = &v->sched.rows;
    vlm_model_t  *m = &v->sched.model;

    V = m->config.text.vocab;

    vlm_rows_clear(rows);
    vlm_rows_sequence(rows, 0, first);
    vlm_adapt_rows(rows, p);

    for (i = first; i < end; i++) {
        vlm_rows_add(rows, p->token[i], p->source[i], p->pos + 3 * (size_t) i);
    }

    vlm_rows_put(rows, v->ops, v->device, m->work.ids, m->work.pick, &b);
    vlm_adapt_text(m, rows);
    (void) vlm_text_forward(m, &b, NULL, NULL);

    for (i = 0; i < end - first; i += R) {
        R = end - first - i < v->conf.slots ? end - first - i : v->conf.slots;

        for (n = 0; n < R; n++) {
            rows->logit_row[n] = i + n;
        }

        v->ops->basic->put(v->device, (uint32_t *) b.logit_row, rows->logit_row,
                           R * sizeof(uint32_t));
        b.R = R;
        vlm_text_head(m, &b);
        v->ops->basic->get(v->device, logits + (size_t) i * V, m->work.logits,
                           (uint64_t) R * V * sizeof(float));
    }
}
