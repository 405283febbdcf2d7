/*
 * The source of the weights: the quantised cache file, which is written first if possible; without
 * one, the checkpoint itself.
 */

#include <stdio.h>
#include <string.h>

#include "model/matrix.h"
#include "format/panel.h"
#include "run/engine.h"

#define BRING  (64u << 20)             /* bytes between two questions whether to stop */


static void
tell_at(const vlm_t *v, int level, const char *fmt, const char *text)
{
    char  line[5000];

    if (v->conf.log != NULL) {
        (void) snprintf(line, sizeof(line), fmt, text);
        v->conf.log(v->conf.data, level, line);
    }
}


static void
tell(const vlm_t *v, const char *fmt, const char *text)
{
    tell_at(v, VLM_LOG_NOTICE, fmt, text);
}


/* The model is loaded from the checkpoint, and each start takes the time of a first one. */
static void
not_written(const vlm_t *v, const char *why)
{
    tell_at(v, VLM_LOG_WARN, "the quantised cache cannot be used, so that this start quantises the "
            "weights itself: %s", why);
}


int
vlm_weights_progress(void *data, uint32_t percent)
{
    vlm_t  *v = data;

    if (v->making) {
        percent = percent * 9 / 10;    /* writing takes most of the time; then the file is read */
    }

    pthread_mutex_lock(&v->mutex);
    v->stat.progress = percent < v->stat.progress ? v->stat.progress : percent < 100 ? percent : 99;
    v->stat.ticks++;
    pthread_mutex_unlock(&v->mutex);

    return vlm_host_stopped(v);
}


/* 1: the file is written.  0: it cannot be, and the log says why.  -1: nothing can be loaded. */
static int
make_packed(vlm_t *v, vlm_checkpoint_t *c, const uint8_t *id, const vlm_progress_t *progress,
            vlm_err_t *err)
{
    int             rc;
    uint32_t        order;
    vlm_err_t       why = { VLM_OK, "" };
    vlm_packed_t    made;
    vlm_progress_t  making = *progress;

    order = vlm_matrix_order(v->ops, v->device);

    if (vlm_packed_create(&made, v->conf.cache, v->conf.model, v->conf.weights, id,
                          order == VLM_NONE ? VLM_FLIP : order, vlm_model_matrices(&v->config),
                          v->plan.weights + v->plan.vision, &why) != 0)
    {
        not_written(v, why.text);
        return 0;
    }

    making.packed = &made;
    v->making = 1;
    rc = vlm_model_keep(&v->sched.model, c, &making, err);
    v->making = 0;

    if (rc == 0 && vlm_packed_finish(&made, &why) != 0) {
        not_written(v, why.text);
        return 0;
    }

    if (rc != 0 && made.failed) {      /* the bytes written, not those read */
        not_written(v, err->text);
        memset(err, 0, sizeof(*err));
        vlm_packed_close(&made);
        return 0;
    }

    vlm_packed_close(&made);

    return rc == 0 ? 1 : -1;
}


/*
 * The file is used where it is mapped, if the device has that order; pages on the disk are read in
 * the file's order.
 */
static int
bring_packed(vlm_t *v, const vlm_progress_t *progress, vlm_err_t *err)
{
    uint64_t           at, n;
    vlm_packed_t      *p = &v->packed;
    const vlm_file_t  *f = &p->file;

    p->stays = vlm_matrix_order(v->ops, v->device) == p->flip;

    for (at = 0; p->stays && at < f->bytes; at += n) {
        n = f->bytes - at < BRING ? f->bytes - at : BRING;
        vlm_file_bring(f, at, n);

        if (progress->step(progress->data, 0) != 0) {
            return vlm_fail(err, VLM_ECANCELLED, "stopped while loading");
        }
    }

    return 0;
}


int
vlm_weights_open(vlm_t *v, vlm_checkpoint_t *c, vlm_progress_t *progress, vlm_err_t *err)
{
    int        rc;
    uint8_t    id[VLM_PACKED_ID];
    vlm_err_t  why = { VLM_OK, "" };

    if (v->conf.cache == NULL || !vlm_format_of(v->conf.weights)->cached) {
        return 0;
    }

    if (vlm_checkpoint_id(c, id, &why) != 0) {
        not_written(v, why.text);
        return 0;
    }

    if (v->remake
        || vlm_packed_open(&v->packed, v->conf.cache, v->conf.model, v->conf.weights, id, &why)
           != 0)
    {
        if (why.text[0] != '\0') {
            tell(v, "the quantised cache is written: %s", why.text);
            memset(&why, 0, sizeof(why));
        }

        rc = make_packed(v, c, id, progress, err);
        if (rc != 1) {
            return rc;
        }

        v->remake = 0;

        if (vlm_packed_open(&v->packed, v->conf.cache, v->conf.model, v->conf.weights, id, &why)
            != 0)
        {
            not_written(v, why.text);
            return 0;
        }
    }

    progress->packed = &v->packed;

    if (bring_packed(v, progress, err) != 0) {
        return -1;
    }

    tell(v, "weights come from %s", v->packed.path);

    return 0;
}


void
vlm_weights_tell(vlm_t *v, const vlm_checkpoint_t *c)
{
    char                 line[400];
    size_t               at;
    uint32_t             n, own;
    const vlm_format_t  *f = vlm_format_of(v->conf.weights);

    n = vlm_checkpoint_lossy(c, f, &own);

    if (n == 0) {
        return;
    }

    at = (size_t) snprintf(line, sizeof(line), "the files of the model have %u quantised matrices "
                           "(%s): answers are those of the rounded values", n,
                           v->config.quant.text);

    if (own == n) {
        (void) snprintf(line + at, sizeof(line) - at, ", which weights %s takes as they are",
                        f->name);
    } else if (f->quantise != NULL) {
        (void) snprintf(line + at, sizeof(line) - at, ", of which weights %s rounds %u again",
                        f->name, n - own);
    }

    tell(v, "%s", line);
}


void
vlm_weights_remake(vlm_t *v, vlm_err_t *err)
{
    tell(v, "the quantised cache is written: %s", err->text);
    memset(err, 0, sizeof(*err));
    v->remake = 1;
}


void
vlm_weights_without(vlm_t *v, vlm_err_t *err)
{
    not_written(v, err->text);
    memset(err, 0, sizeof(*err));
    v->conf.cache = NULL;
    v->packed.failed = 0;
}


void
vlm_weights_loaded(vlm_t *v)
{
    if (!v->packed.stays) {
        vlm_packed_close(&v->packed);
    }
}
