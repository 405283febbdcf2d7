/*
 * JPEG through libjpeg-turbo, the library under Pillow, called as Pillow calls it, so that the
 * bytes are equal.
 *
 * libjpeg fails by longjmp(), which passes frames of this file only.  All memory to be freed
 * afterwards is in one structure of the function that calls the one with setjmp().
 */

#include "image/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>

#include "base/stop.h"

#define QUALITY  95

typedef struct {
    struct jpeg_error_mgr     error;               /* first: libjpeg's pointer to it is ours */
    struct jpeg_progress_mgr  progress;
    jmp_buf                   leave;
    const vlm_stop_t         *stop;
    const char               *verb;                /* "decode": for sentences */
    uint32_t                  width, height;
    vlm_err_t                *err;
} guard_t;

typedef struct {
    guard_t                        guard;
    struct jpeg_decompress_struct  c;
    uint8_t                       *rgb, *ink;      /* ink: a row of CMYK, or NULL */
} decoder_t;

typedef struct {
    guard_t                      guard;
    struct jpeg_compress_struct  c;
    struct jpeg_destination_mgr  to;
    uint8_t                     *jpeg;
    size_t                       room;
} encoder_t;


/* libjpeg calls this in place of exit().  Its messages contain numbers, but no bytes of a file. */
static void
on_error(j_common_ptr c)
{
    char      text[JMSG_LENGTH_MAX];
    guard_t  *g;

    g = (guard_t *) c->err;

    switch (g->error.msg_code) {

    case JERR_OUT_OF_MEMORY:
        (void) vlm_fail(g->err, VLM_EMEMORY, "no memory to %s a JPEG of %ux%u pixels", g->verb,
                        g->width, g->height);
        break;

    case JERR_NO_BACKING_STORE:
        (void) vlm_fail(g->err, VLM_ELIMIT, "JPEG of %ux%u pixels needs more memory to decode than "
                        "its header says", g->width, g->height);
        break;

    default:
        g->error.format_message(c, text);
        (void) vlm_fail(g->err, VLM_EINPUT, "JPEG: damaged: %s", text);
        break;
    }

    longjmp(g->leave, 1);
}


/* On warnings the picture is shown with its faults, as in every other reader. */
static void
on_message(j_common_ptr c)
{
    (void) c;
}


/* Called for each row of blocks of each scan, and for each row of pixels. */
static void
on_progress(j_common_ptr c)
{
    guard_t  *g;

    g = (guard_t *) c->err;

    if (vlm_stopped(g->stop, g->err)) {
        longjmp(g->leave, 1);
    }
}


static void
set_guard(guard_t *g, const char *verb, uint32_t width, uint32_t height, vlm_err_t *err)
{
    (void) jpeg_std_error(&g->error);
    g->error.error_exit = on_error;
    g->error.output_message = on_message;
    g->progress.progress_monitor = on_progress;
    g->verb = verb;
    g->width = width;
    g->height = height;
    g->err = err;
}


/*
 * A row of CMYK as RGB, by Pillow's arithmetic.  Adobe writes inks inverted, so that 255 is none,
 * and all readers assume that, whether Adobe is named in the file or not.
 */
static void
mix_inks(uint8_t *rgb, const uint8_t *ink, uint32_t width)
{
    uint32_t  x, i, part, paper;

    for (x = 0; x < width; x++, rgb += 3, ink += 4) {
        for (i = 0; i < 3; i++) {
            paper = ink[3];                        /* 255 less the black */
            part = (255u - ink[i]) * paper + 128;
            part = ((part >> 8) + part) >> 8;      /* over 255, rounded */
            rgb[i] = (uint8_t) (paper - part);
        }
    }
}


static void
read_rows(decoder_t *d, const vlm_header_t *h)
{
    uint8_t   *out;
    JSAMPROW   row;

    while (d->c.output_scanline < h->height) {
        out = d->rgb + (size_t) d->c.output_scanline * h->width * 3;
        row = d->ink != NULL ? d->ink : out;

        (void) jpeg_read_scanlines(&d->c, &row, 1);

        if (d->ink != NULL) {
            mix_inks(out, d->ink, h->width);
        }
    }
}


static int
decode(decoder_t *d, const vlm_header_t *h, const void *data, size_t bytes)
{
    if (setjmp(d->guard.leave) != 0) {
        return -1;
    }

    jpeg_create_decompress(&d->c);
    d->c.progress = &d->guard.progress;
    d->c.mem->max_memory_to_use = (long) (h->memory - (uint64_t) h->width * h->height * 3);

    jpeg_mem_src(&d->c, data, (unsigned long) bytes);
    (void) jpeg_read_header(&d->c, TRUE);

    if (d->c.image_width != h->width || d->c.image_height != h->height) {
        (void) vlm_fail(d->guard.err, VLM_EINPUT, "JPEG: its header says %ux%u, its pixels %ux%u",
                        h->width, h->height, d->c.image_width, d->c.image_height);
        longjmp(d->guard.leave, 1);
    }

    d->c.out_color_space = d->c.num_components == 4 ? JCS_CMYK : JCS_RGB;
    d->rgb = malloc((size_t) h->width * h->height * 3);
    d->ink = d->c.num_components == 4 ? malloc((size_t) h->width * 4) : NULL;

    if (d->rgb == NULL || (d->c.num_components == 4 && d->ink == NULL)) {
        ERREXIT1(&d->c, JERR_OUT_OF_MEMORY, 0);
    }

    (void) jpeg_start_decompress(&d->c);
    read_rows(d, h);
    (void) jpeg_finish_decompress(&d->c);

    return 0;
}


uint8_t *
vlm_jpeg_decode(const vlm_header_t *h, const void *data, size_t bytes, const vlm_stop_t *stop,
                vlm_err_t *err)
{
    decoder_t  d;

    memset(&d, 0, sizeof(d));
    set_guard(&d.guard, "decode", h->width, h->height, err);
    d.guard.stop = stop;
    d.c.err = &d.guard.error;

    if (decode(&d, h, data, bytes) != 0) {
        free(d.rgb);
        d.rgb = NULL;
    }

    jpeg_destroy_decompress(&d.c);
    free(d.ink);

    return d.rgb;
}


static void
on_begin(j_compress_ptr c)
{
    (void) c;                          /* the buffer was allocated before */
}


/* Doubles the buffer, all of which has been written. */
static boolean
on_full(j_compress_ptr c)
{
    uint8_t    *more;
    encoder_t  *e;

    e = (encoder_t *) c->err;
    more = realloc(e->jpeg, e->room * 2);

    if (more == NULL) {
        ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    }

    e->jpeg = more;
    e->to.next_output_byte = more + e->room;
    e->to.free_in_buffer = e->room;
    e->room *= 2;

    return TRUE;
}


static void
on_end(j_compress_ptr c)
{
    (void) c;
}


static int
encode(encoder_t *e, const uint8_t *rgb, uint32_t width, uint32_t height)
{
    int       i;
    JSAMPROW  row;

    if (setjmp(e->guard.leave) != 0) {
        return -1;
    }

    jpeg_create_compress(&e->c);

    e->room = (size_t) width * height / 4 + 4096;  /* a photograph's usual share */
    e->jpeg = malloc(e->room);

    if (e->jpeg == NULL) {
        ERREXIT1(&e->c, JERR_OUT_OF_MEMORY, 0);
    }

    e->to.next_output_byte = e->jpeg;
    e->to.free_in_buffer = e->room;
    e->to.init_destination = on_begin;
    e->to.empty_output_buffer = on_full;
    e->to.term_destination = on_end;
    e->c.dest = &e->to;

    e->c.image_width = width;
    e->c.image_height = height;
    e->c.input_components = 3;
    e->c.in_color_space = JCS_RGB;
    jpeg_set_defaults(&e->c);
    jpeg_set_quality(&e->c, QUALITY, TRUE);

    for (i = 0; i < 3; i++) {
        e->c.comp_info[i].h_samp_factor = 1;
        e->c.comp_info[i].v_samp_factor = 1;
    }

    jpeg_start_compress(&e->c, TRUE);

    while (e->c.next_scanline < height) {
        row = (JSAMPROW) rgb + (size_t) e->c.next_scanline * width * 3;
        (void) jpeg_write_scanlines(&e->c, &row, 1);
    }

    jpeg_finish_compress(&e->c);

    return 0;
}


int
vlm_jpeg_encode(const uint8_t *rgb, uint32_t width, uint32_t height, void **jpeg, size_t *bytes,
                vlm_err_t *err)
{
    int        rc;
    encoder_t  e;

    memset(&e, 0, sizeof(e));
    set_guard(&e.guard, "write", width, height, err);
    e.c.err = &e.guard.error;
    rc = encode(&e, rgb, width, height);

    if (rc == 0) {
        *jpeg = e.jpeg;
        *bytes = e.room - e.to.free_in_buffer;
    } else {
        free(e.jpeg);
    }

    jpeg_destroy_compress(&e.c);

    return rc;
}
