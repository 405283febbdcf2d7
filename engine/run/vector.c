/*
 * The vector of a prompt, for embeddings: what the head would read for its last token.  The row of
 * the stream is turned back and normed here, on the host, since on the device the last norm may
 * have given its gain to the head.
 */

#include <math.h>

#include "format/turn.h"
#include "run/sched.h"


/* The last norm, in place. */
static void
norm(const vlm_model_t *m, float *x)
{
    double        sum, mean, scale;
    uint32_t      i, D = m->config.text.hidden;
    const float  *gain = m->last, *shift = m->last + D;

    mean = 0;

    for (i = 0; m->norm.kind == VLM_NORM_LAYER && i < D; i++) {
        mean += x[i] / (double) D;
    }

    for (sum = 0, i = 0; i < D; i++) {
        sum += (x[i] - mean) * (x[i] - mean);
    }

    scale = 1 / sqrt(sum / D + (double) m->norm.eps);

    for (i = 0; i < D; i++) {
        x[i] = (float) ((x[i] - mean) * scale * gain[i] + shift[i]);
    }
}


/* Divides x by its length.  -1: it has none, or is not finite. */
static int
shorten(float *x, uint32_t n)
{
    double    sum;
    uint32_t  i;

    for (sum = 0, i = 0; i < n; i++) {
        sum += (double) x[i] * x[i];
    }

    if (!(sum > 0 && sum < INFINITY)) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        x[i] = (float) (x[i] / sqrt(sum));
    }

    return 0;
}


void
vlm_take_vector(vlm_t *v, vlm_job_t *j, uint32_t row)
{
    float        *x;
    uint32_t      D;
    vlm_err_t     err;
    vlm_sched_t  *s = &v->sched;

    x = (float *) j->text;             /* malloc()ed, with room for it */
    D = s->model.config.text.hidden;

    v->ops->basic->get(v->device, x, s->model.work.x + (size_t) row * D, D * sizeof(float));

    if (v->ops->basic->sync(v->device, NULL) != 0) {
        return;                        /* the loop ends the job */
    }

    if (s->model.turned) {
        vlm_turn_back(&s->stream, x, s->work);
    }

    norm(&s->model, x);

    if (shorten(x, D) != 0) {
        (void) vlm_fail(&err, VLM_EMODEL, "the model's hidden state is not finite after %u tokens",
                        j->n_ctx);
        vlm_end_job(v, j, VLM_FINISH_NONE, &err);
        return;
    }

    vlm_tell_text(v, j, D * sizeof(float), 0);
    vlm_end_job(v, j, VLM_FINISH_STOP, NULL);
}
