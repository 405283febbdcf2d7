
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
#include "document/read.h"
#include "store/documents.h"


#define NGX_HTTP_VLM_READING_LOOK   100        /* ms */
#define NGX_HTTP_VLM_READING_AGAIN  2000       /* ms, after an error of the
                                                  store */
#define NGX_HTTP_VLM_READING_REST   300        /* s, of a file that has taken
                                                  all of its time */
#define NGX_HTTP_VLM_READING_TELL   250000     /* us, between two commits of a
                                                  reading's progress */


/* a task, for one document at a time */

typedef struct {
    ngx_http_vlm_engine_t        *engine;
    ngx_thread_task_t            *task;
    ngx_uint_t                    recover;     /* the store, first */
    ngx_uint_t                    took;        /* a document */
    int                           rc;          /* of vlm_reader_run() */
    uint64_t                      us;          /* from its spawn to its end */
    uint64_t                      told;        /* us, its progress */
    size_t                        pages;       /* that it read */
    vlm_store_err_t               stored;
    vlm_document_t                doc;
    vlm_read_t                    read;
    vlm_err_t                     err;
    vlm_err_t                     ocr;         /* why it was read without */
    vlm_err_t                     denied;      /* files, to the reader */
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


/* progress is for those who wait: an error of the store shows at the end */

static int
ngx_http_vlm_reading_frame(void *data, const vlm_frame_t *frame)
{
    ngx_http_vlm_reading_job_t *job = data;

    uint64_t  now;

    if (vlm_read_frame(&job->read, frame) != 0) {
        return vlm_fail(&job->err, VLM_EMEMORY, "no memory for its pages");
    }

    now = vlm_now_us();

    if (now - job->told >= NGX_HTTP_VLM_READING_TELL) {
        job->told = now;

        (void) vlm_document_progress(job->engine->store, &job->doc,
                                     job->read.pages, job->read.to_read,
                                     (uint32_t) job->read.n, NULL);
    }

    return 0;
}


/* with OCR, if that is on; where OCR itself fails, once more without */

static int
ngx_http_vlm_reading_pages(ngx_http_vlm_reading_job_t *job,
    vlm_reader_t *reader)
{
    int     rc;
    size_t  len;

    rc = vlm_reader_run(reader, &job->err);
    len = sizeof(VLM_PDF_OCR_ERROR) - 1;

    if (rc != -1 || job->err.code != VLM_EINPUT
        || ngx_strncmp(job->err.text, VLM_PDF_OCR_ERROR, len) != 0)
    {
        return rc;
    }

    job->ocr = job->err;
    reader->languages = NULL;

    ngx_memzero(&job->err, sizeof(vlm_err_t));
    vlm_read_free(&job->read);

    return vlm_reader_run(reader, &job->err);
}


static int
ngx_http_vlm_reading_run_helper(ngx_http_vlm_reading_job_t *job)
{
    int           rc;
    char          path[VLM_STORE_PATH];
    uint64_t      began;
    vlm_reader_t  reader;

    ngx_http_vlm_reading_prepare(job->engine, &reader);

    vlm_document_path(job->engine->store, job->doc.id, path);

    reader.fd = open(path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW);
    reader.frame = ngx_http_vlm_reading_frame;
    reader.denied = &job->denied;
    reader.data = job;

    if (reader.fd == -1) {
        return vlm_fail(&job->err, VLM_EDEVICE, "its file cannot be opened: %s",
                        strerror(ngx_errno));
    }

    began = vlm_now_us();

    rc = ngx_http_vlm_reading_pages(job, &reader);

    job->us = vlm_now_us() - began;

    (void) close(reader.fd);

    return rc;
}


/* the document waits again, unless this was its last attempt */

static int
ngx_http_vlm_reading_again(ngx_http_vlm_reading_job_t *job)
{
    char  text[VLM_FRAME_ERROR_TEXT];

    (void) snprintf(text, sizeof(text), "%.300s, and this was attempt %u of %d",
                    job->err.text, job->doc.attempt, VLM_DOCUMENT_ATTEMPTS);

    if (job->doc.attempt >= VLM_DOCUMENT_ATTEMPTS) {
        (void) ngx_atomic_fetch_add(&job->engine->zone->documents.failed, 1);
    }

    return vlm_document_again(job->engine->store, &job->doc, text,
                              &job->stored);
}


/* the outcome into the store */

static int
ngx_http_vlm_reading_keep(ngx_http_vlm_reading_job_t *job)
{
    int                      rc;
    size_t                   len;
    ngx_uint_t               late;
    vlm_store_t             *st;
    ngx_http_vlm_shm_t      *shm;

    st = job->engine->store;
    shm = job->engine->zone;

    if (job->rc == VLM_READER_KILLED) {
        return ngx_http_vlm_reading_again(job);
    }

    if (job->rc == 0) {
        job->pages = job->read.n;

        (void) ngx_atomic_fetch_add(&shm->documents.pages, job->read.n);

        return vlm_document_done(st, &job->doc,
                                 vlm_store_string(job->read.title),
                                 job->read.page, job->read.n, &job->stored);
    }

    if (job->err.code == VLM_ECANCELLED) {
        rc = vlm_document_back(st, &job->doc, &job->stored);

        /* the next worker looks */

        ngx_http_vlm_reading_added(job->engine);

        return rc;
    }

    (void) ngx_atomic_fetch_add(&shm->documents.failed, 1);

    if (job->err.code == VLM_EDEVICE) {
        return vlm_document_fail(st, &job->doc, "the reader cannot be run", 0,
                                 &job->stored);
    }

    len = sizeof(VLM_PDF_LATE) - 1;
    late = ngx_strncmp(job->err.text, VLM_PDF_LATE, len) == 0;

    return vlm_document_fail(st, &job->doc, job->err.text,
                             late ? NGX_HTTP_VLM_READING_REST : 0,
                             &job->stored);
}


static void
ngx_http_vlm_reading_one(ngx_http_vlm_reading_job_t *job)
{
    int                     rc;
    uint64_t                began;
    ngx_http_vlm_engine_t  *eng;

    eng = job->engine;
    began = vlm_now_us();

    job->took = 1;
    job->told = 0;
    job->us = 0;

    job->rc = ngx_http_vlm_reading_run_helper(job);

    rc = ngx_http_vlm_reading_keep(job);

    /* a document that was deleted meanwhile is no error */

    if (rc == VLM_STORE_GONE || rc == VLM_STORE_NOTFOUND) {
        job->stored.code = VLM_STORE_OK;
    }

    vlm_read_free(&job->read);

    ngx_http_vlm_metrics_time(eng, NGX_HTTP_VLM_TIME_READING,
                              (ngx_msec_t) ((vlm_now_us() - began) / 1000));
    ngx_http_vlm_reading_count(eng);

    (void) ngx_atomic_fetch_add(&eng->zone->documents.ended, 1);
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
    ngx_memzero(&job->err, sizeof(vlm_err_t));
    ngx_memzero(&job->ocr, sizeof(vlm_err_t));
    ngx_memzero(&job->denied, sizeof(vlm_err_t));

    if (ngx_http_vlm_reading_stops(NULL)) {
        return;
    }

    if (job->recover) {

        if (vlm_document_recover(st, &job->stored) != VLM_STORE_OK) {
            return;
        }

        ngx_http_vlm_reading_count(job->engine);
    }

    rc = vlm_document_take(st, &job->doc, &job->stored);

    if (rc == VLM_STORE_OK) {
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
    if (job->task->event.active || ngx_http_vlm_reading_stops(NULL)) {
        return;
    }

    if (ngx_thread_task_post(job->engine->prepares, job->task) != NGX_OK) {
        job->engine->life.reading->looked = 0;
    }
}


/* the time is that of the reader alone: a document waits before, and is stored
   after it */

static void
ngx_http_vlm_reading_log(ngx_http_vlm_reading_job_t *job)
{
    ngx_msec_t              ms;
    ngx_http_vlm_engine_t  *eng;

    eng = job->engine;
    ms = (ngx_msec_t) (job->us / 1000);

    if (job->ocr.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s is read "
                         "without OCR: %s", job->doc.id, job->ocr.text);
    }

    if (job->denied.code != VLM_OK) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s: %s",
                         job->doc.id, job->denied.text);
    }

    if (job->rc == VLM_READER_KILLED) {
        ngx_http_vlm_log(NGX_LOG_WARN, eng->log, 0, eng, "document %s: %s, "
                         "at attempt %uD of %d", job->doc.id, job->err.text,
                         job->doc.attempt, VLM_DOCUMENT_ATTEMPTS);

    } else if (job->err.code == VLM_EDEVICE || job->err.code == VLM_EMEMORY) {
        ngx_http_vlm_log(NGX_LOG_ERR, eng->log, 0, eng, "document %s: %s",
                         job->doc.id, job->err.text);

    } else if (job->rc == 0) {
        ngx_http_vlm_log(NGX_LOG_INFO, eng->log, 0, eng, "document %s: %uz "
                         "pages were read in %M ms", job->doc.id, job->pages,
                         ms);

    } else if (job->err.code != VLM_ECANCELLED) {
        ngx_http_vlm_log(ngx_http_vlm_reading_level(&job->err), eng->log, 0,
                         eng, "document %s: %s, after %M ms", job->doc.id,
                         job->err.text, ms);
    }
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
        ngx_http_vlm_reading_log(job);
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


/* Is this worker the one that reads?  During a reload the older one stops. */

static ngx_uint_t
ngx_http_vlm_reading_leads(ngx_http_vlm_engine_t *eng)
{
    return ngx_http_vlm_answers(eng) && !ngx_http_vlm_reading_stops(NULL);
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

    if (!r->recovered && !r->jobs[0].task->event.active
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

    if (ngx_http_vlm_reading_leads(eng)) {
        ngx_http_vlm_reading_look(eng);
    }

    if (!ev->timer_set) {
        ngx_add_timer(ev, NGX_HTTP_VLM_READING_LOOK);
    }
}


void
ngx_http_vlm_reading_start(ngx_http_vlm_engine_t *eng, ngx_cycle_t *cycle)
{
    ngx_uint_t                   i;
    ngx_thread_task_t           *task;
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

        task = ngx_thread_task_alloc(cycle->pool, 0);
        if (task == NULL) {
            return;
        }

        job->engine = eng;
        job->task = task;

        task->ctx = job;
        task->handler = ngx_http_vlm_reading_run;
        task->event.handler = ngx_http_vlm_reading_done;
        task->event.data = job;
        task->event.log = cycle->log;
    }

    /* the timer does not delay a worker's exit */

    r->timer.handler = ngx_http_vlm_reading_timer;
    r->timer.data = eng;
    r->timer.log = cycle->log;
    r->timer.cancelable = 1;

    eng->life.reading = r;

    ngx_http_vlm_log(NGX_LOG_NOTICE, cycle->log, 0, eng, "documents are read "
                     "behind %s", ngx_http_vlm_reading_walls(eng));

    ngx_add_timer(&r->timer, NGX_HTTP_VLM_READING_LOOK);
}


const char *
ngx_http_vlm_reading_walls(ngx_http_vlm_engine_t *eng)
{
    return eng->conf.documents.seccomp ? "seccomp" : "landlock, seccomp";
}
