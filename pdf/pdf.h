/*
 * vlm-pdf: reads one PDF file of a stranger and writes frames (lib/document/frame.h).
 *
 * The program is two processes.  The child reads with poppler behind walls; the parent passes on
 * the child's whole frames, ends the child after its time, and says why a child that died did so.
 * Neither listens, and both end with the file.
 */

#ifndef VLM_PDF_H
#define VLM_PDF_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "document/frame.h"

/* The work that the command line asks for. */
typedef struct {
    uint32_t  pages;                       /* to read at most */
    uint32_t  characters;                  /* of text at most, over all pages */
    uint64_t  memory;                      /* bytes of address space */
    uint32_t  seconds;                     /* of processor time */
    uint32_t  picture;                     /* the page to draw instead of reading text; 0: none */
    uint32_t  pixels;                      /* of that picture at most */
    const char  *languages;                /* of OCR, "eng" or "deu+eng"; NULL: no OCR */
    uint32_t  ocr_seconds;                 /* of seconds, for OCR of all pages */
    int       seccomp_alone;               /* without Landlock, where the kernel lacks it */
} pdf_job_t;

/* The fifth argument of an openat() that seccomp lets pass.  It is no secret. */
#define PDF_OPEN_TAG     0x7a6d2c91f05b83e4ul

#define PDF_DENIED       3                 /* files that are named */
#define PDF_DENIED_PATH  128               /* bytes, the rest is cut */

/* The child tells its parent what its end does not show.  The parent takes it as a hint only. */
typedef struct {
    int       no_memory;                   /* an allocation has failed */
    int       call;                        /* the number of a forbidden system call, plus 1 */
    uint32_t  ocr_page;                    /* that OCR is reading; 0: none */
    uint32_t  n_denied;                    /* times that a file was not opened for want of rights */
    char      denied[PDF_DENIED][PDF_DENIED_PATH];     /* the first of them */
} pdf_hint_t;

extern pdf_hint_t  *pdf_hint;              /* shared by both processes */

/*
 * The parent's work: passes on the frames that the child writes to fd until the last one, its end
 * or its time, and ends the child.  An exit status: 1 if the server has closed its pipe.
 */
int pdf_watch(const pdf_job_t *job, pid_t child, int fd);

/* The child's work on file descriptor 0, frames to out.  0 or an exit status. */
int pdf_read(const pdf_job_t *job, int out);

/*
 * Closes everything but what reading a PDF needs: limits of memory, time and files, Landlock (fonts
 * and the directory more, if it is not NULL, may be read), seccomp.  From then on a forbidden call
 * ends the process, with its number in pdf_hint; files that the walls keep closed are noted there.
 * 0, or -1 and a sentence in text.  The caller tells which walls stand: all of them, or without
 * Landlock if seccomp_alone is set.
 */
int pdf_walls(const pdf_job_t *job, const char *more, char *text, size_t bytes);

/* Writes all bytes; -1: the other side has closed. */
int pdf_write(int fd, const void *data, size_t bytes);

/* Writes the head of a frame, or a whole one; -1: closed, or a body above VLM_FRAME_MAX. */
int pdf_write_head(int fd, vlm_frame_kind_t kind, size_t bytes);
int pdf_write_frame(int fd, vlm_frame_kind_t kind, const void *body, size_t bytes);

/* The name of a system call, in text. */
void pdf_call_name(int number, char *text, size_t bytes);

#endif
