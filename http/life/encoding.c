
/*
 * Vectors for the pieces of documents in the designated worker, with "retrieval
 * hybrid".  One thread at a time loads the encoder and then encodes what was
 * read, in slices; the vectors are in the store, so a restart goes on there.
 *
 * Answers come first.  A question's text waits for one piece at most, since the
 * encoder takes callers in turn.  While a CPU answers requests, a slice is one
 * piece, and a pause of nine times its time follows.
 */


#include "life.h"
#include "base/clock.h"
#include "document/encode.h"
#include "document/hybrid.h"
#include "store/documents.h"


#define NGX_HTTP_VLM_ENCODING_LOOK   100       /* ms */
#define NGX_HTTP_VLM_ENCODING_AGAIN  2000      /* ms, after an error of the
                                                  store or a failed load */
#define NGX_HTTP_VLM_ENCODING_SLICE  100000    /* us, without requests */
#define NGX_HTTP_VLM_ENCODING_KEEP   1000000   /* us, between two commits */
#define NGX_HTTP_VLM_ENCODING_PAUSE  9

#define NGX_HTTP_VLM_ENCODING_THREADS  1       /* the caller's */
#define NGX_HTTP_VLM_ENCODING_WEIGHTS  "int8"  /* what reads the stream is
                                                  in bf16 */


typedef enum {
    NGX_HTTP_VLM_ENCODING_LOAD = 0,
    NGX_HTTP_VLM_ENCODING_RUN,
    NGX_HTTP_VLM_ENCODING_CLOSE
} ngx_http_vlm_encoding_step_e;


/* The task's thread has everything from fresh on while the task is active. */

struct ngx_http_vlm_encoding_s {
    ngx_http_vlm_engine_t        *engine;
    ngx_event_t                   timer;
    ngx_thread_task_t             task;
    ngx_http_vlm_encoding_step_e  step;
    ngx_uint_t                    idle;        /* all pieces have vectors */
    ngx_atomic_uint_t             ended;       /* readings, as in the zone, when
                                                  the task was posted */
    ngx_http_vlm_encoder_e        state;
    int64_t                       model;
    vlm_embedder_t               *embedder;    /* for all threads */

    vlm_embedder_t               *fresh;       /* from a load until its end */
    vlm_encode_t                  encode;
    int                           rc;          /* of the store */
    vlm_store_err_t               stored;
    vlm_err_t                     err;         /* of the encoder */
    uint64_t                      took;        /* us, by the slice */
    uint64_t                      kept;        /* us, time of the last commit */
    ngx_uint_t                    counted;     /* pieces without a vector */
};


static int
ngx_http_vlm_encoding_weights(vlm_type_t *type, vlm_err_t *err)
{
    return vlm_weights_find(NGX_HTTP_VLM_ENCODING_WEIGHTS, type, err);
}


int
ngx_http_vlm_encoding_plan(const char *dir, vlm_embedder_plan_t *plan,
    vlm_err_t *err)
{
    vlm_type_t  type;

    if (ngx_http_vlm_encoding_weights(&type, err) != 0
        || vlm_embedder_plan(dir, type, NGX_HTTP_VLM_ENCODING_THREADS, plan,
                             err)
           != 0)
    {
        return -1;
    }

    return plan->dim <= VLM_DOCUMENT_DIM
           ? 0 : vlm_fail(err, VLM_EMODEL, "%s has vectors of %u numbers, the "
                          "store takes %d", dir, plan->dim, VLM_DOCUMENT_DIM);
}


/*
 * Its files may be others than those that were there when the configuration was
 * read: what they need more has to fit into "memory", too.
 */

static int
ngx_http_vlm_encoding_fits(ngx_http_vlm_engine_t *eng, vlm_err_t *err)
{
    uint64_t              need;
    vlm_embedder_plan_t   plan, *planned;

    planned = &eng->conf.documents.encoding;

    if (ngx_http_vlm_encoding_plan(eng->conf.documents.encoder, &plan, err)
        != 0)
    {
        return -1;
    }

    need = eng->conf.plan.total + plan.weights + plan.workspace
           - planned->weights - planned->workspace;

    return eng->conf.plan.device || eng->conf.vlm.memory == 0
           || need <= eng->conf.vlm.memory
           ? 0 : vlm_fail(err, VLM_ELIMIT, "with %s the plan has %uum, memory "
                          "is %uum", eng->conf.documents.encoder,
                          (unsigned) vlm_mib(need),
                          (unsigned) vlm_mib(eng->conf.vlm.memory));
}


vlm_embedder_t *
ngx_http_vlm_encoding_open(const char *dir, vlm_err_t *err)
{
    vlm_type_t  type;

    return ngx_http_vlm_encoding_weights(&type, err) == 0
           ? vlm_embedder_open(dir, type, NGX_HTTP_VLM_ENCODING_THREADS, err)
           : NULL;
}


/* ---- a thread ------------------------------------------------------------ */


/* "run" of vlm_encode_t */

static int
ngx_http_vlm_encoding_piece(void *data, const char *text, size_t bytes,
    float *out)
{
    ngx_http_vlm_encoding_t *e = data;

    vlm_embedder_text_t  piece;

    piece.text = text;
    piece.bytes = bytes;

    (void) ngx_atomic_fetch_add(&e->engine->zone->documents.encoded, 1);

    return vlm_embedder_run(e->embedder, &piece, 1, out, &e->err);
}


/* Is a request in the way?  The engine thread reads this number, too. */

static ngx_uint_t
ngx_http_vlm_encoding_yields(ngx_http_vlm_engine_t *eng)
{
    return eng->life.on_cpu && eng->line.pending;
}


static void
ngx_http_vlm_encoding_slice(ngx_http_vlm_encoding_t *e)
{
    uint64_t                began, now;
    ngx_http_vlm_engine_t  *eng;

    eng = e->engine;
    began = vlm_now_us();

    if (!e->counted) {
        ngx_http_vlm_reading_count(eng);
        e->counted = 1;
    }

    do {
        e->rc = vlm_encode_next(&e->encode, &e->stored);
        now = vlm_now_us();

    } while (e->rc == VLM_STORE_OK && !ngx_http_vlm_reading_stops(NULL)
             && now - began < NGX_HTTP_VLM_ENCODING_SLICE
             && !ngx_http_vlm_encoding_yields(eng));

    e->took = now - began;

    if (e->rc == VLM_STORE_OK && now - e->kept < NGX_HTTP_VLM_ENCODING_KEEP
        && !ngx_http_vlm_reading_stops(NULL))
    {
        return;
    }

    if (e->rc == VLM_STORE_OK) {
        e->rc = vlm_encode_keep(&e->encode, &e->stored);
    }

    e->kept = now;
    ngx_http_vlm_reading_count(eng);
}


static void
ngx_http_vlm_encoding_task(void *data, ngx_log_t *log)
{
    ngx_http_vlm_encoding_t *e = data;

    ngx_memzero(&e->err, sizeof(vlm_err_t));
    e->rc = VLM_STORE_OK;

    if (e->step == NGX_HTTP_VLM_ENCODING_CLOSE) {
        vlm_embedder_close(e->fresh);
        e->fresh = NULL;

    } else if (ngx_http_vlm_reading_stops(NULL)) {
        return;

    } else if (e->step == NGX_HTTP_VLM_ENCODING_LOAD) {

        if (ngx_http_vlm_encoding_fits(e->engine, &e->err) == 0) {
            e->fresh = ngx_http_vlm_encoding_open(
                                      e->engine->conf.documents.encoder,
                                      &e->err);
        }

    } else {
        ngx_http_vlm_encoding_slice(e);
    }
}


int64_t
ngx_http_vlm_encoding_model(ngx_http_vlm_engine_t *eng)
{
    return eng->life.encoding && eng->life.encoding->embedder
           ? eng->life.encoding->model : 0;
}


int
ngx_http_vlm_encoding_question(ngx_http_vlm_engine_t *eng, const char *text,
    size_t len, int8_t *values, size_t dim, float *scale, vlm_err_t *err)
{
    int                       rc;
    float                    *vector;
    vlm_embedder_text_t       question;
    ngx_http_vlm_encoding_t  *e;

    e = eng->life.encoding;

    if (dim != e->encode.dim) {
        return vlm_fail(err, VLM_EMODEL, "the vectors in the store have %zu "
                        "numbers, those of the encoder %u", dim,
                        e->encode.dim);
    }

    vector = malloc(dim * sizeof(float));

    if (vector == NULL) {
        return vlm_fail(err, VLM_EMEMORY, "no memory for a question's vector");
    }

    question.text = text;
    question.bytes = len;

    rc = vlm_embedder_run(e->embedder, &question, 1, vector, err);

    if (rc == 0) {
        *scale = vlm_vector_round(values, vector, dim);
    }

    free(vector);

    return rc;
}


/* ---- the loop ------------------------------------------------------------ */


static void
ngx_http_vlm_encoding_post(ngx_http_vlm_encoding_t *e,
    ngx_http_vlm_encoding_step_e step)
{
    e->step = step;
    e->idle = 0;
    e->ended = e->engine->zone->documents.ended;

    (void) ngx_thread_task_post(e->engine->prepares, &e->task);
}


static void
ngx_http_vlm_encoding_loaded(ngx_http_vlm_encoding_t *e)
{
    uint8_t                     id[32];
    ngx_http_vlm_engine_t      *eng;
    const vlm_embedder_plan_t  *plan;

    eng = e->engine;

    if (e->fresh == NULL && e->err.code == VLM_OK) {

        /* the worker stops */

        return;
    }

    if (e->fresh == NULL) {

        /* the log does not grow with every try */

        if (e->state != NGX_HTTP_VLM_ENCODER_FAILED) {
            ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "retrieval: %s: "
                             "documents are searched by words alone until the "
                             "encoder can be loaded", e->err.text);
        }

        e->state = NGX_HTTP_VLM_ENCODER_FAILED;
        return;
    }

    plan = vlm_embedder_facts(e->fresh);
    vlm_embedder_id(e->fresh, id);
    ngx_memcpy(&e->model, id, sizeof(int64_t));

    if (e->model == 0) {
        e->model = 1;
    }

    e->encode.store = eng->store;
    e->encode.model = e->model;
    e->encode.dim = plan->dim;
    e->encode.run = ngx_http_vlm_encoding_piece;
    e->encode.data = e;

    e->embedder = e->fresh;
    e->fresh = NULL;
    e->state = NGX_HTTP_VLM_ENCODER_READY;

    ngx_http_vlm_log(NGX_LOG_NOTICE, eng->log, 0, eng, "the encoder of "
                     "documents is loaded, %uLm, vectors of %uD numbers",
                     vlm_mib(plan->weights + plan->workspace), plan->dim);
}


/*
 * The state that other workers see.  The encoder is ready once its pieces were
 * counted: until then the number of those that wait is another encoder's.
 */

static void
ngx_http_vlm_encoding_share(ngx_http_vlm_encoding_t *e)
{
    ngx_http_vlm_shm_t      *shm;
    ngx_http_vlm_encoder_e   state;

    if (!ngx_http_vlm_zone_owned(e->engine)) {
        return;
    }

    shm = e->engine->zone;
    state = e->state == NGX_HTTP_VLM_ENCODER_READY && !e->counted
            ? NGX_HTTP_VLM_ENCODER_LOADING : e->state;

    if (shm->documents.encoder == state
        && shm->documents.model == (ngx_atomic_uint_t) e->model)
    {
        return;
    }

    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(e->engine));

    shm->documents.encoder = state;
    shm->documents.model = (ngx_atomic_uint_t) e->model;
    ngx_http_vlm_copy(shm->encoder_reason,
                      state == NGX_HTTP_VLM_ENCODER_FAILED ? e->err.text
                                                              : "");

    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(e->engine));
}


/* ms until the next slice */

static ngx_msec_t
ngx_http_vlm_encoding_ran(ngx_http_vlm_encoding_t *e)
{
    ngx_http_vlm_engine_t  *eng;

    eng = e->engine;

    if (e->err.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "a piece of a document "
                         "has no vector: %s", e->err.text);
    }

    if (e->rc == VLM_STORE_NOTFOUND) {
        e->idle = 1;
        return NGX_HTTP_VLM_ENCODING_LOOK;
    }

    if (e->rc != VLM_STORE_OK) {
        ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "documents: %s",
                         e->stored.text);
        ngx_http_vlm_zone_store(eng, &e->stored);

        return NGX_HTTP_VLM_ENCODING_AGAIN;
    }

    return ngx_http_vlm_encoding_yields(eng)
           ? NGX_HTTP_VLM_ENCODING_PAUSE * e->took / 1000 : 0;
}


static void
ngx_http_vlm_encoding_done(ngx_event_t *ev)
{
    ngx_http_vlm_encoding_t *e = ev->data;

    ngx_msec_t  wait;

    wait = NGX_HTTP_VLM_ENCODING_LOOK;

    if (e->step == NGX_HTTP_VLM_ENCODING_LOAD) {
        ngx_http_vlm_encoding_loaded(e);

        if (e->state == NGX_HTTP_VLM_ENCODER_FAILED) {
            ngx_http_vlm_encoding_share(e);
            wait = NGX_HTTP_VLM_ENCODING_AGAIN;
        }

    } else if (e->step == NGX_HTTP_VLM_ENCODING_RUN) {
        wait = ngx_http_vlm_encoding_ran(e);
    }

    ngx_http_vlm_timer_off(&e->timer);
    ngx_add_timer(&e->timer, wait);
}


ngx_http_vlm_encoder_e
ngx_http_vlm_encoding_state(ngx_http_vlm_shm_t *shm)
{
    return ngx_http_vlm_zone_gone(shm) ? NGX_HTTP_VLM_ENCODER_LOADING
                                       : shm->documents.encoder;
}


/*
 * The encoder is loaded once this worker has the lock: the one before frees its
 * own then, too, and the plan has only one of them.
 */

static void
ngx_http_vlm_encoding_look(ngx_http_vlm_encoding_t *e)
{
    ngx_http_vlm_engine_t  *eng;

    eng = e->engine;

    if (e->embedder == NULL) {

        if (eng->life.opened) {
            ngx_http_vlm_encoding_post(e, NGX_HTTP_VLM_ENCODING_LOAD);
        }

        return;
    }

    if (e->embedder && ngx_http_vlm_answers(eng)
        && (!e->idle || e->ended != eng->zone->documents.ended))
    {
        ngx_http_vlm_encoding_post(e, NGX_HTTP_VLM_ENCODING_RUN);
    }
}


/* a worker that exits frees the encoder once no request can need it */

static void
ngx_http_vlm_encoding_leave(ngx_http_vlm_encoding_t *e)
{
    ngx_http_vlm_engine_t  *eng;

    eng = e->engine;

    if (e->embedder && eng->life.released && eng->line.pending == 0
        && eng->line.n_threads == 0)
    {
        e->fresh = e->embedder;
        e->embedder = NULL;
        ngx_http_vlm_encoding_post(e, NGX_HTTP_VLM_ENCODING_CLOSE);
    }
}


static void
ngx_http_vlm_encoding_timer(ngx_event_t *ev)
{
    ngx_http_vlm_encoding_t *e = ev->data;

    if (ngx_http_vlm_answers(e->engine)) {
        ngx_http_vlm_encoding_share(e);
    }

    if (!e->task.event.active) {

        if (ngx_http_vlm_reading_stops(NULL)) {
            ngx_http_vlm_encoding_leave(e);

        } else {
            ngx_http_vlm_encoding_look(e);
        }
    }

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_VLM_ENCODING_LOOK);
    }
}


void
ngx_http_vlm_encoding_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    ngx_http_vlm_encoding_t  *e;

    if (!eng->conf.documents.on || !eng->conf.documents.hybrid
        || eng->store == NULL)
    {
        return;
    }

    e = ngx_pcalloc(cycle->pool, sizeof(ngx_http_vlm_encoding_t));
    if (e == NULL) {
        return;
    }

    e->engine = eng;

    ngx_http_vlm_task_init(&e->task, ngx_http_vlm_encoding_task,
                           ngx_http_vlm_encoding_done, e, cycle->log);
    ngx_http_vlm_event_init(&e->timer, ngx_http_vlm_encoding_timer, e,
                            cycle->log);

    /* the timer does not delay a worker's exit */

    e->timer.cancelable = 1;

    eng->life.encoding = e;

    if (ngx_http_vlm_answers(eng)) {
        ngx_http_vlm_encoding_share(e);
    }

    ngx_add_timer(&e->timer, NGX_HTTP_VLM_ENCODING_LOOK);
}


void
ngx_http_vlm_encoding_stop(ngx_http_vlm_engine_t *eng)
{
    ngx_http_vlm_encoding_t  *e;

    e = eng->life.encoding;

    if (e) {
        eng->life.encoding = NULL;

        vlm_encode_free(&e->encode);
        vlm_embedder_close(e->fresh);
        vlm_embedder_close(e->embedder);
    }
}
