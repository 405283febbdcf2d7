
/*
 * Pictures of pages, which vlm-pdf draws when they are first asked for, and the
 * store keeps.
 *
 * A file can make a page take all of the time that a document may take.  A
 * request for the picture waits for that: page.c.  A prompt does not, because
 * its document may have three such pages: they have a few seconds together,
 * only so many prompts have pages drawn at once as documents may be read, and
 * the drawing ends when the client has left.  A page that could not be drawn is
 * remembered for a while, so that the next prompt does not try again.
 */


#include "documents.h"
#include "base/clock.h"


#define NGX_HTTP_VLM_DRAW_PROMPT  5000000      /* us, of all pages of a prompt:
                                                  an honest page takes 50 ms,
                                                  a slow one a second */
#define NGX_HTTP_VLM_DRAW_WAIT    1000000      /* us, for the pages of other
                                                  prompts */
#define NGX_HTTP_VLM_DRAW_LOOK    10           /* ms, in that wait */
#define NGX_HTTP_VLM_DRAW_NOTED   600000000    /* us, that a failure is
                                                  remembered */


typedef struct {
    ngx_http_vlm_draw_t          *draw;
    uint32_t                      pixels;
    int                           kept;        /* of the store */
} ngx_http_vlm_drawn_t;


uint32_t
ngx_http_vlm_documents_pixels(ngx_http_vlm_engine_t *eng)
{
    return (uint32_t) ngx_min(eng->conf.vlm.max_pixels, 16u << 20);
}


uint64_t
ngx_http_vlm_documents_until(void)
{
    return vlm_now_us() + NGX_HTTP_VLM_DRAW_PROMPT;
}


/* ---- pages that could not be drawn --------------------------------------- */


/* one that failed with a prompt's time may be drawn with all of "time" */

static ngx_uint_t
ngx_http_vlm_draw_noted(ngx_http_vlm_draw_t *d)
{
    uint64_t                 now;
    ngx_uint_t               i, found;
    ngx_http_vlm_undrawn_t  *u;
    ngx_http_vlm_drawing_t  *drawing;

    drawing = &d->engine->drawing;
    now = vlm_now_us();
    found = 0;

    (void) pthread_mutex_lock(&drawing->lock);

    for (i = 0; i < NGX_HTTP_VLM_UNDRAWN && !found; i++) {
        u = &drawing->undrawn[i];

        if (u->number == d->number && now < u->until
            && ngx_strcmp(u->id, d->id) == 0 && (d->until || u->whole))
        {
            (void) vlm_fail(&d->err, VLM_EINPUT, "%s", u->why);
            found = 1;
        }
    }

    (void) pthread_mutex_unlock(&drawing->lock);

    return found;
}


/* in the place of the oldest */

static void
ngx_http_vlm_draw_note(ngx_http_vlm_draw_t *d)
{
    ngx_http_vlm_undrawn_t  *u;
    ngx_http_vlm_drawing_t  *drawing;

    drawing = &d->engine->drawing;

    (void) pthread_mutex_lock(&drawing->lock);

    u = &drawing->undrawn[drawing->n_undrawn++ % NGX_HTTP_VLM_UNDRAWN];

    ngx_memcpy(u->id, d->id, sizeof(u->id));
    u->number = d->number;
    u->whole = d->until == 0;
    u->until = vlm_now_us() + NGX_HTTP_VLM_DRAW_NOTED;
    ngx_http_vlm_copy(u->why, d->err.text);

    (void) pthread_mutex_unlock(&drawing->lock);
}


/* ---- one run of vlm-pdf -------------------------------------------------- */


static int
ngx_http_vlm_draw_stops(void *data)
{
    ngx_http_vlm_drawn_t *drawn = data;

    ngx_http_vlm_draw_t  *d;

    d = drawn->draw;

    return ngx_http_vlm_reading_stops(NULL)
           || (d->abandoned && *d->abandoned)
           || (d->until && vlm_now_us() >= d->until);
}


static int
ngx_http_vlm_draw_frame(void *data, const vlm_frame_t *frame)
{
    ngx_http_vlm_drawn_t *drawn = data;

    ngx_http_vlm_draw_t  *d;

    d = drawn->draw;

    if (frame->kind != VLM_FRAME_PICTURE) {
        return 0;
    }

    drawn->kept = vlm_document_picture_add(d->engine->store, d->id,
                                           frame->number, drawn->pixels,
                                           frame->text, frame->bytes, d->path,
                                           d->stored);

    return drawn->kept == VLM_STORE_OK ? 0 : -1;
}


/* vlm-pdf counts whole seconds, and "until" stops it before */

static void
ngx_http_vlm_draw_limit(ngx_http_vlm_draw_t *d, vlm_reader_t *reader)
{
    uint64_t  now, left;

    now = vlm_now_us();
    left = d->until > now ? d->until - now : 0;

    reader->seconds = (uint32_t) ngx_min(reader->seconds, left / 1000000 + 2);
}


static int
ngx_http_vlm_draw_run(ngx_http_vlm_drawn_t *drawn)
{
    int                   rc;
    char                  path[VLM_STORE_PATH];
    vlm_reader_t          reader;
    ngx_http_vlm_draw_t  *d;

    d = drawn->draw;

    ngx_http_vlm_reading_prepare(d->engine, &reader);

    vlm_document_path(d->engine->store, d->id, path);

    reader.fd = open(path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW);

    if (reader.fd == -1) {
        drawn->kept = d->stored->code = VLM_STORE_NOTFOUND;
        return vlm_fail(&d->err, VLM_EDEVICE, "its file cannot be opened: %s",
                        strerror(ngx_errno));
    }

    if (d->until) {
        ngx_http_vlm_draw_limit(d, &reader);
    }

    reader.picture = d->number;
    reader.pixels = drawn->pixels;
    reader.languages = NULL;
    reader.frame = ngx_http_vlm_draw_frame;
    reader.denied = &d->denied;
    reader.stop = ngx_http_vlm_draw_stops;
    reader.data = drawn;

    rc = vlm_reader_run(&reader, &d->err);

    (void) close(reader.fd);

    return rc;
}


/* a reader that another process has killed is run again */

static int
ngx_http_vlm_draw_runs(ngx_http_vlm_draw_t *d)
{
    int                   rc;
    uint64_t              began;
    ngx_uint_t            left, shortened;
    ngx_http_vlm_drawn_t  drawn;

    drawn.draw = d;
    drawn.pixels = ngx_http_vlm_documents_pixels(d->engine);
    drawn.kept = VLM_STORE_OK;

    began = vlm_now_us();
    left = VLM_DOCUMENT_ATTEMPTS;

    do {
        d->err.code = VLM_OK;
        rc = ngx_http_vlm_draw_run(&drawn);

    } while (rc == VLM_READER_KILLED && --left
             && !ngx_http_vlm_draw_stops(&drawn));

    d->stored->code = drawn.kept;

    if (rc == 0) {
        (void) ngx_atomic_fetch_add(&d->engine->zone->documents.pictures, 1);
        ngx_http_vlm_metrics_time(d->engine, NGX_HTTP_VLM_TIME_PAGE,
                                  (ngx_msec_t) ((vlm_now_us() - began) / 1000));
        return 0;
    }

    if (drawn.kept != VLM_STORE_OK || rc == VLM_READER_KILLED
        || ngx_http_vlm_reading_stops(NULL) || (d->abandoned && *d->abandoned))
    {
        return -1;
    }

    /* the pages before it may have left it little time */

    shortened = 0;

    if (d->until && vlm_now_us() >= d->until) {
        shortened = d->until - began < NGX_HTTP_VLM_DRAW_PROMPT / 2;

        d->err.code = VLM_OK;
        (void) vlm_fail(&d->err, VLM_EINPUT, "it was not drawn within the %d s "
                        "that the pages of a question have",
                        NGX_HTTP_VLM_DRAW_PROMPT / 1000000);
    }

    if (d->err.code == VLM_EINPUT && !shortened) {
        ngx_http_vlm_draw_note(d);
    }

    return -1;
}


/* ---- at most so many for prompts ----------------------------------------- */


/* a place of "jobs", or 0 */

static ngx_uint_t
ngx_http_vlm_draw_enter(ngx_http_vlm_draw_t *d)
{
    uint64_t              until;
    ngx_atomic_uint_t     n;
    ngx_http_vlm_drawn_t  drawn;

    drawn.draw = d;
    until = vlm_now_us() + NGX_HTTP_VLM_DRAW_WAIT;

    for ( ;; ) {
        n = d->engine->drawing.prompts;

        if (n < d->engine->conf.documents.jobs
            && ngx_atomic_cmp_set(&d->engine->drawing.prompts, n, n + 1))
        {
            return 1;
        }

        if (ngx_http_vlm_draw_stops(&drawn) || vlm_now_us() >= until) {
            return 0;
        }

        ngx_msleep(NGX_HTTP_VLM_DRAW_LOOK);
    }
}


int
ngx_http_vlm_documents_draw(ngx_http_vlm_draw_t *d)
{
    int  rc;

    rc = vlm_document_picture_find(d->engine->store, d->id, d->number,
                                   ngx_http_vlm_documents_pixels(d->engine),
                                   d->path, d->stored);

    if (rc != VLM_STORE_NOTFOUND) {
        d->stored->code = rc;
        return rc == VLM_STORE_OK ? 0 : -1;
    }

    d->stored->code = VLM_STORE_OK;

    if (ngx_http_vlm_draw_noted(d)) {
        return -1;
    }

    if (d->until == 0) {
        return ngx_http_vlm_draw_runs(d);
    }

    if (!ngx_http_vlm_draw_enter(d)) {
        return vlm_fail(&d->err, VLM_ELIMIT, "other pages are being drawn");
    }

    rc = ngx_http_vlm_draw_runs(d);

    (void) ngx_atomic_fetch_add(&d->engine->drawing.prompts, -1);

    return rc;
}
