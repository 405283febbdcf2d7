/*
 * The frames that vlm-pdf, the reader of PDF files, writes to one pipe.
 *
 * A frame is two numbers of 32 bits, its kind and the bytes of its body, and the body.  All numbers
 * have the machine's byte order, because both ends are on one machine.  vlm-pdf runs a large
 * library over files of strangers, so the server trusts no byte of it: this reader checks each
 * count, the order of frames, UTF-8, and that numbers are finite and boxes lie within their page.
 *
 *   VLM_FRAME_INFO     u32 pages of the file, u32 pages that will be read; the title
 *   VLM_FRAME_PAGE     vlm_pdf_page_head_t; its words, each a vlm_pdf_word_t; the page's text
 *   VLM_FRAME_PICTURE  u32 page, u32 width, u32 height; a PNG file
 *   VLM_FRAME_ERROR    a sentence, which ends the frames
 *   VLM_FRAME_END      u32 pages that were read; it ends the frames
 *   VLM_FRAME_KILLED   a sentence, which ends the frames: another process has ended the reading, so
 *                      the file may be read when it is tried again
 *   VLM_FRAME_DENIED   a sentence: the files that vlm-pdf tried to open, and was not let
 *
 * INFO comes first and once, pages from 1 without a gap, a picture only if one was asked for.
 * DENIED, if any, comes right before the last.
 */

#ifndef VLM_FRAME_H
#define VLM_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define VLM_FRAME_HEAD   8                 /* bytes */
#define VLM_FRAME_MAX    (32u << 20)       /* bytes of a body */
#define VLM_FRAME_TITLE  1024              /* bytes */
#define VLM_FRAME_ERROR_TEXT  400          /* bytes */
#define VLM_PDF_PAGES    100000            /* pages of a file, as it says itself */
#define VLM_PDF_TEXT     (4u << 20)        /* bytes of one page's text */
#define VLM_PDF_WORDS    (1u << 18)        /* of one page */
#define VLM_PDF_SIDE     8192              /* pixels of a picture */

/* An ERROR's sentence begins so if OCR, not the file, is the reason: without OCR it may be read. */
#define VLM_PDF_OCR_ERROR  "OCR: "

/* An ERROR's sentence begins so if the reading took all of its time, or of its memory. */
#define VLM_PDF_LATE     "reading took longer than"
#define VLM_PDF_LARGE    "reading needed more than"

/* The share of a processor that a busy machine leaves to vlm-pdf at least; with less it is late. */
#define VLM_PDF_SHARE    10

/* An ERROR's sentence begins so, after OCR's if that was at work, if the child did what no honest
   file makes it do. */
#define VLM_PDF_FORBIDDEN  "the reader tried a forbidden system call"
#define VLM_PDF_DIED       "the reader died"

/* Of the names of OCR's languages, joined by a plus. */
#define VLM_PDF_LANGUAGES  "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+"
#define VLM_PDF_LANGUAGES_MAX  63          /* bytes */

typedef enum {
    VLM_FRAME_INFO = 1,
    VLM_FRAME_PAGE,
    VLM_FRAME_PICTURE,
    VLM_FRAME_ERROR,
    VLM_FRAME_END,
    VLM_FRAME_KILLED,
    VLM_FRAME_DENIED
} vlm_frame_kind_t;

#define VLM_PDF_SCAN     1                 /* of a page: one picture covers nearly all of it */
#define VLM_PDF_OCR      2                 /* of a page: its words were read from its picture */
#define VLM_PDF_DAMAGED  4                 /* of a page: it cannot be read, and has no text */
#define VLM_PDF_HIDDEN   1                 /* of a word: nothing is visible in its box */

typedef struct {
    uint32_t     number;                   /* from 1 */
    float        width, height;            /* points, as the page is shown: after its rotation */
    uint32_t     flags;
    uint32_t     words;
    uint32_t     text_bytes;
} vlm_pdf_page_head_t;

typedef struct {
    uint32_t     first;                    /* byte of the page's text */
    uint32_t     bytes;
    float        x0, y0, x1, y1;           /* points from the page's upper left corner */
    uint32_t     flags;
} vlm_pdf_word_t;

/* A frame that was checked; pointers are into the body that was given. */
typedef struct {
    vlm_frame_kind_t       kind;
    uint32_t               pages, to_read;         /* INFO */
    vlm_pdf_page_head_t    page;                   /* PAGE */
    const vlm_pdf_word_t  *words;                  /* PAGE: page.words of them */
    uint32_t               number, width, height;  /* PICTURE */
    uint32_t               read;                   /* END */
    const char            *text;                   /* a title, a page's text, a PNG, a sentence */
    size_t                 bytes;                  /* of text, which has no zero */
} vlm_frame_t;

/* The limits of the request, and the state after the frames so far. */
typedef struct {
    uint32_t  max_pages, max_characters;   /* that were asked for, at most */
    uint32_t  to_read;                     /* 0: no INFO yet */
    uint32_t  last;                        /* the latest page */
    uint32_t  n_pages;
    uint32_t  picture;                     /* the page whose picture was asked for; 0: none */
    uint64_t  characters;                  /* of the pages so far */
    int       pictured;
    int       denied;
    int       ended;
} vlm_frames_t;

/*
 * Reads the head of a frame from VLM_FRAME_HEAD bytes; -1: no such frame, or a body above
 * VLM_FRAME_MAX.
 */
int vlm_frame_head(const void *head, uint32_t *kind, uint32_t *bytes, vlm_err_t *err);

/* Does a frame of this kind end the frames? */
int vlm_frame_is_last(uint32_t kind);

/* Writes a head. */
void vlm_frame_write_head(void *head, vlm_frame_kind_t kind, uint32_t bytes);

/*
 * Checks the parts of a page by themselves: its size, flags, text and words; page->text_bytes and
 * page->words count them.
 */
int vlm_frame_page(const vlm_pdf_page_head_t *page, const vlm_pdf_word_t *words, const char *text,
    vlm_err_t *err);

/*
 * Checks one frame, given its kind and its whole body, which is aligned as malloc() does it.
 * frames is zero, but for the limits and picture, before the first.  -1: err says which rule the
 * helper broke.
 */
int vlm_frame_read(vlm_frames_t *frames, uint32_t kind, const void *body, uint32_t bytes,
    vlm_frame_t *frame, vlm_err_t *err);

#endif
