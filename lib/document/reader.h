/*
 * Runs vlm-pdf over one PDF file and gives its pages to the caller.
 *
 * The call blocks for as long as the reading takes, so a thread makes it.  nginx's workers wait for
 * any child that ends and log one that was killed, so vlm-pdf ends by itself within its time, with
 * a status of 0 or 1, and this code waits for the end of the pipe, not for the process.  Its time
 * is the processor's: by the clock it takes VLM_PDF_SHARE times as much at most.  Only a vlm-pdf
 * that is still there then is killed.
 */

#ifndef VLM_DOCUMENT_READER_H
#define VLM_DOCUMENT_READER_H

#include <stdint.h>

#include "base/err.h"
#include "document/frame.h"

typedef struct {
    const char  *helper;                   /* path of vlm-pdf */
    int          fd;                       /* the PDF file, open for reading; it stays open */
    uint32_t     pages;                    /* to read at most */
    uint32_t     characters;               /* of text at most */
    uint64_t     memory;                   /* bytes of the reading process, at least 64 MiB */
    uint32_t     seconds;                  /* of processor time, at most */
    uint32_t     picture;                  /* the page to draw in place of reading text; 0: none */
    uint32_t     pixels;                   /* of that picture at most */
    const char  *languages;                /* of OCR for pages without text; NULL: no OCR */
    uint32_t     ocr_seconds;              /* beside seconds, for OCR of all pages */
    int          seccomp_alone;            /* for a kernel without Landlock */

    /* Gets VLM_EINPUT and a sentence if vlm-pdf tried to open files that its walls keep closed;
       what it says is true even of a reading that succeeds; may be NULL. */
    vlm_err_t   *denied;

    /* INFO, PAGE and PICTURE frames in turn; nonzero stops the reading. */
    int        (*frame)(void *data, const vlm_frame_t *frame);
    /* Nonzero stops the reading; asked at least ten times a second; may be NULL. */
    int        (*stop)(void *data);
    void        *data;
} vlm_reader_t;

#define VLM_READER_KILLED  1

/*
 * 0 after the last frame.  VLM_READER_KILLED: another process has ended vlm-pdf, such as the
 * kernel's for want of memory, and the same file may be read when it is tried again; err has
 * VLM_EINPUT and a sentence.  -1: VLM_ECANCELLED after frame() or stop(); VLM_EINPUT with vlm-pdf's
 * sentence about the file; VLM_EMEMORY; VLM_EDEVICE if vlm-pdf cannot be run.
 */
int vlm_reader_run(const vlm_reader_t *reader, vlm_err_t *err);

/*
 * Tries OCR on a page of its own, with the limits and languages of reader, whose fd, frame and stop
 * are not used; but the trial may take a minute however short a reading has to be, since it asks
 * whether OCR works, and not how busy the machine is.  -1: err says what is missing.
 */
int vlm_reader_ocr(const vlm_reader_t *reader, vlm_err_t *err);

/* Does this kernel have Landlock, without which vlm-pdf needs seccomp_alone? */
int vlm_reader_landlock(void);

#endif
