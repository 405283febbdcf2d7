/* The child: poppler's pages as frames. */

#include "pdf.h"

#include <cairo.h>
#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <poppler.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hidden.h"
#include "lines.h"
#include "picture.h"
#include "scan.h"
#include "text.h"
#include "words.h"

#define MAX_DPI    300.0                   /* of a page's picture */
#define SCAN       0.8                     /* of a page's area: more is a scan */


static int
write_error(int out, const char *sentence)
{
    char    text[VLM_FRAME_ERROR_TEXT];
    size_t  bytes;

    g_strlcpy(text, sentence, sizeof(text));
    bytes = pdf_text_clean(text, strlen(text));

    return pdf_write_frame(out, VLM_FRAME_ERROR, text, bytes);
}


/* A file, opened by both interfaces of poppler, and what is read of it. */
typedef struct {
    const pdf_job_t  *job;
    PopplerDocument  *document;
    pdf_words_t      *words;
    pdf_scan_t       *scan;
    uint32_t          left;                /* characters to read */
    int               out;                 /* the pipe of frames */
} file_t;


static int
is_scan(const pdf_text_t *t, PopplerPage *page)
{
    int                  found;
    GList               *list, *l;
    PopplerRectangle    *r;

    found = 0;
    list = poppler_page_get_image_mapping(page);

    for (l = list; l != NULL; l = l->next) {
        r = &((PopplerImageMapping *) l->data)->area;
        found |= fabs(r->x2 - r->x1) * fabs(r->y2 - r->y1) >= SCAN * t->width * t->height;
    }

    poppler_page_free_image_mapping(list);

    return found;
}


/* ---- frames ------------------------------------------------------------------------------- */

static int
write_page(int out, uint32_t flags, uint32_t number, const pdf_text_t *t)
{
    const size_t               bytes = t->words->len * sizeof(vlm_pdf_word_t);
    const vlm_pdf_page_head_t  head = {
        .number = number, .width = (float) t->width, .height = (float) t->height,
        .flags = flags, .words = t->words->len, .text_bytes = (uint32_t) t->text->len
    };

    return pdf_write_head(out, VLM_FRAME_PAGE, sizeof(head) + bytes + t->text->len)
           || pdf_write(out, &head, sizeof(head)) || pdf_write(out, t->words->data, bytes)
           || pdf_write(out, t->text->str, t->text->len) ? -1 : 0;
}


/* A size that poppler cannot say, or says wrongly, is a letter's; so is a damaged page's, NULL. */
static void
page_size(PopplerPage *page, double *width, double *height)
{
    *width = *height = 0;

    if (page != NULL) {
        poppler_page_get_size(page, width, height);
    }

    *width = (float) *width;                             /* as the frame has them */
    *height = (float) *height;

    if (!(*width >= 1 && *width <= 1e9 && *height >= 1 && *height <= 1e9)) {
        *width = 612;
        *height = 792;
    }
}


/* The page's own text. */
static void
append_page(file_t *f, uint32_t number, pdf_text_t *t)
{
    size_t       n;
    pdf_char_t  *chars;

    chars = pdf_words_page(f->words, number - 1, &n);

    if (chars != NULL) {
        pdf_lines_append(t, chars, n, &f->left);
    }

    free(chars);
}


/* The page's own text, or what OCR finds on a page without; its flags, or -1: an error was sent. */
static int
find_words(file_t *f, PopplerPage *page, uint32_t number, pdf_text_t *t)
{
    int   flags = is_scan(t, page) ? VLM_PDF_SCAN : 0;
    char  text[VLM_FRAME_ERROR_TEXT];

    append_page(f, number, t);

    if (t->words->len > 0 && pdf_hidden_find(t, page)) {
        g_array_set_size(t->words, 0);
        g_string_truncate(t->text, 0);
        return VLM_PDF_DAMAGED;
    }

    if (t->words->len > 0) {
        return flags;
    }

    if (pdf_scan_read(f->scan, page, number, t, &f->left, text, sizeof(text))) {
        (void) write_error(f->out, text);
        return -1;
    }

    return t->words->len > 0 ? flags | VLM_PDF_OCR : flags;
}


/* A damaged page, NULL, keeps its number: it is sent without text. */
static int
read_page(file_t *f, PopplerPage *page, uint32_t number)
{
    int         rc, flags;
    pdf_text_t  t = { 0 };

    page_size(page, &t.width, &t.height);
    t.text = g_string_new(NULL);
    t.words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t));
    t.chars = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t));

    flags = page != NULL ? find_words(f, page, number, &t) : VLM_PDF_DAMAGED;
    rc = flags < 0 ? -1 : write_page(f->out, (uint32_t) flags, number, &t);
    g_array_free(t.words, TRUE);
    g_array_free(t.chars, TRUE);
    g_string_free(t.text, TRUE);

    return rc;
}


static int
read_pages(file_t *f, uint32_t to_read)
{
    uint32_t      i, n;
    PopplerPage  *page;

    for (i = 0, n = 0; i < to_read && f->left > 0; i++) {
        page = poppler_document_get_page(f->document, (int) i);

        if (read_page(f, page, i + 1)) {
            return -1;
        }

        if (page != NULL) {
            n++;
            g_object_unref(page);
        }
    }

    if (n == 0) {
        return write_error(f->out, "damaged: none of its pages can be read");
    }

    return pdf_write_frame(f->out, VLM_FRAME_END, &i, 4);
}


static int
write_picture(int out, uint32_t number, cairo_surface_t *surface)
{
    int             rc;
    GByteArray     *png;
    const uint32_t  none = 0;
    const uint32_t  head[3] = { number, (uint32_t) cairo_image_surface_get_width(surface),
                                (uint32_t) cairo_image_surface_get_height(surface) };

    png = g_byte_array_new();

    if (pdf_png(surface, png) || png->len > VLM_FRAME_MAX - sizeof(head)) {
        rc = write_error(out, "the page's picture is too large");

    } else {
        rc = pdf_write_head(out, VLM_FRAME_PICTURE, sizeof(head) + png->len)
             || pdf_write(out, head, sizeof(head)) || pdf_write(out, png->data, png->len)
             || pdf_write_frame(out, VLM_FRAME_END, &none, 4) ? -1 : 0;
    }

    g_byte_array_free(png, TRUE);

    return rc;
}


/* The page as large as fits job->pixels, at most MAX_DPI. */
static int
draw_page(const file_t *f)
{
    int               rc;
    const pdf_job_t  *job = f->job;
    double            width, height, scale;
    PopplerPage      *page;
    cairo_surface_t  *surface;

    page = poppler_document_get_page(f->document, (int) job->picture - 1);

    if (page == NULL) {
        return write_error(f->out, "the page cannot be read");
    }

    page_size(page, &width, &height);
    scale = sqrt(job->pixels / (width * height));
    scale = MIN(scale, MIN(MAX_DPI / 72, (VLM_PDF_SIDE - 1) / MAX(width, height)));

    /* Sides are rounded up, to one pixel at least. */
    while (MAX(ceil(width * scale), 1) * MAX(ceil(height * scale), 1) > job->pixels) {
        scale *= 0.99;
    }

    surface = pdf_draw(page, width, height, scale);
    g_object_unref(page);

    if (surface == NULL) {
        return write_error(f->out, "the page cannot be drawn");
    }

    rc = write_picture(f->out, job->picture, surface);
    cairo_surface_destroy(surface);

    return rc;
}


/* ---- the document ------------------------------------------------------------------------- */

static int
write_info(int out, PopplerDocument *document, uint32_t pages, uint32_t to_read)
{
    char            *title;
    size_t           bytes;
    int              rc;
    const uint32_t   numbers[2] = { pages, to_read };

    title = poppler_document_get_title(document);
    bytes = 0;

    if (title != NULL) {
        bytes = pdf_text_clean(title, strnlen(title, VLM_FRAME_TITLE));
    }

    rc = pdf_write_head(out, VLM_FRAME_INFO, sizeof(numbers) + bytes)
         || pdf_write(out, numbers, sizeof(numbers)) || pdf_write(out, title, bytes) ? -1 : 0;
    g_free(title);

    return rc;
}


static int
refuse(int out, const GError *error)
{
    char  text[VLM_FRAME_ERROR_TEXT];

    if (g_error_matches(error, POPPLER_ERROR, POPPLER_ERROR_ENCRYPTED)) {
        return write_error(out, "a password is needed");
    }

    g_snprintf(text, sizeof(text), "damaged: %s", error->message);

    return write_error(out, text);
}


static int
read_document(file_t *f)
{
    const int       n = poppler_document_get_n_pages(f->document);
    const uint32_t  pages = (uint32_t) CLAMP(n, 0, VLM_PDF_PAGES);
    const uint32_t  to_read = MIN(pages, f->job->pages);

    if (pages == 0) {
        return write_error(f->out, "damaged: it has no pages");
    }

    if (f->job->picture > pages) {
        return write_error(f->out, "there is no such page");
    }

    if (write_info(f->out, f->document, pages, to_read)) {
        return -1;
    }

    return f->job->picture ? draw_page(f) : read_pages(f, to_read);
}


/* Opens the file by both interfaces and reads it; an error is sent. */
static int
open_document(file_t *f, GBytes *bytes)
{
    int      rc;
    GError  *error = NULL;

    f->document = poppler_document_new_from_bytes(bytes, NULL, &error);

    if (f->document == NULL) {
        return refuse(f->out, error);
    }

    f->words = f->job->picture ? NULL : pdf_words_open(g_bytes_get_data(bytes, NULL),
                                                       g_bytes_get_size(bytes));
    rc = f->words != NULL || f->job->picture
         ? read_document(f) : write_error(f->out, "damaged: it has no pages");

    pdf_words_close(f->words);
    g_object_unref(f->document);

    return rc;
}


/* The bytes of the open file, which others may cut while they are read; NULL: it cannot be read. */
static GBytes *
read_file(int fd)
{
    char         *data;
    ssize_t       n;
    size_t        bytes = 0;
    struct stat   file;

    if (fstat(fd, &file) || file.st_size < 0) {
        return NULL;
    }

    data = g_malloc((size_t) file.st_size + 1);

    do {
        n = pread(fd, data + bytes, (size_t) file.st_size - bytes, (off_t) bytes);
        bytes += n > 0 ? (size_t) n : 0;
    } while (n > 0 || (n < 0 && errno == EINTR));

    return g_bytes_new_take(data, bytes);
}


/*
 * The walls forbid this later: fontconfig writes its cache, iconv loads the module of UTF-16, and
 * poppler's dates ask for the time zone.
 */
static int
prepare(void)
{
    tzset();

    return !FcInit() || g_iconv_open("UTF-8", "UTF-16BE") == (GIConv) -1 ? -1 : 0;
}


/* Everything that reads a file outside the walls, then the walls.  -1: an error was sent. */
static int
close_walls(const pdf_job_t *job, int out, pdf_scan_t *scan)
{
    int   rc;
    char  text[VLM_FRAME_ERROR_TEXT];

    if (prepare()) {
        (void) write_error(out, "fonts cannot be read");
        return -1;
    }

    rc = job->languages && !job->picture ? pdf_scan_open(scan, job, text, sizeof(text)) : 0;

    if (rc || pdf_walls(job, scan->ocr ? scan->dir : NULL, text, sizeof(text))) {
        (void) write_error(out, text);
        return -1;
    }

    return 0;
}


int
pdf_read(const pdf_job_t *job, int out)
{
    int          rc;
    file_t       f = { .job = job, .left = job->characters, .out = out };
    GBytes      *bytes;
    pdf_scan_t   scan = { 0 };

    if (close_walls(job, out, &scan)) {
        return -1;
    }

    bytes = read_file(0);

    if (bytes == NULL) {
        return write_error(out, "the file cannot be read");
    }

    f.scan = &scan;
    rc = open_document(&f, bytes);
    g_bytes_unref(bytes);

    return rc;
}
