/* The child: poppler's pages as frames. */

#include "pdf.h"

#include <cairo.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <poppler.h>
#include <string.h>
#include <time.h>

#include "order.h"
#include "picture.h"
#include "scan.h"
#include "text.h"

#define SEEN_DPI   50.0                    /* of the picture in which words are looked for */
#define SEEN       8                       /* levels, of 255, that differ in a box with something
                                              visible */
#define MAX_DPI    300.0                   /* of a page's picture */
#define SCAN       0.8                     /* of a page's area: more is a scan */


static int
write_error(int out, const char *sentence)
{
    char    text[VLM_FRAME_ERROR_TEXT];
    size_t  bytes;

    g_strlcpy(text, sentence, sizeof(text));
    bytes = pdf_text_clean(text, strlen(text), 0);

    return pdf_write_frame(out, VLM_FRAME_ERROR, text, bytes);
}


/* ---- pieces -------------------------------------------------------------------------------- */

typedef struct {
    const char              *text;         /* without spaces at its ends */
    size_t                   bytes;
    const PopplerRectangle  *boxes;        /* of its characters */
    size_t                   row;
} source_t;

typedef struct {
    GArray  *pieces;                       /* pdf_piece_t */
    GArray  *sources;                      /* source_t, as many */
    size_t   row;
} pieces_t;


/* A gap as wide as a character is high separates two columns, or two cells of a table. */
static int
is_apart(const PopplerRectangle *a, const PopplerRectangle *b)
{
    const double  height = MAX(fabs(a->y2 - a->y1), fabs(b->y2 - b->y1));

    return MIN(b->x1, b->x2) - MAX(a->x1, a->x2) > height
           || MIN(a->x1, a->x2) - MAX(b->x1, b->x2) > height;
}


static void
add_character(pieces_t *all, const char *p, const char *next, const PopplerRectangle *box,
    int begins)
{
    pdf_piece_t  *piece;
    source_t     *source;

    if (begins) {
        g_array_set_size(all->pieces, all->pieces->len + 1);
        g_array_set_size(all->sources, all->sources->len + 1);
    }

    piece = &g_array_index(all->pieces, pdf_piece_t, all->pieces->len - 1);
    source = &g_array_index(all->sources, source_t, all->sources->len - 1);

    if (begins) {
        *piece = (pdf_piece_t) { (float) MIN(box->x1, box->x2), (float) MAX(box->x1, box->x2), 0 };
        *source = (source_t) { .text = p, .boxes = box, .row = all->row };
    }

    piece->x0 = MIN(piece->x0, (float) MIN(box->x1, box->x2));
    piece->x1 = MAX(piece->x1, (float) MAX(box->x1, box->x2));
    piece->characters++;
    source->bytes = (size_t) (next - source->text);
}


/* Cuts poppler's text into pieces: at the ends of rows and at gaps. */
static void
find_pieces(pieces_t *all, const char *text, size_t bytes, const PopplerRectangle *boxes,
    guint n_boxes)
{
    guint                    i;
    gunichar                 c;
    const char              *p, *next;
    const PopplerRectangle  *last;

    last = NULL;

    for (p = text, i = 0; p < text + bytes && i < n_boxes; p = next, i++) {
        next = g_utf8_next_char(p);
        c = g_utf8_get_char(p);

        if (c == '\n') {
            all->row++;
            last = NULL;

        } else if (!g_unichar_isspace(c)) {
            add_character(all, p, next, &boxes[i], last == NULL || is_apart(last, &boxes[i]));
            last = &boxes[i];
        }
    }
}


/* Appends the pieces in the order of reading: a row's are separated by a tab. */
static void
append_pieces(pdf_text_t *t, const pieces_t *all, uint32_t *left)
{
    size_t     i, *order;
    source_t  *source, *last;

    order = g_new(size_t, 2 * (size_t) all->pieces->len);
    pdf_order((const pdf_piece_t *) (const void *) all->pieces->data, all->pieces->len,
              (float) t->width, order, order + all->pieces->len);

    for (i = 0, last = NULL; i < all->sources->len; i++, last = source) {
        source = &g_array_index(all->sources, source_t, order[i]);

        if (last != NULL) {
            pdf_text_separate(t, last->row == source->row ? '\t' : '\n', left);
        }

        pdf_text_append(t, source->text, source->bytes, source->boxes, 1, left);
    }

    g_free(order);
}


/* The page's own text. */
static void
append_page(pdf_text_t *t, PopplerPage *page, uint32_t *left)
{
    char              *text;
    guint              n_boxes;
    pieces_t           all = { 0 };
    PopplerRectangle  *boxes;

    text = poppler_page_get_text(page);
    boxes = NULL;
    n_boxes = 0;

    if (text != NULL && poppler_page_get_text_layout(page, &boxes, &n_boxes)) {
        all.pieces = g_array_new(FALSE, FALSE, sizeof(pdf_piece_t));
        all.sources = g_array_new(FALSE, FALSE, sizeof(source_t));

        find_pieces(&all, text, pdf_text_clean(text, strnlen(text, VLM_PDF_TEXT / 2), 1), boxes,
                    n_boxes);
        append_pieces(t, &all, left);

        g_array_free(all.pieces, TRUE);
        g_array_free(all.sources, TRUE);
    }

    g_free(boxes);
    g_free(text);
}


/* ---- fields -------------------------------------------------------------------------------- */

/* The value that was filled in; NULL: none, or none that is text. */
static char *
field_value(PopplerFormField *field)
{
    switch (poppler_form_field_get_field_type(field)) {
    case POPPLER_FORM_FIELD_TEXT:
        return poppler_form_field_text_is_password(field) ? NULL
                                                          : poppler_form_field_text_get_text(field);
    case POPPLER_FORM_FIELD_CHOICE:
        return poppler_form_field_choice_get_text(field);
    default:
        return NULL;
    }
}


/*
 * poppler's text has no fields of a form.  Their areas count from the lower left corner of the
 * page before its rotation; on a page that lies on its side a field's box is the whole page.
 */
static void
append_fields(pdf_text_t *t, PopplerPage *page, uint32_t *left)
{
    char              *value;
    GList             *list, *l;
    PopplerRectangle   crop, box;

    list = poppler_page_get_form_field_mapping(page);
    poppler_page_get_crop_box(page, &crop);

    for (l = list; l != NULL && *left > 0; l = l->next) {
        box = ((PopplerFormFieldMapping *) l->data)->area;

        if (fabs(crop.x2 - crop.x1 - t->width) < 1) {
            box.y1 = t->height - box.y1;
            box.y2 = t->height - box.y2;
        } else {
            box = (PopplerRectangle) { .x2 = t->width, .y2 = t->height };
        }

        value = field_value(((PopplerFormFieldMapping *) l->data)->field);

        if (value != NULL && *value != '\0' && t->text->len < VLM_PDF_TEXT / 2) {
            pdf_text_separate(t, '\n', left);
            pdf_text_append(t, value,
                            pdf_text_clean(value, strnlen(value, VLM_PDF_TEXT / 2 - 1), 1), &box, 0,
                            left);
        }

        g_free(value);
    }

    poppler_page_free_form_field_mapping(list);
}


/* Whether the pixels of a box differ by more than antialiasing of nothing. */
static int
is_blank(cairo_surface_t *surface, const vlm_pdf_word_t *word, double scale)
{
    int                   x, y, c, x0, y0, x1, y1, low[3], high[3];
    const unsigned char  *row;

    x0 = (int) (word->x0 * scale);
    y0 = (int) (word->y0 * scale);
    x1 = MIN((int) ceil(word->x1 * scale), cairo_image_surface_get_width(surface));
    y1 = MIN((int) ceil(word->y1 * scale), cairo_image_surface_get_height(surface));

    for (c = 0; c < 3; c++) {
        low[c] = 255;
        high[c] = 0;
    }

    for (y = y0; y < y1; y++) {
        row = cairo_image_surface_get_data(surface)
              + (size_t) y * (size_t) cairo_image_surface_get_stride(surface);

        for (x = x0; x < x1; x++) {
            for (c = 0; c < 3; c++) {
                low[c] = MIN(low[c], row[4 * x + c]);
                high[c] = MAX(high[c], row[4 * x + c]);
            }
        }
    }

    return high[0] - low[0] <= SEEN && high[1] - low[1] <= SEEN && high[2] - low[2] <= SEEN;
}


/*
 * A word is hidden if it is white, has no ink, or lies under something.  -1: the page cannot be
 * drawn, so that its words may be any of these.
 */
static int
find_hidden(pdf_text_t *t, PopplerPage *page)
{
    guint             i;
    double            scale;
    vlm_pdf_word_t   *word;
    cairo_surface_t  *surface;

    scale = MIN(SEEN_DPI / 72, 2000 / MAX(t->width, t->height));
    surface = pdf_draw(page, t->width, t->height, scale);

    if (surface == NULL) {
        return -1;
    }

    for (i = 0; i < t->words->len; i++) {
        word = &g_array_index(t->words, vlm_pdf_word_t, i);
        word->flags |= is_blank(surface, word, scale) ? VLM_PDF_HIDDEN : 0;
    }

    cairo_surface_destroy(surface);

    return 0;
}


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


/* The page's own text, or what OCR finds on a page without; its flags, or -1: an error was sent. */
static int
find_words(int out, PopplerPage *page, uint32_t number, pdf_scan_t *scan, pdf_text_t *t,
    uint32_t *left)
{
    int   flags = is_scan(t, page) ? VLM_PDF_SCAN : 0;
    char  text[VLM_FRAME_ERROR_TEXT];

    append_page(t, page, left);
    append_fields(t, page, left);

    if (t->words->len > 0 && find_hidden(t, page)) {
        g_array_set_size(t->words, 0);
        g_string_truncate(t->text, 0);
        return VLM_PDF_DAMAGED;
    }

    if (t->words->len > 0) {
        return flags;
    }

    if (pdf_scan_read(scan, page, number, t, left, text, sizeof(text))) {
        (void) write_error(out, text);
        return -1;
    }

    return t->words->len > 0 ? flags | VLM_PDF_OCR : flags;
}


/*
 * Reads at most *left characters of a page and takes them off.  A damaged page, NULL, keeps its
 * number: it is sent without text.
 */
static int
read_page(int out, PopplerPage *page, uint32_t number, pdf_scan_t *scan, uint32_t *left)
{
    int         rc, flags;
    pdf_text_t  t = { 0 };

    page_size(page, &t.width, &t.height);
    t.text = g_string_new(NULL);
    t.words = g_array_new(FALSE, TRUE, sizeof(vlm_pdf_word_t));

    flags = page != NULL ? find_words(out, page, number, scan, &t, left) : VLM_PDF_DAMAGED;
    rc = flags < 0 ? -1 : write_page(out, (uint32_t) flags, number, &t);
    g_array_free(t.words, TRUE);
    g_string_free(t.text, TRUE);

    return rc;
}


static int
read_pages(const pdf_job_t *job, int out, PopplerDocument *document, pdf_scan_t *scan,
    uint32_t to_read)
{
    uint32_t      i, left, n;
    PopplerPage  *page;

    left = job->characters;

    for (i = 0, n = 0; i < to_read && left > 0; i++) {
        page = poppler_document_get_page(document, (int) i);

        if (read_page(out, page, i + 1, scan, &left)) {
            return -1;
        }

        if (page != NULL) {
            n++;
            g_object_unref(page);
        }
    }

    if (n == 0) {
        return write_error(out, "damaged: none of its pages can be read");
    }

    return pdf_write_frame(out, VLM_FRAME_END, &i, 4);
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
draw_page(const pdf_job_t *job, int out, PopplerDocument *document)
{
    int               rc;
    double            width, height, scale;
    PopplerPage      *page;
    cairo_surface_t  *surface;

    page = poppler_document_get_page(document, (int) job->picture - 1);

    if (page == NULL) {
        return write_error(out, "the page cannot be read");
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
        return write_error(out, "the page cannot be drawn");
    }

    rc = write_picture(out, job->picture, surface);
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
        bytes = pdf_text_clean(title, strnlen(title, VLM_FRAME_TITLE), 0);
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
read_document(const pdf_job_t *job, int out, PopplerDocument *document, pdf_scan_t *scan)
{
    const int       n = poppler_document_get_n_pages(document);
    const uint32_t  pages = (uint32_t) CLAMP(n, 0, VLM_PDF_PAGES);

    if (pages == 0) {
        return write_error(out, "damaged: it has no pages");
    }

    if (job->picture > pages) {
        return write_error(out, "there is no such page");
    }

    if (write_info(out, document, pages, MIN(pages, job->pages))) {
        return -1;
    }

    return job->picture ? draw_page(job, out, document)
                        : read_pages(job, out, document, scan, MIN(pages, job->pages));
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
    int               rc;
    GError           *error;
    pdf_scan_t        scan = { 0 };
    PopplerDocument  *document;

    if (close_walls(job, out, &scan)) {
        return -1;
    }

    error = NULL;
    document = poppler_document_new_from_fd(0, NULL, &error);

    if (document == NULL) {
        return refuse(out, error);
    }

    rc = read_document(job, out, document, &scan);
    g_object_unref(document);

    return rc;
}
