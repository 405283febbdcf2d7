/*
 * Helpers that the tests of the reader share.  Such a program is its own vlm-pdf: started as one,
 * it plays the part whose name is its input file.
 */

#ifndef VLM_READER_FIXTURE_H
#define VLM_READER_FIXTURE_H

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "document/frame.h"

#define PART  32                           /* bytes of a part's name, with a zero */


/* ---- as vlm-pdf --------------------------------------------------------------------------- */

/* The name of the part; -1: it cannot be read. */
static inline int
read_part(char part[PART])
{
    memset(part, 0, PART);

    return pread(0, part, PART - 1, 0) < 0 ? -1 : 0;
}


static inline void
say(vlm_frame_kind_t kind, const void *body, uint32_t bytes)
{
    char  head[VLM_FRAME_HEAD];

    vlm_frame_write_head(head, kind, bytes);

    if (write(1, head, sizeof(head)) < 0 || write(1, body, bytes) < 0) {
        _exit(1);
    }
}


static inline void
say_text(vlm_frame_kind_t kind, const char *text)
{
    say(kind, text, (uint32_t) strlen(text));
}


static inline void
say_page(uint32_t number)
{
    vlm_pdf_page_head_t  page = { .number = number, .width = 612, .height = 792 };

    say(VLM_FRAME_PAGE, &page, sizeof(page));
}


/* Says why the file was not read; returns the status of a vlm-pdf that has said so. */
static inline int
complain(const char *text)
{
    say_text(VLM_FRAME_ERROR, text);

    return 1;
}


/* ---- as its caller ------------------------------------------------------------------------ */

/* All children that vlm_reader_run() has left end by themselves or were killed. */
static inline void
wait_for_all(void)
{
    int  status;

    while (waitpid(-1, &status, 0) > 0 || errno == EINTR) { }

    assert_int_equal(errno, ECHILD);
}

#endif
