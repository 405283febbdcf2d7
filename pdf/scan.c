/* Pages without text: their picture in grey, and the words that OCR finds in it. */

#define _GNU_SOURCE

#include "scan.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "picture.h"

#define DPI     200.0                      /* 300 finds one word of 240 more in print of 6 points,
                                              and takes a third longer */
#define PIXELS  (8u << 20)                 /* A3 with DPI; a larger page gets fewer an inch */
#define SIDE    16                         /* pixels: a smaller picture has no words */
#define BLANK   8                          /* levels between the darkest and the lightest pixel */


/* ---- the library -------------------------------------------------------------------------- */

static int
library(char *path, size_t bytes)
{
    static const char  name[] = "vlm-pdf-ocr.so";
    char              *slash;
    ssize_t            n = readlink("/proc/self/exe", path, bytes - 1);

    if (n <= 0) {
        return -1;
    }

    path[n] = '\0';
    slash = strrchr(path, '/');

    if (slash == NULL || (size_t) (slash + 1 - path) + sizeof(name) > bytes) {
        return -1;
    }

    memcpy(slash + 1, name, sizeof(name));

    return 0;
}


/* Tesseract's remarks about odd pictures would go to a log that cannot grow. */
static int
silence(void)
{
    int  null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int  rc = null < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ? -1 : 0;

    if (null > 2) {
        close(null);
    }

    return rc;
}


int
pdf_scan_open(pdf_scan_t *scan, const pdf_job_t *job, char *text, size_t bytes)
{
    char              path[4096];
    void             *so;
    const pdf_ocr_t  *ocr;

    so = library(path, sizeof(path)) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    if (so == NULL) {
        snprintf(text, bytes, VLM_PDF_OCR_ERROR "%.200s: install libtesseract-dev, and run "
                 "\"make documents\"", dlerror());
        return -1;
    }

    ocr = dlsym(so, "vlm_pdf_ocr");

    if (ocr == NULL || ocr->version != PDF_OCR_VERSION) {
        snprintf(text, bytes, VLM_PDF_OCR_ERROR "%.160s belongs to another version of vlm-pdf",
                 path);
        return -1;
    }

    if (ocr->find(job->languages, scan->dir, text, bytes)) {
        return -1;
    }

    if (silence()) {
        snprintf(text, bytes, VLM_PDF_OCR_ERROR "/dev/null: %s", strerror(errno));
        return -1;
    }

    scan->ocr = ocr;
    scan->languages = job->languages;
    scan->left = job->ocr_seconds * 1000000ull;

    return 0;
}


/* ---- the picture -------------------------------------------------------------------------- */

/* The page in grey, without a line's padding; NULL: no memory, or nothing but one level. */
static uint8_t *
grey_of(cairo_surface_t *surface, uint32_t width, uint32_t height)
{
    int             level, low = 255, high = 0;
    uint8_t        *grey = malloc((size_t) width * height);
    uint32_t        x, y;
    const uint8_t  *row = cairo_image_surface_get_data(surface);

    for (y = 0; grey != NULL && y < height; y++) {
        for (x = 0; x < width; x++) {
            level = (row[4 * x] + 2 * row[4 * x + 1] + row[4 * x + 2]) / 4;
            low = level < low ? level : low;
            high = level > high ? level : high;
            grey[(size_t) y * width + x] = (uint8_t) level;
        }

        row += cairo_image_surface_get_stride(surface);
    }

    if (high - low <= BLANK) {
        free(grey);
        return NULL;
    }

    return grey;
}


/* ---- the words ---------------------------------------------------------------------------- */

typedef struct {
    pdf_text_t  *text;
    uint32_t    *left;
    double       scale;                    /* pixels a point */
} words_t;


static void
add_word(void *data, const pdf_ocr_word_t *word)
{
    char             *text = g_strdup(word->text);
    words_t          *words = data;
    pdf_box_t         box = { word->x0 / words->scale, word->y0 / words->scale,
                              word->x1 / words->scale, word->y1 / words->scale };

    if (words->text->text->len < VLM_PDF_TEXT / 2) {
        pdf_text_separate(words->text, word->begins_line ? '\n' : ' ', words->left);
        pdf_text_append(words->text, text, pdf_text_clean(text, strnlen(text, VLM_PDF_TEXT / 2)),
                        &box, words->left);
    }

    g_free(text);
}


/* Tesseract is started by the first page that needs it. */
static int
read_words(pdf_scan_t *scan, const pdf_ocr_picture_t *picture, words_t *words, char *text,
    size_t bytes)
{
    const uint64_t  began = vlm_now_us();
    uint64_t        took;

    if (!scan->started && scan->ocr->start(scan->dir, scan->languages, text, bytes)) {
        return -1;
    }

    scan->started = 1;
    (void) scan->ocr->read(picture, (uint32_t) (scan->left / 1000), add_word, words);

    took = vlm_now_us() - began;
    scan->left -= took < scan->left ? took : scan->left;

    return 0;
}


int
pdf_scan_read(pdf_scan_t *scan, PopplerPage *page, uint32_t number, pdf_text_t *t,
    uint32_t *left, char *text, size_t bytes)
{
    int                rc = 0;
    words_t            words = { t, left, 0 };
    uint8_t           *grey;
    cairo_surface_t   *surface;
    pdf_ocr_picture_t  picture;

    if (scan->ocr == NULL || scan->left < 1000) {
        return 0;
    }

    words.scale = MIN(DPI / 72, MIN(sqrt(PIXELS / (t->width * t->height)),
                                    (VLM_PDF_SIDE - 1) / MAX(t->width, t->height)));
    surface = pdf_draw(page, t->width, t->height, words.scale);

    if (surface == NULL) {
        return 0;
    }

    picture.width = (uint32_t) cairo_image_surface_get_width(surface);
    picture.height = (uint32_t) cairo_image_surface_get_height(surface);
    picture.dpi = (uint32_t) MAX(words.scale * 72, 70);
    picture.grey = grey = grey_of(surface, picture.width, picture.height);
    cairo_surface_destroy(surface);

    if (grey != NULL && picture.width >= SIDE && picture.height >= SIDE) {
        pdf_hint->ocr_page = number;       /* a library that dies does not say where it was */
        rc = read_words(scan, &picture, &words, text, bytes);
        pdf_hint->ocr_page = 0;
    }

    free(grey);

    return rc;
}
