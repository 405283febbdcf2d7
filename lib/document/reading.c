/* One document, read and stored: see reading.h. */

#include "document/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define PROGRESS_US  250000            /* between two commits of a reading's progress */
#define REST_S       300               /* of a file that has taken all of its time */

typedef vlm_reading_t    reading_t;
typedef vlm_store_err_t  err_t;


/* Progress is for those who wait: an error of the store shows at the end. */
static int
on_frame(void *data, const vlm_frame_t *frame)
{
    reading_t       *r = data;
    const uint64_t   now = vlm_now_us();

    if (vlm_read_frame(&r->read, frame) != 0) {
        return vlm_fail(&r->err, VLM_EMEMORY, "no memory for its pages");
    }

    if (now - r->told >= PROGRESS_US) {
        r->told = now;

        (void) vlm_document_progress(r->store, &r->doc, r->read.pages, r->read.to_read,
                                     (uint32_t) r->read.n, NULL);
    }

    return 0;
}


static int
begins(const vlm_err_t *err, const char *text)
{
    return strncmp(err->text, text, strlen(text)) == 0;
}


/* With OCR, if that is on; where OCR itself fails, once more without. */
static int
read_pages(reading_t *r)
{
    const int     rc = vlm_reader_run(&r->reader, &r->err);
    vlm_reader_t  plain = r->reader;

    if (rc != -1 || r->err.code != VLM_EINPUT || !begins(&r->err, VLM_PDF_OCR_ERROR)) {
        return rc;
    }

    r->ocr = r->err;
    plain.languages = NULL;

    memset(&r->err, 0, sizeof(r->err));
    vlm_read_free(&r->read);

    return vlm_reader_run(&plain, &r->err);
}


static int
read_file(reading_t *r)
{
    int       rc;
    char      path[VLM_STORE_PATH];
    uint64_t  began;

    vlm_document_path(r->store, r->doc.id, path);

    r->reader.fd = open(path, O_RDONLY|O_CLOEXEC|O_NOFOLLOW);

    if (r->reader.fd == -1) {
        return vlm_fail(&r->err, VLM_EDEVICE, "its file cannot be opened: %s", strerror(errno));
    }

    r->reader.frame = on_frame;
    r->reader.denied = &r->denied;
    r->reader.data = r;

    began = vlm_now_us();
    rc = read_pages(r);
    r->us = vlm_now_us() - began;

    (void) close(r->reader.fd);

    return rc;
}


/* The document waits again, unless this was its last attempt. */
static int
again(reading_t *r, err_t *err)
{
    char  text[VLM_FRAME_ERROR_TEXT];

    (void) snprintf(text, sizeof(text), "%.300s, and this was attempt %u of %d", r->err.text,
                    r->doc.attempt, VLM_DOCUMENT_ATTEMPTS);

    r->failed = r->doc.attempt >= VLM_DOCUMENT_ATTEMPTS;

    return vlm_document_again(r->store, &r->doc, text, err);
}


/* The pages that were read before a limit of time or memory are kept, and the reason says so. */
static int
is_partial(reading_t *r)
{
    char  text[VLM_FRAME_ERROR_TEXT];

    if (r->rc == 0 || r->read.n == 0
        || !(begins(&r->err, VLM_PDF_LATE) || begins(&r->err, VLM_PDF_LARGE)))
    {
        return 0;
    }

    (void) snprintf(text, sizeof(text), "%.100s: %zu of %u pages were read", r->err.text,
                    r->read.n, r->read.pages);
    (void) snprintf(r->err.text, sizeof(r->err.text), "%s", text);

    return 1;
}


static int
keep(reading_t *r, err_t *err)
{
    if (r->rc == VLM_READER_KILLED) {
        return again(r, err);
    }

    if (r->rc == 0 || is_partial(r)) {
        r->pages = r->read.n;

        return vlm_document_done(r->store, &r->doc, vlm_store_string(r->read.title), r->read.page,
                                 r->read.n, r->rc == 0 ? NULL : r->err.text, err);
    }

    if (r->err.code == VLM_ECANCELLED) {
        return vlm_document_back(r->store, &r->doc, err);
    }

    r->failed = 1;

    if (r->err.code == VLM_EDEVICE) {
        return vlm_document_fail(r->store, &r->doc, "the reader cannot be run", 0, err);
    }

    return vlm_document_fail(r->store, &r->doc, r->err.text,
                             begins(&r->err, VLM_PDF_LATE) ? REST_S : 0, err);
}


int
vlm_reading_run(reading_t *r, err_t *err)
{
    int  rc;

    r->us = 0;
    r->pages = 0;
    r->failed = 0;
    r->told = 0;
    memset(&r->err, 0, sizeof(r->err));
    memset(&r->ocr, 0, sizeof(r->ocr));
    memset(&r->denied, 0, sizeof(r->denied));
    memset(&r->read, 0, sizeof(r->read));

    r->rc = read_file(r);

    rc = keep(r, err);

    vlm_read_free(&r->read);

    return rc == VLM_STORE_GONE || rc == VLM_STORE_NOTFOUND ? VLM_STORE_OK : rc;
}
