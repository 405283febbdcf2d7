/* A trial of OCR before a configuration is taken: a page with a black square and no text. */

#define _GNU_SOURCE

#include "document/reader.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LEAST  60                          /* seconds of a trial: a busy machine starts slowly */

static const char  PAGE[] =
    "%PDF-1.4\n"
    "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]/Contents 4 0 R>>endobj\n"
    "4 0 obj<</Length 16>>stream\n"
    "20 20 30 30 re f\n"
    "endstream endobj\n"
    "xref\n"
    "0 5\n"
    "0000000000 65535 f \n"
    "0000000009 00000 n \n"
    "0000000052 00000 n \n"
    "0000000101 00000 n \n"
    "0000000177 00000 n \n"
    "trailer<</Size 5/Root 1 0 R>>\n"
    "startxref\n"
    "239\n"
    "%%EOF\n";


static int
ignore(void *data, const vlm_frame_t *frame)
{
    (void) data;
    (void) frame;

    return 0;
}


static uint32_t
at_least(uint32_t seconds)
{
    return seconds < LEAST ? LEAST : seconds;
}


int
vlm_reader_ocr(const vlm_reader_t *reader, vlm_err_t *err)
{
    int           rc;
    vlm_err_t     why = { 0 };
    vlm_reader_t  trial = *reader;
    const size_t  len = sizeof(VLM_PDF_OCR_ERROR) - 1;

    trial.seconds = at_least(reader->seconds);
    trial.ocr_seconds = at_least(reader->ocr_seconds);
    trial.stop = NULL;
    trial.frame = ignore;
    trial.fd = memfd_create("page", MFD_CLOEXEC);

    if (trial.fd < 0 || write(trial.fd, PAGE, sizeof(PAGE) - 1) != sizeof(PAGE) - 1) {
        rc = vlm_fail(&why, VLM_EDEVICE, "no file for its trial: %s", strerror(errno));
    } else {
        rc = vlm_reader_run(&trial, &why);
    }

    if (trial.fd >= 0) {
        close(trial.fd);
    }

    if (rc != 0) {
        return vlm_fail(err, why.code, "documents ocr=%s: %s", reader->languages, why.text
                        + (strncmp(why.text, VLM_PDF_OCR_ERROR, len) == 0 ? len : 0));
    }

    return 0;
}
