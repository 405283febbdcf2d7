
/*
 * Reads documents in the designated worker: each in a thread, which runs
 * vlm-pdf and stores what that says in one commit.
 *
 * Any worker stores an upload and counts it in the zone.  The designated
 * worker looks at that counter ten times a second, takes what waits, and counts
 * readings that have ended, for which other workers look in the same way.  So
 * nothing is lost if a worker dies in between: at the next start documents
 * that were being read wait again.  So does one whose reader was killed.
 */


#include "life.h"
#include "base/clock.h"
#include "document/reading.h"


#define NGX_HTTP_VLM_READING_LOOK   100        /* ms */
#define NGX_HTTP_VLM_READING_AGAIN  2000       /* ms, after an error of the
                                                  store */


/* a task, for one document at a time */

typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_thread_task_t             task;
    ngx_uint_t                    recover;     /* the store, first */
    ngx_uint_t                    took;        /* a document */
    vlm_reading_t                 reading;     /* of it */
    vlm_store_err_t               stored;
} ngx_http_vlm_reading_job_t;


struct ngx_http_vlm_reading_s {
    ngx_event_t                   timer;
    ngx_uint_t                    looked;      /* since the last error */
    ngx_uint_t                    recovered;
    ngx_atomic_uint_t             added;       /* as in the zone, when the
                                                  tasks were posted */
    ngx_http_vlm_reading_job_t   *jobs;        /* [documents.jobs] */
};


const char *const  ngx_http_vlm_document_states[] = {
    "waiting", "reading", "ready", "failed"
};


int
ngx_http_vlm_reading_stops(void *data)
{
    return ngx_terminate || ngx_quit || ngx_exiting;
}


void
ngx_http_vlm_reading_prepare(ngx_http_vlm_engine_t *eng, vlm_reader_t *reader)
{
    ngx_http_vlm_documents_conf_t  *conf;

    conf = &eng->conf.documents;

    ngx_memzero(reader, sizeof(vlm_reader_t));

    reader->helper = conf->helper;
    reader->pages = conf->pages;
    reader->characters = conf->characters;
    reader->memory = conf->memory;
    reader->seconds = conf->seconds;
    reader->languages = conf->languages;
    reader->ocr_seconds = conf->ocr_seconds;
    reader->seccomp_alone = (int) conf->seccomp;
    reader->stop = ngx_http_vlm_reading_stops;
}


/* after a document was added, read or removed; the numbers are for metrics, and
   stay as they were if this fails */

void
ngx_http_vlm_reading_count(ngx_http_vlm_engine_t *eng)
{
    int64_t     model;
    uint64_t    n[NGX_HTTP_VLM_DOCUMENT_STATES], lacking;
    ngx_uint_t  i;

    if (vlm_document_count(eng->store, n, NULL) == VLM_STORE_OK) {

        for (i = 0; i < NGX_HTTP_VLM_DOCUMENT_STATES; i++) {
            eng->zone->documents.states[i] = (ngx_atomic_uint_t) n[i];
        }
    }

    model = (int64_t) eng->zone->documents.model;

    if (model && vlm_document_lacking(eng->store, model, &lacking, NULL)
                 == VLM_STORE_OK
        && model == (int64_t) eng->zone->documents.model)
    {
        eng->zone->documents.lacking = (ngx_atomic_uint_t) lacking;
    }
}


void
ngx_http_vlm_reading_added(ngx_http_vlm_engine_t *eng)
{
    (void) ngx_atomic_fetch_add(&eng->zone->documents.added, 1);
}


/* ---- a thread: one document ---------------------------------------------- */


static void
ngx_http_vlm_reading_one(ngx_http_vlm_reading_job_t *job)
{
    int                     rc;
    uint64_t                began;
    vlm_reading_t          *r;
    ngx_http_vlm_engine_t  *eng;
    ngx_http_vlm_shm_t     *shm;

    r = &job->reading;
    eng = job->engine;
    shm = eng->zone;
    began = vlm_now_us();

    ngx_http_vlm_reading_prepare(eng, &r->reader);

    rc = vlm_reading_run(r, &job->stored);

    if (rc == VLM_STORE_OK) {
        job->stored.code = VLM_STORE_OK;
    }

    (void) ngx_atomic_fetch_add(&shm->documents.pages, r->pages);
    (void) ngx_atomic_fetch_add(&shm->documents.failed, r->failed);

    if (r->err.code == VLM_ECANCELLED) {

        /* the next worker looks */

        ngx_http_vlm_reading_added(eng);
    }

    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_READING,
                              (ngx_msec_t) ((vlm_now_us() - began) / 1000));
    ngx_http_vlm_reading_count(eng);

    (void) ngx_atomic_fetch_add(&shm->documents.ended, 1);
}


static void
ngx_http_vlm_reading_run(void *data, ngx_log_t *log)
{
    int                         rc;
    vlm_store_t                *st;
    ngx_http_vlm_reading_job_t *job = data;

    st = job->engine->store;

    job->took = 0;
    job->stored.code = VLM_STORE_OK;

    if (ngx_http_vlm_reading_stops(NULL)) {
        return;
    }

    if (job->recover) {

        if (vlm_document_recover(st, &job->stored) != VLM_STORE_OK) {
            return;
        }

        ngx_http_vlm_reading_count(job->engine);
    }

    rc = vlm_document_take(st, &job->reading.doc, &job->stored);

    if (rc == VLM_STORE_OK) {
        job->took = 1;
        ngx_http_vlm_reading_count(job->engine);
        ngx_http_vlm_reading_one(job);

    } else if (rc == VLM_STORE_NOTFOUND) {
        job->stored.code = VLM_STORE_OK;
    }
}


/* ---- the loop ------------------------------------------------------------ */


ngx_uint_t
ngx_http_vlm_reading_level(const vlm_err_t *err)
{
    return ngx_strncmp(err->text, VLM_PDF_FORBIDDEN,
                       sizeof(VLM_PDF_FORBIDDEN) - 1) == 0
           || ngx_strncmp(err->text, VLM_PDF_DIED, sizeof(VLM_PDF_DIED) - 1)
              == 0
           ? NGX_LOG_WARN : NGX_LOG_INFO;
}


static void
ngx_http_vlm_reading_post(ngx_http_vlm_reading_job_t *job)
{
    if (job->task.event.active || ngx_http_vlm_reading_stops(NULL)) {
        return;
    }

    if (ngx_thread_task_post(job->engine->prepares, &job->task) != NGX_OK) {
        job->engine->life.reading->looked = 0;
    }
}


/* the time is that of the reader alone: a document waits before, and is stored
   after it */

static void
ngx_http_vlm_reading_log(ngx_http_vlm_engine_t *eng, vlm_reading_t *r)
{
    ngx_msec_t  ms;

    ms = (ngx_msec_t) (r->us / 1000);

    if (r->ocr.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s is read "
                         "without OCR: %s", r->doc.id, r->ocr.text);
    }

    if (r->denied.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s: %s",
                         r->doc.id, r->denied.text);
    }

    if (r->rc == VLM_READER_KILLED) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s: %s, "
                         "at attempt %uD of %d", r->doc.id, r->err.text,
                         r->doc.attempt, VLM_DOCUMENT_ATTEMPTS);

    } else if (r->err.code == VLM_EDEVICE || r->err.code == VLM_EMEMORY) {
        ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "document %s: %s",
                         r->doc.id, r->err.text);

    } else if (r->rc == 0) {
        ngx_http_vlm_log(NGX_LOG_INFO, eng->log, 0, eng, "document %s: %uz "
                         "pages were read in %M ms", r->doc.id, r->pages,
                         ms);

    } else if (r->err.code != VLM_ECANCELLED) {
        ngx_http_vlm_log(ngx_http_vlm_reading_level(&r->err), eng->log, 0,
                         eng, "document %s: %s, after %M ms", r->doc.id,
                         r->err.text, ms);
    }
}


/* why vlm-pdf cannot be run; "": it can */

static void
ngx_http_vlm_reading_reason(ngx_http_vlm_engine_t *eng, const char *text)
{
    ngx_shmtx_lock(ngx_http_vlm_zone_mutex(eng));
    ngx_http_vlm_copy(eng->zone->reader_reason, text);
    ngx_shmtx_unlock(ngx_http_vlm_zone_mutex(eng));
}


static void
ngx_http_vlm_reading_done(ngx_event_t *ev)
{
    ngx_http_vlm_reading_job_t *job = ev->data;

    ngx_http_vlm_engine_t   *eng;
    ngx_http_vlm_reading_t  *r;

    eng = job->engine;
    r = eng->life.reading;

    if (job->took) {
        ngx_http_vlm_reading_log(eng, &job->reading);

        if (job->reading.rc == 0) {
            ngx_http_vlm_reading_reason(eng, "");

        } else if (job->reading.err.code == VLM_EDEVICE) {
            ngx_http_vlm_reading_reason(eng, job->reading.err.text);
        }
    }

    if (job->stored.code != VLM_STORE_OK) {
        ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "documents: %s",
                         job->stored.text);
        ngx_http_vlm_zone_store(eng, &job->stored);

        r->looked = 0;
        ngx_http_vlm_timer_off(&r->timer);
        ngx_add_timer(&r->timer, NGX_HTTP_VLM_READING_AGAIN);
        return;
    }

    if (job->recover) {
        job->recover = 0;
        r->recovered = 1;
    }

    if (job->took) {
        ngx_http_vlm_reading_post(job);
    }
}


/*
 * Documents that another worker was reading wait again once that worker has
 * given up its lock; those that it left when it stopped, or that were added,
 * are taken before that.
 */

static void
ngx_http_vlm_reading_look(ngx_http_vlm_engine_t *eng)
{
    ngx_uint_t               i;
    ngx_http_vlm_reading_t  *r;

    r = eng->life.reading;

    if (!r->recovered && !r->jobs[0].task.event.active
        && (eng->life.opened || eng->life.failed))
    {
        r->jobs[0].recover = 1;
        r->looked = 0;
    }

    if (r->looked && r->added == eng->zone->documents.added) {
        return;
    }

    r->looked = 1;
    r->added = eng->zone->documents.added;

    for (i = 0; i < eng->conf.documents.jobs; i++) {
        ngx_http_vlm_reading_post(&r->jobs[i]);
    }
}


static void
ngx_http_vlm_reading_timer(ngx_event_t *ev)
{
    ngx_http_vlm_engine_t *eng = ev->data;

    if (ngx_exiting) {
        return;
    }

    /* during a reload the older worker stops */

    if (ngx_http_vlm_answers(eng) && !ngx_http_vlm_reading_stops(NULL)) {
        ngx_http_vlm_reading_look(eng);
    }

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_VLM_READING_LOOK);
    }
}


void
ngx_http_vlm_reading_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    u_char                       text[480];
    ngx_uint_t                   i;
    ngx_http_vlm_reading_t      *r;
    ngx_http_vlm_reading_job_t  *job;

    if (!eng->conf.documents.on || eng->store == NULL) {
        return;
    }

    r = ngx_pcalloc(cycle->pool, sizeof(ngx_http_vlm_reading_t));
    job = r ? ngx_pcalloc(cycle->pool, eng->conf.documents.jobs
                                       * sizeof(ngx_http_vlm_reading_job_t))
            : NULL;
    if (job == NULL) {
        return;
    }

    r->jobs = job;

    for (i = 0; i < eng->conf.documents.jobs; i++, job++) {
        job->engine = eng;
        job->reading.store = eng->store;

        ngx_http_vlm_task_init(&job->task, ngx_http_vlm_reading_run,
                               ngx_http_vlm_reading_done, job, cycle->log);
    }

    ngx_http_vlm_event_init(&r->timer, ngx_http_vlm_reading_timer, eng,
                            cycle->log);

    /* the timer does not delay a worker's exit */

    r->timer.cancelable = 1;

    eng->life.reading = r;

    ngx_memzero(text, sizeof(text));
    (void) ngx_snprintf(text, sizeof(text) - 1, "%s cannot be run",
                        eng->conf.documents.helper);
    ngx_http_vlm_reading_reason(eng, access(eng->conf.documents.helper, X_OK)
                                     == -1 ? (char *) text : "");

    ngx_http_vlm_log(NGX_LOG_NOTICE, cycle->log, 0, eng, "documents are read "
                     "behind %s", ngx_http_vlm_reading_walls(eng));

    ngx_add_timer(&r->timer, NGX_HTTP_VLM_READING_LOOK);
}


const char *
ngx_http_vlm_reading_walls(ngx_http_vlm_engine_t *eng)
{
    return eng->conf.documents.seccomp ? "seccomp" : "landlock, seccomp";
}
